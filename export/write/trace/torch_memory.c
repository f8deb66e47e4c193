// SPDX-License-Identifier: Apache-2.0
/*
 * torch_memory.c - a table of blocks by address: sizes of freed blocks, and the running total of the CPU
 *
 * Called by: memory_write.c, for every event of memory in order of time; memory_before.c
 * Memory:    a mapped table of the blocks taken at present, 16 bytes each, at most half full
 * On fail:   -ENOMEM
 */
#include "export/write/trace/torch_memory.h"

#include <errno.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_poison.h"

enum { FIRST_SLOTS = 1024 };

struct tensor_block {
    uint64_t address; /* 0: empty */
    int64_t bytes;
};
struct kp_blocks {
    struct tensor_block *slots;
    size_t slots_n, used;
    int64_t total;
};

struct kp_blocks *kp_blocks_open(void)
{
    struct kp_blocks *b = kp_map_alloc(sizeof *b);
    if (!b) return NULL;
    b->slots_n = FIRST_SLOTS;
    b->slots = kp_map_alloc(b->slots_n * sizeof *b->slots);
    if (b->slots) return b;
    kp_map_free(b, sizeof *b);
    return NULL;
}

void kp_blocks_close(struct kp_blocks *b)
{
    if (!b) return;
    kp_map_free(b->slots, b->slots_n * sizeof *b->slots);
    kp_map_free(b, sizeof *b);
}

static size_t home_of(const struct kp_blocks *b, uint64_t address)
{
    return (size_t)((address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (b->slots_n - 1);
}

/* The block's slot, or the empty slot for it. */
static size_t slot_of(const struct kp_blocks *b, uint64_t address)
{
    size_t at = home_of(b, address);
    while (b->slots[at].address && b->slots[at].address != address) at = (at + 1) & (b->slots_n - 1);
    return at;
}

static int grow(struct kp_blocks *b)
{
    struct kp_blocks more = {.slots_n = b->slots_n * 2, .used = b->used, .total = b->total};
    more.slots = kp_map_alloc(more.slots_n * sizeof *more.slots);
    if (!more.slots) return -ENOMEM;
    for (size_t i = 0; i < b->slots_n; i++)
        if (b->slots[i].address) more.slots[slot_of(&more, b->slots[i].address)] = b->slots[i];
    kp_map_free(b->slots, b->slots_n * sizeof *b->slots);
    *b = more;
    return 0;
}

/* A damaged file may hold any number. */
static int64_t moved(int64_t total, uint64_t by) { return (int64_t)((uint64_t)total + by); }

int kp_blocks_take(struct kp_blocks *b, uint64_t address, int64_t bytes, int64_t *total)
{
    if (2 * b->used >= b->slots_n && grow(b)) return -ENOMEM;
    struct tensor_block *block = &b->slots[slot_of(b, address)];
    if (!address) { /* no block: it would be an empty slot */
        *total = b->total;
        return 0;
    }
    b->used += !block->address; /* it is there when the record of its free was lost: as c10 does then */
    *block = (struct tensor_block){address, bytes};
    *total = b->total = moved(b->total, (uint64_t)bytes);
    return 0;
}

/* Empties a slot, and moves up slots behind it that a search would miss. */
static void slot_empty(struct kp_blocks *b, size_t hole)
{
    size_t mask = b->slots_n - 1;
    for (size_t at = (hole + 1) & mask; b->slots[at].address; at = (at + 1) & mask) {
        size_t home = home_of(b, b->slots[at].address);
        if (((at - home) & mask) < ((at - hole) & mask)) continue;
        b->slots[hole] = b->slots[at];
        hole = at;
    }
    b->slots[hole] = (struct tensor_block){0, 0};
    b->used--;
}

int64_t kp_blocks_total(const struct kp_blocks *b) { return b->total; }

int64_t kp_blocks_give(struct kp_blocks *b, uint64_t address, int64_t *total)
{
    size_t at = slot_of(b, address);
    int64_t bytes = b->slots[at].bytes;
    if (!b->slots[at].address) return 0;
    slot_empty(b, at);
    *total = b->total = moved(b->total, -(uint64_t)bytes);
    return bytes;
}

int kp_blocks_each(const struct kp_blocks *b, int (*fn)(void *context, uint64_t address, int64_t bytes), void *context)
{
    int rc = 0;
    for (size_t i = 0; i < b->slots_n && !rc; i++)
        if (b->slots[i].address) rc = fn(context, b->slots[i].address, b->slots[i].bytes);
    return rc;
}
