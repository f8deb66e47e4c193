// SPDX-License-Identifier: Apache-2.0
/* valuereads.c - finds the reads of single values: for the report's line, and for advise, which says what they cost */
#include "export/read/facts/valuereads.h"

#include "export/read/frames/framename.h"
#include "export/read/facts/namefacts.h"

static const char *name_of(const struct kp_tree *tree, size_t node)
{
    return kp_kineto_text(tree->trace, kp_tree_event(tree, node)->name);
}

/* Each of these calls the next one. 0: no read, else the number in that order. */
static unsigned depth_of(const char *op)
{
    static const char *const ops[] = {"aten::is_nonzero", "aten::item", "aten::_local_scalar_dense"};
    for (unsigned i = 0; i < sizeof ops / sizeof *ops; i++)
        if (strcmp(op, ops[i]) == 0) return i + 1;
    return 0;
}

bool kp_valueread_is_meant(const char *pattern)
{
    return kp_framename_is_meant(pattern, "aten::is_nonzero") || kp_framename_is_meant(pattern, "aten::item") ||
           kp_framename_is_meant(pattern, "aten::_local_scalar_dense");
}

bool kp_valueread_is_name(const char *op) { return depth_of(op) != 0; }

/* In files with whole microseconds a caller may have no length left, so that its callee lies beside it. */
static bool is_called_by_read(const struct kp_tree *tree, size_t node, unsigned depth)
{
    enum { BEFORE_NS = 10000 };
    const struct kp_node *nodes = tree->nodes, *n = &nodes[node];
    if (n->parent >= 0 && depth_of(name_of(tree, (size_t)n->parent))) return true;
    for (size_t i = node; i-- > 0 && nodes[i].start_ns >= n->start_ns - BEFORE_NS;) {
        const unsigned other = depth_of(name_of(tree, i));
        if (other && other < depth && nodes[i].end_ns >= n->start_ns && !nodes[i].on_device &&
            kp_tree_event(tree, i)->tid == kp_tree_event(tree, node)->tid)
            return true;
    }
    return false;
}

bool kp_valueread_is(const struct kp_tree *tree, size_t node)
{
    const struct kp_node *n = &tree->nodes[node];
    if (n->on_device || n->is_async) return false;
    const unsigned depth = depth_of(name_of(tree, node));
    return depth && !is_called_by_read(tree, node, depth);
}

static bool is_torchs_own(const struct kp_tree *tree, int32_t node)
{
    return kp_node_is_in(tree, node, KP_NAME_LOADER | KP_NAME_OPTIMIZER);
}

/* torch's anomaly mode reads whether any gradient is NaN: no program does. */
static bool is_check(const struct kp_tree *tree, size_t node)
{
    const struct kp_node *const nodes = tree->nodes;
    const int32_t range = nodes[node].parent;
    const char *before = "";
    if (range < 0 || !kp_node_is(tree, (size_t)range, KP_NAME_ENGINE)) return false;
    for (int32_t i = nodes[range].first_child; i >= 0 && i != (int32_t)node; i = nodes[i].next_sibling)
        before = name_of(tree, (size_t)i);
    return strcmp(before, "aten::_is_any_true") == 0 || strcmp(before, "aten::any") == 0;
}

/*
 * An op of torch that reads a value for itself, as aten::std does of a whole tensor on a CPU. On a GPU this waits as a
 * read does; on a CPU it is a read of the program only where the op answers Python, as torch.allclose().
 */
static bool is_of_op(const struct kp_tree *tree, size_t node)
{
    const struct kp_node *const nodes = tree->nodes;
    for (int32_t i = nodes[node].parent; i >= 0 && !nodes[i].is_python; i = nodes[i].parent) {
        const char *const name = name_of(tree, (size_t)i);
        if (strcmp(name, "aten::allclose") == 0) return false;
        if (kp_name_begins(name, "aten::") && !depth_of(name)) return !tree->has_device;
    }
    return false;
}

bool kp_valueread_is_own(const struct kp_tree *tree, const struct kp_chosen *chosen, size_t node)
{
    return kp_valueread_is(tree, node) && kp_spans_has(&chosen->in_steps, tree->nodes[node].start_ns) &&
           !is_torchs_own(tree, (int32_t)node) && !is_check(tree, node) && !is_of_op(tree, node);
}

size_t kp_valuereads_count(const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    size_t count = 0;
    for (size_t i = 0; i < tree->count; i++)
        count += !(kp_tree_event(tree, i)->flags & KP_KINETO_CONTINUED) && kp_valueread_is_own(tree, chosen, i);
    return count;
}
