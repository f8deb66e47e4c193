// SPDX-License-Identifier: Apache-2.0
/*
 * io_thread.c - the system calls that wait, wake and look at a thread or at the machine
 *
 * Called by: any thread; a hook only for what its comment in kp_io.h allows
 * On fail:   -errno; nothing is logged here
 */
#include "collector/base/sys/kp_io.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_fail.h"
#include "collector/base/kp_poison.h"

/*
 * Sleeps for the whole time, also under many signals, or where a seccomp filter refuses the call. So a caller can
 * count sleeps.
 */
void kp_io_nap(uint64_t ns)
{
    const uint64_t end = kp_clock_ns(CLOCK_MONOTONIC) + ns;
    for (uint64_t left = ns, now; left; left = now < end ? end - now : 0) {
        struct timespec nap = {.tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u)};
        if (kp_fail_point("nap") != 0 || syscall(SYS_nanosleep, &nap, NULL) != 0) sched_yield();
        now = kp_load_relaxed(&kp_clock_is_forbidden) ? end : kp_clock_ns(CLOCK_MONOTONIC);
    }
}

void kp_io_wait(_Atomic uint32_t *word, uint32_t seen, uint64_t ns)
{
    struct timespec most = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    const long rc = KP_FAIL_ERRNO("wait", syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &most, NULL, 0));
    bool has_waited = rc == 0 || rc == -EAGAIN || rc == -EINTR || rc == -ETIMEDOUT;
    if (!has_waited) kp_io_nap(ns < 1000000 ? ns : 1000000); /* refused: do not spin */
}

void kp_io_wake(_Atomic uint32_t *word)
{
    if (kp_fail_point("wake") == 0) syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

int kp_io_barrier_register(void)
{
    return (int)KP_FAIL_ERRNO("barrier", syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0));
}

int kp_io_barrier(void)
{
    return (int)KP_FAIL_ERRNO("barrier", syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0));
}

uint32_t kp_io_tid(void) { return (uint32_t)syscall(SYS_gettid); }

int kp_io_faults(struct kp_io_faults *out)
{
    enum { OF_THREAD = 1 }; /* RUSAGE_THREAD, which <sys/resource.h> has with _GNU_SOURCE alone */
    struct rusage usage;
    const int rc = (int)KP_FAIL_ERRNO("usage", syscall(SYS_getrusage, OF_THREAD, &usage));
    if (rc == 0) *out = (struct kp_io_faults){(uint64_t)usage.ru_minflt, (uint64_t)usage.ru_majflt};
    return rc;
}

bool kp_io_is_on_signal_stack(void)
{
    stack_t now;
    return kp_fail_point("altstack") != 0 || syscall(SYS_sigaltstack, NULL, &now) != 0 || (now.ss_flags & SS_ONSTACK);
}

bool kp_io_is_thread_gone(uint32_t tid)
{
    return kp_fail_point("kill") == 0 && syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH;
}

bool kp_io_is_tsc_refused(void)
{
    int mode = PR_TSC_ENABLE;
    return kp_fail_point("prctl") == 0 && prctl(PR_GET_TSC, &mode, 0, 0, 0) == 0 && mode == PR_TSC_SIGSEGV;
}

int kp_io_signal_action(int number, const struct sigaction *now, struct sigaction *before)
{
    return (int)KP_FAIL_ERRNO("handler", sigaction(number, now, before));
}

void kp_io_signal_self(int number) { syscall(SYS_tgkill, getpid(), kp_io_tid(), number); }

void kp_io_thread_name(char name[16])
{
    name[0] = '\0';
    if (kp_fail_point("prctl") == 0) prctl(PR_GET_NAME, name, 0, 0, 0);
}

void kp_io_host_name(char name[KP_IO_HOST_BYTES])
{
    struct utsname here = {.nodename = ""};
    (void)KP_FAIL_ERRNO("uname", uname(&here));
    _Static_assert(KP_IO_HOST_BYTES >= sizeof here.nodename, "it fits");
    memcpy(name, here.nodename, sizeof here.nodename);
    for (char *c = name; *c; c++)
        if (*c == '/' || *c == '"' || *c == '\\' || (unsigned char)*c <= ' ') *c = '-';
}
