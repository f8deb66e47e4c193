// SPDX-License-Identifier: Apache-2.0
/*
 * crashline.c - notes the signal and the line of Python where machine code crashes (KPROF_HANG, KPROF_RING)
 *
 * Called by: begin.c, exit.c, fork.c; the kernel (the handler), on any thread
 * Owns:      the handlers of four signals, where the program has none
 * Locks:     none
 * Memory:    never allocates; where the thread has a stack for signals, its handler runs there
 * On fail:   kprof why says "without an exit", as without the settings
 * Safe in:   the handler: signal handlers. After fork: kp_crashline_end() comes first
 *
 * The kernel sends these for what an instruction does, and gives the one that comes back first (SA_RESETHAND). The
 * handler gives the others back, so that whatever goes wrong in it ends the program as well. Then it notes, and
 * returns: the instruction is run once more, and ends the program by the kernel's default, with the same signal,
 * address and core file. A handler that the program sets later replaces it, as that of faulthandler or of a
 * DataLoader's worker. See decisions/206.
 */
#include "preload/run/crashline.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_io.h"
#include "preload/finish/execs.h"
#include "collector/base/kp_poison.h"

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { FAULTS = sizeof faults / sizeof *faults };
static struct sigaction usual[FAULTS]; /* SIG_DFL, as the program has it */
static _Atomic bool is_set; /* once they are given back, no system call is made: the program may have forbidden it */

/* A process sent it, or the kernel of memory that nothing has touched yet: no instruction brings it again. */
static bool is_once(const siginfo_t *info)
{
    return info->si_code <= 0 || (info->si_signo == SIGBUS && info->si_code == BUS_MCEERR_AO);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    const int saved = errno;
    (void)context;
    kp_crashline_end();
    kp_execs_signal(number);
    if (is_once(info)) kp_io_signal_self(number); /* comes when this returns */
    errno = saved;
}

static bool is_ours(int number)
{
    struct sigaction now;
    return kp_io_signal_action(number, NULL, &now) == 0 && now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault;
}

void kp_crashline_begin(void)
{
    const struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND};
    for (size_t i = 0; i < FAULTS; i++)
        if (kp_io_signal_action(faults[i], NULL, &usual[i]) == 0 && usual[i].sa_handler == SIG_DFL)
            (void)kp_io_signal_action(faults[i], &ours, NULL);
    kp_store_relaxed(&is_set, true);
}

void kp_crashline_end(void)
{
    if (!kp_exchange_acq_rel(&is_set, false)) return;
    for (size_t i = 0; i < FAULTS; i++)
        if (is_ours(faults[i])) (void)kp_io_signal_action(faults[i], &usual[i], NULL);
}
