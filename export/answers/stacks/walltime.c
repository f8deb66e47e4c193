// SPDX-License-Identifier: Apache-2.0
/*
 * walltime.c - goes through each thread's events in order of time, and gives each moment to the innermost one
 *
 * The sums are call paths, or the time of forward, backward, optimizer and loading (kp_wall_parts_tell).
 * Frames come from Python calls where the trace has them, else from the call stacks of ops. Between two ops nothing
 * tells what ran: that time stands at the frames that both have, as "(no op)". Ranges (ProfilerStep#N,
 * Optimizer.step#..) tell the part of the step, and are frames only in traces without any.
 */
#include "export/answers/stacks/walltime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_order.h"
#include "collector/base/kp_search.h"
#include "export/answers/stacks/eventpart.h"
#include "export/answers/stacks/calltree.h"
#include "export/answers/stacks/walllanes.h"
#include "export/read/frames/framename.h"
#include "export/read/frames/workerframe.h"
#include "export/read/kineto/kineto_windows.h"
#include "export/read/store/keyindex.h"
#include "export/read/store/qsort.h"

enum frames { FRAMES_NONE, FRAMES_STACKS, FRAMES_CALLS };
enum use { USE_TIME, USE_BUSY, USE_MEMORY, USE_PATHS }; /* of the moments of a sweep */
#define UNKNOWN UINT32_MAX

struct moment { /* [from, to) of a node, or of the time between two ops */
    int64_t from, to;
    uint32_t node; /* UNKNOWN: none. In a gap: its place */
    enum kp_part part;
};
struct moments {
    struct moment *of;
    size_t count, capacity;
};
struct open_nodes { /* innermost last */
    uint32_t *of;
    size_t count, capacity;
};
struct wall {
    struct kp_calltree *paths; /* NULL: no place is looked for */
    enum kp_wall_where where;  /* then: what is told in place of one */
    const struct kp_tree *tree;
    const struct kp_wall_options *options;
    enum frames frames;
    uint8_t *parts;   /* by node */
    uint32_t *above;  /* by node: where its Python frames end, or UNKNOWN */
    uint32_t *places; /* by node: its own path, or UNKNOWN */
    struct kp_frametext text;
    struct moments busy;                /* of autograd's threads, by time */
    struct kp_keyindex stacks, between; /* rows: paths, by what they were made from, so that each text is read once */
    /* the thread that is swept */
    enum use use;
    bool is_main, is_last_range; /* the second: what last_part is of */
    uint32_t root, last_stack;
    struct open_nodes shown, ranges;
    int64_t now, used_ns, rest_ns; /* rest_ns: of a piece, what lies beside options->within */
    int64_t wait_ns;               /* when the last wait began */
    size_t span;                   /* of options->within: those before it have ended */
    struct moments gap;            /* time since the last op, and before the next */
    enum kp_part last_part;
    const struct kp_kineto_event *const *memory; /* of the thread, by time */
    size_t memory_count;
};

static const char *text_of(const struct wall *w, uint32_t id) { return kp_kineto_text(w->tree->trace, id); }

static void moment_add(struct moments *m, struct moment moment)
{
    *KP_KINETO_NEXT(m->of, m->count, m->capacity) = moment;
}

/* Returns a place below another, where paths are wanted. */
static uint32_t child_of(const struct wall *w, uint32_t parent, const char *name)
{
    return w->paths ? kp_calltree_child(w->paths, parent, name) : 0;
}

static uint32_t place_of(const struct wall *w, uint32_t node) { return w->paths ? w->places[node] : 0; }

static bool is_step(const struct wall *w, uint32_t node)
{
    return kp_kineto_is_step(text_of(w, kp_tree_event(w->tree, node)->name));
}

/* Is the node a frame of the paths? */
static bool is_shown(const struct wall *w, uint32_t node)
{
    if (kp_tree_event(w->tree, node)->kind != KP_KINETO_ANNOTATION) return true;
    return w->frames == FRAMES_NONE && !is_step(w, node);
}

/* ---- paths ---- */

/* Returns where the path of a key is kept; a new one is UNKNOWN. */
static uint32_t *path_slot(struct kp_keyindex *known, uint32_t high, uint32_t low)
{
    return kp_keyindex_row(known, (uint64_t)high << 32 | low, &(uint32_t){UNKNOWN}, sizeof(uint32_t));
}

static uint32_t stack_place(struct wall *w, uint32_t stack)
{
    const char *text = text_of(w, stack);
    uint32_t *place = path_slot(&w->stacks, w->root, stack);
    if (*place == UNKNOWN) *place = kp_stackpath_add(w->paths, w->root, text, kp_stackpath_bytes(text));
    return *place;
}

static uint32_t between_place(struct wall *w, uint32_t a, uint32_t b)
{
    uint32_t *place = path_slot(&w->between, a, b);
    if (*place == UNKNOWN) *place = kp_stackpath_between(w->paths, w->root, text_of(w, a), text_of(w, b));
    return *place;
}

/* The place at which an op's frames end that no other op called. */
static uint32_t frames_for(struct wall *w, uint32_t node, uint32_t base)
{
    const int32_t forward = w->options->at_forward ? w->tree->nodes[node].forward : -1;
    if (forward >= 0 && w->above[forward] != UNKNOWN) return w->above[forward];
    const uint32_t stack = kp_tree_event(w->tree, node)->stack;
    return w->frames == FRAMES_STACKS && stack ? stack_place(w, stack) : base;
}

/* The frames that an op's stack has more than that of the op around it: of Python, or of machine code. */
static uint32_t frames_more(const struct wall *w, uint32_t node, uint32_t around)
{
    if (kp_tree_event(w->tree, node)->stack == kp_tree_event(w->tree, around)->stack) return w->places[around];
    const char *inner = text_of(w, kp_tree_event(w->tree, node)->stack),
               *outer = text_of(w, kp_tree_event(w->tree, around)->stack);
    const size_t inner_bytes = kp_stackpath_bytes(inner), outer_bytes = kp_stackpath_bytes(outer);
    if (w->frames != FRAMES_STACKS || !outer_bytes || inner_bytes <= outer_bytes) return w->places[around];
    if (kp_stackpath_common(inner, inner_bytes, outer, outer_bytes) != outer_bytes) return w->places[around];
    return kp_stackpath_add(w->paths, w->places[around], inner, inner_bytes - outer_bytes - 1);
}

/* The path of a Python call while it runs itself, or calls `callee` (UNKNOWN: itself). */
static uint32_t call_place(struct wall *w, uint32_t node, uint32_t callee)
{
    const struct kp_kineto_event *e = callee == UNKNOWN ? NULL : kp_tree_event(w->tree, callee);
    const char *from = e ? kp_tree_call_from(w->tree, e) : "";
    const uint32_t call = kp_tree_call_name(w->tree, &w->tree->nodes[node]);
    const char *name = kp_framename_called(&w->text, text_of(w, call), from);
    return kp_calltree_child(w->paths, w->above[node], name);
}

/* Finds the node's path below `around`, the shown node that called it (UNKNOWN: none), or below `base`. */
static void place_set(struct wall *w, uint32_t node, uint32_t around, uint32_t base)
{
    if (!w->paths) return;
    const bool is_call = kp_tree_event(w->tree, node)->kind == KP_KINETO_PYTHON;
    const bool is_in_op = around != UNKNOWN && kp_tree_event(w->tree, around)->kind != KP_KINETO_PYTHON;
    const enum kp_workerframe worker = is_call ? kp_eventpart_worker(w->tree, node) : KP_WORKERFRAME_NONE;
    if (worker == KP_WORKERFRAME_START) base = w->root;
    else if (worker == KP_WORKERFRAME_GET) base = kp_calltree_child(w->paths, w->root, KP_WORKERFRAME_WAITS);
    else if (is_in_op) base = w->places[around];
    else if (around != UNKNOWN) base = call_place(w, around, node);
    w->above[node] = is_in_op && !is_call ? w->above[around] : base;
    if (is_call) {
        w->places[node] = call_place(w, node, UNKNOWN);
        return;
    }
    if (is_in_op) base = frames_more(w, node, around);
    else w->above[node] = base = frames_for(w, node, base);
    w->places[node] = kp_calltree_child(w->paths, base, text_of(w, w->tree->nodes[node].name));
}

/* The same for an op of autograd's threads, when `base` is what the main thread waits in. */
static void place_below(struct wall *w, uint32_t node, uint32_t base)
{
    uint32_t chain[64], count = 0;
    if (!w->paths) return;
    for (int32_t at = (int32_t)node; at >= 0 && count < 64; at = w->tree->nodes[at].parent)
        if (is_shown(w, (uint32_t)at)) chain[count++] = (uint32_t)at;
    for (uint32_t i = count; i-- > 0;) place_set(w, chain[i], i + 1 < count ? chain[i + 1] : UNKNOWN, base);
}

/* ---- time ---- */

static void rest_add(const struct wall *w, uint32_t place, enum kp_part part, int64_t value)
{
    if (w->options->seam && value > 0) kp_calltree_add_rest(w->paths, place, part, value);
}

static void value_add(const struct wall *w, uint32_t place, enum kp_part part, int64_t from_ns, int64_t value)
{
    if (w->paths) kp_calltree_add(w->paths, place, part, value);
    if (w->options->tell && value)
        w->options->tell(w->options->context, w->paths ? place : w->where, part, from_ns, value);
}

/* How much of a time is shown. Most moments lie in the same span as the one before. */
static int64_t shown_ns(struct wall *w, int64_t from, int64_t to)
{
    const struct kp_spans *const within = w->options->within;
    if (!within) return to - from;
    while (w->span < within->count && within->of[w->span].end_ns <= from) w->span++;
    const struct kp_time_span *const span = w->span < within->count ? &within->of[w->span] : NULL;
    if (span && from >= span->start_ns && to <= span->end_ns) return to > from ? to - from : 0;
    return kp_spans_between(within, from, to);
}

static int64_t time_add(struct wall *w, uint32_t place, enum kp_part part, int64_t from, int64_t to)
{
    const int64_t ns = shown_ns(w, from, to);
    if (!w->is_main) part = KP_PART_THREADS;
    w->used_ns += ns;
    w->rest_ns += to - from - ns;
    if (w->use == USE_TIME) value_add(w, place, part, from, ns);
    if (w->use == USE_TIME) rest_add(w, place, part, to - from - ns);
    return ns;
}

static void idle_add(struct wall *w, const struct moment *wait, uint32_t idle, enum kp_part part, int64_t from,
                     int64_t to)
{
    w->where = part == KP_PART_OTHER && wait->node == UNKNOWN ? KP_WALL_GAP : KP_WALL_HOST;
    (void)time_add(w, idle, part, from, to);
    w->where = KP_WALL_HOST;
}

static bool has_ended(const void *moment, const void *ns)
{
    return ((const struct moment *)moment)->to <= *(const int64_t *)ns;
}

/* Gives a wait to what autograd's threads did in it. The rest is `idle`'s: backward between two of their ops. */
static void wait_add(struct wall *w, const struct moment *wait, uint32_t base, uint32_t idle)
{
    int64_t now = wait->from;
    const size_t first =
        w->is_main ? kp_search(w->busy.of, sizeof *w->busy.of, w->busy.count, has_ended, &wait->from) : w->busy.count;
    for (size_t i = first; i < w->busy.count && w->busy.of[i].from < wait->to; i++) {
        const struct moment *b = &w->busy.of[i];
        const int64_t from = b->from > now ? b->from : now, to = b->to < wait->to ? b->to : wait->to;
        idle_add(w, wait, idle, i > first ? KP_PART_BACKWARD : wait->part, now, from);
        place_below(w, b->node, base);
        (void)time_add(w, place_of(w, b->node), KP_PART_BACKWARD, from, to);
        now = to;
    }
    idle_add(w, wait, idle, wait->part, now, wait->to);
}

/* Between step() and the next zero_grad() a program loads its data: an optimizer's own time lies in its ranges. */
static bool is_within(const struct wall *w, enum kp_part next_part)
{
    return w->last_part == next_part && next_part != KP_PART_OPTIMIZER;
}

static bool is_optimizer_range(const struct wall *w, uint32_t node)
{
    return w->parts[node] == KP_PART_OPTIMIZER && kp_tree_event(w->tree, node)->kind == KP_KINETO_ANNOTATION;
}

/* Inside of an optimizer's step, between two ops that are none of its own, or before the first: the closure runs. */
static bool is_closure(const struct wall *w, enum kp_part next_part)
{
    const struct open_nodes *const open = w->frames == FRAMES_NONE ? &w->shown : &w->ranges;
    if (next_part == KP_PART_OPTIMIZER || (w->last_part == KP_PART_OPTIMIZER && !w->is_last_range)) return false;
    for (size_t i = open->count; i-- > 0;)
        if (w->tree->nodes[open->of[i]].end_ns > w->now && is_optimizer_range(w, open->of[i])) return true;
    return false;
}

static void gap_end(struct wall *w, uint32_t next_stack, enum kp_part next_part)
{
    if (!w->is_main) w->gap.count = 0; /* another thread that runs nothing is idle */
    if (!w->gap.count) return;
    uint32_t base = w->root;
    if (w->paths && w->frames == FRAMES_STACKS && w->last_stack && next_stack)
        base = between_place(w, w->last_stack, next_stack);
    const uint32_t idle = child_of(w, base, "(no op)");
    for (size_t i = 0; i < w->gap.count; i++) {
        struct moment *m = &w->gap.of[i];
        if (m->part == KP_PART_OPTIMIZER && is_closure(w, next_part)) m->part = KP_PART_OTHER;
        if (m->part == KP_PART_OTHER && is_within(w, next_part)) m->part = next_part;
        wait_add(w, m, base, m->node == UNKNOWN ? idle : m->node);
    }
    w->gap.count = 0;
}

static void open_add(struct open_nodes *open, uint32_t node)
{
    *KP_KINETO_NEXT(open->of, open->count, open->capacity) = node;
}

/* The innermost node that is still open; UNKNOWN: none. Ranges end at any time, so they have a list of their own. */
static uint32_t open_top(const struct wall *w, struct open_nodes *open)
{
    while (open->count && w->tree->nodes[open->of[open->count - 1]].end_ns <= w->now) open->count--;
    return open->count ? open->of[open->count - 1] : UNKNOWN;
}

static void memory_use(struct wall *w, const struct moment *m)
{
    for (; w->memory_count && w->memory[0]->start_ns < m->to; w->memory++, w->memory_count--) {
        const uint32_t place =
            m->node == UNKNOWN ? kp_calltree_child(w->paths, w->root, "(no op)") : w->places[m->node];
        if (w->options->within && !kp_spans_has(w->options->within, w->memory[0]->start_ns)) continue;
        if (w->memory[0]->number > 0) value_add(w, place, m->part, w->memory[0]->start_ns, w->memory[0]->number);
    }
}

/* May the thread wait for autograd's in it? In backward() it does, and in a range of the program around that. */
static bool may_wait(const struct wall *w, const struct moment *m)
{
    const enum kp_kineto_kind kind = kp_tree_event(w->tree, m->node)->kind;
    if (kind == KP_KINETO_ANNOTATION || is_step(w, m->node)) return m->part == KP_PART_OTHER;
    return kind == KP_KINETO_PYTHON && m->part == KP_PART_BACKWARD;
}

static void gap_add(struct wall *w, const struct moment *m)
{
    const uint32_t place = m->node == UNKNOWN ? UNKNOWN : place_of(w, m->node);
    moment_add(&w->gap, (struct moment){m->from, m->to, place, m->part});
}

static void moment_use(struct wall *w, const struct moment *m)
{
    if (w->use == USE_MEMORY) memory_use(w, m);
    else if (m->node == UNKNOWN || (w->is_main && is_optimizer_range(w, m->node))) gap_add(w, m);
    else if (w->use == USE_BUSY) moment_add(&w->busy, *m);
    else if (may_wait(w, m)) w->wait_ns = m->from, wait_add(w, m, place_of(w, m->node), place_of(w, m->node));
    else (void)time_add(w, place_of(w, m->node), m->part, m->from, m->to);
}

/* Everything up to `to` belongs to the innermost open node. */
static void pass(struct wall *w, int64_t to)
{
    while (w->now < to) {
        const uint32_t shown = open_top(w, &w->shown), any = shown == UNKNOWN ? open_top(w, &w->ranges) : shown;
        struct moment m = {w->now, to, shown, any == UNKNOWN ? KP_PART_OTHER : (enum kp_part)w->parts[any]};
        if (any != UNKNOWN && w->tree->nodes[any].end_ns < to) m.to = w->tree->nodes[any].end_ns;
        w->now = m.to;
        moment_use(w, &m);
    }
}

static void node_begin(struct wall *w, uint32_t node)
{
    const bool shown = is_shown(w, node);
    const enum kp_part part = w->parts[node];
    pass(w, w->tree->nodes[node].start_ns);
    const uint32_t around = open_top(w, &w->shown);
    if ((around == UNKNOWN || is_optimizer_range(w, around)) && (shown || part != KP_PART_OTHER)) {
        gap_end(w, kp_tree_event(w->tree, node)->stack, part);
        w->last_stack = kp_tree_event(w->tree, node)->stack;
        w->last_part = part;
        w->is_last_range = kp_tree_event(w->tree, node)->kind == KP_KINETO_ANNOTATION;
    }
    if (shown) place_set(w, node, around, w->root);
    open_add(shown ? &w->shown : &w->ranges, node);
}

/* ---- pieces of a trace ---- */

struct lane_sums { /* of a thread beside the main one */
    int64_t used_ns, rest_ns;
    bool is_engine, is_other;
};
struct kp_wall_seam {
    bool is_later; /* and the rest is known, of the main thread */
    enum frames frames;
    uint64_t thread;
    int64_t now, wall_ns, rest_ns;
    struct moments gap;
    enum kp_part last_part;
    bool is_last_range;
    char *last_stack;
    struct kp_keyindex lanes; /* rows: struct lane_sums */
};

struct kp_wall_seam *kp_wall_seam_open(void) { return kp_kineto_zeros(1, sizeof(struct kp_wall_seam)); }

void kp_wall_seam_close(struct kp_wall_seam *s)
{
    free(s->gap.of);
    free(s->last_stack);
    kp_keyindex_fini(&s->lanes);
    free(s);
}

void kp_wall_seam_sums(const struct kp_wall_seam *s, bool with_rest, struct kp_wall_told *told)
{
    const struct lane_sums *const of = s->lanes.rows;
    *told = (struct kp_wall_told){.wall_ns = s->wall_ns + (with_rest ? s->rest_ns : 0),
                                  .has_frames = s->frames != FRAMES_NONE};
    for (size_t i = 0; i < s->lanes.count; i++) {
        const int64_t ns = of[i].used_ns + (with_rest ? of[i].rest_ns : 0);
        told->threads += ns != 0;
        told->threads_ns += ns;
    }
}

/* Goes on where the main thread was. False: this piece would be told in another way. */
static bool seam_join(struct wall *w, struct kp_walllanes *l)
{
    struct kp_wall_seam *const s = w->options->seam;
    if (!s || !l->count) return true;
    struct kp_walllane *const main = &l->of[l->main];
    for (size_t i = 0; i < l->count; i++)
        if (l->of[i].is_named) return false; /* a name's id is another one in each piece */
    if (s->is_later && (s->frames != w->frames || s->thread != main->thread)) return false;
    s->frames = w->frames;
    s->thread = main->thread;
    if (s->is_later) main->from = s->now;
    return true;
}

static void seam_resume(struct wall *w)
{
    struct kp_wall_seam *const s = w->options->seam;
    free(w->gap.of);
    w->gap = s->gap;
    s->gap = (struct moments){0};
    w->last_part = s->last_part;
    w->is_last_range = s->is_last_range;
    if (s->last_stack) w->last_stack = kp_strings_put(w->tree->trace->strings, s->last_stack, strlen(s->last_stack));
}

static bool is_cut_inside(const struct wall *w, const struct open_nodes *open)
{
    for (size_t i = 0; i < open->count; i++)
        if (is_optimizer_range(w, open->of[i]) && kp_tree_event(w->tree, open->of[i])->flags & KP_KINETO_SPLIT)
            return true;
    return false;
}

/* Keeps what the next piece needs of the main thread. False: a wait for autograd's threads, or an optimizer's step,
 * goes on there. */
static bool seam_keep(struct wall *w)
{
    struct kp_wall_seam *const s = w->options->seam;
    const int64_t wait_ns = w->gap.count ? w->gap.of[0].from : w->wait_ns;
    const char *const stack = w->last_stack ? text_of(w, w->last_stack) : NULL;
    free(s->last_stack);
    s->last_stack = kp_kineto_copy(stack);
    s->is_later = true;
    s->now = w->now;
    s->gap = w->gap;
    s->last_part = w->last_part;
    s->is_last_range = w->is_last_range;
    w->gap = (struct moments){0};
    if (w->busy.count && w->busy.of[w->busy.count - 1].to > wait_ns) return false;
    return !is_cut_inside(w, &w->shown) && !is_cut_inside(w, &w->ranges);
}

/* Adds what a thread beside the main one has. False: it is one of autograd's in some pieces alone. */
static bool seam_count(struct wall *w, const struct kp_walllane *lane)
{
    const struct lane_sums none = {0};
    struct lane_sums *const sums = kp_keyindex_row(&w->options->seam->lanes, lane->thread, &none, sizeof none);
    sums->is_engine |= lane->is_engine;
    sums->is_other |= !lane->is_engine;
    if (!lane->is_engine) sums->used_ns += w->used_ns, sums->rest_ns += w->rest_ns;
    return !(sums->is_engine && sums->is_other);
}

static void sweep(struct wall *w, const struct kp_walllane *lane, enum use use)
{
    w->use = use;
    w->now = lane->from;
    w->used_ns = w->rest_ns = 0;
    w->wait_ns = INT64_MAX;
    w->span = 0;
    w->shown.count = w->ranges.count = w->gap.count = 0;
    w->last_stack = 0;
    w->last_part = KP_PART_OTHER;
    if (w->is_main && w->options->seam) seam_resume(w);
    for (size_t i = 0; i < lane->count; i++) node_begin(w, lane->nodes[i]);
    pass(w, lane->to);
}

KP_ORDER2(moment_order, struct moment, from, node)

/* If several of autograd's threads run at once, the one that began first counts. */
static void busy_settle(struct moments *busy)
{
    size_t kept = 0;
    int64_t end = INT64_MIN;
    if (busy->count) kp_qsort(busy->of, busy->count, sizeof *busy->of, moment_order);
    for (size_t i = 0; i < busy->count; i++) {
        struct moment m = busy->of[i];
        if (m.from < end) m.from = end;
        if (m.from >= m.to) continue;
        end = m.to;
        busy->of[kept++] = m;
    }
    busy->count = kept;
}

/* In a window of a phase the main thread lives from the phase's begin to its end, with events or without. */
static void main_widen(const struct kp_kineto_windows *windows, struct kp_walllane *main)
{
    for (size_t i = 0; windows && i < windows->count; i++) {
        if (windows->of[i].start_ns < main->from) main->from = windows->of[i].start_ns;
        if (windows->of[i].end_ns > main->to) main->to = windows->of[i].end_ns;
    }
}

/* Returns false where the next piece cannot go on from here. */
static bool main_sweep(struct wall *w, const struct kp_walllanes *l, enum use use)
{
    bool fits = true;
    for (size_t i = 0; i < l->count; i++)
        if (i != l->main && l->of[i].is_engine) sweep(w, &l->of[i], USE_BUSY);
    busy_settle(&w->busy);
    w->is_main = true;
    sweep(w, &l->of[l->main], use);
    if (w->options->goes_on) fits = seam_keep(w);
    else gap_end(w, 0, KP_PART_OTHER);
    w->is_main = false;
    return fits;
}

static void others_sweep(struct wall *w, const struct kp_walllanes *l, enum use use, struct kp_wall_told *told)
{
    for (size_t i = 0; i < l->count; i++) {
        char name[40];
        if (i == l->main) continue;
        if (l->of[i].is_engine) {
            if (w->options->seam) told->is_unfit |= !seam_count(w, &l->of[i]);
            continue;
        }
        snprintf(name, sizeof name, "thread %lld", (long long)l->of[i].tid);
        w->root = use == USE_TIME ? child_of(w, 0, name) : 0;
        sweep(w, &l->of[i], use);
        if (w->options->seam) told->is_unfit |= !seam_count(w, &l->of[i]);
        told->threads += w->used_ns != 0;
        told->threads_ns += w->used_ns;
    }
    w->root = 0;
}

/* ---- metrics ---- */

/* The node under which work of a device is shown: its op; the call that launched it where that is no op's, as of graphs
 * and Triton, or a range's. UNKNOWN: neither is there. */
static uint32_t launching_node(const struct wall *w, const struct kp_op_ids *ids, uint32_t work)
{
    const int64_t id = kp_tree_event(w->tree, work)->external_id;
    const size_t at = id > 0 ? kp_rows_from(ids->ids, ids->count, sizeof *ids->ids, id) : ids->count;
    const bool has_op = at < ids->count && ids->ids[at].id == id;
    const uint32_t op = has_op ? ids->ids[at].node : UNKNOWN;
    const int32_t call = w->tree->nodes[work].call;
    if (has_op && kp_tree_event(w->tree, op)->kind == KP_KINETO_OP) return op;
    return call >= 0 && place_of(w, (uint32_t)call) != UNKNOWN ? (uint32_t)call : op;
}

static void device_add(struct wall *w)
{
    struct kp_op_ids ids;
    kp_op_ids_gather(&ids, w->tree);
    for (uint32_t i = 0; i < w->tree->count; i++) {
        const struct kp_node *n = &w->tree->nodes[i];
        if (kp_tree_event(w->tree, i)->kind != KP_KINETO_GPU) continue;
        const uint32_t by = launching_node(w, &ids, i);
        const uint32_t base = by != UNKNOWN && place_of(w, by) != UNKNOWN ? place_of(w, by) : 0;
        const uint32_t place = child_of(w, base, text_of(w, n->name));
        const enum kp_part part = by == UNKNOWN ? KP_PART_OTHER : w->parts[by];
        const int64_t ns = shown_ns(w, n->start_ns, n->end_ns);
        value_add(w, place, part, n->start_ns, ns);
        rest_add(w, place, part, n->end_ns - n->start_ns - ns);
    }
    kp_op_ids_fini(&ids);
}

static int memory_order(const void *a, const void *b)
{
    const struct kp_kineto_event *x = *(const struct kp_kineto_event *const *)a,
                                 *y = *(const struct kp_kineto_event *const *)b;
    if (kp_tree_thread(x) != kp_tree_thread(y)) return kp_tree_thread(x) < kp_tree_thread(y) ? -1 : 1;
    if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
    return (x > y) - (x < y);
}

static void memory_add(struct wall *w, struct kp_walllanes *l)
{
    const struct kp_kineto *trace = w->tree->trace;
    const struct kp_kineto_event **all = NULL;
    size_t count = 0, capacity = 0;
    for (size_t i = 0; i < trace->count; i++) {
        if (trace->events[i].kind != KP_KINETO_MEMORY) continue;
        *KP_KINETO_NEXT(all, count, capacity) = &trace->events[i];
    }
    if (count) kp_qsort(all, count, sizeof *all, memory_order);
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from; to < count && kp_tree_thread(all[to]) == kp_tree_thread(all[from]);) to++;
        w->memory = all + from;
        w->memory_count = to - from;
        const size_t lane =
            kp_keyindex_get(&l->threads, kp_tree_thread(all[from])); /* of no host event: a new number */
        if (lane < l->count) sweep(w, &l->of[lane], USE_MEMORY);
        memory_use(w, &(struct moment){0, INT64_MAX, UNKNOWN, KP_PART_OTHER});
    }
    free(all);
}

static enum frames frames_in(const struct kp_tree *tree)
{
    enum frames best = FRAMES_NONE;
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_kineto_event *e = &tree->trace->events[tree->nodes[i].event];
        if (e->kind == KP_KINETO_PYTHON) return FRAMES_CALLS;
        if (e->stack) best = FRAMES_STACKS;
    }
    return best;
}

static uint32_t *unknowns(size_t count)
{
    uint32_t *of = kp_kineto_room(count + 1, sizeof *of);
    memset(of, 0xff, (count + 1) * sizeof *of);
    return of;
}

static void wall_close(struct wall *w, struct kp_walllanes *lanes)
{
    free(w->parts);
    free(w->above);
    free(w->places);
    free(w->shown.of);
    free(w->ranges.of);
    kp_keyindex_fini(&w->stacks);
    kp_keyindex_fini(&w->between);
    free(w->gap.of);
    free(w->busy.of);
    kp_frametext_fini(&w->text);
    kp_walllanes_fini(lanes);
}

/* Finds the parts of all nodes, and the threads. */
static void wall_begin(struct wall *w, struct kp_walllanes *lanes)
{
    w->parts = kp_kineto_room(w->tree->count + 1, 1);
    kp_eventpart_find(w->tree, w->parts);
    kp_walllanes_find(lanes, w->tree, w->parts);
    if (lanes->count) main_widen(w->tree->trace->windows, &lanes->of[lanes->main]);
}

void kp_wall_add(struct kp_calltree *paths, const struct kp_tree *tree, const struct kp_wall_options *options,
                 struct kp_wall_told *told)
{
    struct kp_walllanes lanes = {0};
    struct wall w = {.paths = paths, .tree = tree, .options = options, .frames = frames_in(tree)};
    w.above = unknowns(tree->count);
    w.places = unknowns(tree->count);
    *told = (struct kp_wall_told){.has_frames = w.frames != FRAMES_NONE};
    kp_calltree_name_modules(paths, tree->trace);
    wall_begin(&w, &lanes);
    told->is_unfit = !seam_join(&w, &lanes);
    if (lanes.count) {
        const enum use use = options->metric == KP_WALL_CPU ? USE_TIME : USE_PATHS;
        const struct kp_walllane *const main = &lanes.of[lanes.main];
        told->wall_ns = shown_ns(&w, main->from, main->to);
        if (options->seam) options->seam->wall_ns += told->wall_ns;
        if (options->seam) options->seam->rest_ns += main->to - main->from - told->wall_ns;
        if (options->metric == KP_WALL_MEMORY) memory_add(&w, &lanes);
        else told->is_unfit |= !main_sweep(&w, &lanes, use);
        if (options->metric == KP_WALL_GPU || options->threads) others_sweep(&w, &lanes, use, told);
        else if (options->metric == KP_WALL_CPU) others_sweep(&w, &lanes, USE_PATHS, told);
    }
    if (options->metric == KP_WALL_GPU) device_add(&w);
    kp_calltree_name_modules(paths, NULL);
    wall_close(&w, &lanes);
}

void kp_wall_parts_tell(const struct kp_tree *tree, kp_wall_fn tell, void *context)
{
    const struct kp_wall_options options = {.tell = tell, .context = context};
    struct kp_walllanes lanes = {0};
    struct wall w = {.tree = tree, .options = &options, .frames = frames_in(tree)};
    wall_begin(&w, &lanes);
    if (lanes.count) (void)main_sweep(&w, &lanes, USE_TIME);
    w.where = KP_WALL_DEVICE;
    if (tree->has_device) device_add(&w);
    wall_close(&w, &lanes);
}
