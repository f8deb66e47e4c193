// SPDX-License-Identifier: Apache-2.0
/*
 * anomalyrule.c - torch's anomaly mode: a check for NaN behind each node of autograd, a stack kept of each forward op
 *
 * torch calls isnan, any and item of each gradient in its engine's range: aten::any up to 1.13, then _is_any_true. The
 * stack is made inside of the forward op. Ops that only view a tensor take no other time, so they tell what it costs.
 */

#include <stdlib.h>

#include "export/answers/advise/opsrules/opsrules.h"

#define WITH_GPU_EXPLAINS                                                                             \
    (1u << KP_CAUSE(KP_IDLE_SYNC) | 1u << KP_CAUSE(KP_IDLE_LAUNCH) | 1u << KP_CAUSE(KP_IDLE_PYTHON) | \
     1u << KP_SPLIT_IDLE)

struct anomaly {
    struct kp_cost cost;
    double checks_ns, stacks_ns; /* of all steps */
    size_t checks, stacks, ranges, checked;
    bool *has_stack; /* by node: it is a forward op whose node of autograd ran */
};

/* Charges a time, which counts for `ns`. On a GPU only while it computes nothing. Returns what was charged. */
static double charge(struct anomaly *a, int32_t node, int64_t from, int64_t to, double ns)
{
    if (to <= from) return 0;
    const double weight = ns / (double)(to - from) * kp_cost_exposed(a->cost.x, from, to);
    kp_cost_add(&a->cost, node, from, to, weight);
    return weight * (double)(to - from);
}

/* isnan, any and item, in this order, of the engine's range itself. */
static size_t checks_charge(struct anomaly *a, size_t range)
{
    const struct kp_node *const nodes = a->cost.x->tree->nodes;
    int32_t begin = -1;
    bool is_asked = false;
    size_t count = 0;
    for (int32_t i = nodes[range].first_child; i >= 0; i = nodes[i].next_sibling) {
        const char *const name = kp_costrules_name(a->cost.x, i);
        if (strcmp(name, "aten::isnan") == 0) begin = i, is_asked = false;
        else if (KP_NAME_IS(name, "aten::_is_any_true", "aten::any")) is_asked = begin >= 0;
        else if (is_asked && strcmp(name, "aten::item") == 0) {
            const int64_t from = nodes[begin].start_ns, to = nodes[i].end_ns;
            a->checks_ns += charge(a, begin, from, to, (double)(to - from));
            begin = -1;
            is_asked = false;
            count++;
        }
    }
    return count;
}

static bool is_view(const char *op)
{
    return KP_NAME_IS(op, "aten::t", "aten::view", "aten::transpose", "aten::permute", "aten::expand",
                      "aten::unsqueeze", "aten::squeeze", "aten::slice", "aten::select");
}

/* The ops in it do not count. */
static int64_t self_ns(const struct kp_costrules *x, size_t node)
{
    const struct kp_node *const nodes = x->tree->nodes;
    int64_t ns = kp_costrules_ns(x, node);
    for (int32_t i = nodes[node].first_child; i >= 0; i = nodes[i].next_sibling)
        if (!nodes[i].is_python) ns -= kp_costrules_ns(x, (size_t)i);
    return ns > 0 ? ns : 0;
}

static bool is_of_stacks(const struct anomaly *a, size_t node)
{
    return a->has_stack[node] && kp_costrules_in_steps(a->cost.x, node);
}

/* Charges each forward op with what a view takes in the mean: a wait for a core hits one in many. */
static void stacks_charge(struct anomaly *a)
{
    const struct kp_costrules *const x = a->cost.x;
    double views_ns = 0;
    size_t views = 0;
    for (size_t i = 0; i < x->tree->count; i++) {
        if (!is_of_stacks(a, i) || !is_view(kp_costrules_name(x, (int32_t)i))) continue;
        views_ns += (double)self_ns(x, i);
        views++;
    }
    for (size_t i = 0; i < x->tree->count && views; i++) {
        const struct kp_node *const node = &x->tree->nodes[i];
        if (!is_of_stacks(a, i)) continue;
        a->stacks_ns += charge(a, (int32_t)i, node->start_ns, node->end_ns, views_ns / (double)views);
        a->stacks++;
    }
}

static void ranges_charge(struct anomaly *a)
{
    const struct kp_costrules *const x = a->cost.x;
    for (size_t i = 0; i < x->tree->count; i++) {
        const char *const name = kp_costrules_name(x, (int32_t)i);
        const bool is_range = !x->tree->nodes[i].on_device && kp_name_begins(name, KP_ENGINE_RANGE);
        if (!is_range || strcmp(name + strlen(KP_ENGINE_RANGE), KP_ACCUMULATE_GRAD) == 0) continue;
        if (!kp_costrules_in_steps(x, i)) continue;
        const size_t checks = checks_charge(a, i);
        for (int32_t k = x->tree->nodes[i].first_child; k >= 0; k = x->tree->nodes[k].next_sibling)
            if (x->tree->nodes[k].forward >= 0) a->has_stack[x->tree->nodes[k].forward] = true;
        a->ranges++;
        a->checked += checks > 0;
        a->checks += checks;
    }
}

void kp_rules_anomaly(struct kp_costrules *x)
{
    const double steps = (double)x->chosen->step_count;
    struct anomaly a = {.cost = kp_cost_open(x)};
    struct kp_cost_rule rule = {
        0.02, x->out->has_gpu ? WITH_GPU_EXPLAINS : 0, "anomaly-mode", "",
        "Remove torch.autograd.detect_anomaly() or set_detect_anomaly(True): it is meant for debugging."};
    a.has_stack = kp_kineto_zeros(x->tree->count + 1, sizeof *a.has_stack);
    ranges_charge(&a);
    const bool is_on = a.checks && 2 * a.checked >= a.ranges;
    if (is_on) stacks_charge(&a);
    const char *const stacks =
        a.stacks ? KP_TEXT(", and keeps a stack of Python for each of %.0f forward ops (about %.3f ms)",
                           (double)a.stacks / steps, a.stacks_ns / steps / 1e6)
                 : ", and keeps a stack of Python for each forward op, which is not in this cost";
    rule.what =
        KP_TEXT("anomaly mode is on: autograd makes %.0f checks for NaN in a step (%.3f ms)%s; that costs at least",
                (double)a.checks / steps, a.checks_ns / steps / 1e6, stacks);
    kp_cost_tell_if(&a.cost, &rule, is_on);
    free(a.has_stack);
}
