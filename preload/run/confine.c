// SPDX-License-Identifier: Apache-2.0
/*
 * confine.c - lets a program go before it forbids itself what we do in it: system calls, the processor's clock
 *
 * Called by: host threads in prctl and seccomp_load (taps, put in by solo.c); in syscall through syscall_ARCH.S
 * Owns:      nothing
 * Locks:     none of its own; exit's, for a bounded time
 * On fail:   what struck the host's other threads in the middle stays in the spool (kprof recover)
 * Safe in:   after fork and vfork: passes on where the process is not ours
 *
 * From such a call on the kernel may end this thread, or the process, for something that the program itself never does.
 * So what was recorded is written now, none of our threads stays, and nothing of ours makes a call or looks at a clock
 * afterwards. A call by an inlined instruction is not seen.
 */
#include "preload/run/confine.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "collector/base/kp_clock.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_helper_pause.h"
#include "preload/run.h"
#include "preload/source.h"
#include "collector/base/kp_poison.h"

enum { REST_MS = 300 };

static void confine(const char *what, const char *how)
{
    int saved = errno;
    if (!kp_run_is_active() || !kp_run_is_owner()) return;
    kp_log(!kp_run_may_log(), "the program %s (%s): what it does from here on is not recorded", what, how);
    kp_run_end_early();
    (void)kp_helpers_pause(REST_MS);
    kp_clock_forbid();
    errno = saved;
}

/* A filter that is not there is how programs ask whether the kernel has filters: nothing is set. */
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

static int (*real_seccomp_load)(const void *context); /* libseccomp's */
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
    {"prctl", (void **)(void *)&real_prctl, (void *)(uintptr_t)tap_prctl},
    {"seccomp_load", (void **)(void *)&real_seccomp_load, (void *)(uintptr_t)tap_seccomp_load},
};
