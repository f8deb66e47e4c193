// SPDX-License-Identifier: Apache-2.0
/*
 * heapsites.c - counts heap blocks by the call stack that allocated them: live, at the peak, never freed
 *
 * Called by: allocations.c, for every block in order of time
 * Memory:    in the scratch 24 bytes for each live block, at most half full (outgrown tables stay there). Mapped: 72
 *            bytes for each site.
 * On fail:   -ENOMEM
 *
 * A new peak does not walk all sites. A site notes its state at the last peak when it next changes. Each peak has a
 * number (epoch). A site with an older number did not change since, so its state at the peak is its present state.
 */
#include <errno.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/format/kp_heap.h"
#include "export/write/heap/allocations.h"
#include "collector/base/kp_poison.h"

enum {
    FIRST_SLOTS = 4096,
    LASTS = 64,
    LOOKS = 4096 /* blocks between two calls of kp_scratch_touch */
};

struct kp_heap_block {
    uint64_t address; /* 0: empty */
    uint64_t bytes;
    uint32_t site, mark; /* mark: the caller's */
};

static struct kp_heap_block *block_at(const struct kp_sites *s, uint32_t at) { return kp_list_at(&s->blocks, at); }

/* Empty slots. */
static int blocks_make(struct kp_sites *s, struct kp_scratch *scratch, uint32_t slots)
{
    s->slots = slots;
    kp_list_init(&s->blocks, scratch, sizeof(struct kp_heap_block));
    for (uint32_t i = 0; i < slots; i++)
        if (!kp_list_add(&s->blocks)) return -ENOMEM;
    return 0;
}

int kp_sites_open(struct kp_sites *s, struct kp_scratch *scratch) { return blocks_make(s, scratch, FIRST_SLOTS); }

void kp_sites_close(struct kp_sites *s)
{
    kp_list_fini(&s->blocks);
    if (s->of) kp_map_free(s->of, s->cap * sizeof *s->of);
    kp_idpages_fini(&s->by_stack);
}

/* --- the table of live blocks --- */

static uint32_t home_of(const struct kp_sites *s, uint64_t address)
{
    return (uint32_t)((address >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (s->slots - 1);
}

/* The block's slot, or the empty slot for it. */
static uint32_t slot_of(const struct kp_sites *s, uint64_t address)
{
    uint32_t at = home_of(s, address);
    while (block_at(s, at)->address && block_at(s, at)->address != address) at = (at + 1) & (s->slots - 1);
    return at;
}

static int grow(struct kp_sites *s)
{
    struct kp_sites more = {0};
    const int rc = s->slots > UINT32_MAX / 2 ? -ENOMEM : blocks_make(&more, s->blocks.scratch, 2 * s->slots);
    for (uint32_t i = 0; !rc && i < s->slots; i++)
        if (block_at(s, i)->address) *block_at(&more, slot_of(&more, block_at(s, i)->address)) = *block_at(s, i);
    kp_list_fini(rc ? &more.blocks : &s->blocks);
    if (rc) return rc;
    s->blocks = more.blocks;
    s->slots = more.slots;
    return 0;
}

/* Empties a slot, and moves up slots behind it that a search would miss. */
static void slot_empty(struct kp_sites *s, uint32_t hole)
{
    const uint32_t mask = s->slots - 1;
    for (uint32_t at = (hole + 1) & mask; block_at(s, at)->address; at = (at + 1) & mask) {
        const uint32_t home = home_of(s, block_at(s, at)->address);
        if (((at - home) & mask) < ((at - hole) & mask)) continue;
        *block_at(s, hole) = *block_at(s, at);
        hole = at;
    }
    *block_at(s, hole) = (struct kp_heap_block){0};
    s->used--;
}

/* --- sites --- */

/* Place in s->of, or -ENOMEM. */
static int64_t site_get(struct kp_sites *s, uint32_t stack)
{
    uint32_t *number = kp_idpages_at(&s->by_stack, stack);
    if (!number) return -ENOMEM;
    if (*number) return *number - 1;
    if (!kp_map_room(&s->of, s->n, &s->cap, sizeof *s->of, 1024)) return -ENOMEM;
    s->of[s->n] = (struct kp_site){.stack = stack, .epoch = s->epoch};
    *number = ++s->n;
    return *number - 1;
}

/* Called before a site changes: if it did not change since the last peak, notes its state as the peak's. */
static void note_peak(const struct kp_sites *s, struct kp_site *site)
{
    if (site->epoch == s->epoch) return;
    site->peak_blocks = site->live_blocks;
    site->peak_bytes = site->live_bytes;
    site->epoch = s->epoch;
}

static void live_add(struct kp_sites *s, const struct kp_heap_block *block, uint64_t now_ns)
{
    struct kp_site *site = &s->of[block->site];
    note_peak(s, site);
    site->live_blocks++;
    site->live_bytes += block->bytes;
    s->live_blocks++;
    s->live_bytes += block->bytes;
    s->came = block->mark;
    if (s->live_bytes <= s->peak_bytes) return;
    s->peak_bytes = s->live_bytes;
    s->peak_ns = now_ns;
    s->epoch++;
}

static void live_take(struct kp_sites *s, const struct kp_heap_block *block)
{
    struct kp_site *site = &s->of[block->site];
    note_peak(s, site);
    site->live_blocks--;
    site->live_bytes -= block->bytes;
    s->live_blocks--;
    s->live_bytes -= block->bytes;
    s->gone = block->mark;
}

static int block_add(struct kp_sites *s, const struct kp_heap_block *new, uint64_t now_ns)
{
    if (!new->address) return 0;
    if (2 * (s->used + 1) > s->slots && !s->is_full && grow(s)) s->is_full = true;
    if (s->is_full && s->used + 1 > s->slots / 8 * 7) {
        s->unkept++;
        s->unkept_live++;
        return 0;
    }
    struct kp_heap_block *block = block_at(s, slot_of(s, new->address));
    if (block->address) live_take(s, block); /* the record of its free was lost */
    else s->used++;
    *block = *new;
    live_add(s, block, now_ns);
    return 0;
}

static void give(struct kp_sites *s, const struct kp_heap_event *e)
{
    const uint32_t slot = slot_of(s, e->address);
    const struct kp_heap_block *block = block_at(s, slot);
    struct kp_heap_restore *last = &s->last[e->thread_no % LASTS];
    if (!e->address || !block->address) {
        if (s->unkept_live) s->unkept_live--; /* probably a block without room in the table */
        else s->unknown++;
        if (e->flags & KP_HEAP_REALLOC) last->thread_no = 0;
        return;
    }
    if (e->flags & KP_HEAP_REALLOC)
        *last = (struct kp_heap_restore){block->address, block->bytes, block->site, e->thread_no, block->mark};
    live_take(s, block);
    slot_empty(s, slot);
}

static int restore(struct kp_sites *s, const struct kp_heap_event *e)
{
    const struct kp_heap_restore *last = &s->last[e->thread_no % LASTS];
    if (!last->thread_no || last->thread_no != e->thread_no || last->address != e->address) return 0;
    const struct kp_heap_block back = {last->address, last->bytes, last->site, last->mark};
    return block_add(s, &back, e->start_ns);
}

void kp_sites_prefetch(const struct kp_sites *s, const struct kp_heap_event *e)
{
    if (!s->slots) return;
    __builtin_prefetch(block_at(s, home_of(s, e->address)));
    if (e->taken) kp_idpages_prefetch(&s->by_stack, e->stack);
}

int kp_sites_take(struct kp_sites *s, const struct kp_heap_event *e, uint32_t mark)
{
    s->gone = s->came = 0;
    if (++s->looks % LOOKS == 0) kp_scratch_touch(s->blocks.scratch);
    if (e->flags & KP_HEAP_RESTORED) return restore(s, e);
    if (e->flags & KP_HEAP_FREE) {
        give(s, e);
        return 0;
    }
    const int64_t site = site_get(s, e->stack);
    if (site < 0) return (int)site;
    s->of[site].taken++;
    s->of[site].bytes += e->bytes;
    const struct kp_heap_block block = {e->address, e->bytes, (uint32_t)site, mark};
    return block_add(s, &block, e->start_ns);
}

void kp_sites_settle(struct kp_sites *s)
{
    for (uint32_t i = 0; i < s->n; i++) note_peak(s, &s->of[i]);
}

static uint64_t size_in(const struct kp_site *site, uint32_t turn)
{
    return turn % 3 == 0 ? site->live_bytes : turn % 3 == 1 ? site->peak_bytes : site->taken;
}

struct kp_site *kp_sites_largest(struct kp_sites *s, uint32_t turn)
{
    struct kp_site *best = NULL;
    for (uint32_t i = 0; i < s->n; i++)
        if (!s->of[i].is_shown && (!best || size_in(&s->of[i], turn) > size_in(best, turn))) best = &s->of[i];
    if (best) best->is_shown = true;
    return best;
}
