// SPDX-License-Identifier: Apache-2.0
/*
 * treedevice.c - credits the work of a device to the host ops that launched it
 *
 * A kernel carries its op's id as External id. Files from before 2024 have the CUPTI correlation there instead. Then
 * the runtime call with the same correlation leads to the op.
 */
#include "export/read/tree/tree.h"

#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "collector/base/kp_search.h"
#include "export/read/store/keyindex.h"
#include "export/read/store/qsort.h"

static bool is_op(const struct kp_kineto_event *e)
{
    return (e->kind == KP_KINETO_OP || e->kind == KP_KINETO_ANNOTATION) && e->external_id > 0;
}

KP_ORDER2(id_order, struct kp_op_id, id, node)

static void id_add(struct kp_op_ids *ids, int64_t id, size_t node)
{
    *KP_KINETO_NEXT(ids->ids, ids->count, ids->capacity) = (struct kp_op_id){id, (uint32_t)node};
}

static void ids_sort(struct kp_op_ids *ids)
{
    if (ids->count) kp_qsort(ids->ids, ids->count, sizeof *ids->ids, id_order);
}

static bool is_key_below(const void *row, const void *key) { return *(const int64_t *)row < *(const int64_t *)key; }

size_t kp_rows_from(const void *rows, size_t count, size_t row_bytes, int64_t key)
{
    return kp_search(rows, row_bytes, count, is_key_below, &key);
}

void kp_op_ids_gather(struct kp_op_ids *ids, const struct kp_tree *tree)
{
    *ids = (struct kp_op_ids){0};
    for (size_t i = 0; i < tree->count; i++)
        if (is_op(kp_tree_event(tree, i)) && !tree->nodes[i].is_async)
            id_add(ids, kp_tree_event(tree, i)->external_id, i);
    ids_sort(ids);
}

void kp_op_ids_fini(struct kp_op_ids *ids) { free(ids->ids); }

/* Whether nine in ten External ids equal the correlation, so that they are no ids of ops. */
static bool is_by_correlation(const struct kp_tree *tree)
{
    size_t same = 0, all = 0;
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_kineto_event *e = kp_tree_event(tree, i);
        if (e->kind != KP_KINETO_GPU || e->external_id <= 0) continue;
        all++;
        same += e->external_id == e->fwd_tid;
    }
    return all && same * 10 >= all * 9;
}

/* Gathers the CUPTI correlations of calls, and the ops around them. */
static void calls_gather(struct kp_op_ids *ids, const struct kp_tree *tree)
{
    int32_t *ops = kp_kineto_room(tree->count + 1, sizeof *ops); /* the innermost op of each node; parents come first */
    *ids = (struct kp_op_ids){0};
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_kineto_event *e = kp_tree_event(tree, i);
        const int32_t parent = tree->nodes[i].parent, around = parent < 0 ? -1 : ops[parent];
        ops[i] = is_op(e) ? (int32_t)i : around;
        if (e->kind == KP_KINETO_RUNTIME && e->fwd_tid > 0 && around >= 0) id_add(ids, e->fwd_tid, (size_t)around);
    }
    free(ops);
    ids_sort(ids);
}

static bool is_call(const struct kp_tree *tree, size_t i)
{
    const struct kp_kineto_event *e = kp_tree_event(tree, i);
    return e->kind == KP_KINETO_RUNTIME && !tree->nodes[i].on_device && !tree->nodes[i].is_async && e->fwd_tid > 0;
}

/* Gives each work of a device its call, by CUPTI's correlation; of several the last. */
static void calls_set(struct kp_tree *tree)
{
    struct kp_keyindex keys = {0};
    size_t capacity = 0;
    int32_t *calls = NULL;
    for (size_t i = 0; i < tree->count; i++) {
        const int64_t id = kp_tree_event(tree, i)->fwd_tid;
        if (!is_call(tree, i)) continue;
        const size_t at = kp_keyindex_get(&keys, (uint64_t)id);
        calls = kp_kineto_grow(calls, &capacity, at + 1, sizeof *calls);
        calls[at] = (int32_t)i;
        if (!tree->first_call || id < tree->first_call) tree->first_call = id;
    }
    const size_t count = keys.count;
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_kineto_event *e = kp_tree_event(tree, i);
        if ((e->kind != KP_KINETO_GPU && e->kind != KP_KINETO_GPU_WAIT) || e->fwd_tid <= 0) continue;
        const size_t at = kp_keyindex_get(&keys, (uint64_t)e->fwd_tid);
        if (at < count) tree->nodes[i].call = calls[at];
        else tree->uncalled += e->kind == KP_KINETO_GPU;
    }
    kp_keyindex_fini(&keys);
    free(calls);
}

int64_t kp_tree_asked_ns(const struct kp_tree *tree, size_t node)
{
    const struct kp_node *n = &tree->nodes[node];
    const int32_t by = n->launcher >= 0 ? n->launcher : n->call;
    if (by >= 0) return tree->nodes[by].start_ns;
    const struct kp_kineto_event *e = kp_tree_event(tree, node);
    const bool is_before = e->kind == KP_KINETO_GPU && e->fwd_tid > 0 && e->fwd_tid < tree->first_call;
    return is_before ? INT64_MIN : n->start_ns;
}

void kp_tree_add_kernels(struct kp_tree *tree)
{
    struct kp_op_ids ids;
    if (!tree->has_device) return;
    tree->works = kp_kineto_zeros(tree->count, sizeof *tree->works);
    calls_set(tree);
    bool by_correlation = is_by_correlation(tree);
    if (by_correlation) calls_gather(&ids, tree);
    else kp_op_ids_gather(&ids, tree);
    double *shared =
        kp_kineto_room(ids.count + 1, sizeof *shared); /* device time for all ops of one id, at the first of them */
    for (size_t i = 0; i < ids.count; i++) shared[i] = 0;
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_kineto_event *e = kp_tree_event(tree, i);
        int64_t id = by_correlation ? e->fwd_tid : e->external_id;
        if (e->kind != KP_KINETO_GPU) continue; /* not an annotation's range on the GPU: its kernels count */
        const size_t at = id <= 0 ? ids.count : kp_rows_from(ids.ids, ids.count, sizeof *ids.ids, id);
        if (at == ids.count || ids.ids[at].id != id) {
            tree->orphans += id > 0;
            if (tree->nodes[i].call >= 0) tree->works[tree->nodes[i].call].called_us += kp_tree_span_us(tree, i);
            continue;
        }
        tree->nodes[i].launcher = (int32_t)ids.ids[at].node;
        if (at + 1 < ids.count && ids.ids[at + 1].id == id) shared[at] += kp_tree_span_us(tree, i);
        else tree->works[ids.ids[at].node].device_us += kp_tree_span_us(tree, i);
    }
    for (size_t at = 0, first = 0; at < ids.count; at++) {
        first = at && ids.ids[at].id == ids.ids[at - 1].id ? first : at;
        tree->works[ids.ids[at].node].device_us += shared[first];
    }
    free(shared);
    kp_op_ids_fini(&ids);
}
