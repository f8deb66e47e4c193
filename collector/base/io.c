// SPDX-License-Identifier: Apache-2.0
/*
 * io.c - the system calls we make, each with a point where a test can make it fail
 *
 * Called by: boot, writer and exporter threads, the CLI; never a hook but for a thread's first touch
 *            (mmap) and the end of an optimizer's step (peek)
 * On fail:   -errno; nothing is logged here
 */
#include "collector/base/kp_io.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h> /* rename */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "collector/base/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_quiet.h"
#include "collector/base/kp_poison.h"

#define KP_IO_FD_MIN 100 /* above what shells and daemons hand around by number */
#define KP_IO_NICE 5
#define KP_IO_STACK ((size_t)256 << 10)

/* ---- failures on demand: KPROF_TEST_FAIL=name:N[+][:errno],... ; N+ fails the N-th call and all after it ---- */

enum { KP_IO_FAILURES = 8 };
struct failure {
    char name[24];
    uint64_t from, to; /* numbers of the calls that fail */
    int error;
    _Atomic uint64_t calls;
};
static struct failure failures[KP_IO_FAILURES];
static _Atomic unsigned failure_count;

static const char *number_parse(const char *p, uint64_t *out)
{
    uint64_t v = 0;
    if (*p < '0' || *p > '9') return NULL;
    for (; *p >= '0' && *p <= '9'; p++) v = v * 10 + (uint64_t)(*p - '0');
    *out = v;
    return p;
}

/* One "name:N[+][:errno]"; returns where it ended, NULL when it is malformed. */
static const char *failure_parse(const char *p, struct failure *f)
{
    uint64_t error = ENOSPC;
    size_t n = strcspn(p, ":,");
    if (n == 0 || n >= sizeof f->name || p[n] != ':') return NULL;
    memcpy(f->name, p, n);
    f->name[n] = '\0';
    p = number_parse(p + n + 1, &f->from);
    if (p == NULL) return NULL;
    f->to = f->from;
    if (*p == '+') f->to = UINT64_MAX, p++;
    if (*p == ':') p = number_parse(p + 1, &error);
    f->error = (int)error;
    kp_store_relaxed(&f->calls, 0);
    return p;
}

void kp_io_set_failures(const char *spec)
{
    unsigned n = 0;
    kp_store_release(&failure_count, 0);
    while (spec && *spec && n < KP_IO_FAILURES) {
        const char *end = failure_parse(spec, &failures[n]);
        if (end == NULL || (*end && *end != ',')) break;
        n++;
        spec = *end ? end + 1 : end;
    }
    /* pairs with: io.c:kp_io_fail_point */
    kp_store_release(&failure_count, n);
}

int kp_io_fail_point(const char *name)
{
    unsigned n = kp_load_acquire(&failure_count); /* pairs with: io.c:kp_io_set_failures */
    for (unsigned i = 0; i < n; i++) {
        struct failure *f = &failures[i];
        if (strcmp(f->name, name) != 0) continue;
        uint64_t call = kp_add_relaxed(&f->calls, 1) + 1;
        if (call >= f->from && call <= f->to) return -f->error;
    }
    return 0;
}

/* ---- files ---- */

/* Runs a call until it is not interrupted; its value, or -errno. */
#define KP_IO_RETRY(out, call)                                                                     \
    do {                                                                                           \
        (out) = (call);                                                                            \
        if ((out) < 0) (out) = -errno;                                                             \
    } while ((out) == -EINTR)

int kp_io_open(const char *path, int flags, int mode)
{
    int fd = kp_io_fail_point("open");
    if (fd < 0) return fd;
    KP_IO_RETRY(fd, open(path, flags | O_CLOEXEC, mode));
    if (fd < 0 || fd >= KP_IO_FD_MIN) return fd;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, KP_IO_FD_MIN);
    if (high < 0 && fd > STDERR_FILENO) return fd; /* a low limit on fds: the low number must do */
    if (high < 0) high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); /* but what the host prints must not land there */
    if (high < 0) high = -errno;
    close(fd);
    return high;
}

int kp_io_close(int fd)
{
    return close(fd) == 0 || errno == EINTR ? 0 : -errno;
}

static ssize_t write_quietly(int fd, const char *p, size_t bytes)
{
    struct kp_quiet quiet;
    ssize_t n;
    kp_quiet_begin(&quiet);
    KP_IO_RETRY(n, write(fd, p, bytes));
    kp_quiet_end(&quiet);
    return n;
}

ssize_t kp_io_write_all(int fd, const void *data, size_t bytes)
{
    const char *p = data;
    size_t left = bytes;
    while (left) {
        ssize_t n = kp_io_fail_point("write");
        if (n == 0) n = write_quietly(fd, p, left);
        if (n < 0) return n;
        if (n == 0) return -EIO;
        p += n;
        left -= (size_t)n;
    }
    return (ssize_t)bytes;
}

ssize_t kp_io_read(int fd, void *data, size_t bytes)
{
    ssize_t n = kp_io_fail_point("read");
    if (n == 0) KP_IO_RETRY(n, read(fd, data, bytes));
    return n;
}

ssize_t kp_io_pread(int fd, void *data, size_t bytes, off_t at)
{
    ssize_t n = kp_io_fail_point("pread");
    if (n == 0) KP_IO_RETRY(n, pread(fd, data, bytes, at));
    return n;
}

/* The slow way to the same promise: every block of the range exists on disk. The range is past the end of the file. */
static int zeroes_write(int fd, off_t at, off_t bytes)
{
    static const char zeroes[16384];
    while (bytes > 0) {
        ssize_t n;
        size_t part = bytes < (off_t)sizeof zeroes ? (size_t)bytes : sizeof zeroes;
        KP_IO_RETRY(n, pwrite(fd, zeroes, part, at));
        if (n < 0) return (int)n;
        if (n == 0) return -EIO;
        at += n;
        bytes -= n;
    }
    return 0;
}

int kp_io_fallocate(int fd, off_t at, off_t bytes)
{
    struct kp_quiet quiet; /* over the file size limit both raise SIGXFSZ */
    int rc = kp_io_fail_point("fallocate");
    kp_quiet_begin(&quiet);
    if (rc == 0) KP_IO_RETRY(rc, fallocate(fd, 0, at, bytes));
    if (rc == -EOPNOTSUPP || rc == -ENOSYS) rc = zeroes_write(fd, at, bytes);
    kp_quiet_end(&quiet);
    return rc;
}

int kp_io_mmap(void **out, size_t bytes, int prot, int flags, int fd, off_t at)
{
    int rc = kp_io_fail_point("mmap");
    if (rc < 0) return rc;
    void *p = mmap(NULL, bytes, prot, flags, fd, at);
    if (p == MAP_FAILED) return -errno;
    *out = p;
    return 0;
}

int kp_io_mmap_at(void *where, size_t bytes, int prot, int flags, int fd, off_t at)
{
    int rc = kp_io_fail_point("mmap");
    if (rc < 0) return rc;
    return mmap(where, bytes, prot, flags | MAP_FIXED, fd, at) == MAP_FAILED ? -errno : 0;
}

int kp_io_munmap(void *p, size_t bytes)
{
    return munmap(p, bytes) == 0 ? 0 : -errno;
}

int kp_io_fsync(int fd)
{
    int rc = kp_io_fail_point("fsync");
    if (rc == 0) KP_IO_RETRY(rc, fsync(fd));
    return rc;
}

/* The kernel copies, and answers EFAULT where a load of ours would kill the host. */
int kp_io_peek(const void *from, void *to, size_t bytes)
{
    struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)from, bytes};
    int rc = kp_io_fail_point("peek");
    if (rc < 0) return rc;
    ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (got < 0) return -errno;
    return got == (ssize_t)bytes ? 0 : -EFAULT;
}

int kp_io_rename(const char *from, const char *to)
{
    int rc = kp_io_fail_point("rename");
    if (rc < 0) return rc;
    return rename(from, to) == 0 ? 0 : -errno;
}

int kp_io_unlink(const char *path)
{
    int rc = kp_io_fail_point("unlink");
    if (rc < 0) return rc;
    return unlink(path) == 0 ? 0 : -errno;
}

static int dir_make(const char *path, int mode)
{
    struct stat st;
    if (mkdir(path, (mode_t)mode) == 0) return 0;
    int rc = -errno;
    if (stat(path, &st) != 0) return rc;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int kp_io_mkdirs(const char *path, int mode)
{
    char part[4096];
    size_t n = strlen(path);
    int rc = kp_io_fail_point("mkdir");
    if (rc < 0) return rc;
    if (n == 0) return -ENOENT;
    if (n >= sizeof part) return -ENAMETOOLONG;
    memcpy(part, path, n + 1);
    for (char *slash = strchr(part + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        rc = dir_make(part, mode);
        *slash = '/';
        if (rc < 0) return rc;
    }
    return dir_make(part, mode);
}

/* ---- helper threads ---- */

static _Atomic unsigned helpers;

struct start {
    void *(*body)(void *);
    void *arg;
    char name[16];
    int nice;
    sigset_t mask; /* the host's */
};

/* The main thread ended before the others: it stays as a zombie. */
static bool is_main_gone(void)
{
    char path[64], text[512];
    kp_fmt(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    int fd = kp_io_open(path, O_RDONLY, 0);
    if (fd < 0) return false;
    ssize_t n = kp_io_read(fd, text, sizeof text - 1);
    kp_io_close(fd);
    if (n <= 0) return false;
    text[n] = '\0';
    const char *end = strrchr(text, ')'); /* of the name; the state follows */
    return end && end[1] == ' ' && end[2] == 'Z';
}

bool kp_io_helpers_alone(void)
{
    struct stat st;
    /* links of this folder: two, and one for each thread */
    if (stat("/proc/self/task", &st) != 0 || st.st_nlink < 3) return false;
    return st.st_nlink - 2 <= kp_load_relaxed(&helpers) + 1 && is_main_gone();
}

static void *thread_main(void *arg)
{
    struct start *s = arg;
    pid_t tid = (pid_t)syscall(SYS_gettid);
    prctl(PR_SET_NAME, s->name, 0, 0, 0);
    errno = 0;
    int nice_now = getpriority(PRIO_PROCESS, (id_t)tid);
    if (errno == 0) setpriority(PRIO_PROCESS, (id_t)tid, nice_now + s->nice);
    /* A thread of ours that is woken by a host thread shall not take its processor from it. */
    struct sched_param none = {.sched_priority = 0};
    syscall(SYS_sched_setscheduler, 0, SCHED_BATCH, &none);
    void *result = s->body(s->arg);
    /* The last thread runs the host's exit handlers: signals reach the host again. */
    if (kp_io_helpers_alone()) pthread_sigmask(SIG_SETMASK, &s->mask, NULL);
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
    rc = pthread_create(&thread, &attr, thread_main, s);
    pthread_attr_destroy(&attr);
    return -rc;
}

int kp_io_thread_nice(void *(*body)(void *), void *arg, const char *name, int more)
{
    sigset_t all, old;
    int rc = kp_io_fail_point("thread");
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
