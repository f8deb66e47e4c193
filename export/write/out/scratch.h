// SPDX-License-Identifier: Apache-2.0
/* scratch.h - memory that grows with a window's events: an unnamed file's pages */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define KP_SCRATCH_SEGMENT ((size_t)4 << 20)
enum {
    KP_SCRATCH_SEGMENTS = 4096,
    KP_SCRATCH_ANONYMOUS = 8 /* segments without a file: 32 MB */,
    KP_SCRATCH_BLOCK = 65536
};

struct kp_scratch {
    const char *dir; /* folder of the file, which is made with the first piece; NULL: it lies in memory */
    uint64_t most;   /* limit in bytes, or 0: only the number of segments limits it */
    int fd;          /* -1 before the first piece, -2 without a file */
    uint32_t n, anonymous;
    size_t used; /* of the last segment */
    uint32_t touched;
    uint8_t *segment[KP_SCRATCH_SEGMENTS];
};

/* most 0: a part of the memory that this process may have where the file lies in memory, else no limit. */
void kp_scratch_init(struct kp_scratch *s, const char *dir, uint64_t most);
void kp_scratch_fini(struct kp_scratch *s);
void *kp_scratch_alloc(struct kp_scratch *s, size_t bytes); /* zeroed, at most a segment, or NULL. Stays until _fini */
/*
 * Called for about every 64 KB that is read again. Once in a while it drops all pages from this process, not the file.
 */
void kp_scratch_touch(struct kp_scratch *s);

/* An array in a scratch. */
struct kp_list {
    struct kp_scratch *scratch;
    uint8_t **blocks;
    uint32_t n, item_bytes, per_block, blocks_cap;
};
void kp_list_init(struct kp_list *l, struct kp_scratch *scratch, uint32_t item_bytes);
void kp_list_fini(struct kp_list *l);
void *kp_list_add(struct kp_list *l); /* a zeroed item, number n - 1 from now on, or NULL */
static inline void *kp_list_at(const struct kp_list *l, uint32_t i)
{
    return l->blocks[i / l->per_block] + (size_t)(i % l->per_block) * l->item_bytes;
}
