// SPDX-License-Identifier: Apache-2.0
/*
 * onehotrule.c - one_hot(ids) @ weight on the CPU, which multiplies zeros: an embedding takes the rows
 *
 * A product counts where it comes right behind one_hot, or behind its conversion. What backward does of it counts, too.
 */
#include "export/answers/advise/opsrules/opsrules.h"

#include <stdlib.h>

static const struct kp_cost_rule rule = {
    0.05, 0, "one-hot-product", "one_hot() is multiplied with a weight, and nearly all of it is zeros",
    "Take the rows of the weight: torch.nn.Embedding(N, M)(ids), or torch.nn.functional.embedding(ids, weight.t()) of "
    "a Linear's weight."};

static void op_charge(struct kp_cost *cost, int32_t node, bool *charged)
{
    if (node < 0) return;
    kp_cost_add_node(cost, (size_t)node, 1);
    charged[node] = true;
}

void kp_rules_one_hot(struct kp_costrules *x)
{
    struct kp_cost cost = kp_cost_open(x);
    bool *const charged = kp_kineto_zeros(x->tree->count + 1, sizeof *charged);
    int32_t hot = -1, converted = -1;
    for (size_t i = 0; i < x->tree->count && !x->out->has_gpu; i++) {
        const char *const name = kp_costrules_name(x, (int32_t)i);
        if (!kp_costrules_is_outer(x, i)) continue;
        if (hot >= 0 && KP_NAME_IS(name, "aten::linear", "aten::matmul", "aten::mm", "aten::addmm")) {
            op_charge(&cost, hot, charged);
            op_charge(&cost, converted, charged);
            op_charge(&cost, (int32_t)i, charged);
        }
        converted = hot >= 0 && converted < 0 && KP_NAME_IS(name, "aten::to", "aten::_to_copy") ? (int32_t)i : -1;
        if (converted < 0) hot = strcmp(name, "aten::one_hot") == 0 ? (int32_t)i : -1;
    }
    kp_cost_add_backward(&cost, charged);
    kp_cost_tell(&cost, &rule);
    free(charged);
}
