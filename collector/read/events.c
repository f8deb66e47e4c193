// SPDX-License-Identifier: Apache-2.0
/*
 * events.c - walks the events of a cycle, threads merged by the time their events start
 *
 * Called by: kp_read.h
 * Memory:    the list of pieces and one cursor a thread for as long as the walk lasts.
 *
 * A cursor stands on the next event of its thread (records lie in order of start); a heap holds the cursors by that time.
 */
#include <errno.h>
#include <string.h>

#include "collector/base/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/kp_log.h"
#include "collector/read/order.h"
#include "collector/read/spool.h"
#include "collector/base/kp_poison.h"

#define EVALUATE "autograd::engine::evaluate_function: "
enum { LOOK_AHEAD = 64 };

struct cursor {
    uint32_t piece, pieces_end; /* this thread's pieces */
    const uint8_t *at, *end;    /* behind the record it stands on */
    const struct kp_rec *rec;
    uint32_t bytes; /* of the record */
    uint8_t flags;  /* and its flags: read once, the file may change */
    uint64_t start_ticks, end_ticks;
    bool is_open, is_op;
};

struct walk {
    struct kp_reader *r;
    const struct kp_rec_cycle *cycle;
    struct kp_pieces pieces;
    struct cursor *cursors; /* by thread_no */
    struct cursor **heap;   /* earliest start first */
    uint32_t cursors_n, heap_n;
    uint64_t lost;          /* records that were no good */
    char step_name[40];
};

static uint64_t word(const uint8_t *at)
{
    uint64_t v;
    memcpy(&v, at, sizeof v);
    return v;
}

/* --- one record --- */

static uint32_t op_bytes(uint8_t flags)
{
    return (uint32_t)sizeof(struct kp_rec_op) + (flags & KP_OP_SEQ ? 16 : 0) + (flags & KP_OP_HANDLE ? 8 : 0) +
           (flags & KP_OP_INPUTS ? 4 : 0);
}

/*
 * Stands on a record; false when it is no event or too short. What is still open ends
 * with the window (0: not known), and so does what ended between the stamp of the window's end and the closing of the gate.
 */
static bool stand_on(struct cursor *c, const struct kp_rec *rec, uint32_t bytes, uint64_t window_end)
{
    const struct kp_rec_op *op = (const void *)rec; /* a step begins alike */
    c->rec = rec;
    c->bytes = bytes;
    c->flags = kp_load_relaxed((_Atomic uint8_t *)(uintptr_t)&rec->flags);
    c->is_op = rec->kind == KP_KIND_OP && bytes >= op_bytes(c->flags);
    if (!c->is_op && !(rec->kind == KP_KIND_STEP && bytes >= sizeof(struct kp_rec_step))) return false;
    /* pairs with: kp_record.h:kp_put_end */
    uint64_t ticks = kp_load_acquire(&((struct kp_rec_op *)(uintptr_t)op)->ticks);
    c->start_ticks = op->start;
    c->is_open = !ticks;
    c->end_ticks = op->start + ticks < ticks ? UINT64_MAX : op->start + ticks;
    if ((c->is_open || c->end_ticks > window_end) && window_end > op->start) c->end_ticks = window_end;
    return true;
}

static void name_get(const struct kp_reader *r, uint32_t id, struct kp_event *e)
{
    const struct kp_name *n = kp_names_get(&r->names, id);
    e->name = n ? n->name : "name lost";
    e->overload = n ? n->overload : "";
}

/* Goes on to the records behind *at, from piece to piece; NULL at the end of the thread. */
static const struct kp_rec *record_next(const struct walk *w, uint32_t *piece, uint32_t pieces_end, const uint8_t **at,
                                        const uint8_t **end, uint32_t *bytes)
{
    while (*at == *end) {
        if (*piece + 1 == pieces_end) return NULL;
        ++*piece;
        *at = w->pieces.of[*piece].at;
        *end = w->pieces.of[*piece].end;
    }
    const struct kp_rec *rec = kp_spool_record(at, *end, bytes);
    if (!rec) *at = *end; /* changed under us since the pieces were cut */
    return rec;
}

/* Autograd's own range has no numbers; Kineto shows those of the backward op inside it, which starts soon after it. */
static void numbers_of_child(const struct walk *w, const struct cursor *c, const char *inner, struct kp_event *e)
{
    uint32_t piece = c->piece, bytes;
    const uint8_t *at = c->at, *end = c->end;
    const struct kp_rec *rec;
    struct cursor child;
    for (int i = 0; i < LOOK_AHEAD && (rec = record_next(w, &piece, c->pieces_end, &at, &end, &bytes)); i++) {
        if (!stand_on(&child, rec, bytes, 0)) continue;
        if (child.start_ticks >= c->end_ticks) return;
        const struct kp_rec_op *op = (const void *)rec;
        const struct kp_name *n = kp_names_get(&w->r->names, rec->name);
        if (!child.is_op || !(child.flags & KP_OP_SEQ) || !n || strcmp(n->name, inner)) continue;
        e->seq = (int64_t)word((const uint8_t *)(op + 1));
        e->fwd_tid = word((const uint8_t *)(op + 1) + 8);
        e->flags |= KP_OP_SEQ_OF_CHILD;
        return;
    }
}

static void op_decode(const struct walk *w, const struct cursor *c, struct kp_event *e)
{
    const struct kp_rec_op *op = (const void *)c->rec;
    const uint8_t *more = (const uint8_t *)(op + 1);
    uint8_t flags = c->flags & (KP_OP_SEQ | KP_OP_HANDLE | KP_OP_INPUTS | KP_OP_ASYNC);
    name_get(w->r, op->head.name, e);
    e->scope = op->scope;
    e->rt_tid = op->rt_tid;
    e->flags = flags;
    if (flags & KP_OP_SEQ) {
        e->seq = (int64_t)word(more);
        e->fwd_tid = word(more + 8);
        more += 16;
    }
    if (flags & KP_OP_HANDLE) {
        e->handle = word(more);
        more += 8;
    }
    if (flags & KP_OP_INPUTS) {
        memcpy(&e->inputs_count, more, 4);
        e->inputs = more + 4;
        e->inputs_bytes = (uint32_t)((const uint8_t *)op + c->bytes - e->inputs);
    }
    if (e->seq < 0 && !strncmp(e->name, EVALUATE, sizeof EVALUATE - 1))
        numbers_of_child(w, c, e->name + sizeof EVALUATE - 1, e);
}

static void decode(struct walk *w, const struct cursor *c, struct kp_event *e)
{
    const struct kp_piece *p = &w->pieces.of[c->piece];
    memset(e, 0, sizeof *e);
    e->kind = c->is_op ? KP_KIND_OP : KP_KIND_STEP;
    e->tid = p->tid;
    e->thread_no = p->thread_no;
    e->seq = -1;
    if (e->kind == KP_KIND_OP) {
        op_decode(w, c, e);
    } else {
        e->scope = 7; /* USER_SCOPE */
        e->step = ((const struct kp_rec_step *)(const void *)c->rec)->number;
        kp_fmt(w->step_name, sizeof w->step_name, "ProfilerStep#%llu", (unsigned long long)e->step);
        e->name = w->step_name, e->overload = "";
    }
    if (c->is_open) e->flags |= KP_OP_UNFINISHED;
    e->start_ns = kp_clockmap_ns(&w->r->clock, c->start_ticks);
    e->end_ns = kp_clockmap_ns(&w->r->clock, c->end_ticks);
}

/* --- cursors and their heap --- */

/* Goes to the next event of the thread; false: no more. */
static bool cursor_next(struct walk *w, struct cursor *c)
{
    for (;;) {
        bool more = c->at != c->end || c->piece + 1 != c->pieces_end;
        uint32_t bytes, piece = c->piece;
        const struct kp_rec *rec = record_next(w, &c->piece, c->pieces_end, &c->at, &c->end, &bytes);
        if (!more || piece != c->piece) kp_spool_leave(w->r, w->pieces.of[piece].at);
        if (!more) return false;
        if (rec && stand_on(c, rec, bytes, w->cycle ? w->cycle->end : 0)) return true;
        if (!rec || rec->kind == KP_KIND_OP || rec->kind == KP_KIND_STEP) w->lost++;
    }
}

static bool is_earlier(const struct cursor *a, const struct cursor *b)
{
    return a->start_ticks != b->start_ticks ? a->start_ticks < b->start_ticks : a < b;
}

static void heap_sift(struct walk *w, uint32_t at)
{
    struct cursor *x = w->heap[at];
    for (uint32_t child; (child = 2 * at + 1) < w->heap_n; at = child) {
        if (child + 1 < w->heap_n && is_earlier(w->heap[child + 1], w->heap[child])) child++;
        if (!is_earlier(w->heap[child], x)) break;
        w->heap[at] = w->heap[child];
    }
    w->heap[at] = x;
}

/* Moves the first cursor on and restores the order. */
static void heap_next(struct walk *w)
{
    if (!cursor_next(w, w->heap[0])) w->heap[0] = w->heap[--w->heap_n];
    if (w->heap_n) heap_sift(w, 0);
}

static void walk_fini(struct walk *w)
{
    if (w->cursors) kp_map_free(w->cursors, w->pieces.n * sizeof *w->cursors);
    if (w->heap) kp_map_free(w->heap, w->pieces.n * sizeof *w->heap);
    kp_pieces_fini(&w->pieces);
}

static int walk_init(struct walk *w, struct kp_reader *r, uint32_t cycle)
{
    int rc;
    *w = (struct walk){.r = r, .cycle = kp_spool_cycle(r, cycle)};
    rc = kp_pieces_make(&w->pieces, r, cycle);
    w->lost += w->pieces.torn;
    if (rc || !w->pieces.n) return rc;
    w->cursors = kp_map_alloc(w->pieces.n * sizeof *w->cursors);
    w->heap = kp_map_alloc(w->pieces.n * sizeof *w->heap);
    if (!w->cursors || !w->heap) return -ENOMEM;
    for (uint32_t from = 0, to; from < w->pieces.n; from = to) {
        struct cursor *c = &w->cursors[w->cursors_n++];
        for (to = from + 1; to < w->pieces.n && w->pieces.of[to].thread_no == w->pieces.of[from].thread_no;) to++;
        *c = (struct cursor){.piece = from, .pieces_end = to, .at = w->pieces.of[from].at, .end = w->pieces.of[from].end};
        if (cursor_next(w, c)) w->heap[w->heap_n++] = c;
    }
    for (uint32_t i = w->heap_n / 2; i-- > 0;) heap_sift(w, i);
    return 0;
}

int kp_reader_events(struct kp_reader *r, uint32_t cycle, kp_event_fn fn, void *context)
{
    struct walk w;
    struct kp_event e;
    int rc = walk_init(&w, r, cycle);
    if (!rc && !w.cycle) rc = -ENOENT;
    if (!rc) kp_clockmap_anchor(&r->clock, w.cycle->begin);
    while (!rc && w.heap_n) {
        const struct cursor *c = w.heap[0];
        if (c->start_ticks >= w.cycle->begin && c->start_ticks < w.cycle->end) {
            decode(&w, c, &e);
            rc = fn(context, &e);
        }
        if (!rc) heap_next(&w);
    }
    r->skipped += w.lost;
    walk_fini(&w);
    return rc;
}

/* --- smaller questions --- */

/* The next event between *at and end. */
static bool event_next(const uint8_t **at, const uint8_t *end, struct cursor *c)
{
    const struct kp_rec *rec;
    uint32_t bytes;
    while (*at < end && (rec = kp_spool_record(at, end, &bytes)))
        if (stand_on(c, rec, bytes, 0)) return true;
    return false;
}

/* One pass over all chunks, however many cycles are open: a damaged file may name thousands. */
void kp_events_close(struct kp_reader *r)
{
    for (uint32_t i = 1; i < r->chunks; i++) {
        uint32_t used;
        struct kp_chunk_head *head = (void *)(uintptr_t)kp_spool_chunk(r, i, &used);
        if (!head || kp_load_acquire(&head->kind) != KP_CHUNK_DATA) continue; /* pairs with: chunk.c */
        struct kp_rec_cycle *cycle = kp_spool_cycle(r, head->cycle);
        if (!cycle || r->complete[cycle - r->cycles]) continue;
        const uint8_t *at = (const uint8_t *)(head + 1), *end = (const uint8_t *)head + used;
        for (struct cursor c; event_next(&at, end, &c);) {
            if (c.start_ticks < cycle->begin || c.end_ticks < cycle->end) continue;
            /* one more: an event that took no time began before the end, too */
            cycle->end = c.end_ticks == UINT64_MAX ? UINT64_MAX : c.end_ticks + 1;
        }
        kp_spool_leave(r, head);
    }
}

/* Whether a piece has an event inside the window. */
static bool is_shown(const struct kp_piece *p, const struct kp_rec_cycle *cycle)
{
    const uint8_t *at = p->at;
    for (struct cursor c; event_next(&at, p->end, &c);)
        if (c.start_ticks >= cycle->begin && c.start_ticks < cycle->end) return true;
    return false;
}

int kp_reader_threads(struct kp_reader *r, uint32_t cycle, kp_thread_fn fn, void *context)
{
    const struct kp_rec_cycle *c = kp_spool_cycle(r, cycle);
    struct kp_pieces pieces;
    int rc = c ? kp_pieces_make(&pieces, r, cycle) : -ENOENT;
    if (rc) return rc;
    for (uint32_t i = 0, next; !rc && i < pieces.n; i = next) {
        bool shown = is_shown(&pieces.of[i], c);
        char name[17] = {0};
        for (next = i + 1; next < pieces.n && pieces.of[next].thread_no == pieces.of[i].thread_no; next++)
            shown = shown || is_shown(&pieces.of[next], c);
        memcpy(name, pieces.of[next - 1].name, 16);
        if (shown) rc = fn(context, pieces.of[i].tid, pieces.of[i].thread_no, name);
    }
    kp_pieces_fini(&pieces);
    return rc;
}
