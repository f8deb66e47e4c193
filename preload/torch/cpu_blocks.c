// SPDX-License-Identifier: Apache-2.0
/*
 * cpu_blocks.c - a table of the CPU blocks that torch holds, so that a window knows what was there before it
 *
 * Called by: the taps of memory.c on any thread (hot: put, take); the thread that begins a window (each)
 * Owns:      the table: levels of buckets, each level four times the last. A bucket is one cache line of four slots.
 * Locks:     none. A block has one owner at a time, so only a slot's claim is contended.
 * Memory:    6 MB mapped once, 8 MB with marks; the kernel gives a page when a slot in it is used.
 * On fail:   a block that finds its bucket full on each level is counted and left out
 * Safe in:   signal handlers yes; after fork yes (the child has a copy)
 */
#include "preload/torch/cpu_blocks.h"

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/kp_poison.h"

enum { LEVELS = 4, FIRST_BUCKETS = 1024, SLOTS = 4, CLAIMED = 1 };

struct block_bucket {
    _Atomic uint64_t address[SLOTS]; /* 0: free; CLAIMED: its size is being written */
    _Atomic int64_t bytes[SLOTS];
};

static struct block_bucket *levels[LEVELS];
static _Atomic uint64_t *marks[LEVELS]; /* one a slot; NULL: a table without marks */
static _Atomic uint32_t levels_used;    /* the levels behind these hold no block: a walk leaves their pages alone */
static _Atomic uint64_t unkept;

static uint32_t buckets_of(int level) { return (uint32_t)FIRST_BUCKETS << 2 * level; }

bool kp_cpu_blocks_setup(bool has_marks)
{
    uint64_t all = 0;
    for (int i = 0; i < LEVELS; i++) all += buckets_of(i);
    struct block_bucket *first = levels[0] ? levels[0] : kp_map_alloc(all * sizeof *first);
    _Atomic uint64_t *mark = has_marks && !marks[0] ? kp_map_alloc(all * SLOTS * sizeof *mark) : marks[0];
    for (int i = 0; i < LEVELS && first; first += buckets_of(i++)) levels[i] = first;
    for (int i = 0; i < LEVELS && mark; mark += SLOTS * buckets_of(i++)) marks[i] = mark;
    return levels[0] && (!has_marks || marks[0]);
}

/* Each level takes other bits, so blocks that share a full bucket on one level part on the next. */
static struct block_bucket *bucket_of(int level, uint64_t address)
{
    uint64_t hash = (address >> 6) * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash ^ hash >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return &levels[level][(hash >> (8 + 13 * level)) & (buckets_of(level) - 1)];
}

static inline _Atomic uint64_t *mark_of(int level, const struct block_bucket *b, int slot)
{
    return &marks[level][(uint64_t)(b - levels[level]) * SLOTS + (uint64_t)slot];
}

/* Two threads may raise it at once: it never falls. */
static void level_use(int level)
{
    uint32_t used = kp_load_relaxed(&levels_used);
    while (used <= (uint32_t)level && !kp_cas_acq_rel(&levels_used, &used, (uint32_t)level + 1)) continue;
}

void kp_cpu_blocks_put(uint64_t address, int64_t bytes, uint64_t mark)
{
    for (int level = 0; level < LEVELS && levels[0]; level++) {
        struct block_bucket *b = bucket_of(level, address);
        for (int i = 0; i < SLOTS; i++) {
            uint64_t expected = 0;
            if (kp_load_relaxed(&b->address[i]) || !kp_cas_acq_rel(&b->address[i], &expected, CLAIMED)) continue;
            level_use(level);
            kp_store_relaxed(&b->bytes[i], bytes);
            if (marks[level]) kp_store_relaxed(mark_of(level, b, i), mark);
            kp_store_release(&b->address[i], address); /* pairs with: kp_cpu_blocks_each */
            return;
        }
    }
    kp_add_relaxed(&unkept, 1);
}

int64_t kp_cpu_blocks_take(uint64_t address)
{
    for (int level = 0; level < (int)kp_load_relaxed(&levels_used); level++) {
        struct block_bucket *b = bucket_of(level, address);
        for (int i = 0; i < SLOTS; i++) {
            if (kp_load_relaxed(&b->address[i]) != address) continue;
            const int64_t bytes = kp_load_relaxed(&b->bytes[i]);
            kp_store_release(&b->address[i], 0); /* pairs with: kp_cpu_blocks_put, whose claim comes after this load */
            return bytes;
        }
    }
    return 0;
}

bool kp_cpu_blocks_each(kp_cpu_block_fn fn, void *context)
{
    for (int level = 0; level < (int)kp_load_relaxed(&levels_used); level++) {
        for (uint32_t k = 0; k < SLOTS * buckets_of(level); k++) {
            struct block_bucket *b = &levels[level][k / SLOTS];
            const uint64_t address = kp_load_acquire(&b->address[k % SLOTS]); /* pairs with: kp_cpu_blocks_put */
            const int64_t bytes = kp_load_relaxed(&b->bytes[k % SLOTS]);
            const uint64_t mark = marks[level] ? kp_load_relaxed(&marks[level][k]) : 0;
            if (address > CLAIMED && !fn(context, address, bytes, mark)) return false;
        }
    }
    return true;
}

uint64_t kp_cpu_blocks_unkept(void) { return kp_load_relaxed(&unkept); }
