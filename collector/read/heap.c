// SPDX-License-Identifier: Apache-2.0
/*
 * heap.c - walks the records of the host's heap in a cycle; merges threads by time
 *
 * Called by: kp_read.h
 * Memory:    the list of pieces, and one cursor for each thread, while the walk lasts.
 *
 * The caller joins these events with ops. So it asks for each event, and there is no callback.
 */
#include <errno.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/format/kp_heap.h"
#include "collector/read/merge.h"
#include "collector/read/order.h"
#include "collector/read/reader.h"
#include "collector/base/kp_poison.h"

struct heap_cursor {
    const struct kp_piece *piece, *last; /* this thread's pieces */
    const uint8_t *at, *end;             /* behind the current record */
    const struct kp_rec *rec;
    uint64_t start;
    uint32_t bytes;
};

struct kp_heap_walk {
    struct kp_reader *r;
    const struct kp_rec_cycle *cycle;
    struct kp_pieces pieces;
    struct heap_cursor *cursors;
    struct kp_merge merge;
    uint32_t cursors_n;
};

/* --- one cursor --- */

static bool is_ours(const struct kp_rec *rec, uint32_t bytes)
{
    if (rec->kind == KP_KIND_HEAPCOUNT) return bytes >= sizeof(struct kp_rec_heapcount);
    if (rec->kind != KP_KIND_HEAP) return false;
    return bytes >= (rec->flags & KP_HEAP_LONG ? sizeof(struct kp_rec_heap) : (size_t)KP_HEAP_SHORT_BYTES);
}

uint64_t kp_heap_end(const uint8_t *at, const uint8_t *end)
{
    const struct kp_rec *rec;
    uint64_t last = 0;
    uint32_t bytes;
    while (at < end && (rec = kp_file_record(&at, end, &bytes))) {
        const uint64_t start = is_ours(rec, bytes) ? ((const struct kp_rec_heap *)(const void *)rec)->start : 0;
        if (start >= last && start < UINT64_MAX) last = start + (start != 0);
    }
    return last;
}

/* False: the thread has no more. */
static bool cursor_next(const struct kp_heap_walk *w, struct heap_cursor *c)
{
    for (;;) {
        while (c->at < c->end) {
            c->rec = kp_file_record(&c->at, c->end, &c->bytes);
            if (!c->rec) break;
            if (!is_ours(c->rec, c->bytes)) continue;
            c->start = ((const struct kp_rec_heap *)(const void *)c->rec)->start;
            if (c->start >= w->cycle->begin && c->start < w->cycle->end) return true;
        }
        kp_file_drop_pages(w->r, c->piece->at);
        if (c->piece == c->last) return false;
        c->piece++;
        c->at = c->piece->at;
        c->end = c->piece->end;
    }
}

/* --- all of them --- */

static void add_cursors(struct kp_heap_walk *w)
{
    for (uint32_t from = 0, to; from < w->pieces.n; from = to) {
        const struct kp_piece *of = &w->pieces.of[from];
        for (to = from + 1; to < w->pieces.n && w->pieces.of[to].thread_no == of->thread_no;) to++;
        struct heap_cursor *c = &w->cursors[w->cursors_n++];
        *c = (struct heap_cursor){.piece = of, .last = &w->pieces.of[to - 1], .at = of->at, .end = of->end};
        if (cursor_next(w, c)) kp_merge_add(&w->merge, c->start, w->cursors_n - 1);
    }
}

static int begin(struct kp_heap_walk *w, uint32_t cycle)
{
    w->cycle = kp_file_cycle(w->r, cycle);
    if (!w->cycle) return -ENOENT;
    kp_clockmap_anchor(&w->r->clock, w->cycle->begin);
    int rc = kp_pieces_make(&w->pieces, w->r, cycle);
    if (rc || !w->pieces.n) return rc;
    w->cursors = kp_map_alloc(w->pieces.n * sizeof *w->cursors);
    if (!w->cursors || kp_merge_init(&w->merge, w->pieces.n)) return -ENOMEM;
    add_cursors(w);
    kp_merge_begin(&w->merge);
    return 0;
}

int kp_reader_heap_open(struct kp_heap_walk **out, struct kp_reader *r, uint32_t cycle)
{
    struct kp_heap_walk *w = kp_map_alloc(sizeof *w);
    *out = NULL;
    if (!w) return -ENOMEM;
    w->r = r;
    int rc = begin(w, cycle);
    if (rc) kp_reader_heap_close(w);
    else *out = w;
    return rc;
}

void kp_reader_heap_close(struct kp_heap_walk *w)
{
    if (!w) return;
    if (w->cursors) kp_map_free(w->cursors, w->pieces.n * sizeof *w->cursors);
    kp_merge_fini(&w->merge);
    kp_pieces_fini(&w->pieces);
    kp_map_free(w, sizeof *w);
}

/* --- an event --- */

static void decode_count(const struct kp_rec_heapcount *rec, struct kp_heap_event *e)
{
    struct kp_rec_heapcount *count = (void *)(uintptr_t)rec;
    e->taken = kp_load_relaxed(&count->taken);
    e->given = kp_load_relaxed(&count->given);
    e->bytes = kp_load_relaxed(&count->bytes);
    e->live = kp_load_relaxed(&count->live);
    e->tells_live = rec->head.flags & KP_HEAP_LIVE;
}

static void decode_block(const struct kp_reader *r, const struct kp_rec_heap *rec, uint32_t bytes,
                         struct kp_heap_event *e)
{
    e->flags = rec->head.flags;
    e->stack = kp_stack_id(r, rec->head.name);
    e->address = rec->block;
    if (e->flags & KP_HEAP_LONG) {
        e->bytes = bytes >= sizeof *rec ? rec->bytes : 0;
    } else if (!(e->flags & KP_HEAP_FREE)) {
        e->address = rec->block >> KP_HEAP_BYTES_BITS << 3;
        e->bytes = rec->block & ((1u << KP_HEAP_BYTES_BITS) - 1);
    }
    if (e->flags & (KP_HEAP_MAPPED | KP_HEAP_RESTORED)) return;
    e->taken = !(e->flags & KP_HEAP_FREE);
    e->given = !e->taken;
}

bool kp_reader_heap_next(struct kp_heap_walk *w, struct kp_heap_event *e)
{
    if (!w->merge.n) return false;
    struct heap_cursor *c = &w->cursors[w->merge.of[0].which];
    *e = (struct kp_heap_event){.start_ns = kp_clockmap_ns(&w->r->clock, c->start), .thread_no = c->piece->thread_no};
    if (c->rec->kind == KP_KIND_HEAPCOUNT) decode_count((const void *)c->rec, e);
    else decode_block(w->r, (const void *)c->rec, c->bytes, e);
    e->is_count = c->rec->kind == KP_KIND_HEAPCOUNT;
    const bool more = cursor_next(w, c);
    kp_merge_moved(&w->merge, more, c->start);
    return true;
}
