// SPDX-License-Identifier: Apache-2.0
/*
 * parametrizerule.c - a parametrized weight that a step computes again before a backward pass
 *
 * torch computes it at each access. Only a module's call tells which weight it is, so it takes --with-stack 1. A
 * backward pass or an optimizer ends what a cache may keep: the graph is gone, or the parameters are others.
 */
#include "export/answers/advise/opsrules/opsrules.h"

#include <stdlib.h>

#include "export/read/frames/framename.h"

struct weight {
    size_t passes; /* backward passes before its last call */
};
struct weights {
    const struct kp_costrules *x;
    struct kp_cost cost;
    struct kp_keyindex calls; /* by the name of the weight's list of parametrizations: a struct weight */
    size_t passes, count, again;
    int64_t end_ns, tid; /* of the last call that was one again */
    bool *charged;       /* by node */
};

static bool is_call(const struct kp_costrules *x, size_t node)
{
    if (kp_tree_event(x->tree, node)->kind != KP_KINETO_PYTHON) return false;
    const char *const module = kp_framename_module(kp_costrules_name(x, (int32_t)node));
    return module && kp_name_begins(module, "ParametrizationList_");
}

static void call_take(struct weights *w, size_t node)
{
    const struct kp_node *const n = &w->x->tree->nodes[node];
    if (!kp_spans_has(&w->x->chosen->in_steps, n->start_ns)) return;
    const struct kp_kineto_event *const e = kp_tree_event(w->x->tree, node);
    struct weight *const of = kp_keyindex_row(&w->calls, e->name, &(struct weight){SIZE_MAX}, sizeof *of);
    const bool is_again = of->passes == w->passes;
    of->passes = w->passes;
    w->count++;
    w->again += is_again;
    if (is_again) w->end_ns = n->end_ns, w->tid = e->tid;
}

static void node_take(struct weights *w, size_t node)
{
    const struct kp_costrules *const x = w->x;
    const struct kp_node *const n = &x->tree->nodes[node];
    if (kp_node_is(x->tree, node, KP_NAME_STEP | KP_NAME_ENGINE | KP_NAME_OPTIMIZER)) w->passes++;
    if (is_call(x, node)) call_take(w, node);
    if (n->start_ns >= w->end_ns || kp_tree_event(x->tree, node)->tid != w->tid) return;
    if (!kp_costrules_is_op(x, node) || kp_costplace_op(x->tree, (int32_t)node) != (int32_t)node) return;
    w->charged[node] = true;
    kp_cost_add(&w->cost, x, (int32_t)node, n->start_ns, n->end_ns, 1);
}

void kp_rules_parametrized(struct kp_costrules *x)
{
    const double steps = (double)(x->chosen->step_count + !x->chosen->step_count);
    struct weights w = {.x = x, .cost = kp_cost_open(x)};
    w.charged = kp_kineto_zeros(x->tree->count + 1, sizeof *w.charged);
    for (size_t i = 0; i < x->tree->count && !x->out->has_gpu; i++) node_take(&w, i);
    if (w.again) kp_cost_add_backward(&w.cost, x, w.charged);
    const struct kp_cost_rule rule = {
        0.05, 0, "parametrized-again",
        kp_costrules_text(
            x,
            "parametrized weights are computed %.3g times per step, %.3g of them with the same parameters "
            "as before (forward and backward of these)",
            (double)w.count / steps, (double)w.again / steps),
        "Compute each weight once a step: run the forward pass within torch.nn.utils.parametrize.cached()."};
    kp_cost_tell(&w.cost, x, &rule);
    kp_keyindex_fini(&w.calls);
    free(w.charged);
}
