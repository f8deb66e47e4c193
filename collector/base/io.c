// SPDX-License-Identifier: Apache-2.0
/*
 * io.c - the system calls we make, each with a point where a test can make it fail (fail.c)
 *
 * Called by: boot, writer and exporter threads, the CLI; never a hook but for a thread's first touch
 *            (mmap) and the end of an optimizer's step (peek)
 * On fail:   -errno; nothing is logged here
 */
#include "collector/base/kp_io.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <stdio.h> /* rename, renameat2 */
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/kp_clock.h"
#include "collector/base/kp_fail.h"
#include "collector/base/kp_quiet.h"
#include "collector/base/kp_otherlibc.h"
#include "collector/base/kp_poison.h"


/* ---- files ----
 * What other preloaded libraries stand in for (fakeroot: names and owners of files) is asked of the kernel: their functions may take locks of
 * the host's, in a thread it knows nothing of, and what we do is no business of theirs. struct stat is the kernel's own on 64-bit machines. */

/* Runs a call until it is not interrupted; its value, or -errno. */
#define KP_IO_RETRY(out, call)                                                                     \
    do {                                                                                           \
        (out) = (call);                                                                            \
        if ((out) < 0) (out) = -errno;                                                             \
    } while ((out) == -EINTR)

static int fd_high(int fd)
{
    if (fd < 0 || fd >= KP_IO_FD_HIGH) return fd;
    int high = kp_fail_point("dup");
    if (high == 0) high = fcntl(fd, F_DUPFD_CLOEXEC, KP_IO_FD_HIGH);
    if (high < 0 && fd > STDERR_FILENO) return fd; /* a low limit on fds: the low number must do */
    if (high < 0) high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); /* but what the host prints must not land there */
    if (high < 0) high = -errno;
    close(fd);
    return high;
}

int kp_io_open(const char *path, int flags, int mode)
{
    int fd = kp_fail_point("open");
    if (fd < 0) return fd;
    KP_IO_RETRY(fd, open(path, flags | O_CLOEXEC, mode));
    return fd_high(fd);
}

int kp_io_open_at(int dir, const char *name, int flags, int mode)
{
    int fd = kp_fail_point("open");
    if (fd < 0) return fd;
    KP_IO_RETRY(fd, openat(dir, name, flags | O_CLOEXEC, mode));
    return fd_high(fd);
}

int kp_io_close(int fd)
{
    const int rc = kp_fail_point("close"); /* the kernel gives the number back all the same */
    return close(fd) == 0 || errno == EINTR ? rc : -errno;
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
        ssize_t n = kp_fail_point("write");
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
    ssize_t n = kp_fail_point("read");
    if (n == 0) KP_IO_RETRY(n, read(fd, data, bytes));
    return n;
}

ssize_t kp_io_pread(int fd, void *data, size_t bytes, off_t at)
{
    ssize_t n = kp_fail_point("pread");
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
    int rc = kp_fail_point("fallocate");
    kp_quiet_begin(&quiet);
    if (rc == 0) KP_IO_RETRY(rc, fallocate(fd, 0, at, bytes));
    if (rc == -EOPNOTSUPP || rc == -ENOSYS) rc = zeroes_write(fd, at, bytes);
    kp_quiet_end(&quiet);
    return rc;
}

static _Atomic bool keeps_unlocked;

void kp_io_keep_unlocked(bool is_wanted)
{
    kp_store_relaxed(&keeps_unlocked, is_wanted);
}

int kp_io_mmap(void **out, size_t bytes, int prot, int flags, int fd, off_t at)
{
    int rc = kp_fail_point("mmap");
    if (rc < 0) return rc;
    void *p = mmap(NULL, bytes, prot, flags, fd, at);
    if (p == MAP_FAILED) return -errno;
    if (kp_load_relaxed(&keeps_unlocked)) (void)kp_io_unlock_pages(p, bytes);
    *out = p;
    return 0;
}

int kp_io_mmap_at(void *where, size_t bytes, int prot, int flags, int fd, off_t at)
{
    int rc = kp_fail_point("mmap");
    if (rc < 0) return rc;
    if (mmap(where, bytes, prot, flags | MAP_FIXED, fd, at) == MAP_FAILED) return -errno;
    if (kp_load_relaxed(&keeps_unlocked)) (void)kp_io_unlock_pages(where, bytes);
    return 0;
}

int kp_io_munmap(void *p, size_t bytes)
{
    int rc = kp_fail_point("munmap");
    if (rc < 0) return rc;
    return munmap(p, bytes) == 0 ? 0 : -errno;
}

int kp_io_mremap(void **out, void *p, size_t old_bytes, size_t bytes)
{
    int rc = kp_fail_point("mremap");
    if (rc < 0) return rc;
    void *q = mremap(p, old_bytes, bytes, MREMAP_MAYMOVE);
    if (q == MAP_FAILED) return -errno;
    *out = q;
    return 0;
}

int kp_io_madvise(void *p, size_t bytes, int advice)
{
    int rc = kp_fail_point("madvise");
    if (rc < 0) return rc;
    return madvise(p, bytes, advice) == 0 ? 0 : -errno;
}

int kp_io_mprotect(void *p, size_t bytes, int prot)
{
    int rc = kp_fail_point("mprotect");
    if (rc < 0) return rc;
    return mprotect(p, bytes, prot) == 0 ? 0 : -errno;
}

static uint64_t limit_get(int which)
{
    struct rlimit limit;
    if (kp_fail_point("limit") != 0 || getrlimit((__rlimit_resource_t)which, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    return limit.rlim_cur;
}

uint64_t kp_io_address_limit(void)
{
    return limit_get(RLIMIT_AS);
}

uint64_t kp_io_lock_limit(void)
{
    return limit_get(RLIMIT_MEMLOCK);
}

uint64_t kp_io_addresses(void)
{
    char text[64] = "";
    uint64_t pages = 0;
    int fd = kp_io_open("/proc/self/statm", O_RDONLY, 0);
    if (fd < 0) return 0;
    if (kp_io_read(fd, text, sizeof text - 1) < 0) text[0] = '\0';
    kp_io_close(fd);
    for (const char *p = text; *p >= '0' && *p <= '9'; p++) pages = pages * 10 + (uint64_t)(*p - '0');
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

int kp_io_lock_pages(void *p, size_t bytes, bool on_fault)
{
    int rc = kp_fail_point("mlock");
    if (rc < 0) return rc;
    return syscall(SYS_mlock2, p, bytes, on_fault ? 1 : 0) == 0 ? 0 : -errno; /* MLOCK_ONFAULT */
}

int kp_io_unlock_pages(void *p, size_t bytes)
{
    int rc = kp_fail_point("mlock");
    if (rc < 0) return rc;
    return syscall(SYS_munlock, p, bytes) == 0 ? 0 : -errno;
}

int kp_io_fsync(int fd)
{
    int rc = kp_fail_point("fsync");
    if (rc == 0) KP_IO_RETRY(rc, fsync(fd));
    return rc;
}

int kp_io_truncate(int fd, off_t bytes)
{
    int rc = kp_fail_point("truncate");
    if (rc == 0) KP_IO_RETRY(rc, ftruncate(fd, bytes));
    return rc;
}

int kp_io_lock(int fd)
{
    int rc = kp_fail_point("lock");
    if (rc == 0) KP_IO_RETRY(rc, flock(fd, LOCK_EX | LOCK_NB));
    return rc;
}

int kp_io_give(int fd, uint32_t uid, uint32_t gid, uint32_t mode)
{
    int rc = kp_fail_point("give");
    if (rc < 0) return rc;
    return syscall(SYS_fchown, fd, uid, gid) == 0 && syscall(SYS_fchmod, fd, mode) == 0 ? 0 : -errno;
}

int64_t kp_io_data_next(int fd, int64_t at)
{
    const int rc = kp_fail_point("seek");
    if (rc < 0) return rc;
    const off_t next = lseek(fd, at, SEEK_DATA);
    return next < 0 ? -errno : next;
}

void kp_io_punch(int fd, off_t at, off_t bytes)
{
    if (kp_fail_point("punch") == 0) (void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, bytes);
}

int kp_io_stat(const char *path, struct stat *out)
{
    int rc = kp_fail_point("stat");
    if (rc < 0) return rc;
    return syscall(SYS_newfstatat, AT_FDCWD, path, out, 0) == 0 ? 0 : -errno;
}

int kp_io_fstat(int fd, struct stat *out)
{
    int rc = kp_fail_point("stat");
    if (rc < 0) return rc;
    return syscall(SYS_fstat, fd, out) == 0 ? 0 : -errno;
}

bool kp_io_exists(const char *path)
{
    return kp_fail_point("access") == 0 && access(path, F_OK) == 0;
}

ssize_t kp_io_readlink(const char *path, char *out, size_t bytes)
{
    int rc = kp_fail_point("readlink");
    if (rc < 0) return rc;
    ssize_t n = readlink(path, out, bytes);
    return n < 0 ? -errno : n;
}

int kp_io_getcwd(char *out, size_t bytes)
{
    int rc = kp_fail_point("getcwd");
    if (rc < 0) return rc;
    return getcwd(out, bytes) ? 0 : -errno;
}

int kp_io_dup_high(int fd)
{
    int rc = kp_fail_point("dup");
    if (rc < 0) return rc;
    rc = fcntl(fd, F_DUPFD_CLOEXEC, KP_IO_FD_HIGH);
    return rc < 0 ? -errno : rc;
}

bool kp_io_is_terminal(int fd)
{
    return kp_fail_point("terminal") == 0 && isatty(fd);
}

/*
 * Where process_vm_readv is not there (emulators) or not allowed (a sandbox) the bytes go through a pipe: write answers EFAULT as well.
 * By number, since libc's write and read are places where a thread may be cancelled.
 */
enum { PIECE = 4096 }; /* what any pipe takes without waiting; also what is asked for at once, since no page is smaller */

static int peek_through(const int fds[2], const uint8_t *from, uint8_t *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const size_t want = bytes - done < PIECE ? bytes - done : PIECE;
        const long got = syscall(SYS_write, fds[1], from + done, want);
        if (got <= 0) return got < 0 ? -errno : -EFAULT;
        if (syscall(SYS_read, fds[0], to + done, (size_t)got) != got) return -EIO;
        done += (size_t)got;
    }
    return 0;
}

static int peek_by_pipe(const struct iovec *pieces, unsigned n, uint8_t *to)
{
    int fds[2];
    if (syscall(SYS_pipe2, fds, O_CLOEXEC | O_NONBLOCK) != 0) return -errno;
    int rc = 0;
    for (unsigned i = 0; i < n && rc == 0; i++) {
        rc = peek_through(fds, pieces[i].iov_base, to, pieces[i].iov_len);
        to += pieces[i].iov_len;
    }
    syscall(SYS_close, fds[0]);
    syscall(SYS_close, fds[1]);
    return rc;
}

/*
 * The kernel copies, and answers EFAULT where a load of ours would kill the host. Memory is asked of the calling thread: the main one, whose number
 * the process has, may have ended by pthread_exit, and has none then.
 */
static int peek(const struct iovec *pieces, unsigned n, uint8_t *to, size_t bytes)
{
    const struct iovec local = {to, bytes};
    int rc = kp_fail_point("peek");
    if (rc < 0) return rc;
    rc = kp_fail_point("vm_readv");
    const ssize_t got = rc < 0 ? rc : process_vm_readv((pid_t)kp_io_tid(), &local, 1, pieces, n, 0);
    if (got == (ssize_t)bytes) return 0;
    rc = rc < 0 ? rc : got < 0 ? -errno : -EFAULT;
    return rc == -ENOSYS || rc == -EPERM ? peek_by_pipe(pieces, n, to) : rc;
}

int kp_io_peek(const void *from, void *to, size_t bytes)
{
    const struct iovec remote = {(void *)(uintptr_t)from, bytes};
    return peek(&remote, 1, to, bytes);
}

int kp_io_poke(void *to, const void *from, size_t bytes)
{
    struct iovec local = {(void *)(uintptr_t)from, bytes}, remote = {to, bytes};
    int rc = kp_fail_point("peek");
    if (rc < 0) return rc;
    ssize_t put = process_vm_writev((pid_t)kp_io_tid(), &local, 1, &remote, 1, 0);
    if (put < 0) return -errno;
    return put == (ssize_t)bytes ? 0 : -EFAULT;
}

int kp_io_peek_pages(const void *from, size_t bytes)
{
    enum { AT_ONCE = 32 };
    uint8_t to[AT_ONCE];
    struct iovec remote[AT_ONCE];
    int rc = 0;
    for (uintptr_t at = (uintptr_t)from, end = at + bytes; at < end && rc == 0;) {
        unsigned n = 0;
        for (; n < AT_ONCE && at < end; at = (at | (PIECE - 1)) + 1) remote[n++] = (struct iovec){(void *)at, 1};
        rc = peek(remote, n, to, n);
    }
    return rc;
}

/* Whoever counts naps waits as long as it means to, also under a storm of signals and where a filter refuses the call. */
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
    int rc = kp_fail_point("wait");
    if (rc == 0 && syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &most, NULL, 0) != 0) rc = -errno;
    bool has_waited = rc == 0 || rc == -EAGAIN || rc == -EINTR || rc == -ETIMEDOUT;
    if (!has_waited) kp_io_nap(ns < 1000000 ? ns : 1000000); /* refused: our thread shall not take a processor for itself */
}

void kp_io_wake(_Atomic uint32_t *word)
{
    if (kp_fail_point("wake") == 0) syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

int kp_io_barrier_register(void)
{
    int rc = kp_fail_point("barrier");
    if (rc == 0 && syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0) rc = -errno;
    return rc;
}

int kp_io_barrier(void)
{
    int rc = kp_fail_point("barrier");
    if (rc == 0 && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0) rc = -errno;
    return rc;
}

uint32_t kp_io_tid(void)
{
    return (uint32_t)syscall(SYS_gettid);
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

void kp_io_thread_name(char name[16])
{
    name[0] = '\0';
    if (kp_fail_point("prctl") == 0) prctl(PR_GET_NAME, name, 0, 0, 0);
}

int kp_io_host(struct utsname *out)
{
    int rc = kp_fail_point("uname");
    if (rc == 0 && uname(out) != 0) rc = -errno;
    return rc;
}

int kp_io_rename_new(const char *from, const char *to)
{
    int rc = kp_fail_point("rename");
    if (rc < 0) return rc;
    if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return -errno;
    return kp_io_exists(to) ? -EEXIST : kp_io_rename(from, to); /* a file system that cannot do it */
}

int kp_io_rename(const char *from, const char *to)
{
    int rc = kp_fail_point("rename");
    if (rc < 0) return rc;
    return syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to) == 0 ? 0 : -errno;
}

int kp_io_unlink(const char *path)
{
    int rc = kp_fail_point("unlink");
    if (rc < 0) return rc;
    return syscall(SYS_unlinkat, AT_FDCWD, path, 0) == 0 ? 0 : -errno;
}

int kp_io_unlink_at(int dir, const char *name)
{
    int rc = kp_fail_point("unlink");
    if (rc < 0) return rc;
    return syscall(SYS_unlinkat, dir, name, 0) == 0 ? 0 : -errno;
}

static int dir_make(const char *path, int mode)
{
    struct stat st;
    if (syscall(SYS_mkdirat, AT_FDCWD, path, mode) == 0) return 0;
    int rc = -errno;
    if (syscall(SYS_newfstatat, AT_FDCWD, path, &st, 0) != 0) return rc;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int kp_io_mkdirs(const char *path, int mode)
{
    char part[4096];
    size_t n = strlen(path);
    int rc = kp_fail_point("mkdir");
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

struct kernel_entry { /* as getdents64 gives them */
    uint64_t inode;
    int64_t next;
    uint16_t bytes;
    uint8_t type;
    char name[];
};

int kp_io_each_name(const char *dir, void (*visit)(void *context, const char *name), void *context)
{
    _Alignas(struct kernel_entry) char some[4096];
    const int fd = kp_io_open(dir, O_RDONLY | O_DIRECTORY, 0);
    long n = fd;
    while (fd >= 0) {
        n = kp_fail_point("list");
        if (n == 0) n = syscall(SYS_getdents64, fd, some, sizeof some);
        if (n == -1) n = -errno;
        if (n <= 0) break;
        for (long at = 0; at < n;) {
            const struct kernel_entry *entry = (const void *)(some + at);
            if (entry->name[0] != '.') visit(context, entry->name);
            at += entry->bytes;
        }
    }
    if (fd >= 0) kp_io_close(fd);
    return (int)n;
}
