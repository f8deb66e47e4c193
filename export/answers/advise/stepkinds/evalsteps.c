// SPDX-License-Identifier: Apache-2.0
/*
 * evalsteps.c - steps of a training in which the model is evaluated, too: these are longer, and not slow
 *
 * torch numbers a forward op only where gradients are on. So an op that has a number in the other steps, and in one
 * step runs K times as often without, is an evaluation of K passes. With Python's calls recorded, a call of a whole
 * module is a pass, and it has a backward where some op in it has one; that tells compiled models, too. A pass that
 * most steps have without gradients, as a teacher's, is a part of the training.
 *
 * An evaluation before the training's first pass is what the step has more up to there than other steps: its loader's
 * workers start in it, and metrics follow behind the last pass. One behind the training lasts from the op before it,
 * but for its data loading. The training's own time up to its first pass, or from its last one on, is as long as in the
 * other steps. A long gap before the first pass is named: workers start in it, or Python collects garbage. If one
 * evaluation has far more behind its last pass than the others, that is a step's own.
 */
#include "export/answers/advise/stepkinds/evalsteps.h"
#include "collector/base/kp_order.h"
#include "export/read/frames/framename.h"
#include "export/show/units.h"

#include <stdlib.h>

enum { PASSES_LEAST = 2, TAIL_MORE_NS = 10000000 };
#define TOLD_SHARE 0.1    /* of an evaluation: its loading, or what is behind its last pass, before it is told */
#define TAIL_USUAL_MOST 2 /* times what is behind the last pass of the other evaluations, and TAIL_MORE_NS */

enum eval_side { BEFORE_STEPS, BEHIND_STEPS, EVAL_SIDES }; /* where there is no step */
struct eval_outside {
    size_t passes;
    int64_t ns;
};

/* ---- passes by ops: those with gradients in the other steps, and without in this one ---- */

KP_ORDER_DOWN(longest_first, struct kp_forward_name, ns)

/* The names of forward ops that take most time, outside of loading. */
static void names_find(struct kp_forward_names *out, const struct kp_costrules *x)
{
    struct kp_keyindex keys = {0};
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_kineto_event *e = kp_tree_event(x->tree, i);
        if (!kp_costrules_is_op(x, i) || !kp_evalsteps_is_forward(e) || !kp_costrules_in_steps(x, i) ||
            x->loaders[i] >= 0)
            continue;
        struct kp_forward_name *const name =
            kp_keyindex_row(&keys, e->name, &(struct kp_forward_name){.name = e->name}, sizeof *name);
        name->is_layer = kp_evalsteps_is_layer(kp_costrules_name(x, (int32_t)i));
        name->ns += kp_costrules_ns(x, i);
    }
    struct kp_forward_name *const all = keys.rows;
    if (keys.count) qsort(all, keys.count, sizeof *all, longest_first);
    out->count = keys.count < KP_FORWARD_NAMES_MOST ? keys.count : KP_FORWARD_NAMES_MOST;
    if (out->count) memcpy(out->of, all, out->count * sizeof *all);
    kp_keyindex_fini(&keys);
}

static struct kp_forward_name *name_of(struct kp_forward_names *names, uint32_t name)
{
    for (size_t i = 0; i < names->count; i++)
        if (names->of[i].name == name) return &names->of[i];
    return NULL;
}

/* A metric's op may have gradients in few steps: a_step is 0. Shorter ones also copy what a checkpoint saves. */
static bool is_of_passes(const struct kp_forward_names *names, const struct kp_forward_name *f)
{
    return f->a_step > 0 && f - names->of < KP_FORWARD_NAMES_LONG;
}

/* Backward calls forward ops, too, and those have no number. */
static bool is_in_backward(const struct kp_costrules *x, size_t i)
{
    const int32_t outer = kp_costplace_op(x->tree, (int32_t)i);
    return kp_tree_event(x->tree, (size_t)outer)->fwd_tid ||
           kp_name_begins(kp_costrules_name(x, outer), "autograd::engine::");
}

/* A forward op without gradients, which no backward calls. Below autograd a DTensor's op calls others, which have no
 * gradients of their own: they are a part of it. */
static bool is_eval_call(const struct kp_costrules *x, size_t i)
{
    const size_t outer = (size_t)kp_costplace_op(x->tree, (int32_t)i);
    return !kp_evalsteps_has_gradients(kp_tree_event(x->tree, i)) &&
           !kp_evalsteps_has_gradients(kp_tree_event(x->tree, outer)) && x->loaders[i] < 0 && !is_in_backward(x, i);
}

/* Counts the calls of each of the names by step, with gradients and without. */
static void calls_count(struct kp_forward_names *names, const struct kp_costrules *x)
{
    const struct kp_chosen *c = x->chosen;
    uint32_t *with[KP_FORWARD_NAMES_MOST];
    for (size_t n = 0; n < names->count; n++) {
        with[n] = kp_kineto_zeros(c->step_count + 1, sizeof **with);
        names->of[n].calls = kp_kineto_zeros(c->step_count + EVAL_SIDES, sizeof **with);
    }
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_kineto_event *e = kp_tree_event(x->tree, i);
        struct kp_forward_name *f = kp_costrules_is_op(x, i) ? name_of(names, e->name) : NULL;
        const size_t step = f ? kp_costrules_step(x, i) : c->step_count;
        const bool is_before = x->tree->nodes[i].start_ns < c->steps[0].start_ns;
        if (f && step == c->step_count && is_eval_call(x, i))
            f->calls[step + (is_before ? BEFORE_STEPS : BEHIND_STEPS)]++;
        if (step == c->step_count || x->loaders[i] >= 0) continue;
        ++*(kp_evalsteps_has_gradients(e) ? &with[f - names->of][step] : &f->calls[step]);
    }
    for (size_t n = 0; n < names->count; n++) {
        names->of[n].a_step = kp_evalsteps_median(with[n], c->step_count);
        names->of[n].usual = kp_evalsteps_usual(names->of[n].calls, c->step_count);
        free(with[n]);
    }
}

/* Do as few ops of passes run there as each step runs without gradients? Then it is the begin or end of a step. */
static bool is_as_in_steps(const struct kp_forward_names *names, size_t side)
{
    for (size_t n = 0; n < names->count; n++) {
        const struct kp_forward_name *const f = &names->of[n];
        if (is_of_passes(names, f) && f->calls[names->steps + side] > f->usual) return false;
    }
    return true;
}

static bool is_asking(const struct kp_costrules *x, size_t i)
{
    const int32_t parent = x->tree->nodes[i].parent;
    return x->loaders[i] == (int32_t)i && (parent < 0 || x->loaders[parent] < 0);
}

/* Which of the passes' ops a node is, outside of loading and of backward; NULL: none. */
static const struct kp_forward_name *pass_op(const struct kp_costrules *x, struct kp_forward_names *names, size_t i)
{
    const struct kp_forward_name *const f =
        kp_costrules_is_op(x, i) ? name_of(names, kp_tree_event(x->tree, i)->name) : NULL;
    return f && is_of_passes(names, f) && x->loaders[i] < 0 && !is_in_backward(x, i) ? f : NULL;
}

/* Measures the evaluations before the first step and behind the last: from the load of the first batch to the last
 * pass, while none has gradients. */
static void outside_measure(struct eval_outside *out, const struct kp_costrules *x, struct kp_forward_names *names)
{
    const struct kp_chosen *const c = x->chosen;
    struct kp_spans times = {0};
    int64_t from = -1, until = -1, asked = -1;
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *const node = &x->tree->nodes[i];
        if (from < 0 && asked < 0 && is_asking(x, i)) asked = node->start_ns;
        if (!pass_op(x, names, i)) continue;
        const bool is_of_it = is_eval_call(x, i) && kp_costrules_step(x, i) == c->step_count;
        if (!is_of_it) from = asked = -1;
        else if (from < 0) from = node->start_ns, until = asked >= 0 ? asked : from;
        if (is_of_it) kp_spans_add(&times, until, node->start_ns);
        if (is_of_it) kp_spans_add(&times, node->start_ns, node->end_ns);
        until = node->end_ns;
    }
    kp_spans_settle(&times);
    out[BEFORE_STEPS].ns = kp_spans_between(&times, INT64_MIN, c->steps[0].start_ns);
    out[BEHIND_STEPS].ns = kp_spans_between(&times, c->steps[c->step_count - 1].end_ns, INT64_MAX);
    for (size_t side = 0; side < EVAL_SIDES; side++)
        out[side].passes = is_as_in_steps(names, side) ? 0 : kp_evalsteps_passes(names, c->step_count + side);
    kp_spans_fini(&times);
}

/* By node: it is an outermost op, of which some part has a backward. The caller frees it. NULL: none has. */
static bool *trained_find(const struct kp_costrules *x)
{
    bool *const trained = kp_kineto_zeros(x->tree->count + 1, sizeof *trained), any = false;
    for (size_t i = 0; i < x->tree->count; i++) {
        const int32_t forward = x->tree->nodes[i].forward;
        if (forward >= 0) any = trained[kp_costplace_op(x->tree, forward)] = true;
    }
    if (any) return trained;
    free(trained);
    return NULL;
}

/* A lazy property of a distribution computes with gradients inside of no_grad, and nothing goes back through it. */
static enum kp_pass_mark mark_of(const struct kp_costrules *x, const bool *trained, size_t i)
{
    if (is_eval_call(x, i)) return KP_PASS_EVALUATION;
    return !trained || trained[kp_costplace_op(x->tree, (int32_t)i)] ? KP_PASS_TRAINING : KP_PASS_NONE;
}

static void passes_by_ops(struct kp_passes *of, uint8_t *marks, struct eval_outside *outside,
                          const struct kp_costrules *x)
{
    struct kp_forward_names names = {.steps = x->chosen->step_count};
    names_find(&names, x);
    calls_count(&names, x);
    outside_measure(outside, x, &names);
    for (size_t i = 0; i < x->chosen->step_count; i++) {
        of[i].without = kp_evalsteps_passes(&names, i);
        of[i].with = names.count > 0 && names.of[0].a_step > 0;
    }
    bool *const trained = trained_find(x);
    for (size_t i = 0; i < x->tree->count; i++)
        if (pass_op(x, &names, i)) marks[i] = (uint8_t)mark_of(x, trained, i);
    free(trained);
    for (size_t n = 0; n < names.count; n++) free(names.of[n].calls);
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
    bool *has = kp_kineto_zeros(x->tree->count + 1, sizeof *has);
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
        if (!has[i] || kp_costrules_ns(x, i) <= longest) continue;
        longest = kp_costrules_ns(x, i);
        model = x->tree->nodes[i].name;
    }
    return model;
}

static void passes_by_modules(struct kp_passes *of, uint8_t *marks, const struct kp_costrules *x)
{
    const struct kp_chosen *c = x->chosen;
    bool *has = backwards_mark(x);
    const uint32_t model = model_find(x, has);
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *node = &x->tree->nodes[i];
        marks[i] = KP_PASS_NONE;
        if (node->name != model || !is_module(x, (int32_t)i) || root_of(x, (int32_t)i) != (int32_t)i) continue;
        const size_t step = kp_costrules_step(x, i);
        if (step == c->step_count) continue;
        of[step].with += has[i];
        of[step].without += !has[i];
        marks[i] = has[i] ? KP_PASS_TRAINING : KP_PASS_EVALUATION;
    }
    free(has);
}

/* ---- how long an evaluation lasts ---- */

enum { ASKED_MOST = 4 };

struct eval_tails { /* what is behind the last pass of each evaluation */
    struct kp_time_span *of;
    size_t count, capacity;
};
struct eval_walk {
    const struct kp_costrules *x;
    const uint8_t *marks; /* by node */
    struct kp_spans *times;
    struct eval_tails tails;
    /* Times of the training: from a step's begin to its first pass, from its last pass to the end; medians. */
    double lead_ns, trail_ns;
    int64_t before_ns, start_ns, end_ns; /* the last op outside; the evaluation under way, start -1: none */
    int64_t trained_ns;                  /* the end of the training's last pass in this step; -1: none yet */
    int64_t worked_ns, gap_ns, early_ns; /* the last work's end; long gaps since, and before first passes */
    /* A training asks its loader so often a step; of this one not yet; since the last op outside of an evaluation. */
    size_t usual_asks, asks_left, pending_asks;
    struct kp_time_span asked_of[ASKED_MOST]; /* the calls behind the last op of the evaluation */
    size_t asked;
};

/* How often a step without an evaluation asks a loader, the median. */
static size_t usual_asks(const struct kp_costrules *x, const struct kp_passes *of)
{
    const struct kp_chosen *c = x->chosen;
    size_t count = 0;
    double *asks = kp_kineto_zeros(c->step_count + 1, sizeof *asks);
    for (size_t i = 0; i < x->tree->count; i++)
        if (is_asking(x, i)) asks[kp_costrules_step(x, i)]++;
    for (size_t i = 0; i < c->step_count; i++)
        if (!of[i].without) asks[count++] = asks[i];
    const double usual = kp_quantile(asks, count, 0.5);
    free(asks);
    return (size_t)(usual + 0.5);
}

/* Measures how long steps without an evaluation last up to their first pass, and from their last one on. */
static void usual_measure(struct eval_walk *w, const struct kp_passes *of)
{
    const struct kp_chosen *const c = w->x->chosen;
    const struct kp_tree *const tree = w->x->tree;
    struct kp_sample lead = {0}, trail = {0};
    for (size_t i = 0; i < c->step_count; i++) {
        const struct kp_step *const step = &c->steps[i];
        int64_t first = -1, last = -1;
        if (of[i].without) continue;
        for (size_t k = kp_longsteps_node(tree, step->start_ns); k < tree->count; k++) {
            if (tree->nodes[k].start_ns >= step->end_ns) break;
            if (w->marks[k] != KP_PASS_TRAINING) continue;
            if (first < 0) first = tree->nodes[k].start_ns;
            if (tree->nodes[k].end_ns > last) last = tree->nodes[k].end_ns;
        }
        if (first < 0) continue;
        kp_sample_add(&lead, (double)(first - step->start_ns));
        kp_sample_add(&trail, (double)(step->end_ns - last));
    }
    w->lead_ns = kp_sample_end(&lead, 0.5);
    w->trail_ns = kp_sample_end(&trail, 0.5);
}

/*
 * Ends the evaluation that is under way. A call that asks more often than the training does is the end of the
 * evaluation's loader, which ends its workers. The training goes on at `until_ns`, or where it asks its own loader.
 */
static void eval_end(struct eval_walk *w, int64_t until_ns)
{
    if (w->start_ns < 0) return;
    const size_t own = w->asked > w->asks_left ? w->asked - w->asks_left : 0; /* the first call of the training's */
    if (own) w->end_ns = w->asked_of[own - 1].end_ns;
    if (own < w->asked && w->asked_of[own].start_ns < until_ns) until_ns = w->asked_of[own].start_ns;
    kp_spans_add(w->times, w->start_ns, w->end_ns);
    if (until_ns > w->end_ns)
        *KP_KINETO_NEXT(w->tails.of, w->tails.count, w->tails.capacity) =
            (struct kp_time_span){.start_ns = w->end_ns, .end_ns = until_ns};
    w->asks_left -= w->asked < w->asks_left ? w->asked : w->asks_left;
    w->asked = 0;
    w->start_ns = -1;
}

/* A gap in which nothing runs nor loads, longer than what the training has there: Python may collect garbage in it. */
static void gap_take(struct eval_walk *w, const struct kp_node *node)
{
    const int64_t ns = node->start_ns - w->worked_ns;
    if ((double)ns > w->lead_ns + TAIL_MORE_NS) w->gap_ns += ns;
    if (node->end_ns > w->worked_ns) w->worked_ns = node->end_ns;
}

/* A usual time of the training less what of it came before the evaluation. */
static int64_t rest_of(double usual_ns, int64_t had_ns)
{
    return usual_ns > (double)had_ns ? (int64_t)usual_ns - had_ns : 0;
}

/* An op that is in no evaluation: what asked the loader before it did so for the training. Before its first pass it may
 * be what an evaluation does with its first batch. */
static void outside_take(struct eval_walk *w, const struct kp_node *node)
{
    if (w->trained_ns >= 0) w->asks_left -= w->pending_asks < w->asks_left ? w->pending_asks : w->asks_left;
    w->pending_asks = 0;
    if (node->end_ns > w->before_ns) w->before_ns = node->end_ns;
}

static void pass_take(struct eval_walk *w, const struct kp_node *node, enum kp_pass_mark mark, int64_t begin_ns)
{
    if (mark == KP_PASS_TRAINING) {
        const int64_t own = w->trained_ns < 0 ? rest_of(w->lead_ns, w->start_ns - begin_ns) : 0;
        eval_end(w, node->start_ns - own);
        if (node->end_ns > w->trained_ns) w->trained_ns = node->end_ns;
        w->gap_ns = 0;
    } else if (mark == KP_PASS_EVALUATION) {
        if (w->start_ns < 0) w->start_ns = w->before_ns < node->start_ns ? w->before_ns : node->start_ns;
        if (w->trained_ns < 0) w->start_ns = begin_ns;
        w->early_ns += w->gap_ns;
        w->gap_ns = 0;
        if (node->end_ns > w->end_ns) w->end_ns = node->end_ns;
        w->asked = w->pending_asks = 0;
    }
}

/* Adds, of one step, the times from the op before an evaluation's first pass to what the training does next. */
static void eval_measure(struct eval_walk *w, const struct kp_step *step)
{
    const struct kp_tree *tree = w->x->tree;
    w->before_ns = w->worked_ns = step->start_ns;
    w->gap_ns = 0;
    w->start_ns = w->trained_ns = -1;
    w->end_ns = 0;
    w->asks_left = w->usual_asks;
    w->pending_asks = w->asked = 0;
    for (size_t i = kp_longsteps_node(tree, step->start_ns); i < tree->count; i++) {
        const struct kp_node *node = &tree->nodes[i];
        if (node->start_ns >= step->end_ns) break;
        const bool asks = is_asking(w->x, i), is_work = asks || kp_costrules_is_op(w->x, i);
        if (asks && w->start_ns < 0) w->pending_asks++;
        else if (asks && w->asked < ASKED_MOST)
            w->asked_of[w->asked++] = (struct kp_time_span){node->start_ns, node->end_ns, 0};
        if (is_work || w->marks[i] == KP_PASS_EVALUATION) gap_take(w, node);
        pass_take(w, node, w->marks[i], step->start_ns);
        if (w->start_ns < 0 && kp_costrules_is_op(w->x, i) && w->x->loaders[i] < 0) outside_take(w, node);
    }
    if (w->trained_ns < 0) eval_end(w, w->end_ns);
    else eval_end(w, step->end_ns - rest_of(w->trail_ns, w->start_ns - w->trained_ns));
}

/* Adds what is behind the last passes. As much as that, if it is far more than the median of all. */
static int64_t tails_add(struct eval_walk *w)
{
    double *lengths = kp_kineto_room(w->tails.count + 1, sizeof *lengths);
    int64_t all = 0;
    for (size_t i = 0; i < w->tails.count; i++) lengths[i] = (double)(w->tails.of[i].end_ns - w->tails.of[i].start_ns);
    kp_quantile(lengths, w->tails.count, 0.5); /* sorts them */
    const int64_t usual = w->tails.count ? (int64_t)lengths[(w->tails.count - 1) / 2] : 0;
    for (size_t i = 0; i < w->tails.count; i++) {
        const struct kp_time_span tail = w->tails.of[i];
        const int64_t ns = tail.end_ns - tail.start_ns,
                      taken = ns > TAIL_USUAL_MOST * usual + TAIL_MORE_NS ? usual : ns;
        kp_spans_add(w->times, tail.start_ns, tail.start_ns + taken);
        all += taken;
    }
    free(lengths);
    free(w->tails.of);
    return all;
}

/* ---- the note ---- */

/* "step 10 holds 12", "steps 10, 20 and 3 more hold 12 to 14": which, and how many passes. */
const char *kp_evalsteps_numbers(const struct kp_costrules *x, const struct kp_passes *of, size_t passes_least)
{
    size_t found = 0, least = SIZE_MAX, most = 0;
    size_t *at = kp_kineto_room(x->chosen->step_count + 1, sizeof *at);
    for (size_t i = 0; i < x->chosen->step_count; i++) {
        if (of[i].without < passes_least) continue;
        if (of[i].without < least) least = of[i].without;
        if (of[i].without > most) most = of[i].without;
        at[found++] = i;
    }
    const char *numbers = kp_costrules_numbers(x, at, found, KP_NUMBERS_MOST, ",");
    const char *to = most > least ? KP_TEXT(" to %zu", most) : "";
    free(at);
    return KP_TEXT("%s hold%s %zu%s forward pass%s", numbers, found == 1 ? "s" : "", least, to, most == 1 ? "" : "es");
}

static bool is_outside(const struct eval_outside *outside) { return outside->passes >= PASSES_LEAST; }

static bool has_outside(const struct eval_outside *outside)
{
    return is_outside(&outside[BEFORE_STEPS]) || is_outside(&outside[BEHIND_STEPS]);
}

/* The times of both sides. */
static double outside_ns(const struct eval_outside *outside)
{
    double ns = 0;
    for (size_t side = 0; side < EVAL_SIDES; side++) ns += is_outside(&outside[side]) ? (double)outside[side].ns : 0;
    return ns;
}

/* "; before the first step at least 102.9 ms (100 passes)": a single one may be a trial of the model. */
static const char *outside_text(const struct kp_costrules *x, const struct eval_outside *outside, const char *before)
{
    const char *text = "";
    static const char *const sides[] = {"before the first step", "after the last step"};
    for (size_t side = 0; side < EVAL_SIDES; side++) {
        if (!is_outside(&outside[side])) continue;
        text = KP_TEXT("%s%s%s at least %s (%zu passes)", text, *text ? ", " : before, sides[side],
                       kp_units_ms((double)outside[side].ns), outside[side].passes);
    }
    return text;
}

/* The part of these times that is loading. */
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

/* ", 3.1 ms of it WHAT": what an evaluation has of it, the mean; "": little. */
static const char *part_text(const struct kp_costrules *x, int64_t part_ns, int64_t ns, size_t found, const char *what)
{
    if ((double)part_ns < TOLD_SHARE * (double)ns) return "";
    return KP_TEXT(", %s of it %s", kp_units_ms((double)part_ns / (double)found), what);
}

static double steps_ns(const struct kp_costrules *x) { return x->out->step_ns * (double)x->chosen->step_count; }

/* ", 35.0 % of the time of all steps"; "" where others lie outside of them: then the share is of all evaluations. */
static const char *share_text(const struct kp_costrules *x, const struct eval_outside *outside, int64_t ns)
{
    const double all_ns = steps_ns(x);
    if (all_ns <= 0 || has_outside(outside)) return "";
    return KP_TEXT(KP_EVALSTEPS_SHARE, 100 * (double)ns / all_ns);
}

/* ": with it at least 1379.3 ms in all, 34.4 % of the time of the steps and of these": inside and outside. */
static const char *total_text(const struct kp_costrules *x, const struct eval_outside *outside,
                              const struct kp_evalkind *kind)
{
    const double out_ns = outside_ns(outside);
    const double all_ns = x->out->evaluated_ns * (double)x->chosen->step_count + out_ns;
    if (out_ns <= 0 || steps_ns(x) <= 0) return "";
    return KP_TEXT(" (in all at least %s, %.1f %% of the time of steps and %s)", kp_units_ms(all_ns),
                   100 * all_ns / (steps_ns(x) + out_ns), kind->many);
}

const char *kp_evalsteps_text(const struct kp_costrules *x, size_t found, const struct kp_evalkind *kind,
                              const char *about, double ns, const char *share, const char *numbers)
{
    const char *const one = found == 1 ? "s" : "", *const several = found == 1 ? "" : "s";
    return KP_TEXT("%zu %s%s%s during the training take%s %s%s%s. %s long but not slow: %s without backward%s", found,
                   kind->one, several, kind->of, one, about, kp_units_ms(ns), share,
                   found == 1 ? "That step is" : "These steps are", numbers,
                   found == 1 ? "" : KP_TEXT(", %s per %s", kp_units_ms(ns / (double)found), kind->one));
}

/* How often steps with an evaluation ask a loader, more than the others do. */
static double more_asks(const struct eval_walk *w, const struct kp_passes *of, size_t least, size_t found)
{
    size_t asks = 0;
    for (size_t i = 0; i < w->x->tree->count; i++) {
        const size_t step = is_asking(w->x, i) ? kp_costrules_step(w->x, i) : w->x->chosen->step_count;
        asks += step < w->x->chosen->step_count && of[step].without >= least;
    }
    return (double)asks / (double)found - (double)w->usual_asks;
}

/* Measures the evaluations, and says which steps hold them, with what they take. */
static const char *inside_text(const struct kp_costrules *x, const struct kp_passes *of, size_t least,
                               const uint8_t *marks, const struct eval_outside *outside, struct kp_spans *times,
                               const struct kp_evalkind **kind)
{
    struct eval_walk w = {.x = x, .marks = marks, .times = times, .usual_asks = usual_asks(x, of)};
    struct kp_evalsigns signs = {.times = times, .has_outside = has_outside(outside)};
    size_t found = 0;
    usual_measure(&w, of);
    for (size_t i = 0; i < x->chosen->step_count; i++) {
        if (of[i].without < least) continue;
        eval_measure(&w, &x->chosen->steps[i]);
        found++;
    }
    const int64_t behind = tails_add(&w);
    kp_spans_settle(times);
    const int64_t ns = kp_spans_length(times, &x->chosen->in_steps);
    const char *const place = kp_evalplace_text(x, times, &signs.is_named);
    signs.more_asks = more_asks(&w, of, least, found);
    *kind = kp_evalkind_of(x, &signs);
    x->out->evaluated_ns = (double)ns / (double)x->chosen->step_count;
    return KP_TEXT("%s%s%s%s%s",
                   kp_evalsteps_text(x, found, *kind, "", (double)ns, share_text(x, outside, ns),
                                     kp_evalsteps_numbers(x, of, least)),
                   place, part_text(x, loading_of(x, times), ns, found, "loading"),
                   part_text(x, behind, ns, found, "after the last pass (metrics, a checkpoint)"),
                   part_text(x, w.early_ns, ns, found, "before its first pass, without an operator"));
}

/* So few steps do not tell whether the passes of some belong to each Nth step of the training. NULL: there are none. */
static const char *unknown_text(const struct kp_costrules *x, const struct kp_passes *of)
{
    const size_t steps = x->chosen->step_count;
    size_t found = 0;
    for (size_t i = 0; i < steps; i++) found += of[i].without > 0;
    if (!found || found == steps || steps > KP_EVALSTEPS_FEW) return NULL;
    return KP_TEXT("%s without backward, and the other%s none. So few steps do not tell whether that is an evaluation "
                   "or a part of the training: record some 20 (--schedule)",
                   kp_evalsteps_numbers(x, of, 1), steps - found == 1 ? "" : "s");
}

#define EVALUATED_HOW                                                                                                 \
    ". To time them: kprof run --phases (Lightning, transformers, your own ranges), or kprof report --within with a " \
    "range"
#define EVALUATED_SAVE ". To save time, "

/* Passes outside of the steps cost the run as well. */
static void evaluated_tell(const struct kp_costrules *x, const char *inside, const struct eval_outside *outside,
                           const struct kp_evalkind *kind)
{
    const char *const others =
        outside_text(x, outside, inside ? "; " : KP_TEXT("%s outside of the steps: ", kind->many));
    const char *const total = inside ? total_text(x, outside, kind) : "";
    if (inside || *others) x->out->evaluated = KP_TEXT("%s%s%s", inside ? inside : "", others, total);
    x->out->is_evaluated_inside = inside != NULL; /* once before or behind all steps is not too often */
    x->out->evaluated_how = inside ? KP_TEXT(EVALUATED_HOW EVALUATED_SAVE "%s", kind->save) : EVALUATED_HOW;
    const double out_ns = outside_ns(outside) / (double)x->chosen->step_count;
    x->out->evaluated_ns += out_ns;
    x->out->evaluated_as = kind->many;
    x->out->evaluated_share = steps_ns(x) > 0 ? x->out->evaluated_ns / (x->out->step_ns + out_ns) : 0;
}

void kp_evalsteps_tell(const struct kp_costrules *x, struct kp_spans *times)
{
    const size_t steps = x->chosen->step_count;
    struct kp_passes *of = kp_kineto_zeros(steps + 1, sizeof *of);
    uint8_t *marks = kp_kineto_room(x->tree->count + 1, sizeof *marks);
    struct eval_outside outside[EVAL_SIDES] = {{0, 0}};
    const struct kp_evalkind *kind;
    size_t least = 1;
    memset(marks, KP_PASS_NONE, x->tree->count + 1);
    passes_by_ops(of, marks, outside, x);
    x->out->again = kp_secondpass_text(x, marks);
    x->out->recomputed = kp_recomputed_text(x);
    if (!kp_evalsteps_are(of, steps, least)) {
        if (!x->out->again) x->out->again = unknown_text(x, of);
        least = PASSES_LEAST;
        memset(of, 0, (steps + 1) * sizeof *of);
        passes_by_modules(of, marks, x);
    }
    const bool are = kp_evalsteps_are(of, steps, least);
    const char *const inside = are ? inside_text(x, of, least, marks, outside, times, &kind) : NULL;
    if (!are) kind = kp_evalkind_of(x, &(struct kp_evalsigns){.times = times, .has_outside = has_outside(outside)});
    evaluated_tell(x, inside, outside, kind);
    free(marks);
    free(of);
}

/* ---- steps without it ---- */

/* The part of it that was loading, and the ops outside of that. Time in both counts as loading. */
static void parts_find(const struct kp_costrules *x, const struct kp_spans *times, struct kp_spans *loading,
                       struct kp_spans *worked)
{
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *node = &x->tree->nodes[i];
        if (node->on_device || node->is_async || !kp_spans_has(times, node->start_ns)) continue;
        const bool is_loader = kp_node_is(x->tree, i, KP_NAME_LOADER);
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
    kp_spans_add_all(&hidden, &loading);
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
