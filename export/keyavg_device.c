// SPDX-License-Identifier: Apache-2.0
/*
 * keyavg_device.c - credits the work of a device to the host ops that launched it
 *
 * A kernel carries the id of its op as External id. Files from before 2024 write the CUPTI correlation there instead:
 * then the way goes over the runtime call with the same correlation to the op it was made in.
 */
#include "export/keyavg.h"

#include <stdlib.h>

struct link {
    int64_t id;
    uint32_t node;
};
struct links {
    struct link *links; /* by (id, node) */
    size_t count, capacity;
};

static const struct kp_trace_event *event_of(const struct kp_tree *tree, size_t node)
{
    return &tree->trace->events[tree->nodes[node].event];
}

static bool is_op(const struct kp_trace_event *e)
{
    return (e->kind == KP_TRACE_OP || e->kind == KP_TRACE_ANNOTATION) && e->external_id > 0;
}

static int link_order(const void *a, const void *b)
{
    const struct link *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

static void link_add(struct links *l, int64_t id, size_t node)
{
    l->links = kp_kineto_grow(l->links, &l->capacity, l->count + 1, sizeof *l->links);
    l->links[l->count++] = (struct link){id, (uint32_t)node};
}

static size_t link_find(const struct links *l, int64_t id)
{
    size_t low = 0, high = l->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->links[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Nine in ten ids that equal the correlation are no ids of ops. */
static bool is_by_correlation(const struct kp_tree *tree)
{
    size_t same = 0, all = 0;
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_trace_event *e = event_of(tree, i);
        if (e->kind != KP_TRACE_GPU || e->external_id <= 0)
            continue;
        all++;
        same += e->external_id == e->fwd_tid;
    }
    return all && same * 10 >= all * 9;
}

static void links_gather(struct links *l, const struct kp_tree *tree, bool by_correlation)
{
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_trace_event *e = event_of(tree, i);
        if (!by_correlation && is_op(e) && !tree->nodes[i].is_async)
            link_add(l, e->external_id, i);
        if (!by_correlation || e->kind != KP_TRACE_RUNTIME || e->fwd_tid <= 0)
            continue;
        int32_t op = tree->nodes[i].parent;
        while (op >= 0 && !is_op(event_of(tree, (size_t)op)))
            op = tree->nodes[op].parent;
        if (op >= 0)
            link_add(l, e->fwd_tid, (size_t)op);
    }
    if (l->count)
        qsort(l->links, l->count, sizeof *l->links, link_order);
}

void kp_tree_add_kernels(struct kp_tree *tree)
{
    struct links l = {0};
    if (!tree->has_device)
        return;
    bool by_correlation = is_by_correlation(tree);
    links_gather(&l, tree, by_correlation);
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_trace_event *e = event_of(tree, i);
        int64_t id = by_correlation ? e->fwd_tid : e->external_id;
        if (!tree->nodes[i].on_device || id <= 0)
            continue;
        for (size_t at = link_find(&l, id); at < l.count && l.links[at].id == id; at++)
            tree->nodes[l.links[at].node].device_us += kp_tree_span_us(tree, i);
    }
    free(l.links);
}
