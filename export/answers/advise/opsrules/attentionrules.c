// SPDX-License-Identifier: Apache-2.0
/*
 * attentionrules.c - attention whose matrix of scores goes through memory: by hand, or by torch's path without a kernel
 *
 * By hand it is a batched product, elementwise ops with a softmax among them, and a product. All between the two is
 * charged, forward and backward: the softmax, and the ops on a tensor as large. Nothing is known about the products.
 */

#include <stdlib.h>

#include "export/answers/advise/opsrules/opsrules.h"
#include "export/show/shapetext.h"

#define ATTENTION_CHANGE                                                                                        \
    "Call torch.nn.functional.scaled_dot_product_attention(q, k, v): its kernels keep the scores on the chip. " \
    "They also save some of the time of the products."
static const struct kp_cost_rule by_hand = {
    0.10, 0, "attention-unfused",
    "hand-written attention: the score matrix goes through memory for each operator between the two products",
    ATTENTION_CHANGE};
static const struct kp_cost_rule by_math = {
    0.10, 0, "attention-unfused",
    "scaled_dot_product_attention has no fused kernel for these inputs: the matrix of scores goes through memory",
    "Call it once under torch.nn.attention.sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]): "
    "it warns about what these kernels do not support, such as dropout on a CPU."};

enum { BETWEEN_MOST = 24, OPS_MOST = 64, KEYS_LEAST = 64, FUSED_DIMS = 4, WIDTH_OF = 4 };
enum mark { MARK_NONE, MARK_BY_HAND, MARK_BY_MATH };
enum op_kind { OP_OTHER, OP_PRODUCT, OP_SOFTMAX, OP_ELEMENTWISE, OP_VIEW };

/* The work of a thread since its last product. */
struct product_chain {
    bool is_open, has_softmax;
    double scores; /* elements; 0: not known */
    size_t ops, count;
    int32_t between[BETWEEN_MOST];
};
struct attention {
    const struct kp_costrules *x;
    uint8_t *marks;             /* enum mark, by node */
    struct kp_keyindex threads; /* rows: struct product_chain */
    int32_t math;               /* the first call of torch's path without a kernel; -1 */
};

/* ---- ops by name and shapes ---- */

static enum op_kind kind_of(const char *name)
{
    if (!kp_name_begins(name, "aten::")) return OP_OTHER;
    name += strlen("aten::");
    if (KP_NAME_IS(name, "matmul", "bmm", "baddbmm", "einsum")) return OP_PRODUCT;
    if (KP_NAME_IS(name, "softmax", "_softmax", "_safe_softmax")) return OP_SOFTMAX;
    if (KP_NAME_IS(name, "div", "div_", "mul", "mul_", "add", "add_", "sub", "sub_", "where", "masked_fill", "tril",
                   "masked_fill_", "triu", "dropout", "to", "native_dropout", "_to_copy", "dropout_", "clone",
                   "contiguous", "copy_", "type_as", "clamp"))
        return OP_ELEMENTWISE;
    return KP_NAME_IS(name, "view", "_unsafe_view", "reshape", "transpose", "permute", "expand", "unsqueeze", "squeeze",
                      "slice", "select", "as_strided", "narrow", "split", "chunk", "flatten", "unflatten", "alias",
                      "detach", "expand_as", "movedim", "empty")
               ? OP_VIEW
               : OP_OTHER;
}

/* The elements of an input by its number; none if shapes were not recorded. */
static struct kp_dims dims_of(const struct kp_costrules *x, int32_t node, int input)
{
    struct kp_dims d;
    (void)kp_shapetext_dims(&d, kp_kineto_text(x->tree->trace, kp_tree_event(x->tree, (size_t)node)->shapes), input);
    return d;
}

static double elements(const struct kp_dims *d)
{
    double all = d->count > 0;
    for (size_t i = 0; i < d->count; i++) all *= d->of[i];
    return all;
}

/* Returns how many elements a batched product has; 0: not known; -1: it is none of batches. */
static double product_elements(const struct kp_costrules *x, int32_t node)
{
    const int first = strcmp(kp_costrules_name(x, node), "aten::baddbmm") == 0;
    const struct kp_dims a = dims_of(x, node, first), b = dims_of(x, node, first + 1);
    if (!a.count || !b.count) return 0;
    if (a.count < 3 || b.count < 3 || a.of[a.count - 1] <= 0) return -1;
    return elements(&a) / a.of[a.count - 1] * b.of[b.count - 1];
}

/* ---- by hand ---- */

/* A product ends what the one before it began, and begins. */
static void product_take(struct attention *a, struct product_chain *c, int32_t node)
{
    const struct kp_dims first = dims_of(a->x, node, 0);
    const bool takes_scores = !first.count || !(c->scores > 0) || elements(&first) == c->scores;
    for (size_t i = 0; c->is_open && c->has_softmax && takes_scores && i < c->count; i++)
        a->marks[c->between[i]] = MARK_BY_HAND;
    const double scores = product_elements(a->x, node);
    *c = (struct product_chain){.is_open = scores >= 0, .scores = scores};
}

static bool softmax_fits(const struct attention *a, const struct product_chain *c, int32_t node)
{
    const struct kp_dims d = dims_of(a->x, node, 0);
    if (!d.count) return true;
    return d.of[d.count - 1] >= KEYS_LEAST && (!(c->scores > 0) || elements(&d) == c->scores);
}

static bool is_of_scores(const struct attention *a, const struct product_chain *c, int32_t node)
{
    if (!kp_tree_event(a->x->tree, (size_t)node)->shapes || !(c->scores > 0)) return true;
    for (int input = 0; input < 3; input++) {
        const struct kp_dims d = dims_of(a->x, node, input);
        if (elements(&d) == c->scores) return true;
    }
    return false;
}

/* Ops on other tensors than the scores may make a mask. No fused kernel does anything else with them. */
static void between_take(struct attention *a, struct product_chain *c, int32_t node, enum op_kind kind)
{
    const bool has_shapes = kp_tree_event(a->x->tree, (size_t)node)->shapes && c->scores > 0;
    if (kind == OP_SOFTMAX) {
        c->is_open = !c->has_softmax && softmax_fits(a, c, node);
        c->has_softmax = true;
    } else if (kind == OP_VIEW || !is_of_scores(a, c, node)) {
        return;
    } else if (kind == OP_OTHER) {
        c->is_open = false;
        return;
    }
    if (c->count == BETWEEN_MOST || (!has_shapes && c->ops > BETWEEN_MOST)) c->is_open = false;
    else c->between[c->count++] = node;
}

/* ---- all ---- */

static bool is_math(const char *name) { return kp_name_begins(name, "aten::_scaled_dot_product_attention_math"); }

/* The outermost of ATen's ops. `inside`: by node, one is around it, or it is one. Parents come first. */
static void op_take(struct attention *a, int32_t node, const bool *inside)
{
    const int32_t parent = a->x->tree->nodes[node].parent;
    const char *const name = kp_costrules_name(a->x, node);
    const enum op_kind kind = kind_of(name);
    if (is_math(name) && a->math < 0) a->math = node;
    if (parent >= 0 && is_math(kp_costrules_name(a->x, parent)) && kind != OP_PRODUCT) a->marks[node] = MARK_BY_MATH;
    if (parent >= 0 && inside[parent]) return;
    struct product_chain *const c = kp_keyindex_row(
        &a->threads, kp_tree_thread(kp_tree_event(a->x->tree, (size_t)node)), &(struct product_chain){0}, sizeof *c);
    if (kind == OP_PRODUCT) product_take(a, c, node);
    else if (c->is_open && ++c->ops <= OPS_MOST) between_take(a, c, node, kind);
    else c->is_open = false;
}

static void ops_mark(struct attention *a)
{
    const struct kp_tree *const tree = a->x->tree;
    bool *const inside = kp_kineto_room(tree->count + 1, sizeof *inside);
    for (size_t i = 0; i < tree->count; i++) {
        const int32_t parent = tree->nodes[i].parent;
        const bool is_op = kp_costrules_is_op(a->x, i) && kp_name_begins(kp_costrules_name(a->x, (int32_t)i), "aten::");
        if (is_op) op_take(a, (int32_t)i, inside);
        inside[i] = is_op || (parent >= 0 && inside[parent]);
    }
    free(inside);
}

/* All that runs in a marked op, and its backward, has its mark. Both come behind it. */
static void marks_spread(struct attention *a)
{
    for (size_t i = 0; i < a->x->tree->count; i++) {
        const struct kp_node *const n = &a->x->tree->nodes[i];
        if (!a->marks[i] && n->parent >= 0) a->marks[i] = a->marks[n->parent];
        if (!a->marks[i] && n->forward >= 0) a->marks[i] = a->marks[n->forward];
    }
}

/* Returns the reason as far as shapes show it. */
static void math_tell(const struct attention *a, struct kp_finding *f)
{
    const struct kp_costrules *const x = a->x;
    const struct kp_dims q = f ? dims_of(x, a->math, 0) : (struct kp_dims){0};
    if (!q.count) return;
    const double width = q.of[q.count - 1];
    if (q.count != FUSED_DIMS)
        f->change = KP_TEXT(
            "Try q, k and v of four dimensions (batch, heads, length, width): some versions of torch fuse no %zu.",
            q.count);
    else if (x->out->has_gpu && (long)width % WIDTH_OF)
        f->change = KP_TEXT("Make the head width (%ld) a multiple of 8: fused kernels need that.", (long)width);
}

void kp_rules_attention(struct kp_costrules *x)
{
    struct attention a = {.x = x, .math = -1};
    a.marks = kp_kineto_zeros(x->tree->count + 1, sizeof *a.marks);
    ops_mark(&a);
    marks_spread(&a);
    kp_cost_tell_marked(x, &by_hand, a.marks, MARK_BY_HAND);
    math_tell(&a, kp_cost_tell_marked(x, &by_math, a.marks, MARK_BY_MATH));
    kp_keyindex_fini(&a.threads);
    free(a.marks);
}
