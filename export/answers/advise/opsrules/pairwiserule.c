// SPDX-License-Identifier: Apache-2.0
/*
 * pairwiserule.c - distances of all pairs by a difference that is broadcast: torch.cdist writes no such tensor
 *
 * A difference of [N, 1, D] and [1, M, D] has N * M * D elements, is written, squared, and read again for a sum or a
 * norm over D. Its backward counts as well, and the time behind each op, in which Python frees such a tensor. It needs
 * shapes. On a CPU: on a GPU its kernels are seen as that.
 */
#include "export/answers/advise/opsrules/opsrules.h"

#include <stdio.h>

#include "export/show/shapetext.h"
#include "export/show/units.h"

#define BOUND 0.10 /* of a step */
enum {
    FREE_NS = 100000000,
    BETWEEN_MOST = 3,
    DEPTH_MILD = 8,
    ELEMENT_BYTES = 4
}; /* below that depth a distance is little to compute */

struct pairwise {
    struct kp_costrules *x;
    struct kp_cost cost;
    struct kp_dims open; /* of the difference; count 0: none is open */
    int64_t tid;
    size_t nodes[1 + BETWEEN_MOST], node_count, between;
    int32_t freed; /* the op behind which a tensor is freed; -1: none */
    size_t count;
    double elements, largest; /* that all wrote, and the largest difference */
    struct kp_dims shown;
};

static bool is_equal(double a, double b) { return !(a < b) && !(a > b); }

/* Returns the elements of the broadcast difference of two inputs, and its dimensions; 0: it is of no pairs. */
static double difference_of(struct kp_dims *out, const char *shapes)
{
    struct kp_dims a, b;
    bool a_grows = false, b_grows = false;
    double elements = 1;
    if (!kp_shapetext_dims(&a, shapes, 0) || !kp_shapetext_dims(&b, shapes, 1)) return 0;
    if (a.is_other || b.is_other || a.count < 3 || a.count != b.count) return 0;
    if (a.of[a.count - 1] < 2 || !is_equal(a.of[a.count - 1], b.of[a.count - 1])) return 0;
    *out = a;
    for (size_t i = 0; i < a.count; i++) {
        a_grows |= a.of[i] <= 1 && b.of[i] > 1;
        b_grows |= b.of[i] <= 1 && a.of[i] > 1;
        if (b.of[i] > a.of[i]) out->of[i] = b.of[i];
        elements *= out->of[i];
    }
    return a_grows && b_grows ? elements : 0;
}

static bool is_of_open(const struct pairwise *p, const char *shapes)
{
    struct kp_dims d;
    if (!kp_shapetext_dims(&d, shapes, 0) || d.is_other || d.count != p->open.count) return false;
    for (size_t i = 0; i < d.count; i++)
        if (!is_equal(d.of[i], p->open.of[i])) return false;
    return true;
}

static double elements_of(const struct kp_dims *d)
{
    double all = 1;
    for (size_t i = 0; i < d->count; i++) all *= d->of[i];
    return all;
}

static bool is_sum(const char *op)
{
    return KP_NAME_IS(op, "aten::sum", "aten::mean", "aten::norm", "aten::linalg_vector_norm");
}

static bool is_power(const char *op) { return KP_NAME_IS(op, "aten::pow", "aten::square", "aten::abs", "aten::mul"); }

/* The next op of the thread begins once the tensor is gone. */
static void free_charge(struct pairwise *p, size_t node, size_t next)
{
    const struct kp_node *const nodes = p->x->tree->nodes;
    const int64_t from = nodes[node].end_ns, to = nodes[next].start_ns;
    if (to > from && to - from < FREE_NS) kp_cost_add(&p->cost, (int32_t)node, from, to, 1);
}

static void difference_end(struct pairwise *p)
{
    const double elements = elements_of(&p->open);
    for (size_t i = 0; i < p->node_count; i++) {
        kp_cost_add_forward(&p->cost, p->nodes[i]);
        if (i) free_charge(p, p->nodes[i - 1], p->nodes[i]);
    }
    p->freed = (int32_t)p->nodes[p->node_count - 1];
    p->count++;
    p->elements += elements * (double)(p->node_count - 1);
    if (elements > p->largest) p->largest = elements, p->shown = p->open;
    p->open.count = 0;
}

static void op_take(struct pairwise *p, size_t i)
{
    const struct kp_kineto_event *const e = kp_tree_event(p->x->tree, i);
    const char *const name = kp_costrules_name(p->x, (int32_t)i);
    const char *const shapes = kp_kineto_text(p->x->tree->trace, kp_kineto_shapes(e));
    struct kp_dims dims;
    if (p->freed >= 0 && p->tid == e->tid) {
        free_charge(p, (size_t)p->freed, i);
        p->freed = -1;
    }
    if (KP_NAME_IS(name, "aten::sub", "aten::rsub") && difference_of(&dims, shapes) > 0) {
        p->open = dims;
        p->tid = e->tid;
        p->nodes[0] = i;
        p->node_count = 1;
        p->between = 0;
        return;
    }
    if (!p->open.count || p->tid != e->tid) return;
    const bool is_of = (is_power(name) || is_sum(name)) && is_of_open(p, shapes);
    if (is_of && p->node_count < sizeof p->nodes / sizeof *p->nodes) p->nodes[p->node_count++] = i;
    if (is_of && is_sum(name)) difference_end(p);
    else if (!is_of && ++p->between > BETWEEN_MOST) p->open.count = 0;
}

static void pairs_tell(struct pairwise *p)
{
    struct kp_costrules *const x = p->x;
    const size_t depth = (size_t)p->shown.of[p->shown.count - 1];
    const double each = (double)p->count / (double)x->chosen->step_count;
    char shape[120] = "";
    for (size_t i = 0, n = 0; i < p->shown.count && n < sizeof shape; i++)
        n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%.0f", i ? ", " : "", p->shown.of[i]);
    const struct kp_cost_rule rule = {
        BOUND, depth < DEPTH_MILD ? KP_RULE_MILD : 0, "pairwise-difference",
        KP_TEXT(
            "the differences of all pairs are written to a tensor of [%s], %s, and then summed, %.3g time%s per step",
            shape, kp_units_size((int64_t)(p->largest * ELEMENT_BYTES)), each, each > 1 || each < 1 ? "s" : ""),
        "torch.cdist(a, b) computes distances without that tensor (p=1 for absolute differences). Squares of them are "
        "a.square().sum(-1)[:, None] + b.square().sum(-1) - 2 * a @ b.T, and the nearest is that of torch.cdist."};
    kp_cost_add_backward(&p->cost);
    if (kp_cost_tell(&p->cost, &rule)) kp_rules_faults_drop(x, p->elements);
}

void kp_rules_pairwise(struct kp_costrules *x)
{
    struct pairwise p = {.x = x, .cost = kp_cost_open(x), .freed = -1};
    for (size_t i = 0; i < x->tree->count && !x->out->has_gpu; i++)
        if (kp_costrules_is_outer(x, i) && kp_costrules_in_steps(x, i)) op_take(&p, i);
    if (p.count) pairs_tell(&p);
    else kp_cost_drop(&p.cost);
}
