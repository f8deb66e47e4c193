// SPDX-License-Identifier: Apache-2.0
/* commops.c - finds ops that communicate, and what their callers do beside them */
#include "export/read/facts/comm/commops.h"

#include <stdlib.h>

#include "export/read/facts/namefacts.h"

static void op_mark(struct kp_commops *ops, const struct kp_tree *tree, size_t i)
{
    if (!ops->of) ops->of = kp_kineto_zeros(tree->count, 1);
    ops->of[i] = KP_COMMOP_IS;
    for (int32_t up = tree->nodes[i].parent; up >= 0 && !ops->of[up]; up = tree->nodes[up].parent)
        ops->of[up] = KP_COMMOP_INSIDE;
}

void kp_commops_find(struct kp_commops *out, const struct kp_tree *tree)
{
    *out = (struct kp_commops){0};
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *const n = &tree->nodes[i];
        const enum kp_kineto_kind kind = kp_tree_event(tree, i)->kind;
        if (n->on_device) continue;
        if (kind == KP_KINETO_ANNOTATION && kp_node_is(tree, i, KP_NAME_COLLECTIVE))
            kp_spans_add(&out->ranges, n->start_ns, n->end_ns);
        if (kind == KP_KINETO_OP && !n->is_async && kp_node_is(tree, i, KP_NAME_COMM_OP)) op_mark(out, tree, i);
    }
    kp_spans_settle(&out->ranges);
}

/* Adds what of this time lies in no collective. */
static void piece_add(struct kp_spans *out, const struct kp_spans *ranges, int64_t from_ns, int64_t to_ns)
{
    size_t i = kp_rows_from(ranges->of, ranges->count, sizeof *ranges->of, from_ns);
    for (i -= i > 0; i < ranges->count && ranges->of[i].start_ns < to_ns; i++) {
        if (ranges->of[i].end_ns <= from_ns) continue;
        kp_spans_add(out, from_ns, ranges->of[i].start_ns);
        from_ns = ranges->of[i].end_ns;
    }
    kp_spans_add(out, from_ns, to_ns);
}

void kp_commops_add(struct kp_spans *out, const struct kp_tree *tree, const struct kp_commops *ops, size_t node)
{
    const struct kp_node *const n = &tree->nodes[node];
    int64_t from_ns = n->start_ns;
    if (!ops->of || ops->of[node] != KP_COMMOP_INSIDE) {
        kp_spans_add(out, n->start_ns, n->end_ns);
        return;
    }
    for (int32_t c = n->first_child; c >= 0; c = tree->nodes[c].next_sibling) {
        if (!ops->of[c] || tree->nodes[c].is_async) continue;
        piece_add(out, &ops->ranges, from_ns, tree->nodes[c].start_ns);
        if (ops->of[c] == KP_COMMOP_INSIDE) kp_commops_add(out, tree, ops, (size_t)c);
        from_ns = tree->nodes[c].end_ns;
    }
    piece_add(out, &ops->ranges, from_ns, n->end_ns);
}

void kp_commops_fini(struct kp_commops *ops)
{
    free(ops->of);
    kp_spans_fini(&ops->ranges);
}
