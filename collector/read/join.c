// SPDX-License-Identifier: Apache-2.0
/*
 * join.c - brings the half in memory that a dead process left to the disk, and removes it
 *
 * Called by: the end of a run, the CLI before it looks for recordings, and after a program's end
 * Owns:      nothing
 * On fail:   what cannot be written stays in memory
 * Safe in:   signal handlers no; after fork yes
 *
 * A process that is killed leaves its half in /dev/shm, where it takes memory until it is joined. Only halves of this
 * user, this host and this pid namespace are looked at: whether the process of another is gone cannot be known here.
 */
#include "collector/read/half.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/text/kp_digits.h"
#include "collector/base/sys/kp_filecheck.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_path.h"
#include "collector/base/kp_poison.h"

enum { PATH_BYTES = 1200, FORSAKEN_S = 3600, LEFT_S = 600, LOOKS_BRIEF = 32 };

struct join {
    int folder;
    uint32_t looks; /* so many more halves are looked at */
    bool is_brief;  /* only those whose process, by the name, is surely gone */
    const char *of; /* spools of this folder at once, those of others when they were left for some minutes */
    char space[32]; /* this pid namespace */
    char host[KP_IO_HOST_BYTES];
    uint8_t *chunk;
    char spool[PATH_BYTES];
};

/* ---- whose it is ---- */

/* Returns the text behind "HOST_" in a name of this host's, or NULL. */
static const char *behind_host(const struct join *j, const char *name)
{
    const size_t host = strlen(j->host);
    return strncmp(name, j->host, host) == 0 && name[host] == '_' ? name + host + 1 : NULL;
}

/* "START SPACE BOOT" of a process (preload/finish/spools.c). A process that left none ended as it began. */
static bool is_process_gone(const struct join *j, int fd, const struct kp_file_head *head)
{
    char line[128];
    const uint64_t start = kp_io_process_start((int32_t)head->pid);
    if (strncmp(head->host, j->host, sizeof head->host - 1) != 0) return false;
    if (!kp_half_line(fd, head, "process_start", line, sizeof line)) return start == 0;
    const char *p = line;
    const uint64_t was = kp_digits_read(&p);
    const size_t space = strlen(j->space);
    if (*p != ' ' || !space || strncmp(p + 1, j->space, space) != 0 || p[1 + space] != ' ') return false;
    return start != was;
}

static bool is_wanted(const struct join *j)
{
    static const char below[] = "children/";
    const size_t n = strlen(j->of), folder = (size_t)(kp_path_base(j->spool) - j->spool);
    if (folder <= n || strncmp(j->spool, j->of, n) != 0 || j->spool[n] != '/') return false;
    return folder == n + 1 || (folder == n + sizeof below && strncmp(j->spool + n + 1, below, sizeof below - 1) == 0);
}

/* The file on the disk: the one that the process made, or a new one where it made none. */
static int disk_open(const struct join *j, const struct kp_file_head *head)
{
    char folder[PATH_BYTES];
    const int fd = kp_io_open(j->spool, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd == -ENOENT) {
        kp_fmt(folder, sizeof folder, "%.*s", (int)(kp_path_base(j->spool) - j->spool), j->spool);
        const int rc = kp_io_mkdirs(folder, KP_IO_FOLDER_MODE);
        return rc < 0 ? rc : kp_io_open(j->spool, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    }
    if (fd < 0) return fd;
    struct stat st;
    if (kp_io_fstat(fd, &st) == 0 && kp_filecheck_is_own(&st) && kp_half_is_of(fd, head)) return fd;
    kp_io_close(fd);
    return -ESTALE;
}

/* ---- bringing it over ---- */

static int chunk_join(struct join *j, int memory, int disk, uint32_t chunk)
{
    const off_t at = (off_t)chunk * KP_CHUNK_BYTES;
    const struct kp_chunk_head *head = (const void *)j->chunk;
    if (kp_io_pread(memory, j->chunk, KP_CHUNK_BYTES, at) != (ssize_t)KP_CHUNK_BYTES) return -EIO;
    if (chunk && head->magic != KP_CHUNK_MAGIC) return 0;
    if (chunk && kp_load_relaxed((_Atomic uint32_t *)(uintptr_t)&head->kind) == KP_CHUNK_FREE &&
        kp_io_data_next(disk, at) >= at + (off_t)KP_CHUNK_BYTES)
        return 0;
    const ssize_t rc = kp_io_pwrite_all(disk, j->chunk, KP_CHUNK_BYTES, at);
    return rc < 0 ? (int)rc : 0;
}

/* The header last: it counts the chunks. */
static int chunks_join(struct join *j, int memory, int disk)
{
    struct stat st;
    int rc = kp_io_fstat(memory, &st);
    const uint32_t chunks = rc ? 0 : (uint32_t)(st.st_size / KP_CHUNK_BYTES);
    for (uint32_t i = 1; !rc && kp_file_next_data(memory, &i, chunks); i++) rc = chunk_join(j, memory, disk, i);
    return rc ? rc : chunk_join(j, memory, disk, 0);
}

/* HOST_PID.START.kprof: a look at the number opens no file. */
static bool is_surely_gone(const struct join *j, const char *name)
{
    const char *p = behind_host(j, name);
    return p && kp_io_is_process_gone((int32_t)kp_digits_read(&p));
}

static bool is_older(const struct stat *st, uint64_t seconds)
{
    return (uint64_t)st->st_mtim.tv_sec < kp_clock_ns(CLOCK_REALTIME) / 1000000000u - seconds;
}

/* The folder of its spool was removed. */
static bool is_homeless(const struct join *j)
{
    char path[PATH_BYTES];
    struct stat folder;
    kp_fmt(path, sizeof path, "%.*s", (int)(kp_path_base(j->spool) - j->spool), j->spool);
    return kp_io_stat(path, &folder) == -ENOENT;
}

/* HOST_PID-START.family of a process that is gone (preload/finish/children.c). */
static void family_remove(const struct join *j, const char *name)
{
    const char *p = behind_host(j, name);
    if (!p) return;
    const int32_t pid = (int32_t)kp_digits_read(&p);
    p += *p == '-';
    const uint64_t start = kp_digits_read(&p);
    if (strcmp(p, ".family") == 0 && kp_io_process_start(pid) != start) (void)kp_io_unlink_at(j->folder, name);
}

static void dead_join(struct join *j, const char *name, int memory, const struct kp_file_head *head)
{
    struct stat st;
    const bool is_asked = is_wanted(j);
    if (kp_io_fstat(memory, &st) != 0) return;
    if (!is_asked && is_homeless(j)) {
        if (is_older(&st, FORSAKEN_S)) (void)kp_io_unlink_at(j->folder, name); /* it takes memory for no one */
    } else if (is_asked || (!j->is_brief && is_older(&st, LEFT_S))) {
        const int disk = disk_open(j, head);
        const int rc = disk < 0 ? disk : chunks_join(j, memory, disk);
        if (disk >= 0) kp_io_close(disk);
        if (rc == 0) (void)kp_io_unlink_at(j->folder, name);
    }
}

/* Killed before it had a header. */
static void stub_remove(const struct join *j, const char *name, int memory)
{
    struct stat st;
    if (is_surely_gone(j, name) && kp_io_fstat(memory, &st) == 0 && is_older(&st, FORSAKEN_S))
        (void)kp_io_unlink_at(j->folder, name);
}

static void half_join(void *context, const char *name)
{
    struct join *j = context;
    struct kp_file_head head;
    family_remove(j, name);
    if (!j->looks || (j->is_brief && !is_surely_gone(j, name))) return;
    j->looks--;
    const int memory = kp_filecheck_open_own(j->folder, name, O_RDONLY);
    if (memory < 0) return;
    if (!kp_half_head(memory, &head)) stub_remove(j, name, memory);
    else if (kp_half_line(memory, &head, KP_HALF_SPOOL_KEY, j->spool, sizeof j->spool) && j->spool[0] == '/' &&
             is_process_gone(j, memory, &head) && kp_io_lock(memory) == 0)
        dead_join(j, name, memory, &head);
    kp_io_close(memory);
}

int kp_join_half(int disk)
{
    char path[512];
    const int memory = kp_half_find(disk, path, sizeof path);
    if (memory < 0) return memory == -ENOENT ? 0 : memory;
    struct join j = {.folder = -1, .chunk = kp_map_alloc(KP_CHUNK_BYTES)};
    const int rc = j.chunk ? chunks_join(&j, memory, disk) : -ENOMEM;
    if (rc == 0) (void)kp_io_unlink(path);
    if (j.chunk) kp_map_free(j.chunk, KP_CHUNK_BYTES);
    kp_io_close(memory);
    return rc;
}

void kp_join_dead(const char *folder, bool is_brief)
{
    char path[64];
    struct join *j = kp_map_alloc(sizeof *j);
    if (!j) return;
    j->of = folder;
    j->is_brief = is_brief;
    j->looks = is_brief ? LOOKS_BRIEF : UINT32_MAX;
    kp_fmt(path, sizeof path, KP_HALF_ROOT KP_HALF_FOLDER "%u", (unsigned)geteuid());
    j->folder = kp_filecheck_open_folder(path);
    j->chunk = j->folder < 0 ? NULL : kp_map_alloc(KP_CHUNK_BYTES);
    const ssize_t n = kp_io_readlink("/proc/self/ns/pid", j->space, sizeof j->space - 1);
    if (n > 0) j->space[n] = '\0';
    kp_io_host_name(j->host);
    if (j->chunk && j->host[0]) (void)kp_io_each_name(path, half_join, j);
    if (j->chunk) kp_map_free(j->chunk, KP_CHUNK_BYTES);
    if (j->folder >= 0) kp_io_close(j->folder);
    kp_map_free(j, sizeof *j);
}
