// SPDX-License-Identifier: Apache-2.0
/*
 * densegrads.c - the gradient of an embedding has as many rows as its weight, whatever few a batch asks for
 *
 * The optimizer then goes over all rows as well, some ten times (Adam), which costs more than the gradient. Its ops,
 * and those of autograd's engine that add gradients, are known by how many elements they have. A weight that a product
 * uses as well has a gradient of all rows either way.
 */
#include "export/answers/advise/opsrules/opsrules.h"

#include <math.h>

#include "export/show/shapetext.h"

enum { WEIGHTS_MOST = 8, TENSORS_MOST = 64, ROWS_TIMES = 8, UPDATE_TIMES = 10, INSIDE_MOST = 12 };

static const struct kp_cost_rule rule = {0.05, 0, "dense-embedding-gradient", "",
                                         "Use torch.nn.Embedding(..., sparse=True) with torch.optim.SparseAdam, SGD or "
                                         "Adagrad. The gradient then has the rows "
                                         "of the batch alone, and the optimizer leaves the others as they are."};

struct weight {
    double elements, rows, asked; /* asked: rows of a batch, at most */
    uint32_t op;                  /* the first op of the optimizer that updates such a weight; 0: none is known */
    size_t updates;               /* how often that op runs */
    int32_t gradient;             /* a node: where all of it is told */
    bool is_multiplied;
};
struct dense {
    struct kp_costrules *x;
    struct weight weights[WEIGHTS_MOST];
    size_t count;
    double update_ns; /* of the optimizer, in all steps */
    double made;      /* elements of new tensors there: gradients, and what an op returns */
    struct kp_cost cost;
};

static size_t tensors_read(const struct kp_costrules *x, size_t node, size_t input, double of[TENSORS_MOST])
{
    const uint32_t shapes = kp_kineto_shapes(kp_tree_event(x->tree, node));
    return shapes ? kp_shapetext_elements(kp_kineto_text(x->tree->trace, shapes), input, of, TENSORS_MOST) : 0;
}

/* 0: the input is a list, or none. */
static double elements_of(const struct kp_costrules *x, size_t node, size_t input)
{
    double of[TENSORS_MOST];
    return tensors_read(x, node, input, of) == 1 ? of[0] : 0;
}

/* ---- the gradients ---- */

/* The elements of the gradient that an op inside sets to zero; 0: none does. */
static double elements_made(const struct kp_costrules *x, size_t node)
{
    const struct kp_node *const nodes = x->tree->nodes;
    for (size_t i = node + 1; i < x->tree->count && i < node + INSIDE_MOST; i++) {
        const int32_t parent = nodes[i].parent;
        if (parent < 0 || (parent != (int32_t)node && nodes[parent].parent != (int32_t)node)) continue;
        if (strcmp(kp_costrules_name(x, (int32_t)i), "aten::zero_") == 0) return elements_of(x, i, 0);
    }
    return 0;
}

static struct weight *weight_of(struct dense *d, double elements)
{
    for (size_t i = 0; i < d->count; i++)
        if (d->weights[i].elements == elements) return &d->weights[i];
    return NULL;
}

static void gradient_take(struct dense *d, size_t node)
{
    const double sent = elements_of(d->x, node, 0), asked = elements_of(d->x, node, 1);
    const double made = elements_made(d->x, node);
    if (!(sent > 0) || !(asked > 0) || made < ROWS_TIMES * sent) return;
    struct weight *w = weight_of(d, made);
    if (!w && d->count == WEIGHTS_MOST) return;
    if (!w) {
        w = &d->weights[d->count++];
        *w = (struct weight){.elements = made, .rows = made * asked / sent, .gradient = (int32_t)node};
    }
    if (asked > w->asked) w->asked = asked;
    kp_cost_add_node(&d->cost, node, 1);
    d->made += made;
}

/* Returns how long gradients take whose shapes were not recorded. */
static double gradients_find(struct dense *d)
{
    double bare_ns = 0;
    for (size_t i = 0; i < d->x->tree->count; i++) {
        if (strcmp(kp_costrules_name(d->x, (int32_t)i), "aten::embedding_dense_backward") != 0) continue;
        if (!kp_costrules_is_op(d->x, i) || !kp_costrules_in_steps(d->x, i)) continue;
        if (!kp_kineto_shapes(kp_tree_event(d->x->tree, i))) bare_ns += (double)kp_costrules_ns(d->x, i);
        gradient_take(d, i);
    }
    return bare_ns;
}

/* ---- what goes over all rows of them ---- */

/* An op of the optimizer, or one of autograd's engine itself, which adds up gradients. */
static bool is_update(const struct kp_costrules *x, size_t node)
{
    const int32_t parent = x->tree->nodes[node].parent;
    if (kp_costrules_is_outer(x, node)) return kp_node_is_in(x->tree, parent, KP_NAME_OPTIMIZER);
    return parent >= 0 && kp_costrules_is_op(x, node) && kp_node_is(x->tree, (size_t)parent, KP_NAME_ENGINE);
}

/* A product with the weight itself is of a head that shares it, or has one as large. */
static void product_take(struct dense *d, size_t node)
{
    for (size_t input = 0; input < 3; input++) {
        struct weight *const w = weight_of(d, elements_of(d->x, node, input));
        if (w) w->is_multiplied = true;
    }
}

/* One op updates a list of weights, if it is foreach or fused. */
static void update_count(struct dense *d, size_t node)
{
    const uint32_t op = kp_tree_event(d->x->tree, node)->name;
    double of[TENSORS_MOST];
    const size_t tensors = tensors_read(d->x, node, 0, of);
    for (size_t i = 0; i < tensors; i++) {
        struct weight *const w = weight_of(d, of[i]);
        if (w && !w->op) w->op = op;
        if (w && w->op == op) w->updates++;
    }
}

static void uses_find(struct dense *d)
{
    const struct kp_costrules *const x = d->x;
    for (size_t i = 0; i < x->tree->count; i++) {
        const char *const name = kp_costrules_name(x, (int32_t)i);
        if (!kp_costrules_in_steps(x, i)) continue;
        if (KP_NAME_IS(name, "aten::mm", "aten::addmm", "aten::bmm")) product_take(d, i);
        if (is_update(x, i) && kp_node_is_in(x->tree, (int32_t)i, KP_NAME_OPTIMIZER)) update_count(d, i);
    }
}

/* The share of such weights that is the embedding's: a head as large is updated as often. 0: it shares the weight. */
static double share_of(const struct dense *d, const struct weight *w)
{
    if (!w->is_multiplied) return 1;
    return w->updates >= 2 * d->x->chosen->step_count ? 0.5 : 0;
}

static void update_charge(struct dense *d, size_t node)
{
    const struct kp_node *const n = &d->x->tree->nodes[node];
    const bool is_optimizer = kp_node_is_in(d->x->tree, (int32_t)node, KP_NAME_OPTIMIZER);
    const bool makes = KP_NAME_IS(kp_costrules_name(d->x, (int32_t)node), "aten::sqrt", "aten::div",
                                  "aten::_foreach_sqrt", "aten::_foreach_div");
    double of[TENSORS_MOST], all = 0;
    const size_t tensors = tensors_read(d->x, node, 0, of);
    for (size_t i = 0; i < tensors; i++) all += of[i];
    for (size_t i = 0; i < tensors; i++) {
        const struct weight *const w = weight_of(d, of[i]);
        if (!w) continue;
        const double share = share_of(d, w) * of[i] / all;
        kp_cost_add(&d->cost, w->gradient, n->start_ns, n->end_ns, share);
        if (is_optimizer) d->update_ns += share * (double)kp_costrules_ns(d->x, node);
        if (is_optimizer && makes) d->made += w->elements;
    }
}

static void updates_charge(struct dense *d)
{
    for (size_t i = 0; i < d->x->tree->count; i++)
        if (is_update(d->x, i) && kp_costrules_in_steps(d->x, i)) update_charge(d, i);
}

/* ---- the finding ---- */

/* An optimizer goes over all rows some ten times (Adam), so it costs much where the gradient alone does not. */
static bool may_be_much(const struct kp_costrules *x, double ns)
{
    const double least = rule.bound * x->out->step_ns * (double)x->chosen->step_count;
    struct kp_spans updates = {0};
    kp_costrules_spans(x, KP_NAME_OPTIMIZER, &updates);
    const double update_ns = (double)kp_spans_length(&updates, &x->chosen->in_steps);
    kp_spans_fini(&updates);
    return ns > 0 && (ns >= least || (UPDATE_TIMES * ns >= least && update_ns >= least));
}

static void unjudged_tell(struct kp_costrules *x, double bare_ns)
{
    struct kp_finding *const f = kp_costrules_find(x, KP_FINDING_OPTIMIZER);
    if (!may_be_much(x, bare_ns)) return;
    kp_costrules_unjudged(x, "rows of an embedding's gradient (kprof run --record-shapes)");
    if (f)
        f->change =
            KP_TEXT("An embedding may have many more rows than a batch uses (kprof run --record-shapes tells), and "
                    "the optimizer updates them all: torch.nn.Embedding(..., sparse=True) with "
                    "torch.optim.SparseAdam, SGD or Adagrad updates those of the batch. Else: %s",
                    f->change);
}

/* The optimizer's own finding goes where most of it is this. */
static void dense_tell(struct dense *d)
{
    struct kp_costrules *const x = d->x;
    const struct kp_finding *const optimizer = kp_costrules_find(x, KP_FINDING_OPTIMIZER);
    const bool is_most = optimizer && 2 * d->update_ns >= optimizer->step_ns * (double)x->out->steps;
    const struct weight *most = &d->weights[0];
    for (size_t i = 1; i < d->count; i++)
        if (d->weights[i].elements > most->elements) most = &d->weights[i];
    struct kp_cost_rule said = rule;
    said.what = KP_TEXT("the gradient of an embedding has all its %.0f rows%s, and a batch uses %.0f or fewer",
                        most->rows, d->update_ns > 0 ? ", which the optimizer updates" : "", most->asked);
    if (is_most) said.change = KP_TEXT("%s fused=True is faster for the other parameters.", rule.change);
    if (!kp_cost_tell(&d->cost, &said)) return;
    if (is_most) kp_finding_drop(x->out, kp_costrules_find(x, KP_FINDING_OPTIMIZER));
    kp_rules_faults_drop(x, d->made);
}

void kp_rules_dense_gradients(struct kp_costrules *x)
{
    struct dense d = {.x = x, .cost = kp_cost_open(x)};
    const double bare_ns = gradients_find(&d);
    bool is_one = false;
    unjudged_tell(x, bare_ns);
    if (d.count) uses_find(&d);
    for (size_t i = 0; i < d.count; i++) is_one |= share_of(&d, &d.weights[i]) > 0;
    if (!is_one) {
        kp_cost_drop(&d.cost);
        return;
    }
    updates_charge(&d);
    dense_tell(&d);
}
