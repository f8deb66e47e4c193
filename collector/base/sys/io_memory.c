// SPDX-License-Identifier: Apache-2.0
/*
 * io_memory.c - the system calls on memory: mappings, page locks, limits, and copies of memory that may not be there
 *
 * Called by: boot, writer and exporter threads, the CLI. A hook calls mmap for a thread's first record, and peek at
 *            the end of an optimizer's step.
 * On fail:   -errno; nothing is logged here
 */
#include "collector/base/sys/kp_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <unistd.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/text/kp_digits.h"
#include "collector/base/sys/kp_fail.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

static _Atomic bool keeps_unlocked;

void kp_io_keep_unlocked(bool is_wanted) { kp_store_relaxed(&keeps_unlocked, is_wanted); }

static int map(void **out, void *where, size_t bytes, int prot, int flags, int fd, off_t at)
{
    int rc = kp_fail_point("mmap");
    if (rc < 0) return rc;
    void *const p = mmap(where, bytes, prot, flags, fd, at);
    if (p == MAP_FAILED) return -errno;
    if (kp_load_relaxed(&keeps_unlocked)) (void)kp_io_unlock_pages(p, bytes);
    *out = p;
    return 0;
}

int kp_io_mmap(void **out, size_t bytes, int prot, int flags, int fd, off_t at)
{
    return map(out, NULL, bytes, prot, flags, fd, at);
}

int kp_io_mmap_at(void *where, size_t bytes, int prot, int flags, int fd, off_t at)
{
    return map(&where, where, bytes, prot, flags | MAP_FIXED, fd, at);
}

int kp_io_munmap(void *p, size_t bytes) { return (int)KP_FAIL_ERRNO("munmap", munmap(p, bytes)); }

int kp_io_mremap(void **out, void *p, size_t old_bytes, size_t bytes)
{
    void *q = MAP_FAILED;
    const long rc = KP_FAIL_ERRNO("mremap", (q = mremap(p, old_bytes, bytes, MREMAP_MAYMOVE)) == MAP_FAILED ? -1 : 0);
    if (rc == 0) *out = q;
    return (int)rc;
}

int kp_io_madvise(void *p, size_t bytes, int advice)
{
    return (int)KP_FAIL_ERRNO("madvise", madvise(p, bytes, advice));
}

int kp_io_mprotect(void *p, size_t bytes, int prot) { return (int)KP_FAIL_ERRNO("mprotect", mprotect(p, bytes, prot)); }

static uint64_t limit_get(int which)
{
    struct rlimit limit;
    if (kp_fail_point("limit") != 0 || getrlimit((__rlimit_resource_t)which, &limit) != 0 ||
        limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur;
}

uint64_t kp_io_address_limit(void) { return limit_get(RLIMIT_AS); }

/* A file of one number. "max", or no file, is no limit. */
static uint64_t limit_read(const char *path)
{
    char text[32];
    const char *at = text;
    if (kp_io_text(path, text, sizeof text) <= 0 || text[0] < '0' || text[0] > '9') return UINT64_MAX;
    return kp_digits_read(&at);
}

/* The least limit of a control group and of those above it, up to the one that a container sees as its own. */
static uint64_t groups_limit(const char *root, char *group, const char *file)
{
    char path[1200];
    uint64_t least = UINT64_MAX;
    for (char *end = group + strlen(group);; end = strrchr(group, '/')) {
        if (end) *end = '\0';
        kp_fmt(path, sizeof path, "%s%s/%s", root, end ? group : "", file);
        const uint64_t limit = limit_read(path);
        if (limit < least) least = limit;
        if (!end) return least;
    }
}

/* This process's control groups: "0::/PATH" of version 2, "N:memory:/PATH" of version 1. */
static uint64_t group_limit(void)
{
    char text[2048];
    uint64_t least = UINT64_MAX;
    (void)kp_io_text("/proc/self/cgroup", text, sizeof text); /* if unreadable, there is no limit */
    for (char *line = text, *end; *line; line = end) {
        end = strchrnul(line, '\n');
        if (*end) *end++ = '\0';
        char *const at = strstr(line, ":memory:");
        char *const group = strncmp(line, "0::", 3) == 0 ? line + 3 : at ? at + 8 : NULL;
        if (!group || strlen(group) > 1000) continue;
        const uint64_t limit = at ? groups_limit("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes")
                                  : groups_limit("/sys/fs/cgroup", group, "memory.max");
        if (limit < least) least = limit;
    }
    return least;
}

uint64_t kp_io_memory_limit(void)
{
    struct sysinfo info = {.mem_unit = 1};
    uint64_t least = group_limit();
    if (kp_fail_point("limit") != 0 || sysinfo(&info) != 0) return least;
    const uint64_t machine = (uint64_t)info.totalram * info.mem_unit;
    return least < machine ? least : machine;
}

uint64_t kp_io_lock_limit(void) { return limit_get(RLIMIT_MEMLOCK); }

/* "SIZE RESIDENT SHARED ..", in pages: the first three in bytes, 0 each where the kernel does not tell. */
static void statm_read(uint64_t bytes[3])
{
    char text[64];
    const char *at = text;
    (void)kp_io_text("/proc/self/statm", text, sizeof text);
    for (int i = 0; i < 3; i++) {
        bytes[i] = kp_digits_read(&at) * (uint64_t)sysconf(_SC_PAGESIZE);
        at += *at == ' ';
    }
}

uint64_t kp_io_addresses(void)
{
    uint64_t bytes[3];
    statm_read(bytes);
    return bytes[0];
}

uint64_t kp_io_resident(uint64_t *addresses)
{
    uint64_t bytes[3];
    statm_read(bytes);
    if (addresses) *addresses = bytes[0];
    return bytes[1] > bytes[2] ? bytes[1] - bytes[2] : 0;
}

uint64_t kp_io_open_files(void)
{
    struct stat st;
    return kp_io_stat("/proc/self/fd", &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

int kp_io_lock_pages(void *p, size_t bytes, bool on_fault)
{
    return (int)KP_FAIL_ERRNO("mlock", syscall(SYS_mlock2, p, bytes, on_fault ? 1 : 0)); /* MLOCK_ONFAULT */
}

int kp_io_unlock_pages(void *p, size_t bytes) { return (int)KP_FAIL_ERRNO("mlock", syscall(SYS_munlock, p, bytes)); }

/* ---- memory that may not be there ---- */

/*
 * If process_vm_readv and process_vm_writev are missing (emulators) or forbidden (a sandbox), the bytes go through a
 * pipe. There, write and read return EFAULT as well. Calls go by system call number, since libc's write and read are
 * cancellation points.
 */
enum { PIECE = 4096 }; /* any pipe takes so much without waiting, and no page is smaller */

static int copy_through(const int fds[2], const uint8_t *from, uint8_t *to, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        const size_t want = bytes - done < PIECE ? bytes - done : PIECE;
        const long got = syscall(SYS_write, fds[1], from + done, want);
        if (got <= 0) return got < 0 ? -errno : -EFAULT;
        const long put = syscall(SYS_read, fds[0], to + done, (size_t)got);
        if (put != got) return put < 0 ? -errno : -EIO;
        done += (size_t)got;
    }
    return 0;
}

static int copy_by_pipe(const struct iovec *pieces, unsigned n, uint8_t *to)
{
    int fds[2];
    if (syscall(SYS_pipe2, fds, O_CLOEXEC | O_NONBLOCK) != 0) return -errno;
    int rc = 0;
    for (unsigned i = 0; i < n && rc == 0; i++) {
        rc = copy_through(fds, pieces[i].iov_base, to, pieces[i].iov_len);
        to += pieces[i].iov_len;
    }
    syscall(SYS_close, fds[0]);
    syscall(SYS_close, fds[1]);
    return rc;
}

static int copied(ssize_t done, size_t bytes) { return done == (ssize_t)bytes ? 0 : done < 0 ? -errno : -EFAULT; }

static bool is_missing(int rc) { return rc == -ENOSYS || rc == -EPERM; }

/*
 * The kernel copies, and returns EFAULT where a load would kill the host. The call names the calling thread, since a
 * main thread that ended by pthread_exit has no memory any more.
 */
static int peek(const struct iovec *pieces, unsigned n, uint8_t *to, size_t bytes)
{
    const struct iovec local = {to, bytes};
    int rc = kp_fail_point("peek");
    if (rc < 0) return rc;
    rc = kp_fail_point("vm_readv");
    if (rc == 0) rc = copied(process_vm_readv((pid_t)kp_io_tid(), &local, 1, pieces, n, 0), bytes);
    return is_missing(rc) ? copy_by_pipe(pieces, n, to) : rc;
}

int kp_io_peek(const void *from, void *to, size_t bytes)
{
    const struct iovec remote = {(void *)(uintptr_t)from, bytes};
    return peek(&remote, 1, to, bytes);
}

int kp_io_peek_child(uint32_t pid, const void *from, void *to, size_t bytes)
{
    const struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)from, bytes};
    const int rc = kp_fail_point("vm_readv");
    return rc < 0 ? rc : copied(process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0), bytes);
}

int kp_io_poke(void *to, const void *from, size_t bytes)
{
    const struct iovec local = {(void *)(uintptr_t)from, bytes}, remote = {to, bytes};
    int rc = kp_fail_point("peek");
    if (rc < 0) return rc;
    rc = kp_fail_point("vm_writev");
    if (rc == 0) rc = copied(process_vm_writev((pid_t)kp_io_tid(), &local, 1, &remote, 1, 0), bytes);
    return is_missing(rc) ? copy_by_pipe(&local, 1, to) : rc;
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
