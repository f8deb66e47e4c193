// SPDX-License-Identifier: Apache-2.0
/*
 * repeatrule.c - copies of data that is only repeated, as keys and values for each head: broadcasting copies nothing
 *
 * Such copies are made by repeat, tile and repeat_interleave with a number, or by an op that copies right behind
 * expand. Rows that a tensor of counts repeats need their copies. Backward has a sum either way.
 */
#include "export/answers/advise/opsrules/opsrules.h"

#include <stdlib.h>

enum { INSIDE_MOST = 32, ATTENTION_NEAR = 12 };

static const char broadcast_change[] =
    "Let operators broadcast: x.unsqueeze(dim), or x.expand(...) without a copy behind it, repeats without copies. The "
    "ops that read the copies get faster as well.";
static const char attention_change[] =
    "Call scaled_dot_product_attention(q, k, v, enable_gqa=True) with keys and values as they are (since torch 2.5). "
    "It shares them between heads. The attention, which reads the copies, gets faster as well.";

struct repeated {
    const struct kp_costrules *x;
    uint8_t *marks; /* by node */
    int32_t expand; /* the expand that only views are behind; -1 */
    size_t count;
    size_t fresh, since;  /* repeats since the last attention; ops since the last of them */
    size_t for_attention; /* of all */
    int32_t most;         /* the longest */
};

static bool has_inside(const struct kp_costrules *x, size_t node, const char *name)
{
    const struct kp_node *const nodes = x->tree->nodes;
    for (size_t i = node + 1; i < x->tree->count && i <= node + INSIDE_MOST; i++) {
        if (nodes[i].start_ns >= nodes[node].end_ns) break;
        if (strcmp(kp_costrules_name(x, (int32_t)i), name) == 0 &&
            kp_costplace_op(x->tree, (int32_t)i) == (int32_t)node)
            return true;
    }
    return false;
}

/* Whether the op copies what it repeats. */
static bool is_repeat(const struct repeated *r, size_t node, const char *name)
{
    if (KP_NAME_IS(name, "repeat", "tile")) return true;
    if (strcmp(name, "repeat_interleave") == 0) return !has_inside(r->x, node, "aten::index_select");
    if (r->expand < 0 || !KP_NAME_IS(name, "clone", "contiguous", "reshape", "flatten")) return false;
    return has_inside(r->x, node, "aten::copy_") &&
           kp_tree_event(r->x->tree, (size_t)r->expand)->tid == kp_tree_event(r->x->tree, node)->tid;
}

static void repeat_take(struct repeated *r, size_t node)
{
    const int64_t most = r->most < 0 ? -1 : kp_costrules_ns(r->x, (size_t)r->most);
    r->marks[node] = true;
    r->count++;
    r->fresh++;
    r->since = 0;
    if (kp_costrules_ns(r->x, node) > most) r->most = (int32_t)node;
}

/* An outermost op in a step. */
static void op_take(struct repeated *r, size_t node)
{
    const char *name = kp_costrules_name(r->x, (int32_t)node);
    if (!kp_name_begins(name, "aten::")) return;
    name += strlen("aten::");
    if (++r->since > ATTENTION_NEAR) r->fresh = 0;
    if (strcmp(name, "scaled_dot_product_attention") == 0) {
        r->for_attention += r->fresh;
        r->fresh = 0;
    }
    if (is_repeat(r, node, name)) repeat_take(r, node);
    if (KP_NAME_IS(name, "expand", "expand_as", "broadcast_to")) r->expand = (int32_t)node;
    else if (!KP_NAME_IS(name, "view", "unsqueeze", "transpose", "permute")) r->expand = -1;
}

void kp_rules_repeated(struct kp_costrules *x)
{
    struct repeated r = {.x = x, .expand = -1, .most = -1};
    r.marks = kp_kineto_zeros(x->tree->count + 1, sizeof *r.marks);
    for (size_t i = 0; i < x->tree->count; i++)
        if (kp_costrules_is_outer(x, i) && x->loaders[i] < 0 && kp_costrules_in_steps(x, i)) op_take(&r, i);
    if (r.count) {
        struct kp_cost_rule rule = {0.10, 0, "repeated-copies", "", broadcast_change};
        const bool is_attention = 2 * r.for_attention >= r.count;
        if (is_attention) rule.change = attention_change;
        rule.what = KP_TEXT("%s copies what it repeats%s, %.1f times per step", kp_costrules_name(x, r.most),
                            is_attention ? " for attention" : "", (double)r.count / (double)x->chosen->step_count);
        kp_cost_tell_marked(x, &rule, r.marks, true);
    }
    free(r.marks);
}
