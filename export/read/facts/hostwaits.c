// SPDX-License-Identifier: Apache-2.0
/*
 * hostwaits.c - finds the calls of the host that wait for a device
 *
 * cudaMemcpyAsync returns at once where the host's memory is pinned. If it is pageable, CUDA copies through a buffer of
 * its own: the call waits for the work before the copy, and for the copy. Then it returns behind the copy's begin. A
 * few KiB to a device are put into the buffer, and the call returns before.
 */
#include "export/read/facts/hostwaits.h"

#include <string.h>

#include "export/read/facts/namefacts.h"

static bool is_copy_that_waits(const struct kp_tree *tree, size_t copy, size_t call)
{
    const struct kp_kineto *const t = tree->trace;
    return tree->nodes[call].end_ns > tree->nodes[copy].start_ns &&
           strstr(kp_kineto_text(t, kp_tree_event(tree, copy)->name), "Pageable") &&
           strcasestr(kp_kineto_text(t, kp_tree_event(tree, call)->name), "Memcpy");
}

void kp_hostwaits_find(struct kp_hostwaits *out, const struct kp_tree *tree)
{
    out->of = kp_kineto_zeros(tree->count + 1, 1);
    for (size_t i = 0; i < tree->count; i++) {
        const enum kp_kineto_kind kind = kp_tree_event(tree, i)->kind;
        const int32_t call = tree->nodes[i].call;
        if (kind == KP_KINETO_RUNTIME && kp_node_is(tree, i, KP_NAME_WAIT)) out->of[i] = 1;
        if (kind == KP_KINETO_GPU && call >= 0 && is_copy_that_waits(tree, i, (size_t)call)) out->of[call] = 1;
    }
}
