// SPDX-License-Identifier: Apache-2.0
/*
 * torch_memory.c - allocations as Kineto shows them: sizes of freed blocks, running totals of the CPU
 *
 * Called by: export.c, for every event of memory in order of time
 * Memory:    a mapped table of the blocks taken at present, 16 bytes each, at most half full
 * On fail:   -ENOMEM
 */
#include "export/trace/torch_memory.h"

#include <errno.h>
#include <string.h>

#include "collector/base/kp_arena.h"
#include "export/out/slice.h"
#include "export/trace/memory_before.h"
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

static void member(struct kp_trace *t, const char *key, int64_t value)
{
    kp_json_char(&t->json, '"');
    kp_json_raw(&t->json, key, strlen(key));
    kp_json_raw(&t->json, "\":", 2);
    kp_json_i64(&t->json, value);
    kp_json_char(&t->json, ',');
}

static void write(struct kp_trace *t, const struct kp_event *e, int64_t bytes, int64_t allocated)
{
    bool is_oom = e->flags & KP_MEMORY_OOM;
    kp_json_lit(&t->json, "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"s\":\"t\",\"name\":\"");
    kp_json_raw(&t->json, is_oom ? "[OutOfMemory]" : "[memory]", is_oom ? 13 : 8);
    kp_json_raw(&t->json, t->to_tid, t->to_tid_bytes);
    kp_json_u64(&t->json, e->tid);
    kp_json_lit(&t->json, ",\"ts\":");
    kp_ts_write(t, e->start_ns);
    kp_json_lit(&t->json, ",\"args\":{");
    member(t, "Total Reserved", (int64_t)e->reserved);
    member(t, "Total Allocated", allocated);
    member(t, "Bytes", bytes);
    member(t, "Device Id", e->device);
    member(t, "Device Type", e->device_type);
    if (!is_oom) {
        kp_json_lit(&t->json, "\"Addr\":");
        kp_json_u64(&t->json, e->address);
        kp_json_char(&t->json, ',');
    }
    kp_json_lit(&t->json, "\"finished\":false,\"Ev Idx\":");
    kp_json_u64(&t->json, t->index++);
    kp_json_lit(&t->json, "}},\n");
}

int kp_memory_write(struct kp_trace *t, const struct kp_event *e)
{
    int64_t bytes = e->bytes, total = 0;
    int rc = 0;
    if (e->flags & KP_MEMORY_TOTALS) {
        write(t, e, bytes, e->device < 0 ? kp_blocks_total(t->blocks) : (int64_t)e->allocated);
    } else if (!(e->flags & KP_MEMORY_FREE)) {
        kp_before_reused(t->before, e->address);
        rc = kp_blocks_take(t->blocks, e->address, bytes, &total);
        if (!rc) write(t, e, bytes, total);
    } else if ((bytes = kp_blocks_give(t->blocks, e->address, &total)) != 0) {
        write(t, e, (int64_t) - (uint64_t)bytes, total);
    } else {
        rc = kp_before_freed(t->before, e);
    }
    return rc;
}
