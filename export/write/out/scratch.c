// SPDX-License-Identifier: Apache-2.0
/*
 * scratch.c - memory for what grows with the events of a window, in a file without a name
 *
 * Called by: the export thread inside the host, the CLI
 * Memory:    segments of 4 MB of a file: in memory inside the host, with a limit, since a store into a page of a disk
 *            may wait for it, or end the host by SIGBUS (decisions/120). The CLI's lies in the trace's folder. It is
 *            unlinked before it is written, so that it never stays behind.
 * On fail:   without a file 32 MB of anonymous memory, then NULL. The caller leaves out what it cannot keep, and
 *            counts it.
 *
 * Each segment is fallocated before it is mapped, so a store never finds no room.
 */
#include "export/write/out/scratch.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

#define TOUCHES 256u /* 16 MB of blocks */
#define MEMORY_MOST ((uint64_t)1 << 30)
#define MEMORY_PART 16u /* of what this process may have */

static uint64_t memory_most(void)
{
    const uint64_t part = kp_io_memory_limit() / MEMORY_PART;
    return part < MEMORY_MOST ? part : MEMORY_MOST;
}

void kp_scratch_init(struct kp_scratch *s, const char *dir, uint64_t most)
{
    memset(s, 0, sizeof *s);
    s->most = dir || most ? most : memory_most();
    s->dir = dir;
    s->fd = -1;
}

void kp_scratch_fini(struct kp_scratch *s)
{
    for (uint32_t i = 0; i < s->n; i++) kp_io_munmap(s->segment[i], KP_SCRATCH_SEGMENT);
    if (s->fd >= 0) kp_io_close(s->fd);
    s->n = 0, s->fd = -1;
}

static int file_make(const char *dir)
{
    char path[4096];
    if (!dir) return kp_io_memory_file("kprof-scratch");
    kp_io_mkdirs(dir, KP_IO_FOLDER_MODE);
    int fd = kp_io_open(dir, O_TMPFILE | O_RDWR, 0600);
    if (fd >= 0) return fd;
    if (kp_fmt(path, sizeof path, "%s/.kprof-scratch.%d", dir, (int)getpid()) >= sizeof path) return -2;
    fd = kp_io_open(path, O_CREAT | O_EXCL | O_RDWR, 0600); /* a file system without O_TMPFILE */
    if (fd < 0) return -2;
    kp_io_unlink(path);
    return fd;
}

static void *segment_make(struct kp_scratch *s)
{
    off_t at = (off_t)((s->n - s->anonymous) * KP_SCRATCH_SEGMENT);
    void *p = NULL;
    if (s->fd == -1) s->fd = file_make(s->dir);
    if (s->fd < 0) s->fd = -2;
    if (s->fd >= 0 && !kp_io_fallocate(s->fd, at, (off_t)KP_SCRATCH_SEGMENT) &&
        !kp_io_mmap(&p, KP_SCRATCH_SEGMENT, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, at))
        return p;
    if (s->anonymous == KP_SCRATCH_ANONYMOUS || !(p = kp_map_alloc(KP_SCRATCH_SEGMENT))) return NULL;
    s->anonymous++;
    return p;
}

void *kp_scratch_alloc(struct kp_scratch *s, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    if (bytes > KP_SCRATCH_SEGMENT) return NULL;
    if (!s->n || s->used + bytes > KP_SCRATCH_SEGMENT) {
        const bool is_full =
            s->n == KP_SCRATCH_SEGMENTS || (s->most && (s->n + 1) * (uint64_t)KP_SCRATCH_SEGMENT > s->most);
        uint8_t *segment = is_full ? NULL : segment_make(s);
        if (!segment) return NULL;
        s->segment[s->n++] = segment;
        s->used = 0;
    }
    s->used += bytes;
    return s->segment[s->n - 1] + s->used - bytes;
}

/* Anonymous segments would lose their bytes: while there are any, all pages stay. */
void kp_scratch_touch(struct kp_scratch *s)
{
    if (++s->touched < TOUCHES || s->anonymous) return;
    s->touched = 0;
    for (uint32_t i = 0; i < s->n; i++) (void)kp_io_madvise(s->segment[i], KP_SCRATCH_SEGMENT, MADV_DONTNEED);
}

/* --- an array in it --- */

void kp_list_init(struct kp_list *l, struct kp_scratch *scratch, uint32_t item_bytes)
{
    *l = (struct kp_list){.scratch = scratch, .item_bytes = item_bytes, .per_block = KP_SCRATCH_BLOCK / item_bytes};
}

void kp_list_fini(struct kp_list *l)
{
    if (l->blocks) kp_map_free(l->blocks, l->blocks_cap * sizeof *l->blocks);
    l->blocks = NULL, l->n = l->blocks_cap = 0;
}

void *kp_list_add(struct kp_list *l)
{
    uint32_t block = l->n / l->per_block;
    if (l->n == UINT32_MAX) return NULL;
    if (!kp_map_room(&l->blocks, block, &l->blocks_cap, sizeof *l->blocks, 512)) return NULL;
    if (l->n % l->per_block == 0) {
        kp_scratch_touch(l->scratch);
        if (!(l->blocks[block] = kp_scratch_alloc(l->scratch, KP_SCRATCH_BLOCK))) return NULL;
    }
    return kp_list_at(l, l->n++);
}
