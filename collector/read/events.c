// SPDX-License-Identifier: Apache-2.0
/*
 * events.c - walks the events of a cycle, threads merged by the time their events end
 *
 * Called by: kp_read.h
 * Memory:    the list of pieces and one cursor a thread for as long as the walk lasts.
 *
 * A cursor stands on the next event of its thread (records lie in order of end time); a heap holds the cursors by that time.
 * On its way a cursor hands the INPUTS it passes to its thread's stack: an op that ended elsewhere finds them there, since
 * whatever was written before its end has been passed by then.
 */
#include <errno.h>
#include <string.h>

#include "collector/base/kp_arena.h"
#include "collector/base/kp_log.h"
#include "collector/read/join.h"
#include "collector/read/order.h"
#include "collector/read/spool.h"
#include "collector/base/kp_poison.h"

struct cursor {
    uint32_t piece, pieces_end; /* this thread's pieces */
    const uint8_t *at, *end;    /* behind the record it stands on */
    const struct kp_rec *rec;
    uint64_t end_ticks;
    struct kp_join join;
};

struct walk {
    struct kp_reader *r;
    const struct kp_rec_cycle *cycle;
    struct kp_pieces pieces;
    struct cursor *cursors; /* by thread_no */
    struct cursor **heap;   /* earliest end first */
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
    return (uint32_t)sizeof(struct kp_rec_op) + (flags & KP_OP_LONG ? 8 : 0) + (flags & KP_OP_SEQ ? 16 : 0) +
           (flags & KP_OP_HANDLE ? 8 : 0) + (flags & KP_OP_OTHER ? 8 : 0);
}

/* End of an event; false when the record is none or too short. window_end: 0 not known. */
static bool span_of(const struct kp_rec *rec, uint64_t window_end, uint64_t *start, uint64_t *end)
{
    if (rec->kind == KP_KIND_OP && rec->size >= op_bytes(rec->flags)) {
        const struct kp_rec_op *op = (const void *)rec;
        uint64_t ticks = rec->flags & KP_OP_LONG ? word((const uint8_t *)(op + 1)) : op->ticks;
        *start = op->start;
        *end = op->start + ticks < ticks ? UINT64_MAX : op->start + ticks;
        if (rec->flags & KP_OP_UNFINISHED && window_end) *end = window_end > op->start ? window_end : op->start;
        return true;
    }
    if (rec->kind == KP_KIND_STEP && rec->size >= sizeof(struct kp_rec_step)) {
        const struct kp_rec_step *step = (const void *)rec;
        *start = step->start;
        *end = step->end > step->start ? step->end : step->start;
        return true;
    }
    return false;
}

static void name_get(const struct kp_reader *r, uint32_t id, struct kp_event *e)
{
    const struct kp_name *n = kp_names_get(&r->names, id);
    e->name = n ? n->name : "name lost";
    e->overload = n ? n->overload : "";
}

static struct cursor *cursor_of(struct walk *w, uint32_t thread_no)
{
    uint32_t low = 0, high = w->cursors_n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2, no = w->pieces.of[w->cursors[mid].pieces_end - 1].thread_no;
        if (no == thread_no) return &w->cursors[mid];
        if (no < thread_no) low = mid + 1;
        else high = mid;
    }
    return NULL;
}

static void op_decode(struct walk *w, struct cursor *c, struct kp_event *e)
{
    const struct kp_rec_op *op = (const void *)c->rec;
    const uint8_t *more = (const uint8_t *)(op + 1);
    const struct kp_rec_inputs *inputs;
    uint8_t flags = op->head.flags;
    name_get(w->r, op->head.name, e);
    e->scope = (uint8_t)op->rt_scope;
    e->rt_tid = op->rt_scope >> 8;
    e->flags = flags;
    if (flags & KP_OP_LONG) more += 8;
    if (flags & KP_OP_SEQ) {
        e->seq = (int64_t)word(more);
        e->fwd_tid = word(more + 8);
        more += 16;
    }
    if (flags & KP_OP_HANDLE) {
        e->handle = word(more);
        more += 8;
    }
    if (flags & KP_OP_OTHER) {
        memcpy(&e->tid, more, 4);
        memcpy(&e->thread_no, more + 4, 4);
        if (flags & KP_OP_INPUTS) c = cursor_of(w, e->thread_no);
    }
    inputs = flags & KP_OP_INPUTS && c ? kp_join_take(&c->join, op->start) : NULL;
    if (!inputs) return;
    e->inputs = inputs->data;
    e->inputs_bytes = inputs->head.size - (uint32_t)sizeof *inputs;
    e->inputs_count = inputs->head.name;
}

static void decode(struct walk *w, struct cursor *c, uint64_t start, struct kp_event *e)
{
    const struct kp_piece *p = &w->pieces.of[c->piece];
    memset(e, 0, sizeof *e);
    e->kind = c->rec->kind;
    e->tid = e->end_tid = p->tid;
    e->thread_no = p->thread_no;
    e->seq = -1;
    if (e->kind == KP_KIND_OP) {
        op_decode(w, c, e);
    } else {
        e->scope = 7; /* USER_SCOPE */
        e->flags = c->rec->flags;
        e->step = ((const struct kp_rec_step *)(const void *)c->rec)->number;
        kp_fmt(w->step_name, sizeof w->step_name, "ProfilerStep#%llu", (unsigned long long)e->step);
        e->name = w->step_name, e->overload = "";
    }
    e->start_ns = kp_clockmap_ns(&w->r->clock, start);
    e->end_ns = kp_clockmap_ns(&w->r->clock, c->end_ticks);
}

/* --- cursors and their heap --- */

/* Goes to the next event of the thread. 1: there is one; 0: no more; -ENOMEM. */
static int cursor_next(struct walk *w, struct cursor *c)
{
    uint64_t start;
    for (;;) {
        const struct kp_rec *rec;
        if (c->at == c->end) {
            if (c->piece + 1 == c->pieces_end) return 0;
            c->piece++;
            c->at = w->pieces.of[c->piece].at;
            c->end = w->pieces.of[c->piece].end;
            continue;
        }
        rec = kp_spool_record(c->at, c->end);
        if (!rec) { /* changed under us since the pieces were cut */
            c->at = c->end;
            w->lost++;
            continue;
        }
        c->at += rec->size;
        if (rec->kind == KP_KIND_INPUTS && rec->size >= sizeof(struct kp_rec_inputs)) {
            if (kp_join_push(&c->join, (const void *)rec)) return -ENOMEM;
        } else if (span_of(rec, w->cycle ? w->cycle->end : 0, &start, &c->end_ticks)) {
            c->rec = rec;
            return 1;
        } else if (rec->kind == KP_KIND_OP || rec->kind == KP_KIND_STEP || rec->kind == KP_KIND_INPUTS) {
            w->lost++;
        }
    }
}

static bool is_earlier(const struct cursor *a, const struct cursor *b)
{
    return a->end_ticks != b->end_ticks ? a->end_ticks < b->end_ticks : a < b;
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

/* Moves the first cursor on and restores the order. 0 or -ENOMEM. */
static int heap_next(struct walk *w)
{
    int rc = cursor_next(w, w->heap[0]);
    if (rc < 0) return rc;
    if (!rc) w->heap[0] = w->heap[--w->heap_n];
    if (w->heap_n) heap_sift(w, 0);
    return 0;
}

static void walk_fini(struct walk *w)
{
    for (uint32_t i = 0; i < w->cursors_n; i++) kp_join_fini(&w->cursors[i].join);
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
        rc = cursor_next(w, c);
        if (rc < 0) return rc;
        if (rc) w->heap[w->heap_n++] = c;
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
    while (!rc && w.heap_n) {
        struct cursor *c = w.heap[0];
        uint64_t start = 0, end = 0;
        span_of(c->rec, 0, &start, &end);
        if (start >= w.cycle->begin && start < w.cycle->end) {
            decode(&w, c, start, &e);
            rc = fn(context, &e);
        } else if (c->rec->kind == KP_KIND_OP && c->rec->flags & KP_OP_INPUTS) {
            kp_join_take(&c->join, start);
        }
        if (!rc) rc = heap_next(&w);
    }
    r->skipped += w.lost;
    walk_fini(&w);
    return rc;
}

/* --- smaller questions --- */

int kp_events_last(struct kp_reader *r, uint32_t cycle, uint64_t begin, uint64_t *last)
{
    struct kp_pieces pieces;
    uint64_t start, end;
    int rc = kp_pieces_make(&pieces, r, cycle);
    *last = 0;
    for (uint32_t i = 0; !rc && i < pieces.n; i++) {
        const uint8_t *at = pieces.of[i].at;
        for (const struct kp_rec *rec; at < pieces.of[i].end && (rec = kp_spool_record(at, pieces.of[i].end)); at += rec->size)
            if (span_of(rec, 0, &start, &end) && start >= begin && end > *last) *last = end;
    }
    kp_pieces_fini(&pieces);
    if (*last && *last != UINT64_MAX) ++*last; /* the last event may have taken no time: it still began before the end */
    return rc;
}

/* Whether a piece has an event inside the window. */
static bool is_shown(const struct kp_piece *p, const struct kp_rec_cycle *c)
{
    const uint8_t *at = p->at;
    uint64_t start, end;
    for (const struct kp_rec *rec; at < p->end && (rec = kp_spool_record(at, p->end)); at += rec->size)
        if (span_of(rec, 0, &start, &end) && start >= c->begin && start < c->end) return true;
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
