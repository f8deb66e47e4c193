// SPDX-License-Identifier: Apache-2.0
/*
 * chunk.c - gives chunks of the spool to threads; a chunk has one writing thread at a time
 *
 * Called by: any host thread inside a hook (take, leave, adopt: when its chunk is full), the writer, the exporter
 * Owns:      the stacks of free chunks, orphans, and those without memory; one state word for each chunk
 * Locks:     none; the stacks are lock-free. The upper half of each head is a tag. It tells a slow pop that the
 *            stack changed, even when the same chunk is on top again.
 * On fail:   NULL; the caller counts a drop. Never blocks.
 * Safe in:   signal handlers yes; after fork no (kp_chunk_forget first)
 *
 *   FREE --take--> OWNED(cycle) --its thread exits--> ORPHAN(cycle) --adopt--> OWNED(cycle)
 *    ^               |                                   |
 *    +---recycle-----+                                   +--recycle--> DEAD --the next pop--> FREE
 *
 *   OWNED --its thread leaves it--> LEFT --the writer: no range in it is open--> MOVING --on the disk--> MOVED
 *   OWNED, ORPHAN, LEFT --its window is settled--> SHUT --the writer--> MOVING
 *   MOVED --recycle--> STALE --erased from the disk--> GONE, without memory --the writer gives it memory--> FREE
 *   LEFT, MOVED --older than the ring (KPROF_RING), no range in it is open--> as by recycle
 *   LEFT, SHUT --recycle--> FREE        MOVING --recycle--> DEAD --erased from the disk--> FREE
 *
 * Each change of owner is a compare-and-swap of the state word, which contains the cycle. When the cycle was recycled
 * first, the swap fails and the thread touches nothing.
 */
#include "collector/record/record_internal.h"

#include <errno.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_poison.h"

enum { FREE = 1, OWNED, ORPHAN, DEAD, KEPT, LEFT, SHUT, MOVING, MOVED, STALE, GONE };
struct info {
    _Atomic uint64_t state;  /* cycle << 8 | one of the above */
    _Atomic uint32_t next;   /* in the stack it is on; 0 ends a stack (chunk 0 is the header) */
    uint32_t open_at;        /* the writer's: LEFT, no range before this offset is open */
    uint32_t events;         /* MOVED: so many, as kp_chunk_events counts */
    _Atomic uint32_t copied; /* carry.c's: how far the disk has a chunk that stays in memory */
    _Atomic bool has_copy;   /* the disk has records of it, perhaps old ones */
    bool was_shut;           /* MOVING: what it was before */
    uint32_t left_ms;        /* the writer's: when it first saw that its thread had left it, or 0 */
};
struct chunk_stack {
    _Atomic uint64_t head; /* tag << 32 | index */
    uint8_t pad[KP_LINE - 8];
};

static struct info **infos; /* a row for each piece of the spool, allocated with the piece; kept over a fork */
static uint32_t row_count;
static struct chunk_stack free_stack __attribute__((aligned(KP_LINE)));
static struct chunk_stack orphan_stack __attribute__((aligned(KP_LINE)));
static struct chunk_stack stale_stack __attribute__((aligned(KP_LINE))); /* recycled, still on the disk */
static struct chunk_stack gone_stack __attribute__((aligned(KP_LINE)));  /* not in memory nor on the disk */
static _Atomic uint64_t taken_count __attribute__((aligned(KP_LINE)));
static _Atomic uint64_t order_last __attribute__((aligned(KP_LINE)));
static _Atomic uint64_t given_count __attribute__((aligned(KP_LINE)));
static _Atomic uint32_t ready_mark;
static _Atomic uint32_t wanted; /* how often threads asked for a chunk for records, up to KP_CHUNK_DEMAND_MAX */

static inline uint64_t state_make(uint32_t cycle, unsigned what) { return (uint64_t)cycle << 8 | what; }

static inline struct info *info_of(uint32_t index) { return &infos[index / KP_PIECE_CHUNKS][index % KP_PIECE_CHUNKS]; }

/* ---- stacks ---- */

static void stack_push(struct chunk_stack *s, uint32_t index)
{
    uint64_t head = kp_load_relaxed(&s->head);
    do kp_store_relaxed(&info_of(index)->next, (uint32_t)head);
    /* pairs with: chunk.c:stack_pop (what was written to the chunk before it was given) */
    while (!kp_cas_acq_rel(&s->head, &head, ((head >> 32) + 1) << 32 | index));
}

static uint32_t stack_pop(struct chunk_stack *s)
{
    uint64_t head = kp_load_acquire(&s->head); /* pairs with: chunk.c:stack_push */
    uint32_t index, next;
    do {
        index = (uint32_t)head;
        if (index == 0) return 0;
        next = kp_load_relaxed(&info_of(index)->next); /* may be stale: then the tag differs and the swap fails */
    } while (!kp_cas_acq_rel(&s->head, &head, ((head >> 32) + 1) << 32 | next));
    return index;
}

static void free_push(uint32_t index)
{
    /* pairs with: the readers' walk (a chunk that reads FREE is skipped) */
    kp_store_release(&kp_spool_chunk(index)->kind, KP_CHUNK_FREE);
    kp_store_relaxed(&info_of(index)->copied, 0);
    info_of(index)->open_at = sizeof(struct kp_chunk_head);
    info_of(index)->left_ms = 0;
    kp_store_relaxed(&info_of(index)->state, FREE);
    stack_push(&free_stack, index);
    kp_add_relaxed(&given_count, 1);
}

static uint32_t free_pop(void)
{
    if (kp_load_acquire(&kp_spool.state) != KP_SPOOL_OPEN) return 0; /* pairs with: record.c:kp_record_open */
    uint32_t index = stack_pop(&free_stack);
    if (index) kp_add_relaxed(&taken_count, 1);
    bool is_low = kp_chunk_ready() < kp_load_relaxed(&ready_mark);
    if (is_low && kp_load_relaxed(&kp_spool.grow_error) == KP_LOSS_NO_CHUNK) kp_writer_wake();
    return index;
}

uint32_t kp_chunk_ready(void)
{
    uint64_t taken = kp_load_relaxed(&taken_count), given = kp_load_relaxed(&given_count);
    return given > taken ? (uint32_t)(given - taken) : 0;
}

uint64_t kp_chunk_taken(void) { return kp_load_relaxed(&taken_count); }

void kp_chunk_ask(void)
{
    if (kp_load_relaxed(&wanted) < KP_CHUNK_DEMAND_MAX) kp_add_relaxed(&wanted, 1);
}

uint32_t kp_chunk_demand(void) { return kp_load_relaxed(&wanted); }

void kp_chunk_set_mark(uint32_t mark) { kp_store_relaxed(&ready_mark, mark); }

uint64_t kp_order_next(void) { return kp_add_relaxed(&order_last, 1) + 1; }

/* ---- taking ---- */

static void owner_write(struct kp_chunk_head *chunk, const struct kp_thread *t)
{
    chunk->tid = kp_load_relaxed(&t->tid);
    chunk->thread_no = t->thread_no;
    chunk->order = kp_order_next();
    chunk->pthread_id = kp_load_relaxed(&t->pthread_id);
    memcpy(chunk->thread_name, t->name, sizeof chunk->thread_name);
}

struct kp_chunk_head *kp_chunk_take(struct kp_thread *t, uint32_t cycle)
{
    kp_chunk_ask();
    uint32_t index = free_pop();
    if (index == 0) return NULL;
    struct kp_chunk_head *chunk = kp_spool_chunk(index);
    chunk->cycle = cycle;
    kp_store_relaxed(&chunk->used, sizeof *chunk);
    owner_write(chunk, t);
    kp_store_release(&info_of(index)->state, state_make(cycle, OWNED)); /* pairs with: kp_chunk_events */
    /* pairs with: the readers' walk (kind DATA or DEVICE: the head is whole, used counts) */
    kp_store_release(&chunk->kind, t->is_lane ? KP_CHUNK_DEVICE : KP_CHUNK_DATA);
    return chunk;
}

struct kp_chunk_head *kp_chunk_take_kept(enum kp_chunk_kind kind)
{
    uint32_t index = free_pop();
    if (index == 0) return NULL;
    struct kp_chunk_head *chunk = kp_spool_chunk(index);
    if (chunk->order) memset(chunk + 1, 0, KP_CHUNK_BYTES - sizeof *chunk); /* old records must not look like strings */
    chunk->cycle = chunk->tid = chunk->thread_no = 0;
    chunk->order = kp_order_next();
    /* Readers look at the whole chunk: they find strings and frames cell by cell, each with its own check. */
    const bool has_cells = kind == KP_CHUNK_STRINGS || kind == KP_CHUNK_FRAMES;
    kp_store_relaxed(&chunk->used, has_cells ? KP_CHUNK_BYTES : (uint32_t)sizeof *chunk);
    kp_store_relaxed(&info_of(index)->state, KEPT);
    kp_store_release(&chunk->kind, kind); /* pairs with: the readers' walk */
    return chunk;
}

void kp_chunk_give_kept(struct kp_chunk_head *chunk) { free_push(kp_spool_index(chunk)); }

void kp_chunk_quit(struct kp_chunk_head *chunk, uint32_t cycle)
{
    uint64_t owned = state_make(cycle, OWNED);
    (void)kp_cas_acq_rel(&info_of(kp_spool_index(chunk))->state, &owned, state_make(cycle, LEFT));
}

/* ---- orphans ---- */

void kp_chunk_orphan(struct kp_chunk_head *chunk, uint32_t cycle)
{
    uint32_t index = kp_spool_index(chunk);
    uint64_t owned = state_make(cycle, OWNED);
    if (kp_cas_acq_rel(&info_of(index)->state, &owned, state_make(cycle, ORPHAN))) stack_push(&orphan_stack, index);
}

/* Handles a popped orphan of another cycle: it becomes owned again, or free when its cycle was recycled. */
static void orphan_settle(uint32_t index, uint64_t state)
{
    if ((state & 255) == ORPHAN && kp_cas_acq_rel(&info_of(index)->state, &state, (state & ~(uint64_t)255) | OWNED))
        return;
    if ((state & 255) == DEAD) free_push(index);
}

struct kp_chunk_head *kp_chunk_adopt(uint32_t cycle)
{
    uint32_t index;
    while ((index = stack_pop(&orphan_stack)) != 0) {
        uint64_t state = state_make(cycle, ORPHAN);
        if (kp_cas_acq_rel(&info_of(index)->state, &state, state_make(cycle, OWNED))) return kp_spool_chunk(index);
        orphan_settle(index, state);
    }
    return NULL;
}

/* ---- the other end of a cycle ---- */

/* True: the orphan, which is in no stack now, is no orphan any more. Chunks of cycles up to `settled` are SHUT. */
static bool orphan_leaves(uint32_t index, uint32_t settled)
{
    uint64_t state = kp_load_acquire(&info_of(index)->state); /* pairs with: chunk.c:kp_chunk_recycle */
    if ((state & 255) == ORPHAN && state >> 8 <= settled &&
        kp_cas_acq_rel(&info_of(index)->state, &state, (state & ~(uint64_t)255) | SHUT))
        return true;
    if ((state & 255) == DEAD) free_push(index);
    return (state & 255) == DEAD;
}

static void orphans_sweep(uint32_t settled)
{
    uint32_t index, kept = 0;
    while ((index = stack_pop(&orphan_stack)) != 0) {
        if (orphan_leaves(index, settled)) continue;
        kp_store_relaxed(&info_of(index)->next, kept); /* kept apart: in no stack until the loop below */
        kept = index;
    }
    while (kept) {
        index = kept;
        kept = kp_load_relaxed(&info_of(index)->next);
        stack_push(&orphan_stack, index);
    }
}

/* The state of a chunk of a recycled cycle. Its holder, a stack or the disk, finds it DEAD and frees it. */
static unsigned after_recycle(unsigned is)
{
    if (is == ORPHAN || is == MOVING) return DEAD;
    return is == MOVED ? STALE : FREE;
}

/* Repeats until the swap succeeds: kp_chunk_adopt may turn an orphan into an owned chunk in between. */
static void chunk_release(uint32_t index, uint32_t cycle)
{
    uint64_t state = kp_load_relaxed(&info_of(index)->state);
    while (state >> 8 == cycle && cycle) {
        const unsigned is = state & 255, then = after_recycle(is);
        if (is == DEAD || is == STALE) return;
        if (!kp_cas_acq_rel(&info_of(index)->state, &state, then == FREE ? FREE : state_make(cycle, then))) continue;
        if (then == FREE) free_push(index);
        if (then == STALE) stack_push(&stale_stack, index);
        return;
    }
}

void kp_chunk_recycle(uint32_t cycle)
{
    uint32_t chunks = kp_load_acquire(&kp_spool.chunks);         /* pairs with: chunk.c:chunks_add */
    for (uint32_t i = chunks; i-- > 1;) chunk_release(i, cycle); /* the lowest comes off first */
    orphans_sweep(0);
}

void kp_chunk_settle(uint32_t cycle)
{
    const uint32_t chunks = kp_load_acquire(&kp_spool.chunks); /* pairs with: chunk.c:chunks_add */
    for (uint32_t i = 1; i < chunks; i++) {
        uint64_t state = kp_load_relaxed(&info_of(i)->state);
        while (((state & 255) == OWNED || (state & 255) == LEFT) && state >> 8 <= cycle)
            if (kp_cas_acq_rel(&info_of(i)->state, &state, (state & ~(uint64_t)255) | SHUT)) break;
    }
    orphans_sweep(cycle);
}

static bool is_event(uint8_t kind)
{
    enum { OTHER, EVENT };
    static const bool events[KP_KIND_N] = {
#define KP_KIND(name, number, counts, ends, text) [number] = (counts) == EVENT,
#include "collector/format/kinds.def"
#undef KP_KIND
    };
    return kind < KP_KIND_N && events[kind];
}

static uint64_t events_count(const struct kp_chunk_head *chunk)
{
    uint64_t events = 0;
    uint32_t used = kp_load_acquire(&chunk->used); /* pairs with: kp_record.h:kp_put_commit */
    for (uint32_t at = sizeof *chunk; at + sizeof(struct kp_rec) <= used;) {
        const struct kp_rec *r = (const struct kp_rec *)((const uint8_t *)chunk + at);
        if (r->size < sizeof *r) break;
        events += is_event(r->kind);
        at += r->size;
    }
    return events;
}

/* The bytes of a chunk that moves were counted before. */
uint64_t kp_chunk_events(uint32_t cycle)
{
    uint64_t events = 0;
    uint32_t chunks = kp_load_acquire(&kp_spool.chunks); /* pairs with: chunk.c:chunks_add */
    for (uint32_t i = 1; i < chunks; i++) {
        const uint64_t state = kp_load_acquire(&info_of(i)->state); /* pairs with: kp_chunk_take, kp_chunk_orphan */
        const unsigned is = state & 255;
        if (state >> 8 != cycle || is == DEAD || is == STALE) continue;
        events += is == MOVING || is == MOVED ? info_of(i)->events : events_count(kp_spool_chunk(i));
    }
    return events;
}

/* ---- moving to the disk ---- */

uint32_t kp_chunk_erase_pop(void) { return stack_pop(&stale_stack); }

/* A range has its end stored in place, perhaps long after its thread left the chunk. */
static bool is_open_range(const struct kp_rec *r)
{
    enum { WHOLE, RANGE };
    static const bool ranges[KP_KIND_N] = {
#define KP_KIND(name, number, counts, ends, text) [number] = (ends) == RANGE,
#include "collector/format/kinds.def"
#undef KP_KIND
    };
    const bool is_range = r->kind < KP_KIND_N && ranges[r->kind] && r->size >= offsetof(struct kp_rec_op, rt_tid);
    return is_range && kp_load_acquire(&((struct kp_rec_op *)(uintptr_t)r)->ticks) == 0; /* pairs with: kp_put_end */
}

static bool has_open_range(const struct kp_chunk_head *chunk, struct info *info)
{
    const uint32_t used = kp_load_acquire(&chunk->used); /* pairs with: kp_record.h:kp_put_commit */
    while (info->open_at + sizeof(struct kp_rec) <= used) {
        const struct kp_rec *r = (const struct kp_rec *)((const uint8_t *)chunk + info->open_at);
        if (r->size < sizeof *r) return false;
        if (is_open_range(r)) return true;
        info->open_at += r->size;
    }
    return false;
}

uint64_t kp_chunk_written(void)
{
    const uint32_t chunks = kp_load_acquire(&kp_spool.chunks); /* pairs with: chunk.c:chunks_add */
    uint64_t bytes = 0;
    for (uint32_t i = 1; i < chunks; i++) {
        const struct kp_chunk_head *const chunk = kp_spool_chunk(i);
        if ((kp_load_acquire(&info_of(i)->state) & 255) != OWNED) continue; /* pairs with: kp_chunk_take */
        if (kp_load_acquire(&chunk->kind) != KP_CHUNK_DATA) continue;       /* pairs with: kp_chunk_take */
        bytes += chunk->order * KP_CHUNK_BYTES + kp_load_relaxed(&chunk->used);
    }
    return bytes;
}

void kp_chunk_expire(uint32_t index, uint32_t now_ms, uint32_t ring_ms)
{
    struct info *info = info_of(index);
    const uint64_t state = kp_load_acquire(&info->state); /* pairs with: chunk.c:kp_chunk_quit */
    const unsigned is = state & 255;
    if (is != LEFT && is != MOVED) return;
    if (!info->left_ms) info->left_ms = now_ms | 1;
    if ((now_ms | 1) - info->left_ms < ring_ms) return;
    if (is == LEFT && has_open_range(kp_spool_chunk(index), info)) return;
    chunk_release(index, (uint32_t)(state >> 8));
}

bool kp_chunk_move_begin(uint32_t index)
{
    struct info *info = info_of(index);
    uint64_t state = kp_load_acquire(&info->state); /* pairs with: chunk.c:kp_chunk_quit, kp_chunk_settle */
    const unsigned is = state & 255;
    if (is != LEFT && is != SHUT) return false;
    if (is == LEFT && has_open_range(kp_spool_chunk(index), info)) return false;
    info->was_shut = is == SHUT;
    info->events = (uint32_t)events_count(kp_spool_chunk(index));
    return kp_cas_acq_rel(&info->state, &state, (state & ~(uint64_t)255) | MOVING);
}

/* Readers look into memory first. So the disk has the chunk before its memory goes. */
enum kp_chunk_move kp_chunk_move_end(uint32_t index)
{
    struct info *info = info_of(index);
    uint64_t state = kp_load_acquire(&info->state); /* pairs with: chunk.c:kp_chunk_recycle */
    const uint64_t moved = (state & ~(uint64_t)255) | MOVED;
    if ((state & 255) != MOVING) return KP_CHUNK_STALE;
    if (!kp_spool_free(index)) {
        kp_chunk_move_undo(index);
        return KP_CHUNK_STAYS;
    }
    if (kp_cas_acq_rel(&info->state, &state, moved)) return KP_CHUNK_MOVED;
    kp_store_relaxed(&info->state, STALE); /* recycled meanwhile, and its memory is gone */
    return KP_CHUNK_STALE;
}

void kp_chunk_move_undo(uint32_t index)
{
    struct info *info = info_of(index);
    uint64_t state = kp_load_acquire(&info->state); /* pairs with: chunk.c:kp_chunk_recycle */
    const uint64_t before = (state & ~(uint64_t)255) | (info->was_shut ? SHUT : LEFT);
    if ((state & 255) == MOVING && kp_cas_acq_rel(&info->state, &state, before)) return;
    free_push(index); /* DEAD: recycled meanwhile, and the disk does not have it */
}

void kp_chunk_stale(uint32_t index) { stack_push(&stale_stack, index); }

void kp_chunk_erased(uint32_t index)
{
    struct info *info = info_of(index);
    const unsigned is = kp_load_relaxed(&info->state) & 255;
    kp_store_relaxed(&info->has_copy, false);
    if (is == DEAD) free_push(index); /* it still has memory */
    if (is != STALE) return;
    kp_store_relaxed(&info->state, GONE);
    stack_push(&gone_stack, index);
}

void kp_chunk_copied(uint32_t index, bool is_done)
{
    if (is_done) kp_store_relaxed(&info_of(index)->has_copy, true);
    else kp_store_relaxed(&info_of(index)->copied, 0);
}

enum kp_chunk_use kp_chunk_use(uint32_t index, _Atomic uint32_t **copied)
{
    const unsigned is = kp_load_acquire(&info_of(index)->state) & 255; /* pairs with: kp_chunk_take */
    *copied = &info_of(index)->copied;
    if (is == KEPT) return KP_CHUNK_KEPT;
    if (is == FREE && kp_load_relaxed(&info_of(index)->has_copy)) return KP_CHUNK_FREE_COPIED;
    return is == OWNED || is == ORPHAN || is == LEFT || is == SHUT ? KP_CHUNK_RECORDS : KP_CHUNK_UNUSED;
}

/* The file keeps the records. A thread that still writes there faults its page in again. */
void kp_chunk_drop_pages(void)
{
    const uint32_t chunks = kp_load_acquire(&kp_spool.chunks); /* pairs with: chunk.c:chunks_add */
    for (uint32_t i = 1, n; i < chunks; i += n + 1) {
        for (n = 0; i + n < chunks; n++) {
            const unsigned is = kp_load_relaxed(&info_of(i + n)->state) & 255;
            if (is != OWNED && is != ORPHAN && is != LEFT && is != SHUT) break;
        }
        if (n) kp_spool_drop_pages(i, n);
    }
}

/* ---- making ---- */

int kp_chunk_open(uint32_t max_chunks)
{
    const uint32_t rows = (max_chunks + KP_PIECE_CHUNKS - 1) / KP_PIECE_CHUNKS;
    if (infos && rows <= row_count) return 0; /* of the parent's spool */
    infos = kp_map_alloc(rows * sizeof *infos);
    row_count = infos ? rows : 0;
    return infos ? 0 : -ENOMEM;
}

static bool row_have(uint32_t chunk)
{
    struct info **row = &infos[chunk / KP_PIECE_CHUNKS];
    if (!*row) *row = kp_arena_alloc(KP_PIECE_CHUNKS * sizeof **row);
    return *row;
}

static void chunks_add(uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) kp_spool_chunk(i)->magic = KP_CHUNK_MAGIC;
    kp_store_release(&kp_spool_head()->chunks, first + count);   /* pairs with: the readers' walk */
    kp_store_release(&kp_spool.chunks, first + count);           /* pairs with: chunk.c:kp_chunk_recycle */
    for (uint32_t i = first + count; i-- > first;) free_push(i); /* the lowest comes off first: files read in order */
}

/* Gives memory again to chunks that lost it. They come without records, so their heads are written again. */
static uint32_t gone_refill(uint32_t want)
{
    uint32_t n = 0, index;
    while (n < want && (index = stack_pop(&gone_stack)) != 0) {
        if (!kp_spool_fill(index)) {
            stack_push(&gone_stack, index);
            break;
        }
        kp_spool_chunk(index)->magic = KP_CHUNK_MAGIC;
        free_push(index);
        n++;
    }
    return n;
}

uint32_t kp_chunk_grow(uint32_t want)
{
    const uint32_t first = kp_load_relaxed(&kp_spool.chunks), spare = kp_spool_spare();
    if (want > spare) want = spare;
    if (want == 0) {
        kp_store_relaxed(&kp_spool.grow_error, kp_load_relaxed(&kp_spool.stuck));
        return 0;
    }
    uint32_t count = gone_refill(want);
    if (count) {
        kp_store_relaxed(&kp_spool.grow_error, KP_LOSS_NO_CHUNK);
        return count;
    }
    if (first < kp_spool.max_chunks && !row_have(first)) {
        kp_spool_grow_failed(-ENOMEM);
        return 0;
    }
    count = kp_spool_grow(first, want); /* they lie in one piece, so in one row */
    if (count) chunks_add(first, count);
    return count;
}

void kp_chunk_forget(void)
{
    kp_store_relaxed(&free_stack.head, 0);
    kp_store_relaxed(&orphan_stack.head, 0);
    kp_store_relaxed(&stale_stack.head, 0);
    kp_store_relaxed(&gone_stack.head, 0);
    kp_store_relaxed(&taken_count, 0);
    kp_store_relaxed(&given_count, 0);
    kp_store_relaxed(&order_last, 0);
    kp_store_relaxed(&ready_mark, 0);
    kp_store_relaxed(&wanted, 0);
}
