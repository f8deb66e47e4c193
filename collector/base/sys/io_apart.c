// SPDX-License-Identifier: Apache-2.0
/*
 * io_apart.c - makes a system call in a process that shares this one's memory and descriptors, for a moment
 *
 * Called by: io_file.c, on helper threads that asked for it (kp_io_apart)
 * Owns:      whether such a process can be had here
 * Locks:     none; the calling thread waits for its process, and a signal that ends it ends the wait
 * Memory:    the process runs on the calling thread's stack, as a child of vfork does
 * On fail:   the thread makes the call itself
 * Safe in:   signal handlers no; after fork yes
 *
 * A file system that stands may hold a call in a wait that no signal ends. A process ends when all its threads have,
 * so such a thread would keep the host, which has called exit, for as long. A process of its own does not. It has no
 * exit signal, so the host's wait() does not find it. Emulators and valgrind make a copy of the memory instead: the
 * first call finds that out (decisions/120).
 */
#include "collector/base/sys/kp_io.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_fail.h"
#include "collector/base/kp_poison.h"

enum { UNKNOWN = 0, WORKS, DOES_NOT };

struct call {
    long number, words[6];
    _Atomic long result;
};

static _Thread_local bool is_apart __attribute__((tls_model("initial-exec")));
static _Atomic uint32_t state;

void kp_io_apart(bool is_wanted) { is_apart = is_wanted; }

/* In the other process, whose memory is ours: only the call. */
__attribute__((noinline, noreturn, no_sanitize("address", "thread", "undefined"))) static void call_make(struct call *c)
{
    syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* when the thread that waits ends */
    const long rc = syscall(c->number, c->words[0], c->words[1], c->words[2], c->words[3], c->words[4], c->words[5]);
    c->result = rc < 0 ? -errno : rc;
    for (;;) syscall(SYS_exit, 0);
}

/*
 * After unshare(CLONE_NEWPID) the next process is the first of a new namespace, which ends with it. That place is the
 * host's.
 */
static bool is_namespace_kept(void)
{
    static const char *const names[] = {"/proc/self/ns/pid", "/proc/self/ns/pid_for_children"};
    char links[2][64] = {"", ""};
    for (int i = 0; i < 2; i++)
        if (syscall(SYS_readlinkat, AT_FDCWD, names[i], links[i], sizeof links[i] - 1) <= 0) return false;
    return strcmp(links[0], links[1]) == 0;
}

/* By the instruction: libc's function would leave its return address where the other process stores its own. */
static inline __attribute__((always_inline)) long clone_here(long flags)
{
#if defined(__x86_64__)
    register long none4 __asm__("r10") = 0, none5 __asm__("r8") = 0;
    long rc = SYS_clone;
    __asm__ volatile("syscall"
                     : "+a"(rc)
                     : "D"(flags), "S"(0L), "d"(0L), "r"(none4), "r"(none5)
                     : "rcx", "r11", "memory");
    return rc;
#elif defined(__aarch64__)
    register long number __asm__("x8") = SYS_clone, rc __asm__("x0") = flags, none1 __asm__("x1") = 0;
    register long none2 __asm__("x2") = 0, none3 __asm__("x3") = 0, none4 __asm__("x4") = 0;
    __asm__ volatile("svc 0" : "+r"(rc) : "r"(number), "r"(none1), "r"(none2), "r"(none3), "r"(none4) : "memory");
    return rc;
#else
    (void)flags;
    return -ENOSYS;
#endif
}

/* Both run on this frame, the other process first, which leaves it by its end alone. */
__attribute__((noinline, no_sanitize("address", "thread", "undefined"))) static long process_run(struct call *c)
{
    const long pid = clone_here(CLONE_VM | CLONE_VFORK | CLONE_FILES);
    if (pid == 0) call_make(c);
    return pid;
}

/* False: there was no such process, or its stores do not come here. */
static bool process_make(struct call *c)
{
    if (kp_fail_point("clone") != 0 || !is_namespace_kept()) return false;
    const long pid = process_run(c);
    if (pid < 0) return false;
    while (syscall(SYS_wait4, pid, NULL, __WCLONE, NULL) < 0 && errno == EINTR) continue;
    return kp_load_relaxed(&c->result) != LONG_MIN;
}

static bool can(void)
{
    const uint32_t known = kp_load_relaxed(&state);
    if (known != UNKNOWN) return known == WORKS;
    struct call try = {.number = SYS_getppid, .result = LONG_MIN};
    const bool works = process_make(&try) && kp_load_relaxed(&try.result) == getpid();
    kp_store_relaxed(&state, works ? WORKS : DOES_NOT);
    return works;
}

long kp_io_call(long number, long a, long b, long c, long d, long e)
{
    struct call call = {.number = number, .words = {a, b, c, d, e, 0}, .result = LONG_MIN};
    if (is_apart && can() && process_make(&call)) return kp_load_relaxed(&call.result);
    const long rc = syscall(number, a, b, c, d, e);
    return rc < 0 ? -errno : rc;
}
