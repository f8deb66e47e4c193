// SPDX-License-Identifier: Apache-2.0
/*
 * confine.c - ends recording before the program confines itself by seccomp or forbids itself the time stamp counter
 *
 * Called by: host threads in prctl and seccomp_load (taps, installed by single_thread.c); in syscall through
 *            syscall_ARCH.S
 * Owns:      nothing
 * Locks:     those of exit, for a bounded time
 * On fail:   records of threads that were in the middle of a hook stay in the spool (kprof recover)
 * Safe in:   after fork and vfork: passes the call on if this process is not the owner
 *
 * After such a call the kernel may kill this thread or the process for a system call that only this library makes. So
 * traces are written now, all helper threads end, and the library makes no system call and reads no clock afterwards.
 * A system call by an inlined instruction is not seen.
 */
#include "preload/host/host.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_helper_threads.h"
#include "preload/run.h"
#include "collector/base/kp_poison.h"

/* A helper thread that outlives the exit of the program gives the process its status (Linux 5.17 and later). On a busy
 * machine a thread of SCHED_BATCH may want a core for longer than other pauses wait. */
enum { REST_MS = 2000 };

static void confine(const char *what, const char *how)
{
    int saved = errno;
    if (!kp_run_is_active() || !kp_run_is_owner()) return;
    kp_log(!kp_run_may_log(), "the program %s (%s): recording stops here", what, how);
    kp_run_end_early();
    (void)kp_helpers_pause(REST_MS);
    kp_clock_forbid();
    errno = saved;
}

/* A NULL filter sets nothing: programs use it to ask whether the kernel has filters. */
static bool is_seccomp_set(unsigned long mode, const void *filter)
{
    return mode == SECCOMP_MODE_STRICT || (mode == SECCOMP_MODE_FILTER && filter);
}

static void look_at_prctl(unsigned long option, unsigned long b, unsigned long c)
{
    if (option == PR_SET_SECCOMP && is_seccomp_set(b, (const void *)c)) confine("confines itself", "seccomp");
    if (option == PR_SET_TSC && b == PR_TSC_SIGSEGV) confine("forbids itself the processor's clock", "PR_SET_TSC");
}

static int (*real_prctl)(int option, unsigned long b, unsigned long c, unsigned long d, unsigned long e);
static int tap_prctl(int option, unsigned long b, unsigned long c, unsigned long d, unsigned long e)
{
    look_at_prctl((unsigned long)option, b, c);
    return real_prctl(option, b, c, d, e);
}

static int (*real_seccomp_load)(const void *context); /* of libseccomp */
static int tap_seccomp_load(const void *context)
{
    confine("confines itself", "seccomp");
    return real_seccomp_load(context);
}

void *kp_confine_real_syscall;

void kp_confine_look(long number, unsigned long a, unsigned long b, unsigned long c)
{
    if (number == SYS_prctl) look_at_prctl(a & UINT32_MAX, b, c);
    else if (a == SECCOMP_SET_MODE_STRICT || (a == SECCOMP_SET_MODE_FILTER && c)) confine("confines itself", "seccomp");
}

const struct kp_tap_row kp_confine_rows[KP_CONFINE_ROWS] = {
    KP_TAP_ROW("prctl", prctl),
    KP_TAP_ROW("seccomp_load", seccomp_load),
};
