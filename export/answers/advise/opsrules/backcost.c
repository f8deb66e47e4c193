// SPDX-License-Identifier: Apache-2.0
/* backcost.c - charges the backward of what was charged */
#include "export/answers/advise/opsrules/backcost.h"

void kp_backcost_add(struct kp_cost *cost, const struct kp_costrules *x, const bool *charged)
{
    const struct kp_node *const nodes = x->tree->nodes;
    for (size_t i = 0; i < x->tree->count; i++) {
        const int32_t parent = nodes[i].parent, forward = nodes[i].forward;
        if (forward < 0 || parent < 0 || !charged[kp_costplace_op(x->tree, forward)]) continue;
        if (kp_name_begins(kp_costrules_name(x, parent), KP_ENGINE_RANGE))
            kp_cost_add(cost, x, (int32_t)i, nodes[i].start_ns, nodes[i].end_ns, 1);
    }
}
