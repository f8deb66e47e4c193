// SPDX-License-Identifier: Apache-2.0
/*
 * evalsteps.c - steps of a training in which the model is evaluated, too: these are longer, and not slow
 *
 * torch numbers a forward op only where gradients are on. So an op that has a number in the other steps, and in one
 * step runs K times as often without, is an evaluation of K passes. With Python's calls recorded, a call of a whole
 * module is a pass, and it has a backward where some op in it has one; that tells compiled models, too. What most steps
 * have without gradients, as a teacher, is a part of the training.
 *
 * An evaluation lasts from the op before it, but for its data loading, to its last op.
 */
#include "export/advise/longsteps.h"
#include "collector/base/kp_order.h"
#include "export/report/framename.h"

#include <stdio.h>
#include <stdlib.h>

enum { PASSES_LEAST = 2, NAMES_MOST = 8 };
#define LOADING_SHARE 0.1 /* of an evaluation, before it is told */
#define NAMES_SHARE 0.5   /* of the time of the ops that are looked at: those that run more often without gradients */

struct passes {
    size_t with, without;
};
struct forward_name {
    uint32_t name;
    int64_t ns;      /* in all, with gradients */
    double a_step;   /* calls with gradients, the median of the steps */
    double usual;    /* calls without, the median */
    uint32_t *calls; /* by step, without */
};
struct forward_names {
    struct forward_name of[NAMES_MOST]; /* the longest first */
    size_t count;
};

/* ---- passes by ops: those with gradients in the other steps, and without in this one ---- */

static bool has_gradients(const struct kp_kineto_event *e) { return e->flags & KP_KINETO_HAS_SEQ && e->number >= 0; }

static bool is_forward(const struct kp_kineto_event *e) { return has_gradients(e) && !e->fwd_tid; }

KP_ORDER_DOWN(longest_first, struct forward_name, ns)

/* The names of forward ops that take most time, outside of loading. */
static void names_find(struct forward_names *out, const struct kp_costrules *x)
{
    struct kp_keyindex keys = {0};
    struct forward_name *all = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_kineto_event *e = kp_tree_event(x->tree, i);
        if (!kp_costrules_is_op(x, i) || !is_forward(e) || !kp_spans_has(&x->chosen->in_steps, e->start_ns)) continue;
        if (x->loaders[i] >= 0) continue;
        const size_t had = keys.count, at = kp_keyindex_get(&keys, e->name);
        if (at == had) {
            all = kp_kineto_grow(all, &capacity, had + 1, sizeof *all);
            all[at] = (struct forward_name){.name = e->name};
        }
        all[at].ns += x->tree->nodes[i].end_ns - x->tree->nodes[i].start_ns;
    }
    if (keys.count) qsort(all, keys.count, sizeof *all, longest_first);
    out->count = keys.count < NAMES_MOST ? keys.count : NAMES_MOST;
    if (out->count) memcpy(out->of, all, out->count * sizeof *all);
    kp_keyindex_fini(&keys);
    free(all);
}

static struct forward_name *name_of(struct forward_names *names, uint32_t name)
{
    for (size_t i = 0; i < names->count; i++)
        if (names->of[i].name == name) return &names->of[i];
    return NULL;
}

static double median_of(const uint32_t *calls, size_t steps)
{
    double *values = kp_kineto_room(steps + 1, sizeof *values);
    for (size_t i = 0; i < steps; i++) values[i] = calls[i];
    const double median = kp_quantile(values, steps, 0.5);
    free(values);
    return median;
}

/* Counts the calls of each of the names by step, with gradients and without. */
static void calls_count(struct forward_names *names, const struct kp_costrules *x)
{
    const struct kp_chosen *c = x->chosen;
    uint32_t *with[NAMES_MOST];
    for (size_t n = 0; n < names->count; n++) {
        with[n] = kp_kineto_room(c->step_count + 1, sizeof **with);
        names->of[n].calls = kp_kineto_room(c->step_count + 1, sizeof **with);
        memset(with[n], 0, (c->step_count + 1) * sizeof **with);
        memset(names->of[n].calls, 0, (c->step_count + 1) * sizeof **with);
    }
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_kineto_event *e = kp_tree_event(x->tree, i);
        struct forward_name *f = kp_costrules_is_op(x, i) ? name_of(names, e->name) : NULL;
        const size_t step = f ? kp_step_at(c->steps, c->step_count, x->tree->nodes[i].start_ns) : c->step_count;
        if (step == c->step_count || x->loaders[i] >= 0) continue;
        ++*(has_gradients(e) ? &with[f - names->of][step] : &f->calls[step]);
    }
    for (size_t n = 0; n < names->count; n++) {
        names->of[n].a_step = median_of(with[n], c->step_count);
        names->of[n].usual = median_of(names->of[n].calls, c->step_count);
        free(with[n]);
    }
}

/* How many passes of this name a step has without gradients, beyond the usual. */
static double name_passes(const struct forward_name *f, size_t step)
{
    return f->a_step > 0 ? ((double)f->calls[step] - f->usual) / f->a_step : 0;
}

/* Passes of a step by its ops: as names say that have most time, where at least half of all the time has some. */
static size_t step_passes(const struct forward_names *names, size_t step)
{
    int64_t all = 0, have = 0, most = 0, ns[NAMES_MOST] = {0};
    size_t of[NAMES_MOST] = {0}, passes = 0;
    for (size_t n = 0; n < names->count; n++) {
        if (names->of[n].a_step > 0) all += names->of[n].ns;
        const double of_name = name_passes(&names->of[n], step);
        if (of_name < 1) continue;
        have += names->of[n].ns;
        of[n] = (size_t)(of_name + 0.5);
        for (size_t k = 0; k <= n; k++)
            if (of[k] == of[n]) ns[k] += names->of[n].ns;
    }
    for (size_t n = 0; n < names->count; n++) {
        if (!of[n] || ns[n] <= most) continue;
        most = ns[n];
        passes = of[n];
    }
    return all && (double)have >= NAMES_SHARE * (double)all ? passes : 0;
}

static void passes_by_ops(struct passes *of, struct forward_names *names, const struct kp_costrules *x)
{
    names_find(names, x);
    calls_count(names, x);
    for (size_t i = 0; i < x->chosen->step_count; i++) {
        of[i].without = step_passes(names, i);
        of[i].with = names->count > 0 && names->of[0].a_step > 0;
    }
}

/* ---- passes by modules, with Python's calls ---- */

static bool is_module(const struct kp_costrules *x, int32_t node)
{
    return x->tree->nodes[node].is_python && kp_framename_module(kp_costrules_name(x, node));
}

/* The outermost module around a node, or itself; -1: none. */
static int32_t root_of(const struct kp_costrules *x, int32_t node)
{
    int32_t root = -1;
    for (; node >= 0; node = x->tree->nodes[node].parent)
        if (is_module(x, node)) root = node;
    return root;
}

/* Marks the calls of whole modules of which some op has a backward. */
static bool *backwards_mark(const struct kp_costrules *x)
{
    bool *has = kp_kineto_room(x->tree->count + 1, sizeof *has);
    memset(has, 0, x->tree->count + 1);
    for (size_t i = 0; i < x->tree->count; i++) {
        const int32_t forward = x->tree->nodes[i].forward;
        const int32_t root = forward >= 0 ? root_of(x, forward) : -1;
        if (root >= 0) has[root] = true;
    }
    return has;
}

/* The name of the model: of the longest call that has a backward. A loss is a module, too. */
static uint32_t model_find(const struct kp_costrules *x, const bool *has)
{
    int64_t longest = -1;
    uint32_t model = 0;
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *node = &x->tree->nodes[i];
        if (!has[i] || node->end_ns - node->start_ns <= longest) continue;
        longest = node->end_ns - node->start_ns;
        model = node->name;
    }
    return model;
}

static void passes_by_modules(struct passes *of, struct kp_spans *times, const struct kp_costrules *x)
{
    const struct kp_chosen *c = x->chosen;
    bool *has = backwards_mark(x);
    const uint32_t model = model_find(x, has);
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *node = &x->tree->nodes[i];
        if (node->name != model || !is_module(x, (int32_t)i) || root_of(x, (int32_t)i) != (int32_t)i) continue;
        const size_t step = kp_step_at(c->steps, c->step_count, node->start_ns);
        if (step == c->step_count) continue;
        of[step].with += has[i];
        of[step].without += !has[i];
        if (!has[i]) kp_spans_add(times, node->start_ns, node->end_ns);
    }
    free(has);
}

/* ---- how long an evaluation lasts ---- */

enum { ASKED_MOST = 4 };

struct eval_walk {
    const struct kp_costrules *x;
    struct forward_names *names;
    struct kp_spans *times;
    int64_t before_ns, start_ns, end_ns; /* the last op outside; the evaluation under way, start -1: none */
    /* A training asks its loader so often a step; of this one not yet; since the last op outside of an evaluation. */
    size_t usual_asks, asks_left, pending_asks;
    int64_t asked_ns[ASKED_MOST]; /* ends of the calls behind the last op of the evaluation */
    size_t asked;
};

static bool is_asking(const struct kp_costrules *x, size_t i)
{
    const int32_t parent = x->tree->nodes[i].parent;
    return x->loaders[i] == (int32_t)i && (parent < 0 || x->loaders[parent] < 0);
}

/* How often a step without an evaluation asks a loader, the median. */
static size_t usual_asks(const struct kp_costrules *x, const struct passes *of)
{
    const struct kp_chosen *c = x->chosen;
    size_t count = 0;
    double *asks = kp_kineto_room(c->step_count + 1, sizeof *asks);
    memset(asks, 0, (c->step_count + 1) * sizeof *asks);
    for (size_t i = 0; i < x->tree->count; i++)
        if (is_asking(x, i)) asks[kp_step_at(c->steps, c->step_count, x->tree->nodes[i].start_ns)]++;
    for (size_t i = 0; i < c->step_count; i++)
        if (!of[i].without) asks[count++] = asks[i];
    const double usual = kp_quantile(asks, count, 0.5);
    free(asks);
    return (size_t)(usual + 0.5);
}

/* What asks more often than the training does is the end of the evaluation's loader, which ends its workers. */
static void eval_end(struct eval_walk *w)
{
    if (w->start_ns >= 0 && w->asked > w->asks_left) w->end_ns = w->asked_ns[w->asked - w->asks_left - 1];
    if (w->start_ns >= 0) kp_spans_add(w->times, w->start_ns, w->end_ns);
    w->asks_left -= w->asked < w->asks_left ? w->asked : w->asks_left;
    w->asked = 0;
    w->start_ns = -1;
}

static void loader_take(struct eval_walk *w, const struct kp_node *node)
{
    if (w->start_ns < 0) w->pending_asks++;
    else if (w->asked < ASKED_MOST) w->asked_ns[w->asked++] = node->end_ns;
}

/* An op that is in no evaluation: what asked the loader before it did so for the training. */
static void outside_take(struct eval_walk *w, const struct kp_node *node)
{
    w->asks_left -= w->pending_asks < w->asks_left ? w->pending_asks : w->asks_left;
    w->pending_asks = 0;
    if (node->end_ns > w->before_ns) w->before_ns = node->end_ns;
}

/* Adds, of one step, the times from the op before a forward op without gradients to the last before one with. */
static void eval_measure(struct eval_walk *w, const struct kp_step *step)
{
    const struct kp_tree *tree = w->x->tree;
    w->before_ns = step->start_ns;
    w->start_ns = -1;
    w->asks_left = w->usual_asks;
    w->pending_asks = w->asked = 0;
    for (size_t i = kp_longsteps_node(tree, step->start_ns); i < tree->count; i++) {
        const struct kp_node *node = &tree->nodes[i];
        if (node->start_ns >= step->end_ns) break;
        const struct kp_kineto_event *e = kp_tree_event(tree, i);
        if (is_asking(w->x, i)) loader_take(w, node);
        if (!kp_costrules_is_op(w->x, i) || w->x->loaders[i] >= 0) continue;
        const bool is_known = name_of(w->names, e->name) != NULL;
        if (is_known && has_gradients(e)) eval_end(w);
        if (is_known && !has_gradients(e)) {
            if (w->start_ns < 0) w->start_ns = w->before_ns < node->start_ns ? w->before_ns : node->start_ns;
            w->end_ns = node->end_ns;
            w->asked = w->pending_asks = 0;
        }
        if (w->start_ns < 0) outside_take(w, node);
    }
    eval_end(w);
}

/* ---- the note ---- */

/* "step 10 holds 12", "steps 10, 20 and 3 more hold 12 to 14": which, and how many passes. */
static const char *steps_text(const struct kp_costrules *x, const struct passes *of, size_t passes_least)
{
    size_t found = 0, least = SIZE_MAX, most = 0;
    size_t *at = kp_kineto_room(x->chosen->step_count + 1, sizeof *at);
    for (size_t i = 0; i < x->chosen->step_count; i++) {
        if (of[i].without < passes_least) continue;
        if (of[i].without < least) least = of[i].without;
        if (of[i].without > most) most = of[i].without;
        at[found++] = i;
    }
    const char *numbers = kp_costrules_numbers(x, at, found);
    const char *to = most > least ? kp_costrules_text(x, " to %zu", most) : "";
    free(at);
    return kp_costrules_text(x, "%s hold%s %zu%s forward pass%s", numbers, found == 1 ? "s" : "", least, to,
                             most == 1 ? "" : "es");
}

/* What of these times is loading. */
static int64_t loading_of(const struct kp_costrules *x, const struct kp_spans *times)
{
    struct kp_spans loading = {0};
    for (size_t i = 0; i < x->tree->count; i++)
        if (is_asking(x, i)) kp_spans_add(&loading, x->tree->nodes[i].start_ns, x->tree->nodes[i].end_ns);
    kp_spans_settle(&loading);
    kp_spans_cut(&loading, times);
    const int64_t ns = kp_spans_length(&loading, &x->chosen->in_steps);
    kp_spans_fini(&loading);
    return ns;
}

/* Where most steps train alone, those with passes without backward are told, with what they take; else forgotten. */
static bool evaluated_tell(const struct kp_costrules *x, const struct passes *of, size_t least, struct kp_spans *times)
{
    const size_t steps = x->chosen->step_count;
    size_t found = 0, trains = 0;
    int64_t ns = 0;
    kp_spans_settle(times);
    for (size_t i = 0; i < steps; i++) {
        const bool is_found = of[i].without >= least;
        found += is_found;
        trains += of[i].with && !of[i].without;
        if (is_found) ns += kp_spans_between(times, x->chosen->steps[i].start_ns, x->chosen->steps[i].end_ns);
    }
    if (!found || trains <= 2 * found || trains + found <= steps * 9 / 10) {
        kp_spans_fini(times);
        return false;
    }
    const int64_t loads = loading_of(x, times);
    const char *loading = loads < LOADING_SHARE * (double)ns
                              ? ""
                              : kp_costrules_text(x, ", %.1f ms of it loading", (double)loads / 1e6 / (double)found);
    x->out->evaluated = kp_costrules_text(
        x,
        "%s without backward, %.1f ms a step of these%s: an evaluation inside of the training, and no slow step of it; "
        "to time it: kprof run --phases (Lightning, transformers, ranges of yours), or kprof report --within with a "
        "range",
        steps_text(x, of, least), (double)ns / 1e6 / (double)found, loading);
    return true;
}

void kp_evalsteps_tell(const struct kp_costrules *x, struct kp_spans *times)
{
    const size_t steps = x->chosen->step_count;
    struct forward_names names = {0};
    struct passes *of = kp_kineto_room(steps + 1, sizeof *of);
    memset(of, 0, (steps + 1) * sizeof *of);
    passes_by_ops(of, &names, x);
    struct eval_walk w = {.x = x, .names = &names, .times = times, .usual_asks = usual_asks(x, of)};
    for (size_t i = 0; i < steps; i++)
        if (of[i].without) eval_measure(&w, &x->chosen->steps[i]);
    if (!evaluated_tell(x, of, 1, times)) {
        memset(of, 0, (steps + 1) * sizeof *of);
        passes_by_modules(of, times, x);
        evaluated_tell(x, of, PASSES_LEAST, times);
    }
    for (size_t n = 0; n < names.count; n++) free(names.of[n].calls);
    free(of);
}

/* ---- steps without it ---- */

/* What of it was loading, and what ops outside of that. Where they overlap it counts as loading. */
static void parts_find(const struct kp_costrules *x, const struct kp_spans *times, struct kp_spans *loading,
                       struct kp_spans *worked)
{
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *node = &x->tree->nodes[i];
        if (node->on_device || node->is_async || !kp_spans_has(times, node->start_ns)) continue;
        const bool is_loader = kp_kineto_is_loader(kp_costrules_name(x, (int32_t)i));
        if (is_loader) kp_spans_add(loading, node->start_ns, node->end_ns);
        if (is_loader || kp_costrules_is_op(x, i)) kp_spans_add(worked, node->start_ns, node->end_ns);
    }
    kp_spans_settle(loading);
    kp_spans_settle(worked);
    kp_spans_cut(loading, times);
    kp_spans_cut(worked, times);
}

void kp_evalsteps_leave_out(const struct kp_costrules *x, const struct kp_spans *times, struct kp_step_split *splits)
{
    struct kp_spans loading = {0}, worked = {0}, hidden = {0};
    if (!times->count) return;
    parts_find(x, times, &loading, &worked);
    for (size_t i = 0; i < loading.count; i++) kp_spans_add(&hidden, loading.of[i].start_ns, loading.of[i].end_ns);
    kp_spans_settle(&hidden);
    kp_spans_cut(&hidden, &x->places->computed); /* nothing without a GPU */
    for (size_t i = 0; i < x->chosen->step_count; i++) {
        const int64_t from = x->chosen->steps[i].start_ns, to = x->chosen->steps[i].end_ns;
        const int64_t all = kp_spans_between(times, from, to), loads = kp_spans_between(&loading, from, to);
        const int64_t works = kp_spans_between(&worked, from, to);
        splits[i].step_ns -= all;
        if (x->out->has_gpu) { /* what the other parts are, the GPU says */
            const int64_t alone = loads - kp_spans_between(&hidden, from, to);
            splits[i].part_ns[KP_SPLIT_LOADING] -=
                alone < splits[i].part_ns[KP_SPLIT_LOADING] ? alone : splits[i].part_ns[KP_SPLIT_LOADING];
            continue;
        }
        splits[i].part_ns[KP_SPLIT_LOADING] -= loads;
        splits[i].part_ns[KP_SPLIT_COMPUTE] -= works - loads;
        splits[i].part_ns[KP_SPLIT_IDLE] -= all - works;
    }
    kp_spans_fini(&loading);
    kp_spans_fini(&worked);
    kp_spans_fini(&hidden);
}
