// SPDX-License-Identifier: Apache-2.0
/*
 * idlecause.c - divides idle time by its cause
 *
 * A gap ends where the next work begins. Its part before the call that launched that work belongs to the host's work at
 * that time. While the call runs it is launching. The rest, once the call has returned, is launching as well, if it is
 * short; else the work is late for a reason that is not the host's. Gaps after a wait of the host count as its cost, up
 * to the length of the wait. A call that frees memory of a device waits, too: its gaps are the allocator's.
 *
 * A wait empties the queue, so launches behind it find an idle GPU. A step that did not wait would last as long as the
 * host's own work, or as the GPU's: the cost of waits by that, less the gaps behind them, is taken from launching.
 */
#include "export/answers/advise/parts/adviseparts.h"
#include "export/read/facts/hostwaits.h"

#include <stdlib.h>

#include "collector/base/kp_order.h"

/* Python for less than this between two ops is part of calling them: eager torch cannot do without. */
enum { PYTHON_LEAST_NS = 50000 };
/* A shorter call did not wait. */
enum { WAIT_LEAST_NS = 20000 };
/* From the return of a call to the start of its work where nothing is in the way. */
enum { LATENCY_MOST_NS = 10000 };
/* An op of the host that lasts longer has a gap's time itself, and not the work behind it. */
enum { LONG_OP_NS = 100000, LONG_OPS_LOOKED_AT = 64 };
enum host_set { SET_GC, SET_COMPILE, SET_ALLOC, SET_OP, SETS };
static const enum kp_idle_cause cause_of_set[SETS] = {KP_IDLE_GC, KP_IDLE_COMPILE, KP_IDLE_ALLOC, KP_IDLE_LAUNCH};

struct host_wait {
    int64_t start_ns, end_ns;
    int32_t node, before; /* before: the op before a wait that is in none; -1 */
    bool is_alloc;
};
struct launched { /* work of a device, or an op where there is none */
    int64_t start_ns;
    int32_t node, call, before;
};
struct late_work { /* of a GPU on which nothing ran for a while, though it was launched */
    int64_t gap_ns;
    const char *name;
};
struct launch_gap { /* a part of a gap in which the host launches */
    int64_t start_ns, end_ns;
    struct launched next; /* call -1: not known */
};
struct finding_idle {
    struct kp_idle *out;
    const struct kp_tree *tree;
    struct kp_hostwaits hostwaits;
    struct kp_spans sets[SETS];
    struct host_wait *waits, *long_ops; /* long_ops: by start */
    struct launched *works;             /* by start */
    struct late_work *late;
    struct kp_spans waiting;  /* all times in which the host waits for a GPU, short ones, too */
    struct host_wait *pauses; /* these, by start */
    struct launch_gap *gaps;  /* by start */
    size_t gap_count, gap_capacity, pause_count, pause_capacity, late_count, late_capacity;
    size_t wait_count, wait_capacity, work_count, work_capacity, op_count, op_capacity;
    const struct host_wait *wait; /* the last before the gap */
    int32_t op;                   /* the last of the host's */
    int64_t wait_left_ns;
    size_t next_wait;
    bool has_gpu;
};

static bool has(const char *name, const char *part) { return strstr(name, part) != NULL; }

static bool is_alloc(const char *name)
{
    static const char *const calls[] = {"cudaMalloc",  "cudaFree",  "cudaHostAlloc", "cudaHostRegister",
                                        "cuMemAlloc",  "cuMemFree", "cuMemMap",      "cuMemUnmap",
                                        "cuMemCreate", "hipMalloc", "hipFree",       "hipHost"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strncmp(name, calls[i], strlen(calls[i])) == 0) return !has(name, "Async");
    return false;
}

static bool is_op(const struct kp_tree *tree, size_t i)
{
    const struct kp_kineto_event *e = kp_tree_event(tree, i);
    return e->kind == KP_KINETO_OP && !tree->nodes[i].is_async && !kp_node_is(tree, i, KP_NAME_RANGE);
}

static void call_take(struct finding_idle *f, const struct kp_node *node, int32_t i, const char *name)
{
    const bool is_long = node->end_ns - node->start_ns >= WAIT_LEAST_NS;
    const bool is_free = is_alloc(name) && has(name, "Free");
    const bool is_wait = kp_hostwaits_is(&f->hostwaits, (size_t)i);
    struct host_wait wait = {node->start_ns, node->end_ns, i, kp_costplace_op(f->tree, i) == i ? f->op : -1, false};
    if (is_wait) {
        kp_spans_add(&f->waiting, node->start_ns, node->end_ns);
        *KP_KINETO_NEXT(f->pauses, f->pause_count, f->pause_capacity) = wait;
    }
    wait.is_alloc = is_free;
    if (is_long && (is_free || is_wait || kp_name_begins(name, "cudaMemcpy") || kp_name_begins(name, "hipMemcpy")))
        *KP_KINETO_NEXT(f->waits, f->wait_count, f->wait_capacity) = wait;
}

static void work_add(struct finding_idle *f, int32_t i, int32_t call, int32_t before)
{
    *KP_KINETO_NEXT(f->works, f->work_count, f->work_capacity) =
        (struct launched){f->tree->nodes[i].start_ns, i, call, before};
}

static void op_take(struct finding_idle *f, const struct kp_node *node, int32_t i)
{
    if (node->end_ns - node->start_ns < LONG_OP_NS || kp_costplace_op(f->tree, i) != i) return;
    *KP_KINETO_NEXT(f->long_ops, f->op_count, f->op_capacity) =
        (struct host_wait){node->start_ns, node->end_ns, i, -1, false};
}

static void host_take(struct finding_idle *f, int32_t i)
{
    const struct kp_node *node = &f->tree->nodes[i];
    const struct kp_kineto_event *e = kp_tree_event(f->tree, (size_t)i);
    const char *name = kp_kineto_text(f->tree->trace, e->name);
    const uint32_t is = kp_namefacts(f->tree->trace, e->name);
    enum host_set set = SETS;
    if (node->on_device || node->is_async) return;
    if (e->kind == KP_KINETO_PYTHON) set = is & KP_NAME_COLLECTS ? SET_GC : SETS;
    else if (e->kind == KP_KINETO_RUNTIME)
        set = is_alloc(name) ? SET_ALLOC : kp_hostwaits_is(&f->hostwaits, (size_t)i) ? SETS : SET_OP;
    else if (is_op(f->tree, (size_t)i)) set = SET_OP, f->op = i, op_take(f, node, i);
    if (set != SETS) kp_spans_add(&f->sets[set], node->start_ns, node->end_ns);
    if (e->kind == KP_KINETO_RUNTIME) call_take(f, node, i, name);
}

static void compile_take(void *context, int32_t node, int64_t start_ns, int64_t end_ns)
{
    struct finding_idle *f = context;
    (void)node;
    kp_spans_add(&f->sets[SET_COMPILE], start_ns, end_ns);
}

/* Lists the works by start, each with the call that launched it and the op before that. */
static void works_list(struct finding_idle *f)
{
    const struct kp_tree *tree = f->tree;
    int32_t op = -1, *before = kp_kineto_room(tree->count + 1, sizeof *before);
    for (size_t i = 0; i < tree->count; i++) {
        before[i] = op;
        if (!is_op(tree, i)) continue;
        if (!f->has_gpu) work_add(f, (int32_t)i, (int32_t)i, op);
        op = (int32_t)i;
    }
    for (size_t i = 0; f->has_gpu && i < tree->count; i++) {
        const struct kp_kineto_event *e = kp_tree_event(tree, i);
        if (e->kind != KP_KINETO_GPU) continue;
        const int32_t call = tree->nodes[i].call;
        work_add(f, (int32_t)i, call, call < 0 ? -1 : before[kp_costplace_op(tree, call)]);
    }
    free(before);
}

/* ---- gaps ---- */

static void part_charge(struct finding_idle *f, enum kp_idle_cause cause, int64_t from, int64_t to,
                        const struct launched *next)
{
    if (from >= to) return;
    kp_spans_add(&f->out->of[cause], from, to);
    if (next) kp_costplaces_add(&f->out->places[cause], f->tree, next->call, next->before, to - from);
}

/* Launching is charged when the waits around it are known (waits_charge). */
static void part_add(struct finding_idle *f, enum kp_idle_cause cause, int64_t from, int64_t to,
                     const struct launched *next)
{
    static const struct launched unknown = {.call = -1, .before = -1};
    if (cause != KP_IDLE_LAUNCH) part_charge(f, cause, from, to, next);
    else if (from < to)
        *KP_KINETO_NEXT(f->gaps, f->gap_count, f->gap_capacity) = (struct launch_gap){from, to, next ? *next : unknown};
}

/* Finds the last wait before a gap. The rest may be charged. */
static void wait_take(struct finding_idle *f, int64_t ns)
{
    for (; f->next_wait < f->wait_count && f->waits[f->next_wait].start_ns < ns; f->next_wait++) {
        f->wait = &f->waits[f->next_wait];
        f->wait_left_ns = f->wait->end_ns - f->wait->start_ns;
    }
}

/* The outermost op that runs in the middle of a long part of a gap; -1: none does. */
static int32_t long_op_at(const struct finding_idle *f, int64_t from, int64_t to)
{
    const int64_t middle = from + (to - from) / 2;
    if (to - from < LONG_OP_NS) return -1;
    const size_t at = kp_rows_from(f->long_ops, f->op_count, sizeof *f->long_ops, middle + 1);
    for (size_t back = 1; back <= at && back <= LONG_OPS_LOOKED_AT; back++)
        if (f->long_ops[at - back].end_ns > middle) return f->long_ops[at - back].node;
    return -1;
}

/* Divides the time before a launch by what the host did, a set after the other. */
static void host_divide(struct finding_idle *f, int64_t from, int64_t to, const struct launched *next)
{
    while (from < to) {
        int64_t until = to;
        int found = SETS;
        for (int s = 0; s < SETS && found == SETS; s++) {
            const struct kp_spans *set = &f->sets[s];
            size_t at = kp_rows_from(set->of, set->count, sizeof *set->of, from + 1);
            if (at && set->of[at - 1].end_ns > from) {
                found = s;
                if (set->of[at - 1].end_ns < until) until = set->of[at - 1].end_ns;
            } else if (at < set->count && set->of[at].start_ns < until) {
                until = set->of[at].start_ns;
            }
        }
        const bool is_long = !f->has_gpu || until - from >= PYTHON_LEAST_NS;
        const struct launched itself = {.call = found == SET_OP ? long_op_at(f, from, until) : -1, .before = -1};
        part_add(f,
                 found < SETS ? cause_of_set[found]
                 : is_long    ? KP_IDLE_PYTHON
                              : KP_IDLE_LAUNCH,
                 from, until, itself.call < 0 ? next : &itself);
        from = until;
    }
}

/* Processes that share a GPU have it in turns of a few milliseconds (2.4 on an H200), as regular as a clock, and
 * before any work. A program's own wait comes before the same work each time. */
enum { TURN_LEAST_NS = 1000000, TURNS_LEAST = 4, TURN_WORKS_LEAST = 3 };
static const double turn_spread = 0.015, turns_share = 0.4;

/* The part of a gap of so many ns from the launch's call on. */
static void launch_divide(struct finding_idle *f, int64_t gap_ns, int64_t from, int64_t to, const struct launched *next)
{
    const int64_t end = f->tree->nodes[next->call].end_ns;
    const int64_t returned = end < from ? from : end < to ? end : to;
    part_add(f, KP_IDLE_LAUNCH, from, returned, next);
    const bool is_late = to - end > LATENCY_MOST_NS;
    part_add(f, is_late ? KP_IDLE_DEPENDENCY : KP_IDLE_LAUNCH, returned, to, next);
    if (is_late && to - returned >= TURN_LEAST_NS)
        *KP_KINETO_NEXT(f->late, f->late_count, f->late_capacity) = (struct late_work){
            gap_ns, kp_kineto_text(f->tree->trace, kp_tree_event(f->tree, (size_t)next->node)->name)};
}

static void gap_divide(struct finding_idle *f, int64_t from, int64_t to)
{
    const size_t at = kp_rows_from(f->works, f->work_count, sizeof *f->works, to);
    const struct launched *next = at < f->work_count ? &f->works[at] : NULL;
    const bool is_launched = next && next->call >= 0 && next->call != next->node;
    const int64_t launch = is_launched ? f->tree->nodes[next->call].start_ns : to;
    if (launch < from) {
        launch_divide(f, to - from, from, to, next);
        return;
    }
    const int64_t called = launch < to ? launch : to, gap_ns = to - from;
    wait_take(f, from);
    if (f->wait_left_ns > 0) {
        const int64_t until = called - from < f->wait_left_ns ? called : from + f->wait_left_ns;
        const struct launched waited = {.call = f->wait->node, .before = f->wait->before};
        part_add(f, f->wait->is_alloc ? KP_IDLE_ALLOC : KP_IDLE_SYNC, from, until, &waited);
        f->wait_left_ns -= until - from;
        from = until;
    }
    host_divide(f, from, called, next);
    if (called < to) launch_divide(f, gap_ns, called, to, next);
}

static void gaps_divide(struct finding_idle *f, const struct kp_chosen *chosen, const struct kp_spans *worked)
{
    for (size_t i = 0; i < chosen->in_steps.count; i++) {
        const int64_t end = chosen->in_steps.of[i].end_ns;
        int64_t from = chosen->in_steps.of[i].start_ns;
        size_t at = kp_rows_from(worked->of, worked->count, sizeof *worked->of, from + 1);
        if (at && worked->of[at - 1].end_ns > from) from = worked->of[at - 1].end_ns;
        for (; from < end; at++) {
            const bool is_last = at >= worked->count || worked->of[at].start_ns >= end;
            gap_divide(f, from, is_last ? end : worked->of[at].start_ns);
            if (is_last) break;
            from = worked->of[at].end_ns;
        }
    }
}

/* ---- launching behind waits ---- */

#define WAITS_LEAST 0.10 /* of a step: less is the price of the calls, where the host is slower than its GPU anyway */

/* How much more than it has the waits of a step cost: without them it would last as long as its longer side alone. */
static int64_t waits_left(const struct finding_idle *f, const struct kp_step *step, const struct kp_spans *worked)
{
    const int64_t from = step->start_ns, to = step->end_ns;
    const int64_t waits = kp_spans_between(&f->waiting, from, to);
    const int64_t idle = to - from - kp_spans_between(worked, from, to);
    const int64_t cost = waits < idle ? waits : idle;
    const int64_t left = cost - kp_spans_between(&f->out->of[KP_IDLE_SYNC], from, to);
    return left > 0 && (double)cost >= WAITS_LEAST * (double)(to - from) ? left : 0;
}

/* The begin of a gap is the wait's, up to what it costs. Returns how long that is. */
static int64_t gap_charge(struct finding_idle *f, const struct launch_gap *gap, int64_t left_ns)
{
    const size_t before = kp_rows_from(f->pauses, f->pause_count, sizeof *f->pauses, gap->start_ns);
    const int64_t ns = gap->end_ns - gap->start_ns, of_wait = !before ? 0 : ns < left_ns ? ns : left_ns;
    if (of_wait) {
        const struct host_wait *const pause = &f->pauses[before - 1];
        const struct launched waited = {.call = pause->node, .before = pause->before};
        part_charge(f, KP_IDLE_SYNC, gap->start_ns, gap->start_ns + of_wait, &waited);
    }
    part_charge(f, KP_IDLE_LAUNCH, gap->start_ns + of_wait, gap->end_ns, gap->next.call < 0 ? NULL : &gap->next);
    return of_wait;
}

static void waits_charge(struct finding_idle *f, const struct kp_chosen *chosen, const struct kp_spans *worked)
{
    size_t step = chosen->step_count;
    int64_t left = 0;
    kp_spans_settle(&f->waiting);
    kp_spans_settle(&f->out->of[KP_IDLE_SYNC]);
    int64_t *const of_steps = kp_kineto_room(chosen->step_count + 1, sizeof *of_steps);
    for (size_t i = 0; i < chosen->step_count; i++) of_steps[i] = waits_left(f, &chosen->steps[i], worked);
    for (size_t i = 0; i < f->gap_count; i++) {
        const size_t at = kp_step_at(chosen->steps, chosen->step_count, f->gaps[i].start_ns);
        if (at != step) left = at < chosen->step_count ? of_steps[at] : 0;
        step = at;
        left -= gap_charge(f, &f->gaps[i], left);
    }
    free(of_steps);
}

/* ---- turns of another process ---- */

KP_ORDER(late_order, struct late_work, gap_ns)

static size_t names_count(const struct late_work *late, size_t count)
{
    size_t names = 0;
    for (size_t i = 0; i < count && names < TURN_WORKS_LEAST; i++) {
        size_t before = 0;
        while (before < i && strcmp(late[before].name, late[i].name) != 0) before++;
        names += before == i;
    }
    return names;
}

/* The most gaps of one length, if they are another process's turns. */
static struct kp_turns turns_find(struct finding_idle *f)
{
    struct late_work *const late = f->late;
    size_t first = 0, most = 0;
    if (f->late_count) qsort(late, f->late_count, sizeof *late, late_order);
    for (size_t i = 0, end = 0; i < f->late_count; i++) {
        while (end < f->late_count && (double)late[end].gap_ns <= (double)late[i].gap_ns * (1 + 2 * turn_spread)) end++;
        if (end - i > most) most = end - i, first = i;
    }
    if (most < TURNS_LEAST || (double)most < turns_share * (double)f->late_count ||
        names_count(late + first, most) < TURN_WORKS_LEAST)
        return (struct kp_turns){0};
    return (struct kp_turns){most, late[first + most / 2].gap_ns};
}

/* How long a GPU works on after a time, on what was launched before. */
static int64_t backlog_at(const struct finding_idle *f, int64_t ns)
{
    int64_t most = 0;
    for (size_t i = 0; f->has_gpu && i < f->work_count; i++) {
        const struct launched *w = &f->works[i];
        if (w->call < 0 || f->tree->nodes[w->call].start_ns >= ns) continue;
        if (f->tree->nodes[w->node].end_ns - ns > most) most = f->tree->nodes[w->node].end_ns - ns;
    }
    return most;
}

void kp_idle_find(struct kp_idle *out, const struct kp_tree *tree, const struct kp_chosen *chosen,
                  const struct kp_spans *worked, bool has_gpu)
{
    struct finding_idle f = {.out = out, .tree = tree, .op = -1, .has_gpu = has_gpu};
    *out = (struct kp_idle){0};
    kp_hostwaits_find(&f.hostwaits, tree);
    for (int32_t i = 0; i < (int32_t)tree->count; i++) host_take(&f, i);
    kp_compiles_each(tree, compile_take, &f);
    for (int s = 0; s < SETS; s++) kp_spans_settle(&f.sets[s]);
    works_list(&f);
    gaps_divide(&f, chosen, worked);
    waits_charge(&f, chosen, worked);
    out->turns = turns_find(&f);
    if (chosen->step_count)
        out->backlog_ns =
            backlog_at(&f, chosen->steps[chosen->step_count - 1].end_ns) - backlog_at(&f, chosen->steps[0].start_ns);
    for (int c = 0; c < KP_IDLE_CAUSES; c++) kp_spans_settle(&out->of[c]);
    for (int s = 0; s < SETS; s++) kp_spans_fini(&f.sets[s]);
    kp_spans_fini(&f.waiting);
    kp_hostwaits_fini(&f.hostwaits);
    free(f.pauses);
    free(f.gaps);
    free(f.late);
    free(f.long_ops);
    free(f.waits);
    free(f.works);
}

void kp_idle_fini(struct kp_idle *idle)
{
    for (int c = 0; c < KP_IDLE_CAUSES; c++) {
        kp_spans_fini(&idle->of[c]);
        kp_costplaces_fini(&idle->places[c]);
    }
}
