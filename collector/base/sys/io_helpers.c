// SPDX-License-Identifier: Apache-2.0
/*
 * io_helpers.c - starts our helper threads, and finds out whether the host's own threads have all ended
 *
 * Called by: boot, record, sources (start threads); helper threads (ask whether they are alone)
 * Owns:      the number of helper threads
 * Locks:     none
 * Memory:    a few bytes of the arena for each thread
 * On fail:   -errno; nothing is logged here
 * Safe in:   signal handlers no; in a forked child kp_io_forget comes first
 */
#include "collector/base/sys/kp_io.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/text/kp_digits.h"
#include "collector/base/sys/kp_fail.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

/* Bytes of stack. The C++ library's demangler (export/write/names/demangle.c) may need them. */
#define KP_IO_STACK ((size_t)512 << 10)

_Thread_local bool kp_in_profiler __attribute__((tls_model("initial-exec")));
static _Atomic unsigned helpers;
static _Atomic uint64_t ended_ns; /* processor time of the helper threads that have ended */
static _Atomic uint32_t leaving;  /* tid of the helper thread that ended last, or 0 */

enum { FLAGS = 9, START = 22, EXIT_CODE = 52 }; /* fields of proc(5)'s stat */

struct start {
    void *(*body)(void *);
    void *arg;
    char name[16];
    int nice;
    sigset_t mask; /* the host's */
};

bool kp_io_task_text(const char *tid, const char *file, char *text, size_t bytes)
{
    char path[64];
    text[0] = '\0';
    return kp_fmt(path, sizeof path, "/proc/self/task/%s/%s", tid, file) < sizeof path &&
           kp_io_text(path, text, bytes) > 0;
}

uint64_t kp_io_process_start(int32_t pid)
{
    char path[64], text[512];
    if (pid) kp_fmt(path, sizeof path, "/proc/%d/stat", (int)pid);
    (void)kp_io_text(pid ? path : "/proc/self/stat", text, sizeof text);
    const char state = *kp_digits_stat(text, KP_STAT_STATE);
    if (!state || state == 'Z' || state == 'X') return 0; /* a zombie runs no code */
    const uint64_t start = kp_digits(kp_digits_stat(text, START));
    return start ? start : 1;
}

bool kp_io_is_process_gone(int32_t pid)
{
    return kp_fail_point("kill") == 0 && syscall(SYS_kill, pid, 0) != 0 && errno == ESRCH;
}

/*
 * A main thread that ended before the others stays as a zombie, which has no memory. The look is frequent, so it
 * opens a file only where it must. A single-threaded program may rely on the lowest free descriptor (close, then dup).
 */
static int main_look(void) /* 1 if gone, 0 if not, or -errno */
{
    char here = 0, copy;
    const struct iovec from = {&here, 1}, to = {&copy, 1};
    int rc = kp_fail_point("vm_readv");
    if (rc == 0) rc = process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 ? 0 : -errno;
    return rc == -ESRCH ? 1 : rc;
}

static void main_read(char *text, size_t bytes)
{
    char tid[16];
    kp_fmt(tid, sizeof tid, "%d", (int)getpid());
    (void)kp_io_task_text(tid, "stat", text, bytes);
}

static bool is_main_gone(void)
{
    char text[512];
    const int is_gone = main_look();
    if (is_gone >= 0) return is_gone;
    main_read(text, sizeof text);
    return *kp_digits_stat(text, KP_STAT_STATE) == 'Z';
}

/*
 * Threads of the kernel among the host's (io_uring: iou-sqp-PID, iou-wrk-PID, flag PF_IO_WORKER) do not keep a
 * process alive. The search opens files. So it runs only once the main thread is gone and more threads exist than the
 * helper threads. It waits LOOK_AGAIN calls before the next search while that number stays.
 */
enum { IO_WORKER = 0x10, LOOK_AGAIN = 8 };

static void worker_count(void *context, const char *tid)
{
    char text[512];
    (void)kp_io_task_text(tid, "stat", text, sizeof text);
    if (kp_digits(kp_digits_stat(text, FLAGS)) & IO_WORKER) ++*(uint64_t *)context;
}

static _Atomic uint64_t threads_seen;
static _Atomic uint32_t looks;
static _Atomic bool has_others; /* other threads of the host outlived its main thread */

static bool are_kernels(uint64_t threads, uint64_t ours)
{
    uint64_t workers = 0;
    if (kp_load_relaxed(&threads_seen) == threads && kp_add_relaxed(&looks, 1) % LOOK_AGAIN) return false;
    kp_store_relaxed(&threads_seen, threads);
    if (kp_io_each_name("/proc/self/task", worker_count, &workers) < 0) return false;
    if (threads - workers <= ours) return true;
    kp_store_relaxed(&has_others, true);
    return false;
}

uint32_t kp_io_helpers(void) { return kp_load_relaxed(&helpers); }

/* Processor time of another thread of this process; 0 where the kernel refuses. Linux's ABI has the clock's number. */
static uint64_t thread_ns(uint32_t tid)
{
    enum { ONE_THREAD = 4, SCHEDULED = 2 };
    struct timespec t;
    if (kp_fail_point("threadclock") < 0 || clock_gettime((clockid_t)(~tid << 3 | ONE_THREAD | SCHEDULED), &t) != 0)
        return 0;
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Adds the processor time of a thread, if it is named as ours are. */
static void time_add(void *context, const char *tid)
{
    char text[512];
    if (!kp_io_task_text(tid, "stat", text, sizeof text) || !strstr(text, "(kprof-")) return;
    const uint64_t ns = thread_ns((uint32_t)kp_digits(tid));
    *(uint64_t *)context += ns ? ns : kp_digits_stat_ticks(text, KP_STAT_TIMES) * KP_STAT_TICK_MS * 1000000;
}

uint64_t kp_io_helpers_cpu_us(void)
{
    uint64_t ns = kp_load_relaxed(&ended_ns);
    (void)kp_io_each_name("/proc/self/task", time_add, &ns);
    return ns / 1000;
}

void kp_io_helpers_settle(void)
{
    enum { NAPS = 100, NAP_NS = 100000 };
    for (int i = 0; i < NAPS; i++) {
        const uint32_t tid = kp_load_relaxed(&leaving);
        if (!tid || kp_io_is_thread_gone(tid)) return;
        kp_io_nap(NAP_NS);
    }
}

bool kp_io_helpers_alone(void)
{
    struct stat st;
    /* this folder has two links, and another for each thread */
    if (kp_io_stat("/proc/self/task", &st) != 0 || st.st_nlink < 3) return false;
    const uint64_t threads = st.st_nlink - 2, ours = kp_load_relaxed(&helpers) + 1;
    if (threads <= ours) return is_main_gone();
    return main_look() == 1 && are_kernels(threads, ours);
}

/* Ends the process by this signal, which a seccomp filter used to end the main thread (SECCOMP_RET_KILL_THREAD). */
static void end_by_signal(int number)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t only;
    sigaction(number, &usual, NULL);
    sigemptyset(&only);
    sigaddset(&only, number);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
    syscall(SYS_tgkill, getpid(), kp_io_tid(), number);
}

/*
 * The host's only thread ended by SYS_exit or by a signal. Since Linux 5.17 a process has the status of its last
 * thread, here a helper thread. So the helper thread ends with the main thread's status. After pthread_exit that
 * status is 0, and libc's exit() follows in the last thread. If another host thread outlived the main thread, its
 * status would count, but it is no longer known.
 */
static void end_as_main(void)
{
    char text[512];
    if (kp_load_relaxed(&has_others)) return;
    main_read(text, sizeof text);
    const uint64_t code = kp_digits(kp_digits_stat(text, EXIT_CODE)); /* in the form of wait() */
    if (code & 0x7f) end_by_signal((int)(code & 0x7f));
    if (code) syscall(SYS_exit, (int)(code >> 8 & 0xff));
}

void kp_io_forget(void)
{
    kp_store_relaxed(&helpers, 0);
    kp_store_relaxed(&leaving, 0);
    kp_store_relaxed(&ended_ns, 0);
    kp_store_relaxed(&has_others, false);
}

/* Lowers the helper thread's priority: a host thread that wakes it must not lose its processor to it. */
static void thread_calm(int more)
{
    const id_t tid = (id_t)kp_io_tid();
    struct sched_param none = {.sched_priority = 0};
    if (kp_fail_point("nice") < 0) return;
    errno = 0;
    int nice_now = getpriority(PRIO_PROCESS, tid);
    if (errno == 0) setpriority(PRIO_PROCESS, tid, nice_now + more);
    syscall(SYS_sched_setscheduler, 0, SCHED_BATCH, &none);
}

static void *thread_main(void *arg)
{
    struct start *s = arg;
    kp_in_profiler = true;
    if (kp_fail_point("prctl") == 0) prctl(PR_SET_NAME, s->name, 0, 0, 0);
    thread_calm(s->nice);
    void *result = s->body(s->arg);
    /* The last thread runs the host's exit handlers, so unblock signals. */
    if (kp_io_helpers_alone()) {
        pthread_sigmask(SIG_SETMASK, &s->mask, NULL);
        end_as_main();
    }
    kp_add_relaxed(&ended_ns, kp_clock_ns(CLOCK_THREAD_CPUTIME_ID));
    kp_store_relaxed(&leaving, kp_io_tid());
    kp_add_relaxed(&helpers, -1u);
    return result;
}

static int thread_create(struct start *s, size_t stack)
{
    pthread_attr_t attr;
    pthread_t thread;
    int rc = pthread_attr_init(&attr);
    if (rc) return -rc;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (stack) pthread_attr_setstacksize(&attr, stack);
    const bool was_ours = kp_in_profiler;
    kp_in_profiler = true;
    rc = pthread_create(&thread, &attr, thread_main, s);
    kp_in_profiler = was_ours;
    pthread_attr_destroy(&attr);
    return -rc;
}

int kp_io_thread_nice(void *(*body)(void *), void *arg, const char *name, int more)
{
    sigset_t all, old;
    int rc = kp_fail_point("thread");
    if (rc < 0) return rc;
    struct start *s = kp_arena_alloc(sizeof *s);
    if (s == NULL) return -ENOMEM;
    s->body = body;
    s->arg = arg;
    s->nice = more;
    strncpy(s->name, name, sizeof s->name - 1);
    /* blocked before the thread exists, so that it never handles a signal of the host */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    s->mask = old;
    kp_add_relaxed(&helpers, 1);
    rc = thread_create(s, KP_IO_STACK);
    if (rc == -EINVAL) rc = thread_create(s, 0); /* the host's static TLS is larger than this stack */
    if (rc < 0) kp_add_relaxed(&helpers, -1u);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}

int kp_io_thread(void *(*body)(void *), void *arg, const char *name)
{
    return kp_io_thread_nice(body, arg, name, KP_IO_NICE);
}
