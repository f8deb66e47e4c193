// SPDX-License-Identifier: Apache-2.0
/* spoolfile.c - opens a spool's file once, copies it if others may change it, and locks it during a recovery */
#include "export/read/files/spoolfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/sys/kp_io.h"
#include "export/kp_export.h"
#include "export/show/say.h"

enum { COPY_BYTES = 1 << 20 };

/* ---- a copy of what others may change ---- */

static bool may_change(const struct stat *st)
{
    return (st->st_uid != geteuid() && st->st_uid != 0) || (st->st_mode & (S_IWGRP | S_IWOTH));
}

static int nameless_make(void)
{
    const char *const set = getenv("TMPDIR"), *const dir = set && *set ? set : "/tmp";
    char path[4200];
    int fd = open(dir, O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0) return fd;
    snprintf(path, sizeof path, "%s/kprof-XXXXXX", dir); /* a file system without O_TMPFILE */
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0) unlink(path);
    return fd < 0 ? -errno : fd;
}

static int piece_copy(int from, int to, off_t at, off_t end, void *buffer)
{
    while (at < end) {
        const size_t want = end - at < COPY_BYTES ? (size_t)(end - at) : COPY_BYTES;
        const ssize_t got = pread(from, buffer, want, at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got < 0 ? -errno : 0; /* the file was cut off: zeros follow */
        for (ssize_t put = 0, n; put < got; put += n)
            if ((n = pwrite(to, (char *)buffer + put, (size_t)(got - put), at + put)) <= 0)
                return n < 0 ? -errno : -EIO;
        at += got;
    }
    return 0;
}

bool kp_spoolfile_extent(int fd, off_t bytes, off_t *begin, off_t *end)
{
    if (*end >= bytes) return false;
    const off_t data = lseek(fd, *end, SEEK_DATA);
    if (data < 0 && errno == ENXIO) return false;
    const off_t hole = data < 0 ? bytes : lseek(fd, data, SEEK_HOLE);
    *begin = data < 0 ? *end : data;
    *end = hole < 0 || hole > bytes ? bytes : hole;
    return true;
}

/* Copies from the front. So when a chunk's head was copied, the bytes that it calls complete are. Holes stay holes. */
static int bytes_copy(int from, int to, off_t bytes)
{
    void *const buffer = malloc(COPY_BYTES);
    int rc = buffer ? 0 : -ENOMEM;
    off_t begin, end = 0;
    while (rc == 0 && kp_spoolfile_extent(from, bytes, &begin, &end)) rc = piece_copy(from, to, begin, end, buffer);
    if (rc == 0 && ftruncate(to, bytes) != 0) rc = -errno;
    free(buffer);
    return rc;
}

void kp_cli_join_dead(const char *folder)
{
    char *const real = realpath(folder, NULL);
    if (real) kp_join_dead(real, false);
    free(real);
}

/* The half in memory is copied in any case, so others may change it. */
static int copy_read(struct kp_reader **out, int fd, int copy, const char *path, char *why, size_t why_bytes)
{
    char memory[512];
    const struct kp_reader_halves halves = {.memory = kp_half_find(fd, memory, sizeof memory), .disk = copy};
    const int rc = kp_reader_open_halves(out, &halves, path, why, why_bytes);
    if (halves.memory >= 0) close(halves.memory);
    return rc;
}

int kp_spoolfile_read(struct kp_reader **out, int fd, const char *path, char *why, size_t why_bytes)
{
    struct stat st;
    *out = NULL;
    if (fstat(fd, &st) != 0) return -errno;
    if (!S_ISREG(st.st_mode) || st.st_size > (off_t)KP_SPOOL_MOST_BYTES || !may_change(&st))
        return kp_reader_open_fd(out, fd, path, why, why_bytes);
    const int copy = nameless_make();
    int rc = copy < 0 ? copy : bytes_copy(fd, copy, st.st_size);
    if (rc < 0)
        snprintf(why, why_bytes, "%s: others may change it, so it is copied to TMPDIR before it is read: %s", path,
                 strerror(-rc));
    else rc = copy_read(out, fd, copy, path, why, why_bytes);
    if (copy >= 0) close(copy);
    return rc;
}

int kp_spoolfile_open(struct kp_reader **out, const char *path, struct stat *st, char *why, size_t why_bytes)
{
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); /* a pipe is not waited for */
    *out = NULL;
    if (fd < 0) {
        const int rc = -errno;
        snprintf(why, why_bytes, "%s: %s", path, kp_cli_read_why(-rc));
        return rc;
    }
    const int rc = st && fstat(fd, st) != 0 ? -errno : kp_spoolfile_read(out, fd, path, why, why_bytes);
    close(fd);
    return rc;
}

/* ---- one at a time ---- */

/* Finds the holder in /proc/locks: "1: FLOCK  ADVISORY  WRITE 4242 fe:01:1234 0 EOF". */
static void holder_find(int fd, char *who, size_t who_bytes)
{
    struct stat st;
    char line[256];
    FILE *const locks = fopen("/proc/locks", "re");
    snprintf(who, who_bytes, "another process");
    if (locks && fstat(fd, &st) == 0)
        while (fgets(line, sizeof line, locks)) {
            unsigned long long inode;
            int pid;
            if (sscanf(line, "%*d: FLOCK %*s %*s %d %*x:%*x:%llu", &pid, &inode) != 2 ||
                inode != (unsigned long long)st.st_ino)
                continue;
            snprintf(who, who_bytes, "process %d", pid);
        }
    if (locks) fclose(locks);
}

/* A file system without locks locks no process out. */
int kp_spoolfile_lock(int fd, char *who, size_t who_bytes)
{
    const int rc = kp_io_lock(fd);
    if (rc == -EWOULDBLOCK) holder_find(fd, who, who_bytes);
    return rc == -EWOULDBLOCK ? rc : 0;
}

/* ---- the owner of its traces ---- */

bool kp_spoolfile_owner(const struct stat *spool, struct kp_export_owner *out)
{
    const bool can_give = geteuid() == 0;
    const uint32_t most = can_give ? KP_IO_FILE_MODE : S_IRUSR | S_IWUSR;
    *out = (struct kp_export_owner){.uid = can_give ? spool->st_uid : geteuid(),
                                    .gid = can_give ? spool->st_gid : getegid(),
                                    .mode = (spool->st_mode & most) | S_IRUSR};
    return spool->st_uid != geteuid();
}
