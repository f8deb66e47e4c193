// SPDX-License-Identifier: Apache-2.0
/* launches.c - finds the host's call that launched a work of a device, by CUPTI's correlation */
#include "export/advise/adviseparts.h"

#include <stdlib.h>

static void call_set(struct kp_launches *l, int64_t id, int32_t node)
{
    const size_t at = kp_keyindex_get(&l->correlations, (uint64_t)id);
    l->calls = kp_kineto_grow(l->calls, &l->capacity, at + 1, sizeof *l->calls);
    l->calls[at] = node;
}

void kp_launches_gather(struct kp_launches *l, const struct kp_tree *tree)
{
    *l = (struct kp_launches){0};
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_kineto_event *e = kp_tree_event(tree, i);
        const struct kp_node *node = &tree->nodes[i];
        if (e->kind == KP_KINETO_RUNTIME && !node->on_device && !node->is_async && e->fwd_tid > 0)
            call_set(l, e->fwd_tid, (int32_t)i);
    }
}

int32_t kp_launches_call(struct kp_launches *l, const struct kp_kineto_event *work)
{
    const size_t known = l->correlations.count;
    if (work->fwd_tid <= 0) return -1;
    const size_t at = kp_keyindex_get(&l->correlations, (uint64_t)work->fwd_tid);
    if (at == known) call_set(l, work->fwd_tid, -1);
    return l->calls[at];
}

void kp_launches_fini(struct kp_launches *l)
{
    kp_keyindex_fini(&l->correlations);
    free(l->calls);
}
