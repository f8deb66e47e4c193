// SPDX-License-Identifier: Apache-2.0
/*
 * kineto_pieces.c - cuts a trace into pieces while it is read, so that not all of it is in memory at once
 *
 * A cut is a place in the file at which all events before it have ended, and all behind it begin later. A file may be
 * in any order, so a quarter of the events that were read lies behind each cut and speaks for it. If a later event
 * contradicts a cut, the reading ends with -ESTALE, and the caller reads the whole. In a trace that never rests, as one
 * with the frames of main(), a cut goes through what the host has open: each part of such an event is one of its own,
 * and only the first counts. See decisions/064. A trace whose caller takes no pieces gets smaller at each cut.
 */
#include "export/read/parse/kineto_pieces.h"

#include <errno.h>
#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "export/read/frames/framename.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/read/kineto/kineto_processes.h"
#include "export/read/kineto/passends.h"
#include "export/read/frames/modulename.h"
#include "export/read/store/keyindex.h"
#include "export/read/store/qsort.h"

size_t kp_kineto_piece_events = (size_t)1 << 17;

/* ---- where to cut ---- */

/* Events that the report leaves out, as the profiler's own span, run through no cut. */
static bool is_counted(const struct kp_kineto_event *e) { return e->kind != KP_KINETO_OTHER; }

static int64_t end_of(const struct kp_kineto_event *e)
{
    if (e->kind == KP_KINETO_MEMORY) return e->start_ns;
    return e->flags & KP_KINETO_UNFINISHED ? INT64_MAX : e->start_ns + e->dur_ns;
}

static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t most_of(int64_t a, int64_t b) { return a > b ? a : b; }

/* The events behind each event from `from` on: when the first begins, and the least id that work of a device has. */
struct behind {
    int64_t start_ns, id;
};

static struct behind *behind_make(const struct kp_kineto *t, size_t from)
{
    const size_t count = t->count - from;
    struct behind *b = kp_kineto_room(count + 1, sizeof *b);
    b[count] = (struct behind){INT64_MAX, INT64_MAX};
    for (size_t i = count; i-- > 0;) {
        const struct kp_kineto_event *e = &t->events[from + i];
        b[i] = b[i + 1];
        if (!is_counted(e)) continue;
        b[i].start_ns = least_of(b[i].start_ns, e->start_ns);
        if (e->kind == KP_KINETO_GPU && e->external_id > 0) b[i].id = least_of(b[i].id, e->external_id);
    }
    return b;
}

/* The events before a place. */
struct before {
    int64_t start_ns, end_ns, id; /* the latest of each */
    int64_t held_ns;              /* the latest end of what cannot be split */
    int64_t step_ns;              /* when the optimizer's last step ended */
};
struct cut {
    size_t count; /* events before it, 0: there is none */
    int64_t at_ns;
};

/* Whether a cut may run through the event, so that each part has its own time. Work of a device and steps are whole. */
static bool may_split(const struct kp_kineto *t, const struct kp_kineto_event *e, bool is_step_end)
{
    static const bool kinds[] = {
        [KP_KINETO_OP] = true,      [KP_KINETO_ANNOTATION] = true, [KP_KINETO_PYTHON] = true,
        [KP_KINETO_RUNTIME] = true, [KP_KINETO_OVERHEAD] = true,   [KP_KINETO_GPU_ANNOTATION] = false};
    return kinds[e->kind] && !(e->flags & KP_KINETO_UNFINISHED) && !is_step_end &&
           !kp_kineto_is_step(kp_kineto_text(t, e->name));
}

/* By the optimizer that is known; without one no event does. */
static bool ends_step(const struct kp_kineto_pieces *p, const struct kp_kineto *t, const struct kp_kineto_event *e)
{
    struct kp_stepends ends = p->ends;
    return ends.is_known && kp_stepends_may(t, e) && kp_stepends_counts(&ends, t, e);
}

static void before_add(struct before *b, const struct kp_kineto *t, const struct kp_kineto_event *e, bool is_step_end)
{
    if (!is_counted(e)) return;
    const int64_t end_ns = end_of(e);
    b->start_ns = most_of(b->start_ns, e->start_ns);
    b->end_ns = most_of(b->end_ns, end_ns);
    if (end_ns > b->held_ns && !may_split(t, e, is_step_end)) b->held_ns = end_ns;
    if (e->kind == KP_KINETO_OP || e->kind == KP_KINETO_ANNOTATION) b->id = most_of(b->id, e->external_id);
    if (is_step_end) b->step_ns = end_ns;
}

/* Nothing runs there. A step without a mark is not cut. */
static bool is_rest(const struct before *b, const struct behind *rest, bool by_optimizer)
{
    if (b->end_ns >= rest->start_ns) return false;
    return !by_optimizer || (b->step_ns == b->end_ns && b->start_ns < b->end_ns);
}

/* An event that runs there can be split. */
static bool is_between(const struct before *b, const struct behind *rest, int64_t at_ns)
{
    return b->held_ns < rest->start_ns && b->held_ns <= at_ns && b->start_ns < at_ns && at_ns <= rest->start_ns;
}

/* Finds the last cut where nothing runs, or else the last one through what can be split. */
static struct cut cut_find(const struct kp_kineto_pieces *p, const struct kp_kineto *t, const struct behind *behind)
{
    struct before b = {INT64_MIN, INT64_MIN, 0, INT64_MIN, INT64_MIN};
    struct cut at_rest = {0, 0}, between = {0, 0};
    for (size_t i = p->from; i < p->from + (t->count - p->from) / 4 * 3; i++) {
        const struct behind *rest = &behind[i + 1 - p->from];
        before_add(&b, t, &t->events[i], ends_step(p, t, &t->events[i]));
        const int64_t at_ns = p->ends.is_known ? b.step_ns : rest->start_ns;
        if ((p->give && b.id >= rest->id) || rest->start_ns == INT64_MAX) continue;
        if (is_rest(&b, rest, p->ends.is_known)) at_rest = (struct cut){i + 1, at_ns};
        else if (!at_rest.count && is_between(&b, rest, at_ns)) between = (struct cut){i + 1, at_ns};
    }
    return at_rest.count ? at_rest : between;
}

/* Finds whether the trace marks steps, and the optimizer whose steps stand for them. */
static void steps_learn(struct kp_kineto_pieces *p, const struct kp_kineto *t)
{
    const struct kp_kineto_event *first = NULL;
    for (; p->named < kp_strings_count(t->strings); p->named++)
        p->has_steps |= kp_kineto_is_step(kp_strings_get(t->strings, (uint32_t)p->named));
    if (p->has_steps) p->ends.is_known = false;
    if (p->has_steps || p->ends.is_known) return;
    for (size_t i = 0; i < t->count; i++) {
        const struct kp_kineto_event *e = &t->events[i];
        if (!kp_stepends_may(t, e)) continue;
        if (!first || e->start_ns < first->start_ns) first = e;
    }
    if (first) (void)kp_stepends_counts(&p->ends, t, first);
}

/* ---- a piece ---- */

struct renaming {
    struct kp_strings *from;
    struct kp_strings *to;
    uint32_t *ids; /* of each string its number in `to`, 0: not yet there */
};

static uint32_t renamed(const struct renaming *r, uint32_t id)
{
    if (id && !r->ids[id]) r->ids[id] = kp_strings_put_from(r->to, r->from, id);
    return id ? r->ids[id] : 0;
}

static struct kp_kineto_event event_renamed(const struct renaming *r, struct kp_kineto_event e, int64_t base_ns)
{
    e.name = renamed(r, e.name);
    e.cat = renamed(r, e.cat);
    e.shapes = renamed(r, e.shapes);
    e.concrete = renamed(r, e.concrete);
    e.stack = renamed(r, e.stack);
    if (e.flags & KP_KINETO_TEXT_PID) e.pid = renamed(r, (uint32_t)e.pid);
    if (e.flags & KP_KINETO_TEXT_TID) e.tid = renamed(r, (uint32_t)e.tid);
    e.start_ns += base_ns;
    return e;
}

static void facts_copy(struct kp_kineto *to, const struct kp_kineto *from, const struct renaming *r)
{
    to->facts = kp_kineto_grow(NULL, &to->fact_capacity, from->fact_count + 1, sizeof *to->facts);
    for (; to->fact_count < from->fact_count; to->fact_count++) {
        const struct kp_kineto_fact *fact = &from->facts[to->fact_count];
        to->facts[to->fact_count] = (struct kp_kineto_fact){renamed(r, fact->path), renamed(r, fact->text)};
    }
}

static void head_copy(struct kp_kineto *to, const struct kp_kineto *from)
{
    to->base_ns = from->base_ns;
    to->start_ns = (from->has_start ? from->start_ns : from->first_ns) + from->base_ns;
    to->has_events = true;
    to->with_flops = from->with_flops;
    to->profile_memory = from->profile_memory;
    to->record_shapes = from->record_shapes;
    to->with_stack = from->with_stack;
    to->has_stacks = from->has_stacks;
    to->is_ours = from->is_ours;
    to->has_step_ends = from->has_step_ends;
}

/* The events that are open at the cut. */
struct opened {
    struct kp_kineto_event *events;
    size_t count, capacity;
};

KP_ORDERED(opened_order, struct kp_kineto_event, KP_UP(start_ns) KP_DOWN(dur_ns))

/* Is it a call of the same thread? */
static bool is_call_beside(const struct kp_kineto_event *e, const struct kp_kineto_event *call)
{
    return e->kind == KP_KINETO_PYTHON && e->tid == call->tid && e->pid == call->pid;
}

/* A call that begins with all its callers was open when the recording began, as they were. */
static void calls_note(struct opened *opened, struct kp_kineto_event *call)
{
    struct kp_kineto_event *const caller = &opened->events[opened->count - 1];
    if (call->kind != KP_KINETO_PYTHON || !is_call_beside(caller, call)) return;
    for (size_t i = 0; i < opened->count; i++)
        if (is_call_beside(&opened->events[i], call) && opened->events[i].start_ns != call->start_ns) return;
    caller->flags |= KP_KINETO_OPEN_AT_START;
    call->flags |= KP_KINETO_OPEN_AT_START;
}

/* So were those that begin no later than the call of torch.profiler that started it. */
static void starts_note(struct opened *opened, const struct kp_kineto *t, size_t count)
{
    bool *const seen = kp_kineto_zeros(kp_strings_count(t->strings), sizeof *seen); /* by name: it is none */
    size_t start = 0;
    for (; start < count; start++) {
        const struct kp_kineto_event *const e = &t->events[start];
        if (e->kind != KP_KINETO_PYTHON || seen[e->name]) continue;
        if (kp_framename_starts_recording(kp_kineto_text(t, e->name))) break;
        seen[e->name] = true;
    }
    free(seen);
    for (size_t i = 0; i < opened->count && start < count; i++) {
        struct kp_kineto_event *const e = &opened->events[i];
        if (e->kind == KP_KINETO_PYTHON && e->start_ns <= t->events[start].start_ns)
            e->flags |= KP_KINETO_OPEN_AT_START;
    }
}

/* Ends an event of the piece at the cut, if it goes on behind it. */
static void event_split(struct opened *opened, struct kp_kineto_event *e, int64_t at_ns)
{
    if (!is_counted(e) || end_of(e) <= at_ns) return;
    e->flags |= KP_KINETO_SPLIT;
    if (opened->count && !(e->flags & KP_KINETO_CONTINUED)) calls_note(opened, e);
    *KP_KINETO_NEXT(opened->events, opened->count, opened->capacity) = *e;
    e->dur_ns = at_ns - e->start_ns;
}

/* An event that was open goes on as one that begins at the cut, the outer ones first. */
static void opened_put(struct kp_kineto_event *to, struct opened *opened, int64_t at_ns)
{
    if (opened->count) kp_qsort(opened->events, opened->count, sizeof *opened->events, opened_order);
    for (size_t i = 0; i < opened->count; i++) {
        to[i] = opened->events[i];
        if (kp_kineto_has_before(&to[i])) to[i].number += at_ns - to[i].start_ns;
        to[i].dur_ns -= at_ns - to[i].start_ns;
        to[i].start_ns = at_ns;
        to[i].flags |= KP_KINETO_CONTINUED;
    }
    free(opened->events);
}

/* The first `count` events have gone, and `more` have come before the rest. */
static void memory_move(struct kp_kineto *piece, struct kp_kineto *t, size_t count, size_t more)
{
    size_t n = 0;
    while (n < t->memory_count && t->memory[n].event < count) n++;
    piece->memory = kp_kineto_grow(NULL, &piece->memory_capacity, n + 1, sizeof *piece->memory);
    piece->memory_count = n;
    if (n) memcpy(piece->memory, t->memory, n * sizeof *t->memory);
    t->memory_count -= n;
    if (t->memory_count) memmove(t->memory, t->memory + n, t->memory_count * sizeof *t->memory);
    for (size_t i = 0; i < t->memory_count; i++) t->memory[i].event += (uint32_t)more - (uint32_t)count;
}

/* Moves the events before the cut into a trace of their own. */
static struct kp_kineto *piece_make(struct kp_kineto *t, struct cut cut)
{
    struct opened opened = {0};
    struct kp_kineto *piece = kp_kineto_new();
    struct renaming r = {t->strings, piece->strings, NULL};
    r.ids = kp_kineto_zeros(kp_strings_count(t->strings), sizeof *r.ids);
    piece->events = kp_kineto_grow(NULL, &piece->capacity, cut.count, sizeof *piece->events);
    for (; piece->count < cut.count; piece->count++) {
        event_split(&opened, &t->events[piece->count], cut.at_ns);
        piece->events[piece->count] = event_renamed(&r, t->events[piece->count], t->base_ns);
    }
    if (!t->is_ours) starts_note(&opened, t, cut.count);
    head_copy(piece, t);
    facts_copy(piece, t, &r);
    kp_modulename_carry(piece, t);
    free(r.ids);
    memory_move(piece, t, cut.count, opened.count);
    t->count -= cut.count;
    memmove(t->events + opened.count, t->events + cut.count, t->count * sizeof *t->events);
    t->count += opened.count;
    opened_put(t->events, &opened, cut.at_ns);
    return piece;
}

static int piece_give(struct kp_kineto_pieces *p, struct kp_kineto *t, struct cut cut)
{
    struct kp_kineto *piece = piece_make(t, cut);
    if (!piece) return -ENOMEM;
    t->work_count = 0; /* their numbers of events are no longer right */
    if (!p->has_given) {
        p->base_ns = t->base_ns;
        p->is_ours = t->is_ours;
        p->has_stacks = t->has_stacks;
        p->has_shapes = t->record_shapes;
    }
    p->has_given = true;
    p->since_ns = cut.at_ns;
    p->next = t->count + kp_kineto_piece_events / 4 * 3;
    return p->give(p->context, piece, cut.at_ns + t->base_ns);
}

/* ---- a trace that stays one ---- */

struct host_event { /* by start; what is around comes first */
    int64_t start_ns, end_ns;
    uint64_t thread;
    uint32_t event;
};
struct
    call_lane { /* of a thread: calls of Python that are open, the inner ones on top; each is an index of host events */
    size_t *open;
    size_t count, capacity;
    int64_t last_ns; /* when its event before began */
};
struct sieve {
    struct host_event *of;
    size_t count;
    bool *stays; /* by event behind `from` */
    size_t from;
    int64_t last_ns; /* the latest end of a call so far */
    struct kp_keyindex lanes;
};

KP_ORDERED(host_order, struct host_event, KP_UP(start_ns) KP_DOWN(end_ns) KP_UP(event))

/* A call stays where something else begins in it, where it ends later than all calls before, as the trace may do, or
 * where it began with its caller: then both were open when the recording began. */
static void host_event_take(struct sieve *s, const struct kp_kineto *t, size_t at)
{
    const struct host_event *const h = &s->of[at];
    const bool is_call = t->events[h->event].kind == KP_KINETO_PYTHON;
    struct call_lane *const lane =
        kp_keyindex_row(&s->lanes, h->thread, &(struct call_lane){.last_ns = INT64_MIN}, sizeof *lane);
    while (lane->count && s->of[lane->open[lane->count - 1]].end_ns < h->start_ns) lane->count--;
    const bool is_kept = !is_call || h->end_ns > s->last_ns || h->start_ns == lane->last_ns;
    for (size_t i = lane->count; is_kept && i-- > 0;) {
        bool *const stays = &s->stays[s->of[lane->open[i]].event - s->from];
        if (*stays) break; /* so do all around it */
        *stays = true;
    }
    lane->last_ns = h->start_ns;
    if (is_call) s->last_ns = most_of(s->last_ns, h->end_ns);
    s->stays[h->event - s->from] = is_kept;
    if (is_call) *KP_KINETO_NEXT(lane->open, lane->count, lane->capacity) = at;
}

/* Finds which events between `from` and the cut stay, to be freed. */
static bool *stays_find(struct kp_kineto_pieces *p, const struct kp_kineto *t, struct cut cut)
{
    const size_t from = p->from;
    struct sieve s = {.from = from, .last_ns = p->has_given ? p->last_ns : INT64_MIN};
    s.of = kp_kineto_room(cut.count - from + 1, sizeof *s.of);
    s.stays = kp_kineto_room(cut.count - from + 1, sizeof *s.stays);
    for (size_t i = from; i < cut.count; i++) {
        const struct kp_kineto_event *const e = &t->events[i];
        s.of[s.count++] = (struct host_event){e->start_ns, end_of(e), kp_tree_thread(e), (uint32_t)i};
    }
    if (s.count) kp_qsort(s.of, s.count, sizeof *s.of, host_order);
    for (size_t i = 0; i < s.count; i++) host_event_take(&s, t, i);
    for (size_t i = 0; i < s.count; i++) {
        const struct kp_kineto_event *const e = &t->events[s.of[i].event];
        s.stays[s.of[i].event - from] |= s.of[i].end_ns > cut.at_ns || (e->flags & KP_KINETO_SPLIT);
    }
    struct call_lane *const lanes = s.lanes.rows;
    for (size_t i = 0; i < s.lanes.count; i++) free(lanes[i].open);
    kp_keyindex_fini(&s.lanes);
    free(s.of);
    p->last_ns = s.last_ns;
    return s.stays;
}

static void calls_drop(struct kp_kineto_pieces *p, struct kp_kineto *t, struct cut cut)
{
    bool *const stays = stays_find(p, t, cut);
    size_t kept = p->from, m = 0;
    while (m < t->memory_count && t->memory[m].event < p->from) m++;
    for (size_t i = p->from; i < cut.count; i++) {
        if (!stays[i - p->from]) continue;
        if (m < t->memory_count && t->memory[m].event == i) t->memory[m++].event = (uint32_t)kept;
        t->events[kept++] = t->events[i];
    }
    free(stays);
    const size_t dropped = cut.count - kept;
    for (; m < t->memory_count; m++) t->memory[m].event -= (uint32_t)dropped;
    memmove(t->events + kept, t->events + cut.count, (t->count - cut.count) * sizeof *t->events);
    t->count -= dropped;
    p->from = kept;
    p->has_given = true;
    p->base_ns = t->base_ns;
    p->since_ns = cut.at_ns;
    p->next = t->count + kp_kineto_piece_events / 4 * 3;
}

int kp_kineto_pieces_look(struct kp_kineto_pieces *p, struct kp_kineto *t)
{
    if (!p->has_memory) t->memory_count = 0;
    if (t->count < p->next || t->count < kp_kineto_piece_events) return 0;
    if (p->give) steps_learn(p, t);
    if (p->give && !p->has_steps && !p->ends.is_known &&
        kp_passends_may(t)) { /* which pass ends a step, all of them tell */
        p->next = t->count * 2;
        return 0;
    }
    struct behind *behind = behind_make(t, p->from);
    const bool is_late = p->has_given && behind[0].start_ns < p->since_ns;
    const struct cut cut = is_late ? (struct cut){0, 0} : cut_find(p, t, behind);
    free(behind);
    if (is_late || kp_kineto_has_processes(t)) return -ESTALE;
    p->next = t->count * 2; /* none is found: all that is read is searched less and less often */
    if (!cut.count) return 0;
    if (p->give) return piece_give(p, t, cut);
    calls_drop(p, t, cut);
    return 0;
}

bool kp_kineto_pieces_hold(const struct kp_kineto_pieces *p, const struct kp_kineto *t)
{
    if (!p->has_given) return true;
    if (t->base_ns != p->base_ns) return false;
    if (p->give && (t->is_ours != p->is_ours || t->has_stacks != p->has_stacks || t->record_shapes != p->has_shapes))
        return false;
    for (size_t i = p->from; i < t->count; i++)
        if (is_counted(&t->events[i]) && t->events[i].start_ns < p->since_ns + t->base_ns) return false;
    return true;
}
