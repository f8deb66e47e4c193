// SPDX-License-Identifier: Apache-2.0
/*
 * onehotrule.c - one_hot(ids) @ weight on the CPU, which multiplies zeros: an embedding takes the rows
 *
 * A product counts where it comes right behind one_hot, or behind its conversion. Its backward counts as well.
 */
#include "export/answers/advise/opsrules/opsrules.h"

static const struct kp_cost_rule rule = {
    0.05, 0, "one-hot-product", "one_hot() is multiplied with a weight, and nearly all of it is zeros",
    "Take the rows of the weight: torch.nn.Embedding(N, M)(ids), or torch.nn.functional.embedding(ids, weight.t()) of "
    "a Linear's weight."};

void kp_rules_one_hot(struct kp_costrules *x)
{
    struct kp_cost cost = kp_cost_open(x);
    int32_t hot = -1, converted = -1;
    for (size_t i = 0; i < x->tree->count && !x->out->has_gpu; i++) {
        const char *const name = kp_costrules_name(x, (int32_t)i);
        if (!kp_costrules_is_outer(x, i)) continue;
        if (hot >= 0 && KP_NAME_IS(name, "aten::linear", "aten::matmul", "aten::mm", "aten::addmm")) {
            kp_cost_add_forward(&cost, (size_t)hot);
            if (converted >= 0) kp_cost_add_forward(&cost, (size_t)converted);
            kp_cost_add_forward(&cost, i);
        }
        converted = hot >= 0 && converted < 0 && KP_NAME_IS(name, "aten::to", "aten::_to_copy") ? (int32_t)i : -1;
        if (converted < 0) hot = strcmp(name, "aten::one_hot") == 0 ? (int32_t)i : -1;
    }
    kp_cost_add_backward(&cost);
    kp_cost_tell(&cost, &rule);
}
