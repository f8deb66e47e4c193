// SPDX-License-Identifier: Apache-2.0
/*
 * longsteps.c - groups the steps that last long by their cause: what they have more than the other steps
 *
 * A cause is the part of the step that grew most, and of ops or of gaps without one the place that has most of it. A
 * smaller step joins a larger one's group where that place has a good share of what it has more. Python collects
 * garbage anywhere: steps of which that is half of what they have more are of one cause.
 */
#include "export/answers/advise/stepkinds/longsteps.h"

#include <stdlib.h>

#include "export/read/facts/chance.h"

enum { GAP_LEAST_NS = 50000, GROUPS_MOST = 12 };
#define JOIN_SHARE 0.3
#define CHANCE_MOST 1e-3 /* that a busy machine hits one place so often */
#define PLACE_LEAST 0.02 /* of a step: there are many small places, and one of them is hit */

struct grouping {
    struct kp_longsteps *out;
    const struct kp_costrules *x;
    struct kp_keyindex usual[2]; /* rows: ns, means of the other steps: of ops, of gaps before ops */
    struct kp_keyindex own;      /* of one long step, less the usual */
    double parts[KP_SPLIT_PARTS];
    uint64_t *calls; /* by step: the call of Python that fills most of its gaps; 0: not known */
    size_t others;
};
struct cause {
    enum kp_split_part part;
    bool has_place, is_collecting;
    uint64_t place, call;
};

/* ---- ops of a step, and the gaps before them ---- */

double kp_longsteps_on_core(const struct kp_costrules *x, size_t step, double of_ns)
{
    const double ns = (double)x->splits[step].step_ns;
    return ns > 0 ? of_ns / ns : 0;
}

size_t kp_longsteps_node(const struct kp_tree *tree, int64_t ns)
{
    size_t low = 0, high = tree->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (tree->nodes[middle].start_ns < ns) low = middle + 1;
        else high = middle;
    }
    return low;
}

struct kp_longsteps_walk kp_longsteps_walk_of(const struct kp_costrules *x, size_t step, bool are_gaps)
{
    const struct kp_step *const s = &x->chosen->steps[step];
    struct kp_longsteps_walk w = {
        .x = x, .are_gaps = are_gaps, .end_ns = s->end_ns, .until_ns = s->start_ns, .last = -1};
    w.at = kp_longsteps_node(x->tree, s->start_ns);
    for (size_t k = w.at; w.last < 0 && k-- > 0;)
        if (kp_costrules_is_outer(x, k)) w.last = (int32_t)k;
    if (w.last >= 0 && x->tree->nodes[w.last].end_ns > w.until_ns) w.until_ns = x->tree->nodes[w.last].end_ns;
    return w;
}

bool kp_longsteps_next(struct kp_longsteps_walk *w)
{
    const struct kp_costrules *const x = w->x;
    while (w->at < x->tree->count) {
        const struct kp_node *const op = &x->tree->nodes[w->at];
        const bool is_after = op->start_ns >= w->end_ns;
        if (!kp_costrules_is_outer(x, w->at++)) continue;
        const int64_t from = w->until_ns, end = is_after ? w->end_ns : op->start_ns;
        w->before = w->last;
        w->node = w->last = (int32_t)(op - x->tree->nodes);
        if (op->end_ns > from) w->until_ns = op->end_ns;
        if (is_after) w->at = x->tree->count;
        w->ns = !w->are_gaps ? op->end_ns - op->start_ns
                : end > from ? end - from - kp_spans_between(&x->evaluated, from, end)
                             : 0;
        if (w->are_gaps ? w->ns > GAP_LEAST_NS : !is_after && !kp_spans_has(&x->evaluated, op->start_ns)) return true;
    }
    return false;
}

/* ---- what is usual ---- */

void kp_longsteps_places(struct kp_keyindex *to, const struct kp_costrules *x, size_t step, bool are_gaps,
                         double weight)
{
    for (struct kp_longsteps_walk w = kp_longsteps_walk_of(x, step, are_gaps); kp_longsteps_next(&w);)
        *kp_keyindex_sum(to, kp_costplace_key(x->tree, w.node)) += weight * (double)w.ns;
}

static void usual_find(struct grouping *g)
{
    const size_t steps = g->x->chosen->step_count;
    for (size_t i = 0; i < steps; i++) g->others += !(g->out->more[i] > 0);
    const double weight = g->others ? 1 / (double)g->others : 0;
    for (size_t i = 0; i < steps; i++) {
        if (g->out->more[i] > 0) continue;
        for (int p = 0; p < KP_SPLIT_PARTS; p++) g->parts[p] += weight * (double)g->x->splits[i].part_ns[p];
        for (int k = 0; k < 2; k++) kp_longsteps_places(&g->usual[k], g->x, i, k, weight);
    }
}

/* ---- causes ---- */

static enum kp_split_part part_of(const struct grouping *g, size_t step)
{
    const int64_t *const parts = g->x->splits[step].part_ns;
    int most = 0;
    for (int p = 1; p < KP_SPLIT_PARTS; p++)
        if ((double)parts[p] - g->parts[p] > (double)parts[most] - g->parts[most]) most = p;
    return (enum kp_split_part)most;
}

bool kp_longsteps_is_collecting(const struct kp_costrules *x, size_t step, double more_ns)
{
    return more_ns > 0 && 2 * (double)x->splits[step].cause_ns[KP_IDLE_GC] >= more_ns;
}

static bool is_collecting(const struct grouping *g, size_t step)
{
    return kp_longsteps_is_collecting(g->x, step, g->out->more[step]);
}

static void own_find(struct grouping *g, size_t step, bool are_gaps)
{
    kp_keyindex_fini(&g->own);
    kp_longsteps_places(&g->own, g->x, step, are_gaps, 1);
    double *const ns = g->own.rows;
    for (size_t i = 0; i < g->own.count; i++) ns[i] -= *kp_keyindex_sum(&g->usual[are_gaps], g->own.keys[i]);
}

static struct cause cause_of(struct grouping *g, size_t step)
{
    struct cause c = {.part = part_of(g, step), .is_collecting = is_collecting(g, step)};
    if (c.is_collecting) return c;
    if (c.part == KP_SPLIT_IDLE && g->calls) c.call = g->calls[step];
    if (g->x->out->has_gpu || c.call) return c; /* only of the host's ops and gaps do places tell more than the part */
    if (c.part != KP_SPLIT_COMPUTE && c.part != KP_SPLIT_IDLE) return c;
    own_find(g, step, c.part == KP_SPLIT_IDLE);
    c.has_place = g->own.count;
    if (c.has_place) c.place = g->own.keys[kp_keyindex_most(&g->own)];
    return c;
}

static bool is_of_cause(struct grouping *g, size_t step, const struct cause *c)
{
    if (c->is_collecting || is_collecting(g, step)) return c->is_collecting == is_collecting(g, step);
    if (part_of(g, step) != c->part) return false;
    if (c->part == KP_SPLIT_IDLE && g->calls && c->call != g->calls[step]) return false;
    if (!c->has_place) return true;
    own_find(g, step, c->part == KP_SPLIT_IDLE);
    return *kp_keyindex_sum(&g->own, c->place) >= JOIN_SHARE * g->out->more[step];
}

/* The longest step of no group; SIZE_MAX: none is left. */
static size_t longest_left(const struct kp_longsteps *l, size_t steps)
{
    size_t most = SIZE_MAX;
    for (size_t i = 0; i < steps; i++)
        if (l->more[i] > 0 && !l->group[i] && (most == SIZE_MAX || l->more[i] > l->more[most])) most = i;
    return most;
}

bool kp_longsteps_is_often(const struct kp_longsteps *l, size_t hits, size_t count, double usual_ns)
{
    const double share = usual_ns / l->median_ns;
    return share < 1 && kp_chance_of(hits, count, share > PLACE_LEAST ? share : PLACE_LEAST) < CHANCE_MOST;
}

/*
 * A thread that loses its core does so where it spends its time. So a cause is of the program where the other steps
 * have nothing of it, or where many more of the long steps have it than the place's share of a step makes likely.
 */
static bool is_of_program(struct grouping *g, const struct cause *c, size_t hits, size_t count)
{
    const bool is_idle = c->part == KP_SPLIT_IDLE;
    if (g->x->out->has_gpu || c->is_collecting || (c->part != KP_SPLIT_COMPUTE && !is_idle)) return true;
    if (!c->call && !c->has_place) return false;
    const double usual =
        c->call ? kp_gapplace_usual(g->x, g->out->more, c->call) : *kp_keyindex_sum(&g->usual[is_idle], c->place);
    const bool is_new = c->call ? !(usual > 0) : !(*kp_keyindex_sum(&g->usual[0], c->place) > 0);
    return is_new || kp_longsteps_is_often(g->out, hits, count, usual);
}

static void causes_judge(struct grouping *g, const struct cause *c, size_t group)
{
    struct kp_longsteps *const l = g->out;
    size_t hits = 0, count = 0;
    for (size_t i = 0; i < g->x->chosen->step_count; i++) {
        count += l->more[i] > 0;
        hits += l->group[i] == group;
    }
    const bool is_found = is_of_program(g, c, hits, count);
    for (size_t i = 0; i < g->x->chosen->step_count; i++)
        if (l->group[i] == group) l->has_cause[i] = is_found;
}

static void groups_make(struct grouping *g)
{
    struct kp_longsteps *const l = g->out;
    const size_t steps = g->x->chosen->step_count;
    for (size_t i = 0; i < steps; i++) l->is_gap[i] = l->more[i] > 0 && part_of(g, i) == KP_SPLIT_IDLE;
    for (size_t first; (first = longest_left(l, steps)) != SIZE_MAX;) {
        const bool is_rest = ++l->groups == GROUPS_MOST;
        const struct cause c = is_rest ? (struct cause){0} : cause_of(g, first);
        l->group[first] = l->groups;
        for (size_t i = 0; i < steps; i++)
            if (l->more[i] > 0 && !l->group[i] && (is_rest || is_of_cause(g, i, &c))) l->group[i] = l->groups;
        if (!is_rest) causes_judge(g, &c, l->groups);
    }
}

void kp_longsteps_find(struct kp_longsteps *out, const struct kp_costrules *x, const double *more, double median_ns)
{
    const size_t steps = x->chosen->step_count;
    size_t count = 0;
    struct grouping g = {.out = out, .x = x};
    *out = (struct kp_longsteps){.more = more, .median_ns = median_ns};
    out->group = kp_kineto_zeros(steps + 1, sizeof *out->group);
    out->is_slower = kp_kineto_zeros(steps + 1, sizeof(bool));
    out->has_cause = kp_kineto_zeros(steps + 1, sizeof(bool));
    out->is_gap = kp_kineto_zeros(steps + 1, sizeof(bool));
    for (size_t i = 0; i < steps; i++) count += more[i] > 0;
    if (count && !x->out->has_gpu) {
        g.calls = kp_kineto_room(steps + 1, sizeof *g.calls);
        kp_gapplace_steps(x, more, g.calls);
    }
    if (count) {
        usual_find(&g);
        groups_make(&g);
    }
    kp_keyindex_fini(&g.usual[0]);
    kp_keyindex_fini(&g.usual[1]);
    kp_keyindex_fini(&g.own);
    free(g.calls);
}

void kp_longsteps_fini(struct kp_longsteps *l)
{
    free(l->group);
    free(l->is_slower);
    free(l->has_cause);
    free(l->is_gap);
    free(l->shared);
    free(l->shared_with);
}
