// SPDX-License-Identifier: Apache-2.0
/*
 * growth.c - why steps get slower from one to the next: inputs grow, more layers are trained, an op runs more often
 *
 * Larger inputs make most ops of a step slower alike, those of the forward pass as those of the backward pass, and they
 * run as often as before. A slower machine does so as well, but then the optimizer's ops, on parameters of one size,
 * are as much slower; or shapes were recorded, and tell it. An op that alone gets slower is none of that. A layer that
 * was frozen at first has no backward pass then, and one in each step later.
 */
#include "export/answers/advise/stepkinds/longsteps.h"

#include <math.h>
#include <stdlib.h>

#include "export/read/facts/namefacts.h"
#include "export/show/shapetext.h"
#include "export/show/units.h"

#define OPS_SHARE 0.75    /* of the growth of a step: in ops */
#define WEIGHT_LEAST 0.01 /* of the early time in ops, of an op that counts */
#define ALIKE_SHARE 0.5   /* of what all ops grow: so much grows one that grows alike */
#define ALIKE_PART 0.66   /* of the ops that count, by number */
#define COUNT_SLACK 0.1   /* of the calls a step */
#define ADDED_SHARE 0.2   /* of the growth: in ops that run more often */
#define TRAINED_SHARE 0.5 /* of the growth: in backward passes that are more */
#define SIZE_GROWN 1.1    /* of the elements of a call's inputs */
#define CALLS_GROWN 1.3   /* calls a step, in the end over at first */
#define CALLS_SHARE 0.5   /* of what an op has more: by the calls that are more */
enum { OPS_LEAST = 4, OPENING_LEAST = 3, OPENING_PART = 16 };

struct op_growth { /* [0]: in the first third of the steps, [1]: in the last */
    double ns[2], count[2], elements[2];
    int32_t node[2]; /* the first call of the first step, and of the last one */
    bool is_backward;
};
struct larger {
    const struct kp_costrules *x;
    const double *of;
    struct kp_keyindex ops; /* rows: struct op_growth, by name and line; without those of an optimizer */
    double ns[2], optimizer_ns[2];
    bool has_shapes;
};

static void op_add(struct larger *g, size_t i, int late, double on_core)
{
    const struct kp_tree *const tree = g->x->tree;
    const struct kp_kineto_event *const e = kp_tree_event(tree, i);
    const double ns = on_core * kp_slowerops_self_ns(tree, i);
    if (kp_node_is_in(tree, (int32_t)i, KP_NAME_OPTIMIZER)) {
        g->optimizer_ns[late] += ns;
        return;
    }
    const struct op_growth first = {.node = {-1, -1}, .is_backward = kp_node_is_backward(tree, i)};
    struct op_growth *const op =
        kp_keyindex_row(&g->ops, (uint64_t)e->name << 32 | kp_costplace_line(tree, (int32_t)i), &first, sizeof first);
    const uint32_t shapes = kp_kineto_shapes(e);
    double elements = 0, largest;
    if (op->node[late] < 0) op->node[late] = (int32_t)i;
    op->ns[late] += ns;
    op->count[late]++;
    g->ns[late] += ns;
    if (shapes) kp_shapetext_numbers(kp_kineto_text(tree->trace, shapes), &elements, &largest);
    op->elements[late] += elements;
    g->has_shapes |= shapes != 0;
}

static void step_take(struct larger *g, size_t number, int late)
{
    const struct kp_tree *const tree = g->x->tree;
    const struct kp_step *const step = &g->x->chosen->steps[number];
    const double on_core = kp_longsteps_on_core(g->x, number, g->of[number]);
    for (size_t i = kp_longsteps_node(tree, step->start_ns), end = kp_longsteps_node(tree, step->end_ns); i < end; i++)
        if (kp_slowerops_is_of_library(g->x, i)) op_add(g, i, late, on_core);
}

struct alike { /* ops with a share of the early time: all, and those that grow as all do; [1]: of backward passes */
    size_t all[2], grown[2], sized;
    double added_ns;                        /* of ops that run more often */
    double trained_ns;                      /* of backward ops that do so, some of which did not run at first */
    const struct op_growth *most, *trained; /* trained: the one with most time of those that did not run */
};

/* Is it rather the one to name? Inputs of a forward pass are easier to find in the program. */
static bool is_more(const struct op_growth *op, const struct op_growth *than)
{
    if (!than || op->is_backward != than->is_backward) return !than || than->is_backward;
    return op->ns[1] > than->ns[1];
}

/* The first steps, whose ops run at first. */
static size_t opening_of(const struct kp_costrules *x)
{
    const size_t few = x->chosen->step_count / OPENING_PART;
    return few > OPENING_LEAST ? few : OPENING_LEAST;
}

static bool is_new(const struct kp_costrules *x, const struct op_growth *op)
{
    return op->node[1] >= 0 && (op->node[0] < 0 || kp_costrules_step(x, (size_t)op->node[0]) >= opening_of(x));
}

static bool is_as_often(const struct op_growth *op)
{
    return fabs(op->count[1] - op->count[0]) <= COUNT_SLACK * op->count[0];
}

/* The ops that run more often: of layers that were not trained at first, or others. */
static void added_find(struct alike *out, const struct larger *g)
{
    const struct op_growth *const ops = g->ops.rows;
    for (size_t i = 0; i < g->ops.count; i++) {
        const struct op_growth *const op = &ops[i];
        const double more = op->ns[1] - op->ns[0];
        if (is_as_often(op) || more <= 0) continue;
        *(op->is_backward ? &out->trained_ns : &out->added_ns) += more;
        if (op->is_backward && is_new(g->x, op) && (!out->trained || op->ns[1] > out->trained->ns[1]))
            out->trained = op;
    }
    if (out->trained) return;
    out->added_ns += out->trained_ns;
    out->trained_ns = 0;
}

static struct alike alike_of(const struct larger *g)
{
    const struct op_growth *const ops = g->ops.rows;
    struct alike out = {0};
    added_find(&out, g);
    const double grown = (g->ns[1] - out.trained_ns) / g->ns[0] - 1;
    for (size_t i = 0; i < g->ops.count; i++) {
        const struct op_growth *const op = &ops[i];
        if (!is_as_often(op) || op->ns[0] < WEIGHT_LEAST * g->ns[0]) continue;
        out.all[op->is_backward]++;
        if (op->ns[1] - op->ns[0] < ALIKE_SHARE * grown * op->ns[0]) continue;
        out.grown[op->is_backward]++;
        const bool is_sized = op->elements[1] > SIZE_GROWN * op->elements[0];
        out.sized += is_sized;
        if ((is_sized || !g->has_shapes) && is_more(op, out.most)) out.most = op;
    }
    return out;
}

static bool is_little(const struct larger *g, double ns) { return ns <= ADDED_SHARE * (g->ns[1] - g->ns[0]); }

/* Do inputs grow that much? A slower machine makes the optimizer slower, where no sizes were recorded. */
static bool are_inputs(const struct larger *g, const struct alike *a)
{
    const size_t all = a->all[0] + a->all[1], grown = a->grown[0] + a->grown[1];
    if (all < OPS_LEAST || (double)grown < ALIKE_PART * (double)all || !a->most) return false;
    if (a->all[1] && (double)a->grown[1] < ALIKE_SHARE * (double)a->all[1]) return false;
    if (!is_little(g, a->added_ns)) return false;
    if (g->has_shapes) return 2 * a->sized >= grown;
    const double more = g->optimizer_ns[1] - g->optimizer_ns[0];
    return a->grown[1] && g->optimizer_ns[0] > 0 && more < ALIKE_SHARE * (g->ns[1] / g->ns[0] - 1) * g->optimizer_ns[0];
}

/* "[32, 3, 64, 64]": the first that has a size. */
static const char *shape_text(const struct kp_costrules *x, int32_t node)
{
    const char *at = kp_kineto_text(x->tree->trace, kp_kineto_shapes(kp_tree_event(x->tree, (size_t)node)));
    while (*at && !(*at == '[' && at[1] >= '0' && at[1] <= '9')) at++;
    const char *const end = strchr(at, ']');
    return end ? kp_costrules_text(x, "%.*s", (int)(end - at + 1), at) : "";
}

static const char *inputs_text(const struct larger *g, const struct op_growth *most, const char *times)
{
    const struct kp_costrules *const x = g->x;
    if (!g->has_shapes)
        return kp_costrules_text(x,
                                 "steps get slower, %s, as if their inputs grow: as many ops run, and most of the "
                                 "forward and backward pass take longer alike, but not the optimizer's. kprof run "
                                 "--record-shapes shows the sizes",
                                 times);
    const uint32_t line = kp_costplace_line(x->tree, most->node[1]);
    return kp_costrules_text(x, "steps get slower, %s, because inputs grow: that of %s%s%s from %s to %s", times,
                             kp_costrules_name(x, most->node[1]), line ? " at " : "",
                             line ? kp_kineto_text(x->tree->trace, line) : "", shape_text(x, most->node[0]),
                             shape_text(x, most->node[1]));
}

/* Layers that were frozen at first are trained later: half of the growth is theirs, or the rest is of inputs. */
static const char *trained_text(const struct larger *g, const struct alike *a, const char *times)
{
    const struct kp_costrules *const x = g->x;
    const int32_t node = a->trained->node[1];
    const uint32_t line = kp_costplace_line(x->tree, node);
    return kp_costrules_text(x, "steps get slower, %s, as more layers are trained: %s%s%s did not run at first%s",
                             times, kp_costrules_name(x, node), line ? ", backward of " : "",
                             line ? kp_kineto_text(x->tree->trace, line) : "",
                             a->most && g->has_shapes ? ". Their inputs grow as well" : "");
}

static const char *growth_text(const struct larger *g, const struct kp_steptrend *trend)
{
    const struct alike a = alike_of(g);
    const char *const times = kp_costrules_text(g->x, "%s in the first third of them and %s in the last",
                                                kp_units_ms(trend->early_ns), kp_units_ms(trend->late_ns));
    const bool are_larger = are_inputs(g, &a), are_trained = a.trained && is_little(g, a.added_ns);
    const bool are_most = a.trained_ns >= TRAINED_SHARE * (g->ns[1] - g->ns[0]);
    if (are_trained && !is_little(g, a.trained_ns) && (are_larger || are_most)) return trained_text(g, &a, times);
    return are_larger ? inputs_text(g, a.most, times) : NULL;
}

const char *kp_growth_of_inputs(const struct kp_costrules *x, const double *of, const struct kp_steptrend *trend)
{
    struct larger g = {.x = x, .of = of};
    const size_t steps = x->chosen->step_count, third = steps / 3;
    if (x->out->has_gpu) return NULL;
    for (size_t i = 0; i < third; i++) step_take(&g, i, 0);
    for (size_t i = 0; i < third; i++) step_take(&g, steps - 1 - i, 1);
    const double more = (g.ns[1] - g.ns[0] + g.optimizer_ns[1] - g.optimizer_ns[0]) / (double)third;
    const char *text = NULL;
    if (g.ns[0] > 0 && more >= OPS_SHARE * (trend->late_ns - trend->early_ns)) text = growth_text(&g, trend);
    kp_keyindex_fini(&g.ops);
    return text;
}

/* ---- calls ---- */

struct op_calls {
    double count, ns; /* medians of some steps */
};

static struct op_calls calls_of(const struct kp_costrules *x, const struct kp_finding *f, size_t from, size_t end)
{
    struct kp_sample counts = {0}, times = {0};
    for (size_t i = from; i < end; i++) {
        double count = 0, ns = 0;
        for (struct kp_longsteps_walk w = kp_longsteps_walk_of(x, i, false); kp_longsteps_next(&w);) {
            const uint32_t line = kp_costplace_line(x->tree, w.node);
            if (strcmp(kp_costrules_name(x, w.node), f->where) != 0) continue;
            if (!line || strcmp(kp_kineto_text(x->tree->trace, line), f->line) != 0) continue;
            count++;
            ns += (double)w.ns;
        }
        kp_sample_add(&counts, count);
        kp_sample_add(&times, ns);
    }
    return (struct op_calls){kp_sample_end(&counts, 0.5), kp_sample_end(&times, 0.5)};
}

void kp_growth_of_calls(const struct kp_costrules *x, struct kp_finding *f, bool is_carried)
{
    const size_t steps = x->chosen->step_count, few = opening_of(x);
    if (!f->where || !f->line || x->out->has_gpu) return;
    const struct op_calls first = calls_of(x, f, 0, few), last = calls_of(x, f, steps - few, steps);
    const double each = first.count > 0 ? first.ns / first.count : last.count > 0 ? last.ns / last.count : 0;
    if (last.count < first.count + 1 || last.count < CALLS_GROWN * first.count) return;
    if (each * (last.count - first.count) < CALLS_SHARE * (last.ns - first.ns)) return;
    f->what =
        kp_costrules_text(x, "%s, as %s runs %.0f time%s a step at first and %.0f at the end, at %s", f->what, f->where,
                          first.count, first.count > 1 || first.count < 1 ? "s" : "", last.count, f->line);
    if (!is_carried)
        f->change = "Look for what is added again and again and never removed: a hook (keep what "
                    "register_forward_hook() returns, and call its remove()), a callback, an item of a list that a "
                    "loop goes over. A loop over longer inputs does so as well.";
}
