// SPDX-License-Identifier: Apache-2.0
/*
 * hookrule.c - a hook of the program that computes on gradients before it sends them to the other ranks
 *
 * Autograd calls it within a node, and what it runs has a line of its own, where the node has that of backward().
 * Hooks that send nothing are left out: an optimizer may be one. So are torch's own, which have no line of the program.
 */
#include "export/answers/advise/opsrules/opsrules.h"

#include <stdlib.h>

/* The node of autograd in which a hook runs this op, as its outermost one; -1: it is none. */
static int32_t engine_of(const struct kp_costrules *x, size_t node)
{
    const int32_t around = x->tree->nodes[node].parent;
    if (around < 0 || !kp_costrules_is_op(x, node) || !kp_node_is(x->tree, (size_t)around, KP_NAME_ENGINE)) return -1;
    struct kp_kineto *const trace = x->tree->trace;
    const uint32_t line = kp_ownline_of(trace, kp_tree_event(x->tree, node)->stack);
    return line && line != kp_ownline_of(trace, kp_tree_event(x->tree, (size_t)around)->stack) ? around : -1;
}

void kp_rules_hooks(struct kp_costrules *x)
{
    struct kp_cost cost = kp_cost_open(x);
    int32_t *const engines = kp_kineto_room(x->tree->count + 1, sizeof *engines);
    bool *const sends = kp_kineto_zeros(x->tree->count + 1, sizeof *sends); /* by node of autograd: its hook does */
    for (size_t i = 0; i < x->tree->count; i++) {
        engines[i] = engine_of(x, i);
        if (engines[i] >= 0 && kp_node_is(x->tree, i, KP_NAME_COMM_OP)) sends[engines[i]] = true;
    }
    for (size_t i = 0; i < x->tree->count; i++)
        if (engines[i] >= 0 && sends[engines[i]] && !kp_node_is(x->tree, i, KP_NAME_COMM_OP))
            kp_cost_add_node(&cost, i, 1);
    const struct kp_cost_rule rule = {
        0.10, KP_RULE_MILD, "hook-before-collective", /* without it the collectives may take longer */
        KP_TEXT("a hook of the backward pass computes on gradients before it sends them (the step waits "
                "%.3g ms for collectives)",
                x->out->mean_ns[KP_SPLIT_COMM] / 1e6),
        "Run without the hook and compare the steps. It pays where it makes what is sent much smaller, and the network "
        "is slow: a tensor that keeps its size, with zeros in it, saves nothing. torch has fp16_compress_hook and "
        "powerSGD_hook."};
    kp_cost_tell(&cost, &rule);
    free(engines);
    free(sends);
}
