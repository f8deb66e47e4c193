// SPDX-License-Identifier: Apache-2.0
/* signalname.c - names of signals */
#include "collector/base/text/kp_signalname.h"

#include <signal.h>
#include <string.h>

#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

static const struct {
    int number;
    const char *name;
} signals[] = {{SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
               {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
               {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
               {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"},
               {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"}};
enum { SIGNALS = sizeof signals / sizeof *signals };

const char *kp_signalname_put(int number, char *room, size_t bytes)
{
    kp_fmt(room, bytes, "signal %d", number);
    for (size_t i = 0; i < SIGNALS; i++)
        if (signals[i].number == number) kp_fmt(room, bytes, "%s", signals[i].name);
    return room;
}

int kp_signalname_number(const char *text)
{
    const size_t bytes = strcspn(text, " ");
    for (size_t i = 0; i < SIGNALS; i++)
        if (strlen(signals[i].name) == bytes && memcmp(text, signals[i].name, bytes) == 0) return signals[i].number;
    return 0;
}
