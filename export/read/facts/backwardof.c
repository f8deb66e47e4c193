// SPDX-License-Identifier: Apache-2.0
/*
 * backwardof.c - whose place the nodes of autograd's engine have: that of the range around them, or the one before
 *
 * torch gives AccumulateGrad the highest sequence number. So the engine runs it next on the thread, as soon as the
 * backward op has made the gradient.
 */
#include "export/read/facts/backwardof.h"

#include <string.h>

#include "export/read/store/keyindex.h"

struct following {
    const struct kp_tree *tree;
    struct kp_keyindex threads; /* rows: the last backward op, + 1 */
};

/* The last backward op on the node's thread, + 1; 0: none. */
static uint32_t *last_get(struct following *f, size_t node)
{
    return kp_keyindex_row(&f->threads, kp_tree_thread(kp_tree_event(f->tree, node)), &(uint32_t){0}, sizeof(uint32_t));
}

static uint32_t node_of(struct following *f, const uint32_t *of, size_t node)
{
    const int32_t parent = f->tree->nodes[node].parent;
    const char *name = kp_kineto_text(f->tree->trace, f->tree->nodes[node].name);
    if (kp_node_is_backward(f->tree, node)) {
        *last_get(f, node) = (uint32_t)node + 1;
        return (uint32_t)node;
    }
    if (parent >= 0 && (of[parent] != (uint32_t)parent || kp_node_is_backward(f->tree, (size_t)parent)))
        return of[parent]; /* a hook in a range of the engine is there, too */
    const bool is_engine = kp_name_begins(name, KP_ENGINE_RANGE);
    if (strcmp(is_engine ? name + strlen(KP_ENGINE_RANGE) : name, KP_ACCUMULATE_GRAD) == 0) {
        const uint32_t last = *last_get(f, node);
        return last ? last - 1 : (uint32_t)node;
    }
    return (uint32_t)node;
}

uint32_t *kp_backward_of(const struct kp_tree *tree)
{
    struct following f = {.tree = tree};
    uint32_t *of = kp_kineto_room(tree->count + 1, sizeof *of);
    for (size_t i = 0; i < tree->count; i++) of[i] = tree->nodes[i].on_device ? (uint32_t)i : node_of(&f, of, i);
    kp_keyindex_fini(&f.threads);
    return of;
}
