// SPDX-License-Identifier: Apache-2.0
/*
 * lostwork.c - kernels that were launched and are not in the trace: CUPTI's records of them came too late, or never
 *
 * Each launch has its kernel, except while a CUDA graph is captured. A part cut out of a trace may begin or end inside
 * of a launch, so one in a hundred may lack its own.
 */
#include "export/advise/adviseparts.h"

#include <stdlib.h>
#include <string.h>

enum { LOST_PERCENT = 1 };

static bool is_call(const struct kp_tree *tree, size_t node, const char *const *begins)
{
    const struct kp_kineto_event *e = kp_tree_event(tree, node);
    if (e->kind != KP_KINETO_RUNTIME) return false;
    const char *const name = kp_kineto_text(tree->trace, e->name);
    for (; *begins; begins++)
        if (strncmp(name, *begins, strlen(*begins)) == 0) return true;
    return false;
}

/* Any thread may launch into a capture. One whose begin was not recorded lasts from the trace's start. */
static void captures_find(struct kp_spans *out, const struct kp_tree *tree)
{
    static const char *const begin[] = {"cudaStreamBeginCapture", "cuStreamBeginCapture", NULL},
                             *const end[] = {"cudaStreamEndCapture", "cuStreamEndCapture", NULL};
    int64_t since = INT64_MIN / 2;
    bool is_open = false, was_any = false;
    for (size_t i = 0; i < tree->count; i++) {
        if (is_call(tree, i, begin) && !is_open) {
            since = tree->nodes[i].start_ns;
            is_open = was_any = true;
        } else if (is_call(tree, i, end) && (is_open || !was_any)) {
            kp_spans_add(out, since, tree->nodes[i].end_ns);
            is_open = false;
            was_any = true;
        }
    }
    if (is_open) kp_spans_add(out, since, INT64_MAX / 2);
    kp_spans_settle(out);
}

static uint8_t *answered_find(const struct kp_tree *tree)
{
    uint8_t *const answered = kp_kineto_zeros(tree->count + 1, 1);
    for (size_t i = 0; i < tree->count; i++)
        if (tree->nodes[i].call >= 0) answered[tree->nodes[i].call] = 1;
    return answered;
}

const char *kp_lost_work(struct kp_costrules *x)
{
    static const char *const launch[] = {"cudaLaunchKernel", "__cudaLaunchKernel", "cudaLaunchCooperativeKernel",
                                         "cuLaunchKernel", NULL};
    const struct kp_tree *const tree = x->tree;
    struct kp_spans captures = {0};
    uint8_t *const answered = answered_find(tree);
    size_t launches = 0, lost = 0;
    captures_find(&captures, tree);
    for (size_t i = 0; i < tree->count; i++) {
        if (!is_call(tree, i, launch) || kp_spans_has(&captures, tree->nodes[i].start_ns)) continue;
        launches++;
        lost += !answered[i];
    }
    kp_spans_fini(&captures);
    free(answered);
    if (lost * 100 <= launches * LOST_PERCENT) return NULL;
    if (lost == launches)
        return kp_costrules_text(x,
                                 "none of the %zu kernels that were launched is in the trace, so what the GPU does is "
                                 "not known: kprof report and kprof doctor say what is recorded of it",
                                 launches);
    return kp_costrules_text(
        x, "%zu of the %zu kernels that were launched are not in the trace, so the GPU is busier than it says", lost,
        launches);
}
