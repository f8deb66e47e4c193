// SPDX-License-Identifier: Apache-2.0
/*
 * events.c - walks the events of a cycle; merges threads by the start of their events
 *
 * Called by: kp_read.h
 * Memory:    the list of pieces, and one cursor for each thread, while the walk lasts.
 *
 * A thread's records lie in order of start, and a cursor stands on its next event. A heap orders the cursors by that
 * start.
 */
#include <errno.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/kp_log.h"
#include "collector/format/kp_python.h"
#include "collector/format/kp_ring.h"
#include "collector/format/kp_symbol.h"
#include "collector/read/api_calls.h"
#include "collector/read/crossing.h"
#include "collector/read/merge.h"
#include "collector/read/order.h"
#include "collector/read/reader.h"
#include "collector/base/kp_poison.h"

#define EVALUATE "autograd::engine::evaluate_function: "
#define COLLECTIVE "record_param_comms"
enum { LOOK_AHEAD = 64, CUT_MAX = 256 };

struct event_cursor {
    uint32_t piece, pieces_end; /* this thread's pieces */
    const uint8_t *at, *end;    /* behind the current record */
    const struct kp_rec *rec;
    uint32_t bytes; /* of the record */
    uint8_t flags;  /* its flags, read once: the file may change */
    uint64_t start_ticks, end_ticks;
    uint64_t call_end_ticks; /* PYCALL: of the whole call */
    bool is_open;
    bool is_cut;                 /* the window ended before the event */
    uint16_t cuts;               /* how many of the events handed out were cut */
    uint8_t kind;                /* OP, STEP, NVTX, PYCALL, MEMORY or SYMBOL */
    uint32_t part, parts_end;    /* of one that gives the further parts of a thread's frames */
    struct event_cursor *thread; /* the one of that thread's records; its own for those */
    struct kp_nesting nesting;
};

struct event_walk {
    struct kp_reader *r;
    const struct kp_rec_cycle *cycle;
    struct kp_pieces pieces;
    struct event_cursor *cursors; /* by thread_no */
    struct kp_merge merge;
    uint32_t cursors_n;
    uint64_t lost; /* damaged records */
    bool has_all;  /* a timeline: with CUDA calls and NVTX ranges */
    struct kp_api_calls calls;
    struct kp_comms comms; /* the current event's collective */
    struct kp_crossings crossings;
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
           (flags & KP_OP_STACK ? 8 : 0) + (flags & KP_OP_MODULES ? 8 : 0) + (flags & KP_OP_INPUTS ? 4 : 0);
}

/* The least size of an event's record. 0: the kind is no event. */
static uint32_t bytes_least(uint8_t kind, uint8_t flags)
{
    switch (kind) {
    case KP_KIND_OP: return op_bytes(flags);
    case KP_KIND_STEP: return sizeof(struct kp_rec_step);
    case KP_KIND_NVTX: return sizeof(struct kp_rec_nvtx);
    case KP_KIND_PYCALL: return flags & KP_PY_MODULE ? sizeof(struct kp_rec_pymodule) : sizeof(struct kp_rec_pycall);
    case KP_KIND_SYMBOL: return sizeof(struct kp_rec_symbol);
    case KP_KIND_MEMORY: return flags & KP_MEMORY_TOTALS ? sizeof(struct kp_rec_memory) : KP_MEMORY_SHORT_BYTES;
    default: return 0;
    }
}

/* Kinds that kp_reader_timeline gives and kp_reader_events does not. */
static bool is_extra(uint8_t kind) { return kind == KP_KIND_NVTX || kind == KP_KIND_MEMORY || kind == KP_KIND_SYMBOL; }

/*
 * Makes a record the cursor's current event. False: it is no event or too short. An open event ends with the window
 * (0: not known). So does an event that ended after the window's end was stamped and before the gate closed.
 */
static bool stand_on(struct event_cursor *c, const struct kp_rec *rec, uint32_t bytes, uint64_t window_end)
{
    const struct kp_rec_op *op = (const void *)rec; /* all events begin with the same fields, but MEMORY has no end */
    c->rec = rec;
    c->bytes = bytes;
    c->flags = kp_load_relaxed((_Atomic uint8_t *)(uintptr_t)&rec->flags);
    c->kind = rec->kind;
    if (!bytes_least(c->kind, c->flags) || bytes < bytes_least(c->kind, c->flags)) return false;
    /* pairs with: kp_record.h:kp_put_end */
    uint64_t ticks = c->kind == KP_KIND_MEMORY ? 0 : kp_load_acquire(&((struct kp_rec_op *)(uintptr_t)op)->ticks);
    c->start_ticks = op->start;
    c->is_open = !ticks && c->kind != KP_KIND_MEMORY;
    c->end_ticks = op->start + ticks < ticks ? UINT64_MAX : op->start + ticks;
    c->is_cut = (c->is_open || c->end_ticks > window_end) && window_end > op->start;
    if (c->is_cut) c->end_ticks = window_end;
    c->call_end_ticks = c->end_ticks;
    return true;
}

/* With KPROF_RING a cycle begins in the midst of ranges. An event that lasts longer than the ring begins with the
 * ring. */
static void begin_cut(const struct kp_reader *r, const struct kp_rec_cycle *cycle, struct event_cursor *c)
{
    if (!r->is_ring || !cycle || c->start_ticks >= cycle->begin) return;
    if (c->is_open || c->end_ticks > cycle->begin) c->start_ticks = cycle->begin;
}

static void name_get(const struct kp_reader *r, uint32_t id, struct kp_event *e)
{
    const struct kp_name *n = kp_names_get(&r->names, id);
    e->name = n ? n->name : "name lost";
    e->overload = n ? n->overload : "";
}

/* The record at *at, going from piece to piece. NULL: the thread has no more. */
static const struct kp_rec *record_next(const struct event_walk *w, uint32_t *piece, uint32_t pieces_end,
                                        const uint8_t **at, const uint8_t **end, uint32_t *bytes)
{
    while (*at == *end) {
        if (*piece + 1 == pieces_end) return NULL;
        ++*piece;
        *at = w->pieces.of[*piece].at;
        *end = w->pieces.of[*piece].end;
    }
    const struct kp_rec *rec = kp_file_record(at, *end, bytes);
    if (!rec) *at = *end; /* the file changed since the pieces were cut */
    return rec;
}

/* Autograd's own range has no numbers. Kineto shows those of the backward op inside it, which starts soon after. */
static void numbers_of_child(const struct event_walk *w, const struct event_cursor *c, const char *inner,
                             struct kp_event *e)
{
    uint32_t piece = c->piece, bytes;
    const uint8_t *at = c->at, *end = c->end;
    const struct kp_rec *rec;
    struct event_cursor child;
    for (int i = 0; i < LOOK_AHEAD && (rec = record_next(w, &piece, c->pieces_end, &at, &end, &bytes)); i++) {
        if (!stand_on(&child, rec, bytes, 0)) continue;
        if (child.start_ticks >= c->end_ticks) return;
        const struct kp_rec_op *op = (const void *)rec;
        const struct kp_name *n = kp_names_get(&w->r->names, rec->name);
        if (child.kind != KP_KIND_OP || !(child.flags & KP_OP_SEQ) || !n || strcmp(n->name, inner)) continue;
        e->seq = (int64_t)word((const uint8_t *)(op + 1));
        e->fwd_tid = word((const uint8_t *)(op + 1) + 8);
        e->flags |= KP_OP_SEQ_OF_CHILD;
        return;
    }
}

/* A collective's COMMS record lies right behind its op. */
static const struct kp_comms *comms_behind(struct event_walk *w, const struct event_cursor *c)
{
    uint32_t piece = c->piece, bytes;
    const uint8_t *at = c->at, *end = c->end;
    const struct kp_rec *rec = record_next(w, &piece, c->pieces_end, &at, &end, &bytes);
    return rec && kp_comms_read(&w->comms, rec, bytes) ? &w->comms : NULL;
}

static void op_decode(struct event_walk *w, const struct event_cursor *c, struct kp_event *e)
{
    const struct kp_rec_op *op = (const void *)c->rec;
    const uint8_t *more = (const uint8_t *)(op + 1);
    uint8_t flags = c->flags & (KP_OP_SEQ | KP_OP_HANDLE | KP_OP_INPUTS | KP_OP_ASYNC | KP_OP_STACK | KP_OP_MODULES);
    name_get(w->r, op->head.name, e);
    e->scope = op->scope;
    e->ends_step = op->ends_step == 1;
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
    if (flags & KP_OP_STACK) {
        memcpy(&e->stack, more, 4);
        memcpy(&e->native, more + 4, 4);
        more += 8;
    }
    if (flags & KP_OP_MODULES) {
        uint32_t modules;
        memcpy(&modules, more, 4);
        e->modules = kp_reader_name(w->r, modules);
        more += 8;
    }
    if (flags & KP_OP_INPUTS) {
        memcpy(&e->inputs_count, more, 4);
        e->inputs = more + 4;
        e->inputs_bytes = (uint32_t)((const uint8_t *)op + c->bytes - e->inputs);
    }
    if (e->seq < 0 && !strncmp(e->name, EVALUATE, sizeof EVALUATE - 1))
        numbers_of_child(w, c, e->name + sizeof EVALUATE - 1, e);
    if (!strcmp(e->name, COLLECTIVE)) e->comms = comms_behind(w, c);
}

static void nvtx_decode(const struct event_walk *w, const struct event_cursor *c, struct kp_event *e)
{
    const struct kp_rec_nvtx *n = (const void *)c->rec;
    name_get(w->r, n->head.name, e);
    e->nvtx = n->type;
    e->nvtx_id = n->id;
    e->domain = n->domain ? kp_reader_name(w->r, n->domain) : NULL;
    e->scope = 7; /* USER_SCOPE */
    if (c->is_open && n->type == KP_NVTX_RANGE) e->flags |= KP_OP_UNFINISHED;
}

static void pycall_decode(const struct event_walk *w, const struct event_cursor *c, struct kp_event *e)
{
    const struct kp_rec_pymodule *call = (const void *)c->rec;
    name_get(w->r, call->call.head.name, e);
    e->flags = c->flags & (KP_PY_C | KP_PY_MODULE | KP_PY_OPEN | KP_PY_GARBAGE | KP_PY_FURTHER);
    if (!(e->flags & KP_PY_MODULE)) return;
    e->module_self = call->self;
    e->module_type = call->type;
    const char *const place = strchr(e->overload, KP_PY_KEY_END); /* spools of before have no key */
    if (!place) return;
    if (place > e->overload) e->module_key = e->overload;
    e->overload = place + 1;
}

static void memory_decode(const struct event_cursor *c, struct kp_event *e)
{
    const struct kp_rec_memory *m = (const void *)c->rec;
    e->name = e->overload = "";
    e->flags = c->flags & (KP_MEMORY_FREE | KP_MEMORY_OOM | KP_MEMORY_TOTALS | KP_MEMORY_BEFORE);
    e->address = m->address;
    e->bytes = m->bytes;
    e->device = -1;
    if (!(e->flags & KP_MEMORY_TOTALS)) return;
    e->allocated = m->allocated;
    e->reserved = m->reserved;
    e->device_type = m->device_type;
    e->device = m->device;
}

static void step_decode(struct event_walk *w, const struct event_cursor *c, struct kp_event *e)
{
    e->scope = 7; /* USER_SCOPE */
    e->step = ((const struct kp_rec_step *)(const void *)c->rec)->number;
    kp_fmt(w->step_name, sizeof w->step_name, "ProfilerStep#%llu", (unsigned long long)e->step);
    e->name = w->step_name, e->overload = "";
    e->flags = c->flags & (KP_STEP_STARTUP | KP_STEP_CUT);
}

static void decode(struct event_walk *w, struct event_cursor *c, struct kp_event *e)
{
    const struct kp_piece *p = &w->pieces.of[c->piece];
    memset(e, 0, sizeof *e);
    e->kind = c->kind;
    e->tid = p->tid;
    e->thread_no = p->thread_no;
    e->seq = -1;
    if (e->kind == KP_KIND_OP) {
        op_decode(w, c, e);
    } else if (e->kind == KP_KIND_NVTX) {
        nvtx_decode(w, c, e);
    } else if (e->kind == KP_KIND_PYCALL) {
        pycall_decode(w, c, e);
    } else if (e->kind == KP_KIND_MEMORY) {
        memory_decode(c, e);
    } else if (e->kind == KP_KIND_SYMBOL) {
        name_get(w->r, c->rec->name, e);
        if (c->is_open) e->flags |= KP_OP_UNFINISHED;
    } else {
        step_decode(w, c, e);
    }
    if (c->is_open && (e->kind == KP_KIND_OP || e->kind == KP_KIND_STEP)) e->flags |= KP_OP_UNFINISHED;
    e->start_ns = kp_clockmap_ns(&w->r->clock, c->start_ticks);
    e->end_ns = kp_clockmap_ns(&w->r->clock, c->end_ticks);
    /* in a timeline the inner of two cut events ends first (why: window.c, APART_TICKS) */
    if (c->is_cut && w->has_all && c->thread->cuts < CUT_MAX) e->end_ns += CUT_MAX - c->thread->cuts++;
    if (e->kind == KP_KIND_PYCALL)
        e->call_end_ns = c->call_end_ticks > c->end_ticks ? kp_clockmap_ns(&w->r->clock, c->call_end_ticks) : e->end_ns;
    if (w->has_all && (e->kind == KP_KIND_OP || e->kind == KP_KIND_STEP || e->kind == KP_KIND_PYCALL))
        kp_nesting_fit(&c->thread->nesting, &e->start_ns, &e->end_ns);
}

/* --- cursors and their heap --- */

/* Goes to the thread's next record of an event. False: no more. */
static bool record_stand(struct event_walk *w, struct event_cursor *c)
{
    for (;;) {
        bool more = c->at != c->end || c->piece + 1 != c->pieces_end;
        uint32_t bytes, piece = c->piece;
        const struct kp_rec *rec = record_next(w, &c->piece, c->pieces_end, &c->at, &c->end, &bytes);
        if (!more || piece != c->piece) kp_file_drop_pages(w->r, w->pieces.of[piece].at);
        if (!more) return false;
        if (rec && !w->has_all && is_extra(rec->kind)) continue;
        const bool is_event = rec && stand_on(c, rec, bytes, w->cycle ? w->cycle->end : 0);
        if (is_event) begin_cut(w->r, w->cycle, c);
        if (is_event) return true;
        if (!rec || bytes_least(rec->kind, 0)) w->lost++;
    }
}

/* The frame's first part, or a further one, ends before the frame does. */
static void shorten(struct event_cursor *c, uint64_t end_ticks)
{
    if (end_ticks >= c->end_ticks) return;
    c->end_ticks = end_ticks;
    c->is_open = c->is_cut = false;
}

/* Goes to the next further part of a frame. False: no more. */
static bool part_stand(const struct event_walk *w, struct event_cursor *c)
{
    while (c->part < c->parts_end) {
        const struct kp_crossing_part *const part = &w->crossings.parts[c->part++];
        if (!stand_on(c, part->rec, part->bytes, w->cycle->end)) continue; /* the file changed */
        c->piece = part->piece;
        if (!part->is_first) c->flags |= KP_PY_FURTHER;
        c->start_ticks = part->start;
        shorten(c, part->end);
        return true;
    }
    return false;
}

/* Goes to the cursor's next event. False: no more. */
static bool cursor_next(struct event_walk *w, struct event_cursor *c)
{
    if (c->thread != c) return part_stand(w, c);
    while (record_stand(w, c)) {
        const uint64_t end = c->kind == KP_KIND_PYCALL ? kp_crossings_end(&w->crossings, c->rec, c->end_ticks) : 1;
        if (c->kind == KP_KIND_PYCALL) shorten(c, end);
        if (end) return true;
    }
    return false;
}

/* Moves the first cursor on and restores the order. */
static void heap_next(struct event_walk *w)
{
    struct event_cursor *c = &w->cursors[w->merge.of[0].which];
    const bool more = cursor_next(w, c);
    kp_merge_moved(&w->merge, more, c->start_ticks);
}

static void walk_fini(struct event_walk *w)
{
    if (w->cursors) kp_map_free(w->cursors, (size_t)w->pieces.n * 2 * sizeof *w->cursors);
    kp_merge_fini(&w->merge);
    kp_pieces_fini(&w->pieces);
    kp_api_calls_fini(&w->calls);
    kp_crossings_fini(&w->crossings);
}

/* ---- frames of Python that ranges cross ---- */

static bool has_frames(const struct event_walk *w)
{
    const char *const stacks = kp_text_get(&w->r->text, "KPROF_WITH_STACK");
    return w->has_all && w->cycle && stacks && strchr(stacks, '1');
}

static bool can_cross(const struct event_cursor *c)
{
    if (c->kind == KP_KIND_NVTX) return ((const struct kp_rec_nvtx *)(const void *)c->rec)->type == KP_NVTX_RANGE;
    if (c->kind == KP_KIND_OP) return !(c->flags & KP_OP_ASYNC);
    return c->kind == KP_KIND_STEP || c->kind == KP_KIND_PYCALL || c->kind == KP_KIND_SYMBOL;
}

/* Looks through the events of one thread, whose cursor has not moved yet. */
static int crossings_find(struct event_walk *w, const struct event_cursor *thread)
{
    struct event_cursor c = *thread;
    const uint64_t lost = w->lost;
    int rc = 0;
    while (!rc && record_stand(w, &c)) {
        if (c.start_ticks < w->cycle->begin || c.start_ticks >= w->cycle->end || !can_cross(&c)) continue;
        const struct kp_crossing_part event = {c.rec, c.bytes, c.piece, c.start_ticks, c.end_ticks, false};
        rc = kp_crossings_take(&w->crossings, &event, c.kind == KP_KIND_PYCALL);
    }
    if (!rc) rc = kp_crossings_thread(&w->crossings);
    w->lost = lost; /* the walk counts them */
    return rc;
}

/* Fills in the cursors of the walk's threads. A thread's further parts come before its records of equal start. */
static int cursors_make(struct event_walk *w)
{
    enum { MS = 1000000 };
    int rc = 0;
    const uint64_t at = w->cycle ? w->cycle->begin : 0;
    const uint64_t ns = kp_clockmap_ns(&w->r->clock, at + MS) - kp_clockmap_ns(&w->r->clock, at);
    w->crossings.long_ticks = (uint64_t)MS * MS / (ns ? ns : 1);
    for (uint32_t from = 0, to; !rc && from < w->pieces.n; from = to) {
        struct event_cursor *const parts = &w->cursors[w->cursors_n++], *const c = &w->cursors[w->cursors_n++];
        for (to = from + 1; to < w->pieces.n && w->pieces.of[to].thread_no == w->pieces.of[from].thread_no;) to++;
        *c = (struct event_cursor){
            .piece = from, .pieces_end = to, .at = w->pieces.of[from].at, .end = w->pieces.of[from].end, .thread = c};
        *parts = (struct event_cursor){.thread = c, .part = w->crossings.parts_n};
        if (has_frames(w)) rc = crossings_find(w, c);
        parts->parts_end = w->crossings.parts_n;
    }
    kp_crossings_sort(&w->crossings);
    return rc;
}

static int walk_init(struct event_walk *w, struct kp_reader *r, uint32_t cycle, bool has_all)
{
    int rc;
    *w = (struct event_walk){.r = r, .cycle = kp_file_cycle(r, cycle), .has_all = has_all};
    rc = kp_pieces_make(&w->pieces, r, cycle);
    w->lost += w->pieces.torn;
    if (rc || !w->pieces.n) return rc;
    w->cursors = kp_map_alloc((size_t)w->pieces.n * 2 * sizeof *w->cursors);
    if (!w->cursors || kp_merge_init(&w->merge, w->pieces.n * 2)) return -ENOMEM;
    rc = cursors_make(w);
    for (uint32_t i = 0; i < w->cursors_n && !rc; i++)
        if (cursor_next(w, &w->cursors[i])) kp_merge_add(&w->merge, w->cursors[i].start_ticks, i);
    if (rc) return rc;
    kp_merge_begin(&w->merge);
    return 0;
}

/* --- calls into CUDA --- */

/* Maps CUPTI's thread ids to tids. A thread of this window replaces a thread of another window. */
static int thread_read(struct kp_reader *r, const struct kp_chunk_head *head, uint32_t cycle, bool has_last_word)
{
    uint32_t id = (uint32_t)head->pthread_id;
    if ((head->cycle == cycle) != has_last_word || (!has_last_word && kp_gpus_tid(&r->gpus, id) != id)) return 0;
    return kp_gpus_thread(&r->gpus, id, head->tid);
}

static int threads_read(struct kp_reader *r, uint32_t cycle)
{
    int rc = 0;
    for (int has_last_word = 0; has_last_word < 2; has_last_word++) {
        for (uint32_t i = 1, used; !rc && i < r->chunks; i++) {
            struct kp_chunk_head *head = (void *)(uintptr_t)kp_file_chunk(r, i, &used);
            if (!head) continue;
            if (kp_load_acquire(&head->kind) == KP_CHUNK_DATA)
                rc = thread_read(r, head, cycle, has_last_word); /* pairs with: chunk.c */
            kp_file_drop_pages(r, head);
        }
    }
    return rc;
}

static int calls_init(struct event_walk *w, uint32_t cycle)
{
    int rc = kp_api_calls_init(&w->calls, w->r, w->cycle);
    return rc || !w->calls.n ? rc : threads_read(w->r, cycle);
}

static int call_give(struct event_walk *w, kp_event_fn fn, void *context)
{
    const struct kp_api_call *call = &w->calls.call;
    const struct kp_rec_api *api = &call->api;
    struct kp_event e = {.kind = KP_KIND_API,
                         .start_ns = call->start_ns,
                         .end_ns = call->end_ns,
                         .middle_ns = call->middle_ns,
                         .seq = -1,
                         .flags = api->head.flags,
                         .correlation = api->correlation,
                         .cbid = api->cbid,
                         .result = api->result};
    name_get(w->r, api->head.name, &e);
    e.tid = api->tid ? api->tid : kp_gpus_tid(&w->r->gpus, api->thread_id);
    return fn(context, &e);
}

/* Hands out the calls with a middle before the first cursor's event, then that event (if in the window). */
static int event_give(struct event_walk *w, kp_event_fn fn, void *context)
{
    struct event_cursor *c = &w->cursors[w->merge.of[0].which];
    struct kp_event e;
    int rc = 0;
    if (c->start_ticks < w->cycle->begin || c->start_ticks >= w->cycle->end) return 0;
    decode(w, c, &e);
    while (!rc && w->calls.n && w->calls.call.middle_ns < e.start_ns) {
        rc = call_give(w, fn, context);
        if (!rc) rc = kp_api_calls_next(&w->calls);
    }
    return rc ? rc : fn(context, &e);
}

static int events_walk(struct kp_reader *r, uint32_t cycle, bool has_all, kp_event_fn fn, void *context,
                       uint64_t *invalid)
{
    struct event_walk w;
    int rc = walk_init(&w, r, cycle, has_all);
    if (!rc && !w.cycle) rc = -ENOENT;
    if (!rc) kp_clockmap_anchor(&r->clock, w.cycle->begin);
    if (!rc && has_all) rc = calls_init(&w, cycle);
    while (!rc && w.merge.n) {
        rc = event_give(&w, fn, context);
        if (!rc) heap_next(&w);
    }
    while (!rc && w.calls.n) {
        rc = call_give(&w, fn, context);
        if (!rc) rc = kp_api_calls_next(&w.calls);
    }
    r->skipped += w.lost;
    if (invalid) *invalid = w.calls.invalid;
    walk_fini(&w);
    return rc;
}

int kp_reader_events(struct kp_reader *r, uint32_t cycle, kp_event_fn fn, void *context)
{
    return events_walk(r, cycle, false, fn, context, NULL);
}

int kp_reader_timeline(struct kp_reader *r, uint32_t cycle, kp_event_fn fn, void *context, uint64_t *invalid)
{
    return events_walk(r, cycle, true, fn, context, invalid);
}

/* --- smaller questions --- */

/* The next event between *at and end. */
static bool event_next(const uint8_t **at, const uint8_t *end, struct event_cursor *c)
{
    const struct kp_rec *rec;
    uint32_t bytes;
    while (*at < end && (rec = kp_file_record(at, end, &bytes)))
        if (stand_on(c, rec, bytes, 0)) return true;
    return false;
}

/* Makes a single pass for all open cycles, since a damaged file may name thousands. */
void kp_events_close(struct kp_reader *r)
{
    for (uint32_t i = 1; i < r->chunks; i++) {
        uint32_t used;
        struct kp_chunk_head *head = (void *)(uintptr_t)kp_file_chunk(r, i, &used);
        if (!head || kp_load_acquire(&head->kind) != KP_CHUNK_DATA) continue; /* pairs with: chunk.c */
        struct kp_rec_cycle *cycle = kp_file_cycle(r, head->cycle);
        if (!cycle || r->complete[cycle - r->cycles]) continue;
        const uint8_t *at = (const uint8_t *)(head + 1), *end = (const uint8_t *)head + used;
        for (struct event_cursor c; event_next(&at, end, &c);) {
            if (c.start_ticks < cycle->begin || c.end_ticks < cycle->end) continue;
            /* + 1, so that an event without duration also began before the end */
            cycle->end = c.end_ticks == UINT64_MAX ? UINT64_MAX : c.end_ticks + 1;
        }
        const uint64_t heap_end = kp_heap_end((const uint8_t *)(head + 1), end);
        if (heap_end > cycle->end) cycle->end = heap_end;
        kp_file_drop_pages(r, head);
    }
}

/* Calls fn with the begin of each event that began within the cycle. */
static void begins_each(const struct kp_reader *r, const struct kp_rec_cycle *cycle, void (*fn)(void *, uint64_t),
                        void *context)
{
    for (uint32_t i = 1, used; i < r->chunks; i++) {
        struct kp_chunk_head *const head = (void *)(uintptr_t)kp_file_chunk(r, i, &used);
        if (!head || kp_load_acquire(&head->kind) != KP_CHUNK_DATA) continue; /* pairs with: chunk.c */
        const uint8_t *at = (const uint8_t *)(head + 1), *end = (const uint8_t *)head + used;
        for (struct event_cursor c; head->cycle == cycle->cycle && event_next(&at, end, &c);)
            if (c.start_ticks >= cycle->begin && c.start_ticks < cycle->end) fn(context, c.start_ticks);
        kp_file_drop_pages(r, head);
    }
}

static void first_take(void *context, uint64_t ticks)
{
    uint64_t *const first = context;
    if (ticks < *first) *first = ticks;
}

uint64_t kp_events_first(const struct kp_reader *r, const struct kp_rec_cycle *cycle)
{
    uint64_t first = cycle->end;
    begins_each(r, cycle, first_take, &first);
    return first;
}

enum { RING_PARTS_MOST = 1 << 24 }; /* more has a damaged file, or a run of months */
struct ring_parts { /* parts of a ring, counted back from the cycle's end: a bit for each in which an event began */
    uint64_t end, ticks;
    uint8_t *busy;
};

static void part_mark(void *context, uint64_t ticks)
{
    const struct ring_parts *const l = context;
    const uint64_t at = (l->end - ticks) / l->ticks;
    l->busy[at / 8] |= (uint8_t)(1 << at % 8);
}

/* The writer has its parts elsewhere: so those beside count as well. */
static bool is_near_busy(const struct ring_parts *l, uint64_t at)
{
    for (uint64_t i = at ? at - 1 : 0; i <= at + 1; i++)
        if (l->busy[i / 8] >> i % 8 & 1) return true;
    return false;
}

uint64_t kp_events_ring_begin(const struct kp_reader *r, const struct kp_rec_cycle *cycle, uint64_t ticks)
{
    struct ring_parts l = {.end = cycle->end, .ticks = ticks / KP_RING_PARTS + 1};
    const uint64_t parts = (cycle->end - cycle->begin) / l.ticks + 1;
    uint64_t at = 0;
    l.busy = parts < RING_PARTS_MOST ? kp_map_alloc(parts / 8 + 1) : NULL;
    if (!l.busy) return cycle->end - ticks;
    begins_each(r, cycle, part_mark, &l);
    for (uint32_t counted = 0; at < parts && counted < KP_RING_PARTS; at++) counted += is_near_busy(&l, at);
    kp_map_free(l.busy, parts / 8 + 1);
    if (at <= KP_RING_PARTS) return cycle->end - ticks;
    return at < parts ? cycle->end - at * l.ticks : cycle->begin;
}

/* Whether a piece has an event inside the window. */
static bool is_shown(const struct kp_reader *r, const struct kp_piece *p, const struct kp_rec_cycle *cycle)
{
    const uint8_t *at = p->at;
    for (struct event_cursor c; event_next(&at, p->end, &c);) {
        begin_cut(r, cycle, &c);
        if (c.start_ticks >= cycle->begin && c.start_ticks < cycle->end) return true;
    }
    return false;
}

int kp_reader_threads(struct kp_reader *r, uint32_t cycle, kp_thread_fn fn, void *context)
{
    const struct kp_rec_cycle *c = kp_file_cycle(r, cycle);
    struct kp_pieces pieces;
    int rc = c ? kp_pieces_make(&pieces, r, cycle) : -ENOENT;
    if (rc) return rc;
    for (uint32_t i = 0, next; !rc && i < pieces.n; i = next) {
        bool shown = is_shown(r, &pieces.of[i], c);
        char name[17] = {0};
        for (next = i + 1; next < pieces.n && pieces.of[next].thread_no == pieces.of[i].thread_no; next++)
            shown = shown || is_shown(r, &pieces.of[next], c);
        memcpy(name, pieces.of[next - 1].name, 16);
        if (shown) rc = fn(context, pieces.of[i].tid, pieces.of[i].thread_no, name);
    }
    kp_pieces_fini(&pieces);
    return rc;
}
