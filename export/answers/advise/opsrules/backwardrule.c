// SPDX-License-Identifier: Apache-2.0
/*
 * backwardrule.c - Python, or an extension, that runs in the backward of a custom autograd function, without an op
 *
 * The nodes of autograd that are written in C++ end with a digit (MmBackward0), those of Python do not. What
 * torch.compile compiles runs without ops as well, and is no Python.
 */
#include "export/answers/advise/opsrules/opsrules.h"

#include <string.h>

static const struct kp_cost_rule rule = {
    0.10, 0, "python-backward",
    "the backward of a custom autograd function runs Python, or an extension, without an op",
    "Write it with torch operators, or let autograd derive it. An extension that computes there is to be timed by "
    "itself."};

static bool is_python_backward(const struct kp_costrules *x, int32_t node)
{
    static const char end[] = "Backward";
    const char *const name = kp_costrules_name(x, node);
    const size_t length = strlen(name), bytes = sizeof end - 1;
    return length > bytes && strcmp(name + length - bytes, end) == 0 && !strchr(name, ':') &&
           strncmp(name, "CompiledFunction", 16) != 0 && kp_costrules_is_op(x, (size_t)node);
}

/* The innermost op around a node; -1: none. */
static int32_t op_around(const struct kp_costrules *x, size_t node)
{
    int32_t at = x->tree->nodes[node].parent;
    while (at >= 0 && !kp_costrules_is_op(x, (size_t)at)) at = x->tree->nodes[at].parent;
    return at;
}

void kp_rules_python_backward(struct kp_costrules *x)
{
    struct kp_cost cost = kp_cost_open(x);
    const bool has_ranks = x->out->mean_ns[KP_SPLIT_COMM] > 0; /* it may wait for them */
    for (size_t i = 0; i < x->tree->count && !x->out->has_gpu && !has_ranks; i++) {
        const struct kp_node *const n = &x->tree->nodes[i];
        const int32_t around = kp_costrules_is_op(x, i) ? op_around(x, i) : -1;
        if (is_python_backward(x, (int32_t)i)) kp_cost_add(&cost, x, (int32_t)i, n->start_ns, n->end_ns, 1);
        if (around >= 0 && is_python_backward(x, around)) kp_cost_add(&cost, x, around, n->start_ns, n->end_ns, -1);
    }
    struct kp_finding *const f = kp_cost_tell(&cost, x, &rule);
    if (f) f->is_critical = false; /* what an extension computes may be needed */
}
