// SPDX-License-Identifier: Apache-2.0
/*
 * ctl_signal.c - KPROF_SIGNAL: a signal that starts and stops windows in turns
 *
 * Called by: ctl.c; the kernel (the handler); host threads in sigaction and signal (taps)
 * Owns:      the signal's handler, while the program has none
 * Locks:     none
 * On fail:   a line is logged, and the signal does what it does without us
 * Safe in:   the handler: signal handlers. After fork: kp_ctl_signal_forget comes first
 *
 * A handler of the program comes first: if it has one, or sets one later, the signal is the program's. While ours is
 * set, the program reads SIG_DFL where ours is. If it sets SIG_DFL, ours stays: it may only restore what it read, and
 * the signal would then end the process.
 */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/hook/hook.h"
#include "preload/run.h"
#include "preload/control/ctl.h"
#include "collector/base/kp_poison.h"

static _Atomic bool has_come, is_ours;
static int watched; /* 0: none */
static void (*ring)(void);
static struct sigaction usual; /* the program's or the inherited one, with SIG_DFL */

/* Signals that end or stop nothing else of a program. Real-time signals go by their number. */
static const struct {
    const char *name;
    int number;
} names[] = {{"HUP", SIGHUP}, {"USR1", SIGUSR1},   {"USR2", SIGUSR2},
             {"URG", SIGURG}, {"WINCH", SIGWINCH}, {"IO", SIGIO}};

int kp_ctl_signal_parse(const char *text)
{
    int number = 0;
    if (strncmp(text, "SIG", 3) == 0) text += 3;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i].name) == 0) return names[i].number;
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9' || number > 100) return 0;
        number = number * 10 + (*c - '0');
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (number == names[i].number) return number;
    return number >= SIGRTMIN && number <= SIGRTMAX ? number : 0;
}

static void on_signal(int number)
{
    int saved = errno;
    (void)number;
    kp_store_release(&has_come, true); /* pairs with: kp_ctl_signal_take */
    ring();
    errno = saved;
}

bool kp_ctl_signal_take(void) { return kp_exchange_acq_rel(&has_come, false); }

/* ---- what the program sees ---- */

static int (*real_sigaction)(int number, const struct sigaction *now, struct sigaction *before);
static void (*(*real_signal)(int number, void (*now)(int)))(int);

static bool is_about_ours(int number)
{
    return number == watched && kp_load_acquire(&is_ours) && kp_run_is_owner(); /* pairs with: kp_ctl_signal_watch */
}

static void give_way(void)
{
    kp_store_release(&is_ours, false);
    KP_LOG_ONCE(0, "the program handles signal %d by itself: it does not start or stop recording any more", watched);
}

static int tap_sigaction(int number, const struct sigaction *now, struct sigaction *before)
{
    if (!is_about_ours(number)) return real_sigaction(number, now, before);
    const struct sigaction was = usual;
    int rc = 0;
    if (now && now->sa_handler != SIG_DFL) {
        rc = real_sigaction(number, now, NULL);
        if (rc == 0) give_way();
    } else if (now) {
        usual = *now;
    }
    if (rc == 0 && before) *before = was;
    return rc;
}

static void (*tap_signal(int number, void (*now)(int)))(int)
{
    if (!is_about_ours(number)) return real_signal(number, now);
    if (now == SIG_DFL) return SIG_DFL;
    void (*before)(int) = real_signal(number, now);
    if (before == SIG_ERR) return SIG_ERR;
    give_way();
    return SIG_DFL;
}

static int taps_add(void)
{
    static const struct kp_tap_row rows[] = {KP_TAP_ROW("sigaction", sigaction), KP_TAP_ROW("signal", signal)};
    static struct kp_tap taps[2];
    if (taps[0].real) return 0; /* in a child they are installed already */
    return kp_hook_rows_find(NULL, rows, 2, taps) == 2 ? kp_hook_add_taps(taps, 2) : -ENOSYS;
}

void kp_ctl_signal_watch(int number, void (*wake)(void))
{
    struct sigaction ours = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigfillset(&ours.sa_mask);
    const int rc = kp_io_signal_action(number, NULL, &usual);
    if (rc == 0 && usual.sa_handler != SIG_DFL) {
        kp_log(0, "KPROF_SIGNAL: the program %s signal %d: it does not start or stop recording",
               usual.sa_handler == SIG_IGN ? "ignores" : "handles", number);
        return;
    }
    watched = number;
    ring = wake;
    if (rc == 0 && taps_add() != 0)
        kp_log(1, "sigaction could not be hooked: the program sees the profiler's handler of KPROF_SIGNAL");
    kp_store_release(&is_ours, true); /* pairs with: is_about_ours */
    if (rc == 0 && kp_io_signal_action(number, &ours, NULL) == 0) return;
    kp_store_release(&is_ours, false);
    kp_log(0, "KPROF_SIGNAL: signal %d cannot be handled here", number);
}

/* The child has its parent's handlers: without us the signal would end it. */
void kp_ctl_signal_forget(void)
{
    kp_store_relaxed(&has_come, false);
    if (kp_exchange_acq_rel(&is_ours, false)) (void)kp_io_signal_action(watched, &usual, NULL);
}
