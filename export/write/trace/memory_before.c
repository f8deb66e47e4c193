// SPDX-License-Identifier: Apache-2.0
/*
 * memory_before.c - what was allocated before a window: the sizes of blocks, and when the window freed some of them
 *
 * Called by: memory_write.c, for each record of KP_MEMORY_BEFORE and each free of a block that the window does not know
 * Memory:    a mapped table of the blocks, and a mapped list of those that were freed
 * On fail:   -ENOMEM
 *
 * torch.profiler's events leave these blocks out, and so do ours: totals begin at 0. The keys are for `kprof memory`.
 */
#include "export/write/trace/memory_before.h"

#include <errno.h>

#include "collector/base/sys/kp_arena.h"
#include "export/write/out/slice.h"
#include "export/write/trace/torch_memory.h"
#include "collector/base/kp_poison.h"

enum { FIRST_FREED = 1024, SIZE_SHIFT = 4 };

struct freed_block {
    uint64_t at_ns;
    int64_t bytes;
};
struct kp_before {
    struct kp_blocks *blocks, *sizes; /* sizes: how many blocks there are of a size, by size << SIZE_SHIFT */
    struct freed_block *freed;
    uint32_t freed_n, freed_cap;
    int64_t unkept; /* blocks whose size libkprof had no room to keep */
    bool is_whole;
};

struct kp_before *kp_before_open(void)
{
    struct kp_before *b = kp_map_alloc(sizeof *b);
    if (!b) return NULL;
    b->blocks = kp_blocks_open();
    b->sizes = kp_blocks_open();
    if (b->blocks && b->sizes) return b;
    kp_before_close(b);
    return NULL;
}

void kp_before_close(struct kp_before *b)
{
    if (!b) return;
    kp_blocks_close(b->blocks);
    kp_blocks_close(b->sizes);
    kp_map_free(b->freed, b->freed_cap * sizeof *b->freed);
    kp_map_free(b, sizeof *b);
}

int kp_before_take(struct kp_before *b, const struct kp_event *e)
{
    int64_t total;
    if (e->address) return kp_blocks_take(b->blocks, e->address, e->bytes, &total);
    b->is_whole = true;
    b->unkept = e->bytes;
    return 0;
}

void kp_before_reused(struct kp_before *b, uint64_t address)
{
    int64_t total;
    (void)kp_blocks_give(b->blocks, address, &total);
}

int kp_before_freed(struct kp_before *b, const struct kp_event *e)
{
    int64_t total, bytes = kp_blocks_give(b->blocks, e->address, &total);
    if (!bytes) bytes = (int64_t) - (uint64_t)e->bytes; /* freed while the list was made */
    if (bytes <= 0) return 0;
    if (!kp_map_room(&b->freed, b->freed_n, &b->freed_cap, sizeof *b->freed, FIRST_FREED)) return -ENOMEM;
    b->freed[b->freed_n++] = (struct freed_block){e->start_ns, bytes};
    return 0;
}

static int size_count(void *context, uint64_t address, int64_t bytes)
{
    struct kp_before *b = context;
    int64_t total;
    const uint64_t key = (uint64_t)bytes << SIZE_SHIFT;
    (void)address;
    const int64_t count = bytes > 0 ? kp_blocks_give(b->sizes, key, &total) : 0;
    return bytes > 0 ? kp_blocks_take(b->sizes, key, count + 1, &total) : 0;
}

static int size_write(void *context, uint64_t key, int64_t count)
{
    struct kp_trace *t = context;
    kp_json_fmt(&t->json, "%lux%ld ", key >> SIZE_SHIFT, count);
    return 0;
}

int kp_before_write(struct kp_before *b, struct kp_trace *t)
{
    if (!b || !b->is_whole) return 0;
    const int rc = kp_blocks_each(b->blocks, size_count, b);
    if (rc) return rc;
    kp_json_lit(&t->json, "  \"kprof_memory_before\": \"");
    (void)kp_blocks_each(b->sizes, size_write, t);
    kp_json_lit(&t->json, "\",\n  \"kprof_memory_freed\": \"");
    for (uint32_t i = 0; i < b->freed_n; i++)
        kp_json_fmt(&t->json, "%ju:%ld ", kp_ts_of(t, b->freed[i].at_ns), b->freed[i].bytes);
    kp_json_lit(&t->json, "\",\n");
    if (b->unkept > 0) kp_json_fmt(&t->json, "  \"kprof_memory_unkept\": %ld,\n", b->unkept);
    return 0;
}
