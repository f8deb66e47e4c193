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

static void op_charge(struct kp_cost *cost, const struct kp_costrules *x, int32_t node, bool *charged)
{
    kp_cost_add(cost, x, node, x->tree->nodes[node].start_ns, x->tree->nodes[node].end_ns, 1);
    charged[node] = true;
}

void kp_rules_one_hot(struct kp_costrules *x)
{
    static const char *const conversions[] = {"aten::to", "aten::_to_copy", NULL};
    static const char *const products[] = {"aten::linear", "aten::matmul", "aten::mm", "aten::addmm", NULL};
    struct kp_cost cost = kp_cost_open(x);
    bool *const charged = kp_kineto_zeros(x->tree->count + 1, sizeof *charged);
    int32_t hot = -1, converted = -1;
    for (size_t i = 0; i < x->tree->count && !x->out->has_gpu; i++) {
        const char *const name = kp_costrules_name(x, (int32_t)i);
        if (!kp_costrules_is_op(x, i) || kp_costplace_op(x->tree, (int32_t)i) != (int32_t)i) continue;
        if (hot >= 0 && kp_name_is_one_of(name, products)) {
            op_charge(&cost, x, hot, charged);
            if (converted >= 0) op_charge(&cost, x, converted, charged);
            op_charge(&cost, x, (int32_t)i, charged);
        }
        converted = hot >= 0 && converted < 0 && kp_name_is_one_of(name, conversions) ? (int32_t)i : -1;
        if (converted < 0) hot = strcmp(name, "aten::one_hot") == 0 ? (int32_t)i : -1;
    }
    kp_cost_add_backward(&cost, x, charged);
    kp_cost_tell(&cost, x, &rule);
    free(charged);
}
