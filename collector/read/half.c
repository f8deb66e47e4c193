// SPDX-License-Identifier: Apache-2.0
/*
 * half.c - finds the half of a spool in memory, and lays both halves over each other
 *
 * Called by: reader.c; join.c (finds)
 * Memory:    a copy of each chunk that lies in memory. It is no mapping: the process may take the memory away at any
 *            time, and a look at a hole of a mapped file would make a page there
 * On fail:   a half that is not there or not this spool's is not used
 *
 * A chunk leaves memory only after it was written to the disk. So memory is read first, and the disk has the rest.
 */
#include "collector/read/half.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_poison.h"

enum { PATH_BYTES = 512 };

/* ---- which file is the other half ---- */

bool kp_half_head(int fd, struct kp_file_head *out)
{
    return kp_io_pread(fd, out, sizeof *out, 0) == (ssize_t)sizeof *out &&
           memcmp(out->magic, KP_FORMAT_MAGIC, sizeof out->magic) == 0 && out->chunk_bytes == KP_CHUNK_BYTES &&
           out->head_bytes >= KP_FILE_HEAD_LEAST && out->head_bytes < KP_CHUNK_BYTES;
}

bool kp_half_line(int fd, const struct kp_file_head *head, const char *key, char *out, size_t bytes)
{
    char text[KP_HALF_TEXT];
    const size_t key_bytes = strlen(key);
    const ssize_t n = kp_io_pread(fd, text, sizeof text - 1, (off_t)head->head_bytes);
    text[n > 0 ? n : 0] = '\0';
    for (const char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        if (strncmp(line, key, key_bytes) != 0 || line[key_bytes] != '=') continue;
        const size_t value = (size_t)(end - line) - key_bytes - 1;
        if (value >= bytes) return false;
        memcpy(out, line + key_bytes + 1, value);
        out[value] = '\0';
        return true;
    }
    return false;
}

bool kp_half_is_of(int fd, const struct kp_file_head *head)
{
    struct kp_file_head own;
    return kp_half_head(fd, &own) && own.pid == head->pid && own.start_real_ns == head->start_real_ns;
}

static bool is_half_of(int fd, const struct stat *other, const struct kp_file_head *head)
{
    struct stat st;
    return kp_io_fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == other->st_uid && st.st_nlink == 1 &&
           kp_half_is_of(fd, head);
}

int kp_half_find(int disk, char *path, size_t bytes)
{
    struct stat st;
    struct kp_file_head head;
    if (kp_io_fstat(disk, &st) != 0 || !S_ISREG(st.st_mode) || !kp_half_head(disk, &head)) return -ENOENT;
    if (!kp_half_line(disk, &head, KP_HALF_MEMORY_KEY, path, bytes)) return -ENOENT;
    if (strncmp(path, KP_HALF_ROOT KP_HALF_FOLDER, sizeof KP_HALF_ROOT KP_HALF_FOLDER - 1) != 0) return -ENOENT;
    const int fd = kp_io_open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0 || is_half_of(fd, &st, &head)) return fd;
    kp_io_close(fd);
    return -ENOENT;
}

void kp_half_remove(int disk)
{
    char path[PATH_BYTES];
    const int fd = kp_half_find(disk, path, sizeof path);
    if (fd >= 0) (void)kp_io_unlink(path);
    if (fd >= 0) kp_io_close(fd);
}

/* ---- both as one ---- */

struct halves {
    struct kp_reader *r;
    int memory, disk;
    uint32_t cycle; /* chunks of records of other cycles are left out; 0: none are */
};

static uint8_t *place_of(const struct halves *h, uint32_t chunk)
{
    return (uint8_t *)(uintptr_t)h->r->file + (size_t)chunk * KP_CHUNK_BYTES;
}

static bool is_wanted(const struct kp_chunk_head *head, uint32_t cycle)
{
    return !cycle || kp_load_relaxed((_Atomic uint32_t *)(uintptr_t)&head->kind) != KP_CHUNK_DATA ||
           head->cycle == cycle;
}

/* 1: the chunk lies in memory. 0: it does not. Or -errno. */
static int head_read(const struct halves *h, uint32_t chunk, struct kp_chunk_head *out)
{
    const ssize_t n = kp_io_pread(h->memory, out, sizeof *out, (off_t)chunk * KP_CHUNK_BYTES);
    if (n < 0) return (int)n;
    return n == (ssize_t)sizeof *out && (!chunk || out->magic == KP_CHUNK_MAGIC);
}

/* Copies one chunk out of memory. If it left memory meanwhile, the disk has it. */
static int chunk_copy(const struct halves *h, uint32_t chunk)
{
    struct kp_chunk_head head;
    int rc = head_read(h, chunk, &head);
    if (rc <= 0 || (chunk && !is_wanted(&head, h->cycle))) return rc < 0 ? rc : 0;
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    rc = kp_io_mmap_at(place_of(h, chunk), KP_CHUNK_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (rc) return rc;
    const ssize_t n = kp_io_pread(h->memory, place_of(h, chunk), KP_CHUNK_BYTES, (off_t)chunk * KP_CHUNK_BYTES);
    rc = n < 0 ? (int)n : head_read(h, chunk, &head);
    if (rc > 0) h->r->copied[chunk / 8] |= (uint8_t)(1u << chunk % 8);
    return rc < 0 ? rc : 0;
}

static int memory_lay(const struct halves *h)
{
    const uint32_t chunks = (uint32_t)(h->r->file_bytes / KP_CHUNK_BYTES);
    int rc = 0;
    for (uint32_t i = 0; !rc && kp_file_next_data(h->memory, &i, chunks); i++) rc = chunk_copy(h, i);
    return rc;
}

static bool is_copied(const struct halves *h, uint32_t chunk) { return h->r->copied[chunk / 8] & 1u << chunk % 8; }

static size_t size_of(int fd)
{
    struct stat st;
    const bool is_known = fd >= 0 && kp_io_fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    return is_known && st.st_size <= (off_t)KP_SPOOL_MOST_BYTES ? (size_t)st.st_size : 0;
}

/* Maps the file on the disk where nothing was copied. Its size is looked at now: chunks may have come meanwhile. */
static int disk_lay(const struct halves *h)
{
    const size_t size = size_of(h->disk), bytes = size < h->r->file_bytes ? size : h->r->file_bytes;
    int rc = 0;
    for (uint32_t i = 0, n; !rc && (size_t)i * KP_CHUNK_BYTES < bytes; i += n + 1) {
        const size_t at = (size_t)i * KP_CHUNK_BYTES;
        for (n = 0; at + (size_t)n * KP_CHUNK_BYTES < bytes && !is_copied(h, i + n);) n++;
        const size_t want = (size_t)n * KP_CHUNK_BYTES < bytes - at ? (size_t)n * KP_CHUNK_BYTES : bytes - at;
        if (n) rc = kp_io_mmap_at(place_of(h, i), want, PROT_READ, MAP_SHARED, h->disk, (off_t)at);
    }
    return rc;
}

/* As long as what either half has, or will have of what the header counts. */
static size_t bytes_of(const struct halves *h)
{
    struct kp_file_head head;
    if (!kp_half_head(h->memory, &head)) return 0;
    const size_t counted = (size_t)kp_load_relaxed(&head.chunks) * KP_CHUNK_BYTES, memory = size_of(h->memory);
    const size_t most = memory > counted ? memory : counted;
    return most <= KP_SPOOL_MOST_BYTES ? most & ~(size_t)(KP_CHUNK_BYTES - 1) : 0;
}

int kp_half_map(struct kp_reader *r, const struct kp_reader_halves *halves)
{
    const struct halves h = {.r = r, .memory = halves->memory, .disk = halves->disk, .cycle = halves->cycle};
    void *p = NULL;
    r->file_bytes = bytes_of(&h);
    if (r->file_bytes < KP_CHUNK_BYTES) return -EINVAL;
    r->copied_bytes = r->file_bytes / KP_CHUNK_BYTES / 8 + 1;
    r->copied = kp_map_alloc(r->copied_bytes);
    if (!r->copied) return -ENOMEM;
    int rc = kp_io_mmap(&p, r->file_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    r->file = p;
    if (!rc) rc = memory_lay(&h);
    return rc || h.disk < 0 ? rc : disk_lay(&h);
}
