// SPDX-License-Identifier: Apache-2.0
/*
 * file.c - the mapped file of a reader: finds chunks and cycles, drops pages
 *
 * Called by: the other files of this room
 * Memory:    one chunk for each thread, 1 MB, and what was copied of a half in memory. A host must not seem 4 GB larger
 *            while the trace of 4 GB is written.
 * On fail:   a chunk without its magic is NULL. No size in the file is used before a check against the file's length.
 */
#include "collector/read/reader.h"

#include <errno.h>
#include <sys/mman.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_search.h"
#include "collector/base/kp_poison.h"

#define KP_DROP_BYTES \
    (16u * KP_CHUNK_BYTES) /* dropped at once: a call for each chunk took half of a short program's export */

const struct kp_chunk_head *kp_file_chunk(const struct kp_reader *r, uint32_t i, uint32_t *used)
{
    size_t from = (size_t)i * KP_CHUNK_BYTES, have = r->file_bytes - from;
    struct kp_chunk_head *head = (void *)(uintptr_t)(r->file + from);
    uint32_t said;
    if (have > KP_CHUNK_BYTES) have = KP_CHUNK_BYTES;
    if (have < sizeof *head || head->magic != KP_CHUNK_MAGIC) return NULL;
    said = kp_load_acquire(&head->used); /* pairs with: kp_record.h:kp_put_commit */
    if (said < sizeof *head) said = sizeof *head;
    *used = said < have ? said : (uint32_t)have;
    return head;
}

bool kp_file_next_data(int fd, uint32_t *i, uint32_t chunks)
{
    const int64_t data = *i < chunks ? kp_io_data_next(fd, (int64_t)*i * KP_CHUNK_BYTES) : -ENXIO;
    if (data == -ENXIO) return false;
    if (data / KP_CHUNK_BYTES > *i) *i = (uint32_t)(data / KP_CHUNK_BYTES);
    return *i < chunks;
}

static void give_back(const struct kp_reader *r)
{
    struct kp_drop *drop = r->drop;
    if (drop->to) (void)kp_io_madvise((void *)(uintptr_t)(r->file + drop->from), drop->to - drop->from, MADV_DONTNEED);
    *drop = (struct kp_drop){0};
}

void kp_file_drop_pages(const struct kp_reader *r, const void *at)
{
    struct kp_drop *drop = r->drop;
    size_t from = (size_t)((const uint8_t *)at - r->file) & ~(size_t)(KP_CHUNK_BYTES - 1), to = from + KP_CHUNK_BYTES;
    const size_t chunk = from / KP_CHUNK_BYTES;
    if (r->copied && r->copied[chunk / 8] & 1u << chunk % 8) return; /* its bytes are nowhere else */
    if (to > r->file_bytes) to = r->file_bytes;
    if (from >= drop->from && to <= drop->to) return;
    if (from != drop->to) {
        give_back(r);
        drop->from = from;
    }
    drop->to = to;
    if (to - drop->from >= KP_DROP_BYTES) give_back(r);
}

static bool is_earlier_cycle(const void *item, const void *number)
{
    return ((const struct kp_rec_cycle *)item)->cycle < *(const uint32_t *)number;
}

struct kp_rec_cycle *kp_file_cycle(const struct kp_reader *r, uint32_t number)
{
    const size_t i = kp_search(r->cycles, sizeof *r->cycles, r->cycles_n, is_earlier_cycle, &number);
    return i < r->cycles_n && r->cycles[i].cycle == number ? &r->cycles[i] : NULL;
}
