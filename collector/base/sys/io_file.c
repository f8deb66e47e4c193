// SPDX-License-Identifier: Apache-2.0
/*
 * io_file.c - the system calls on files, each with a point where a test can make it fail (fail.c)
 *
 * Called by: boot, writer and exporter threads, the CLI; never a hook
 * On fail:   -errno; nothing is logged here
 */
#include "collector/base/sys/kp_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h> /* rename, renameat2 */
#include <stdint.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "collector/base/sys/kp_fail.h"
#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_sigblock.h"
#include "collector/base/elf/kp_otherlibc.h"
#include "collector/base/kp_poison.h"

#define MEMFD_CLOEXEC 1u /* linux/memfd.h, which glibc before 2.27 lacks */

/*
 * Calls that other preloaded libraries intercept go to the kernel directly (fakeroot: names and owners of files).
 * Their versions may take locks of the host, on a thread it does not know. On 64-bit machines struct stat is the
 * kernel's own.
 */

/* Repeats a call after EINTR. Returns its value or -errno. */
#define KP_IO_RETRY(out, call)         \
    do {                               \
        (out) = (call);                \
        if ((out) < 0) (out) = -errno; \
    } while ((out) == -EINTR)

/* A call that may wait for a disk. */
static long call_again(long number, long a, long b, long c, long d)
{
    long rc;
    do rc = kp_io_call(number, a, b, c, d, 0);
    while (rc == -EINTR);
    return rc;
}

/*
 * Closes a low number that was ours. Shells close numbers that they have closed before, and so ours: a number that they
 * took since is another file.
 */
static void low_close(int fd, int high)
{
    struct stat low, ours;
    const bool is_known = high >= 0 && syscall(SYS_fstat, fd, &low) == 0 && syscall(SYS_fstat, high, &ours) == 0;
    if (!is_known || (low.st_dev == ours.st_dev && low.st_ino == ours.st_ino)) close(fd);
}

static int fd_high(int fd)
{
    if (fd < 0 || fd >= KP_IO_FD_HIGH) return fd;
    int high = kp_fail_point("dup");
    if (high == 0) KP_IO_RETRY(high, fcntl(fd, F_DUPFD_CLOEXEC, KP_IO_FD_HIGH));
    if (high == -EBADF) return high;               /* the host closed it */
    if (high < 0 && fd > STDERR_FILENO) return fd; /* a low limit on fds leaves only this number */
    if (high < 0)
        high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1); /* not 0 to 2: the host's output must not go there */
    if (high < 0) high = -errno;
    low_close(fd, high);
    return high;
}

enum { OPENS = 3 }; /* the host closed the number of those before */

static int open_at(int dir, const char *name, int flags, int mode)
{
    int fd = kp_fail_point("open"), high = fd;
    if (fd < 0) return fd;
    for (int i = 0; i < OPENS && (i == 0 || high == -EBADF); i++) {
        if (i == 1) flags &= ~(O_CREAT | O_EXCL); /* the file is there */
        /* /proc/self is another process's where that makes the call, and no disk */
        if (strncmp(name, "/proc/", 6) == 0) KP_IO_RETRY(fd, openat(dir, name, flags | O_CLOEXEC, mode));
        else fd = (int)call_again(SYS_openat, dir, (long)name, flags | O_CLOEXEC, mode);
        if (fd < 0) return fd;
        high = fd_high(fd);
    }
    return high;
}

int kp_io_open(const char *path, int flags, int mode) { return open_at(AT_FDCWD, path, flags, mode); }

int kp_io_open_at(int dir, const char *name, int flags, int mode) { return open_at(dir, name, flags, mode); }

int kp_io_close(int fd)
{
    const int rc = kp_fail_point("close"); /* the kernel frees the number also on failure */
    const long closed = kp_io_call(SYS_close, fd, 0, 0, 0, 0);
    return closed == 0 || closed == -EINTR ? rc : (int)closed;
}

static ssize_t write_quietly(int fd, const char *p, size_t bytes)
{
    struct kp_sigblock_write quiet;
    kp_sigblock_write_begin(&quiet);
    const ssize_t n = call_again(SYS_write, fd, (long)p, (long)bytes, 0);
    kp_sigblock_write_end(&quiet);
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

ssize_t kp_io_text(const char *path, char *text, size_t bytes)
{
    const int fd = kp_io_open(path, O_RDONLY, 0);
    const ssize_t n = fd < 0 ? fd : kp_io_read(fd, text, bytes - 1);
    if (fd >= 0) kp_io_close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n;
}

bool kp_io_command_has(uint32_t pid, const char *word)
{
    char path[64], line[4096];
    kp_fmt(path, sizeof path, "/proc/%u/cmdline", pid);
    const ssize_t n = kp_io_text(path, line, sizeof line);
    return n > 0 && memmem(line, (size_t)n, word, strlen(word));
}

ssize_t kp_io_pread(int fd, void *data, size_t bytes, off_t at)
{
    ssize_t n = kp_fail_point("pread");
    if (n == 0) KP_IO_RETRY(n, pread(fd, data, bytes, at));
    return n;
}

ssize_t kp_io_pwrite_all(int fd, const void *data, size_t bytes, off_t at)
{
    struct kp_sigblock_write quiet; /* past the file size limit a write raises SIGXFSZ */
    ssize_t n = kp_fail_point("pwrite");
    kp_sigblock_write_begin(&quiet);
    for (size_t done = 0; n >= 0 && done < bytes; done += (size_t)n) {
        n = call_again(SYS_pwrite64, fd, (long)data + (long)done, (long)(bytes - done), at + (off_t)done);
        if (n == 0) n = -EIO;
    }
    kp_sigblock_write_end(&quiet);
    return n < 0 ? n : (ssize_t)bytes;
}

/* Writes zeroes past the end of the file: then every block of the range exists on disk, as after fallocate. */
static int zeroes_write(int fd, off_t at, off_t bytes)
{
    static const char zeroes[16384];
    while (bytes > 0) {
        const long n =
            call_again(SYS_pwrite64, fd, (long)zeroes, bytes < (off_t)sizeof zeroes ? bytes : (long)sizeof zeroes, at);
        if (n < 0) return (int)n;
        if (n == 0) return -EIO;
        at += n;
        bytes -= n;
    }
    return 0;
}

int kp_io_fallocate(int fd, off_t at, off_t bytes)
{
    struct kp_sigblock_write quiet; /* past the file size limit, fallocate and write raise SIGXFSZ */
    int rc = kp_fail_point("fallocate");
    kp_sigblock_write_begin(&quiet);
    if (rc == 0) rc = (int)call_again(SYS_fallocate, fd, 0, at, bytes);
    if (rc == -EOPNOTSUPP || rc == -ENOSYS) rc = zeroes_write(fd, at, bytes);
    kp_sigblock_write_end(&quiet);
    return rc;
}

int kp_io_fsync(int fd) { return (int)KP_FAIL_VALUE("fsync", call_again(SYS_fsync, fd, 0, 0, 0)); }

int kp_io_truncate(int fd, off_t bytes)
{
    return (int)KP_FAIL_VALUE("truncate", call_again(SYS_ftruncate, fd, bytes, 0, 0));
}

int kp_io_lock(int fd)
{
    int rc = kp_fail_point("lock");
    if (rc == 0) KP_IO_RETRY(rc, flock(fd, LOCK_EX | LOCK_NB));
    return rc;
}

int kp_io_give(int fd, uint32_t uid, uint32_t gid, uint32_t mode)
{
    const long rc = KP_FAIL_ERRNO("give", syscall(SYS_fchown, fd, uid, gid));
    return (int)(rc < 0 ? rc : kp_fail_errno(syscall(SYS_fchmod, fd, mode)));
}

int64_t kp_io_data_next(int fd, int64_t at) { return KP_FAIL_ERRNO("seek", lseek(fd, at, SEEK_DATA)); }

int kp_io_punch(int fd, off_t at, off_t bytes)
{
    return (int)KP_FAIL_VALUE("punch",
                              call_again(SYS_fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, bytes));
}

int kp_io_memory_file(const char *name)
{
    return fd_high((int)KP_FAIL_ERRNO("memfd", syscall(SYS_memfd_create, name, MEMFD_CLOEXEC)));
}

static int room_fill(long rc, const struct statfs *fs, struct kp_io_room *out)
{
    if (rc != 0) return (int)rc;
    const uint64_t block = (uint64_t)(fs->f_frsize ? fs->f_frsize : fs->f_bsize);
    *out = (struct kp_io_room){
        .type = (uint64_t)fs->f_type & UINT32_MAX, .bytes = fs->f_blocks * block, .spare = fs->f_bavail * block};
    return 0;
}

int kp_io_room_of(const char *path, struct kp_io_room *out)
{
    struct statfs fs = {0};
    return room_fill(KP_FAIL_ERRNO("statfs", statfs(path, &fs)), &fs, out);
}

int kp_io_room_at(int fd, struct kp_io_room *out)
{
    struct statfs fs = {0};
    return room_fill(KP_FAIL_ERRNO("statfs", fstatfs(fd, &fs)), &fs, out);
}

int kp_io_stat(const char *path, struct stat *out)
{
    if (strncmp(path, "/proc/", 6) == 0)
        return (int)KP_FAIL_ERRNO("stat", syscall(SYS_newfstatat, AT_FDCWD, path, out, 0));
    return (int)KP_FAIL_VALUE("stat", kp_io_call(SYS_newfstatat, AT_FDCWD, (long)path, (long)out, 0, 0));
}

int kp_io_fstat(int fd, struct stat *out) { return (int)KP_FAIL_ERRNO("stat", syscall(SYS_fstat, fd, out)); }

bool kp_io_exists(const char *path) { return kp_fail_point("access") == 0 && access(path, F_OK) == 0; }

ssize_t kp_io_readlink(const char *path, char *out, size_t bytes)
{
    return KP_FAIL_ERRNO("readlink", readlink(path, out, bytes));
}

int kp_io_getcwd(char *out, size_t bytes) { return (int)KP_FAIL_ERRNO("getcwd", getcwd(out, bytes) ? 0 : -1); }

int kp_io_dup_high(int fd) { return (int)KP_FAIL_ERRNO("dup", fcntl(fd, F_DUPFD_CLOEXEC, KP_IO_FD_HIGH)); }

int kp_io_dup_over(int fd, int onto)
{
    const long rc = KP_FAIL_ERRNO("dup", dup3(fd, onto, O_CLOEXEC));
    return rc < 0 ? (int)rc : 0;
}

bool kp_io_is_terminal(int fd) { return kp_fail_point("terminal") == 0 && isatty(fd); }

int kp_io_rename_new(const char *from, const char *to)
{
    const long done =
        KP_FAIL_VALUE("rename", kp_io_call(SYS_renameat2, AT_FDCWD, (long)from, AT_FDCWD, (long)to, RENAME_NOREPLACE));
    if (done != -EINVAL && done != -ENOSYS) return (int)done;
    return kp_io_exists(to) ? -EEXIST : kp_io_rename(from, to); /* a file system without RENAME_NOREPLACE */
}

int kp_io_rename(const char *from, const char *to)
{
    return (int)KP_FAIL_VALUE("rename", kp_io_call(SYS_renameat, AT_FDCWD, (long)from, AT_FDCWD, (long)to, 0));
}

int kp_io_unlink(const char *path) { return kp_io_unlink_at(AT_FDCWD, path); }

int kp_io_unlink_at(int dir, const char *name)
{
    return (int)KP_FAIL_VALUE("unlink", kp_io_call(SYS_unlinkat, dir, (long)name, 0, 0, 0));
}

static int dir_make(const char *path, int mode)
{
    struct stat st;
    const int rc = (int)kp_io_call(SYS_mkdirat, AT_FDCWD, (long)path, mode, 0, 0);
    if (rc == 0) return 0;
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
