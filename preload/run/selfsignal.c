// SPDX-License-Identifier: Apache-2.0
/*
 * selfsignal.c - notes that the program ends itself by a signal, as Python does after Ctrl-C, and says what is kept
 *
 * Called by: host threads in kill and raise (taps, installed by single_thread.c)
 * Owns:      nothing
 * Locks:     none
 * On fail:   no line is logged; kprof report finds the spool all the same
 * Safe in:   signal handlers yes: programs end themselves there; after fork and vfork: passes the call on
 *
 * Python turns SIGINT into KeyboardInterrupt, cleans up, and sends itself SIGINT with the default action, so that its
 * parent sees the signal. No exit handler runs then. The signal and its effect stay as they are: this logs a line. It
 * notes the line of Python for a signal of a crash: faulthandler ends a program so as well, once it has printed.
 */
#include "preload/run/exit.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "collector/base/kp_crash.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/sys/kp_sigblock.h"
#include "preload/run.h"
#include "preload/finish/closingline.h"
#include "preload/finish/execs.h"
#include "preload/window/window.h"
#include "collector/base/kp_poison.h"

static bool is_of_an_end(int number) { return number == SIGINT || number == SIGTERM || number == SIGHUP; }

/* A signal that this thread blocks may be waited for (sigwait), and ends nothing then. */
static void look(int number)
{
    const int saved = errno;
    struct kp_sigblock_all signals;
    struct sigaction action;
    if (!is_of_an_end(number) && !kp_crash_is(number)) return;
    kp_sigblock_all_begin(&signals);
    if (signals.is_blocked && !sigismember(&signals.old_mask, number) && kp_run_is_active() && kp_run_is_owner() &&
        kp_io_signal_action(number, NULL, &action) == 0 && action.sa_handler == SIG_DFL) {
        if (is_of_an_end(number)) kp_closingline_say_signal(number);
        else kp_execs_signal(number);
    }
    kp_sigblock_all_end(&signals);
    errno = saved;
}

static int (*real_kill)(pid_t pid, int number);
static int tap_kill(pid_t pid, int number)
{
    if (pid == getpid()) look(number);
    return real_kill(pid, number);
}

static int (*real_raise)(int number);
static int tap_raise(int number)
{
    look(number);
    return real_raise(number);
}

const struct kp_tap_row kp_selfsignal_rows[KP_SELFSIGNAL_ROWS] = {
    KP_TAP_ROW("kill", kill),
    {"raise", (void **)(void *)&real_raise, (void *)(uintptr_t)tap_raise},
};
