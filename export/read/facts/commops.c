// SPDX-License-Identifier: Apache-2.0
/* commops.c - finds ops that communicate, and what their callers do beside them */
#include "export/read/facts/commops.h"

#include <stdlib.h>

#include "export/read/facts/vendor.h"

uint8_t *kp_commops_mark(const struct kp_tree *tree)
{
    uint8_t *marks = NULL;
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_kineto_event *const e = kp_tree_event(tree, i);
        if (e->kind != KP_KINETO_OP || tree->nodes[i].is_async || tree->nodes[i].on_device) continue;
        if (!kp_vendor_is_comm_op(kp_kineto_text(tree->trace, e->name))) continue;
        if (!marks) marks = kp_kineto_zeros(tree->count, 1);
        marks[i] = KP_COMMOP_IS;
        for (int32_t up = tree->nodes[i].parent; up >= 0 && !marks[up]; up = tree->nodes[up].parent)
            marks[up] = KP_COMMOP_INSIDE;
    }
    return marks;
}

void kp_commops_add(struct kp_spans *out, const struct kp_tree *tree, const uint8_t *marks, size_t node)
{
    const struct kp_node *const n = &tree->nodes[node];
    int64_t from_ns = n->start_ns;
    for (int32_t c = marks && marks[node] == KP_COMMOP_INSIDE ? n->first_child : -1; c >= 0;
         c = tree->nodes[c].next_sibling) {
        if (!marks[c] || tree->nodes[c].is_async) continue;
        kp_spans_add(out, from_ns, tree->nodes[c].start_ns);
        if (marks[c] == KP_COMMOP_INSIDE) kp_commops_add(out, tree, marks, (size_t)c);
        from_ns = tree->nodes[c].end_ns;
    }
    kp_spans_add(out, from_ns, n->end_ns);
}
