// SPDX-License-Identifier: Apache-2.0
/*
 * parametrizerule.c - a parametrized weight that a step computes again before a backward pass
 *
 * torch computes it at each access. Only a module's call tells which weight it is, so it takes --with-stack 1. A
 * backward pass or an optimizer ends what a cache may keep: the graph is gone, or the parameters are others.
 */
#include "export/answers/advise/opsrules/opsrules.h"

#include <string.h>

#include "export/read/frames/framename.h"

struct weights {
    struct kp_cost cost;
    struct kp_keyindex calls; /* by the weight's list of parametrizations; rows: passes before its last call */
    size_t passes, count, again;
    int64_t end_ns, tid; /* of the last call that was one again */
};

static bool is_call(const struct kp_costrules *x, size_t node)
{
    if (kp_tree_event(x->tree, node)->kind != KP_KINETO_PYTHON) return false;
    const char *const module = kp_framename_module(kp_costrules_name(x, (int32_t)node));
    return module && kp_name_begins(module, "ParametrizationList_");
}

static void call_take(struct weights *w, size_t node)
{
    const struct kp_tree *const tree = w->cost.x->tree;
    const struct kp_kineto_event *const e = kp_tree_event(tree, node);
    if (!kp_costrules_in_steps(w->cost.x, node)) return;
    size_t *const passes = kp_keyindex_row(&w->calls, e->name, &(size_t){SIZE_MAX}, sizeof *passes);
    const bool is_again = *passes == w->passes;
    *passes = w->passes;
    w->count++;
    w->again += is_again;
    if (is_again) w->end_ns = tree->nodes[node].end_ns, w->tid = e->tid;
}

static void node_take(struct weights *w, size_t node)
{
    const struct kp_costrules *const x = w->cost.x;
    if (kp_node_is(x->tree, node, KP_NAME_STEP | KP_NAME_ENGINE | KP_NAME_OPTIMIZER)) w->passes++;
    if (is_call(x, node)) call_take(w, node);
    if (x->tree->nodes[node].start_ns >= w->end_ns || kp_tree_event(x->tree, node)->tid != w->tid) return;
    if (kp_costrules_is_outer(x, node)) kp_cost_add_forward(&w->cost, node);
}

/* ---- without calls of Python ---- */

#define SHOWN_SHARE 0.05 /* of a step */

/* An op that torch runs for a parametrized weight, by its stack. */
static bool is_of_weight(const struct kp_costrules *x, size_t node, struct kp_keyindex *known)
{
    const uint32_t stack = kp_tree_event(x->tree, node)->stack;
    if (!stack || !kp_costrules_is_outer(x, node) || !kp_costrules_in_steps(x, node)) return false;
    const size_t before = known->count;
    bool *const is = kp_keyindex_row(known, stack, &(bool){false}, sizeof *is);
    if (known->count > before) *is = strstr(kp_kineto_text(x->tree->trace, stack), "torch/nn/utils/parametrize.py(");
    return *is;
}

/* Which weights they are, and whether they are computed again, is not known then. */
static void unjudged_say(struct kp_costrules *x)
{
    struct kp_cost cost = kp_cost_open(x);
    struct kp_keyindex known = {0};
    for (size_t i = 0; i < x->tree->count; i++)
        if (is_of_weight(x, i, &known)) kp_cost_add_forward(&cost, i);
    kp_cost_add_backward(&cost);
    const double share = x->out->step_ns > 0 ? kp_cost_mean(&cost) / x->out->step_ns : 0;
    if (share > SHOWN_SHARE)
        kp_costrules_unjudged(x, KP_TEXT("whether parametrized weights, %.0f %% of a step, are computed more than once "
                                         "with the same parameters (kprof run --with-stack 1 --schedule 10-12)",
                                         100 * share));
    kp_keyindex_fini(&known);
    kp_cost_drop(&cost);
}

void kp_rules_parametrized(struct kp_costrules *x)
{
    const double steps = (double)x->chosen->step_count;
    struct weights w = {.cost = kp_cost_open(x)};
    for (size_t i = 0; i < x->tree->count && !x->out->has_gpu; i++) node_take(&w, i);
    if (!kp_costrules_has_calls(x) && x->tree->trace->has_stacks && !x->out->has_gpu) unjudged_say(x);
    kp_cost_add_backward(&w.cost);
    const struct kp_cost_rule rule = {
        0.05, 0, "parametrized-again",
        KP_TEXT("parametrized weights are computed %.3g times per step, %.3g of them with the same "
                "parameters as before (forward and backward of these)",
                (double)w.count / steps, (double)w.again / steps),
        "Compute each weight once a step: run the forward pass within torch.nn.utils.parametrize.cached()."};
    kp_cost_tell(&w.cost, &rule);
    kp_keyindex_fini(&w.calls);
}
