// SPDX-License-Identifier: Apache-2.0
/*
 * io_helpers.c - threads of ours: how they are made, whether only they are left, and when a process began
 *
 * Called by: boot, record, sources (make threads); threads of ours (ask whether they are alone)
 * Owns:      the count of threads made here
 * Locks:     none
 * Memory:    a few bytes of the arena for each thread
 * On fail:   -errno; nothing is logged here
 * Safe in:   after fork: kp_io_after_fork
 */
#include "collector/base/kp_io.h"

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

#include "collector/base/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/kp_fail.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

#define KP_IO_STACK ((size_t)512 << 10) /* address space: the C++ library's reading of names (export/demangle.c) is what may need it */

_Thread_local bool kp_io_is_ours __attribute__((tls_model("initial-exec")));
static _Atomic unsigned helpers;
static _Atomic uint32_t leaving; /* the thread of ours that ended last; 0: none did */

struct start {
    void *(*body)(void *);
    void *arg;
    char name[16];
    int nice;
    sigset_t mask; /* the host's */
};

/* What the kernel says of a process behind its name, from the state on; NULL: nothing. */
static const char *process_read(const char *path, char *text, size_t bytes)
{
    int fd = kp_io_open(path, O_RDONLY, 0);
    if (fd < 0) return NULL;
    ssize_t n = kp_io_read(fd, text, bytes - 1);
    kp_io_close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *end = strrchr(text, ')'); /* of the name */
    return end && end[1] == ' ' ? end + 2 : NULL;
}

uint64_t kp_io_process_start(int32_t pid)
{
    char path[64], text[512];
    if (pid) kp_fmt(path, sizeof path, "/proc/%d/stat", (int)pid);
    else kp_fmt(path, sizeof path, "/proc/self/stat");
    const char *at = process_read(path, text, sizeof text);
    uint64_t start = 0;
    if (!at || *at == 'Z' || *at == 'X') return 0; /* a zombie writes no more */
    for (int field = 3; at && field < 22; field++) at = strchr(at + 1, ' ');
    for (at = at ? at + 1 : ""; *at >= '0' && *at <= '9'; at++) start = start * 10 + (uint64_t)(*at - '0');
    return start ? start : 1;
}

/*
 * The main thread ended before the others: it stays as a zombie, which has no memory. Asked often, and of programs of one thread, which may count
 * on the lowest number a descriptor can have (close, then dup): so without a file where that can be.
 */
static bool is_main_gone(void)
{
    char path[64], text[512] = "";
    const struct iovec from = {path, 1}, to = {text, 1};
    int rc = kp_fail_point("vm_readv");
    if (rc == 0) rc = process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 1 ? 0 : -errno;
    if (rc == 0 || rc == -ESRCH) return rc != 0;
    kp_fmt(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    const char *at = process_read(path, text, sizeof text);
    return at && *at == 'Z';
}

uint32_t kp_io_helpers(void)
{
    return kp_load_relaxed(&helpers);
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
    /* links of this folder: two, and one for each thread */
    if (kp_io_stat("/proc/self/task", &st) != 0 || st.st_nlink < 3) return false;
    return st.st_nlink - 2 <= kp_load_relaxed(&helpers) + 1 && is_main_gone();
}

void kp_io_after_fork(void)
{
    kp_store_relaxed(&helpers, 0);
    kp_store_relaxed(&leaving, 0);
}

/* A thread of ours that is woken by a host thread shall not take its processor from it. */
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
    kp_io_is_ours = true;
    if (kp_fail_point("prctl") == 0) prctl(PR_SET_NAME, s->name, 0, 0, 0);
    thread_calm(s->nice);
    void *result = s->body(s->arg);
    /* The last thread runs the host's exit handlers: signals reach the host again. */
    if (kp_io_helpers_alone()) pthread_sigmask(SIG_SETMASK, &s->mask, NULL);
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
    const bool was_ours = kp_io_is_ours;
    kp_io_is_ours = true;
    rc = pthread_create(&thread, &attr, thread_main, s);
    kp_io_is_ours = was_ours;
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
    /* blocked before the thread exists, so that no signal of the host ever lands there */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    s->mask = old;
    kp_add_relaxed(&helpers, 1);
    rc = thread_create(s, KP_IO_STACK);
    if (rc == -EINVAL) rc = thread_create(s, 0); /* the host's static TLS alone is larger than our stack */
    if (rc < 0) kp_add_relaxed(&helpers, -1u);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return rc;
}

int kp_io_thread(void *(*body)(void *), void *arg, const char *name)
{
    return kp_io_thread_nice(body, arg, name, KP_IO_NICE);
}
