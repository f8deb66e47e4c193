// SPDX-License-Identifier: Apache-2.0
/*
 * unanswered.c - counts launches of kernels and graphs without work of their correlation
 *
 * Each launch has its work, except while a graph is captured. A part cut out of a trace may begin or end inside of a
 * launch, so one in a hundred may lack its own.
 */
#include "export/read/facts/unanswered.h"

#include <stdio.h>
#include <stdlib.h>

#include "export/read/tree/spans.h"
#include "export/read/facts/vendor.h"

enum { LOST_PERCENT = 1, MOST_PARTS = 10 };

static const char *call_of(const struct kp_tree *tree, size_t node)
{
    const struct kp_kineto_event *e = kp_tree_event(tree, node);
    return e->kind == KP_KINETO_RUNTIME ? kp_kineto_text(tree->trace, e->name) : "";
}

/* Any thread may launch into a capture. One whose begin was not recorded lasts from the trace's start. */
static void captures_find(struct kp_spans *out, const struct kp_tree *tree)
{
    int64_t since = INT64_MIN / 2;
    bool is_open = false, was_any = false;
    for (size_t i = 0; i < tree->count; i++) {
        const enum kp_vendor_call call = kp_vendor_call(call_of(tree, i));
        if (call == KP_VENDOR_CAPTURE_BEGIN && !is_open) {
            since = tree->nodes[i].start_ns;
            is_open = was_any = true;
        } else if (call == KP_VENDOR_CAPTURE_END && (is_open || !was_any)) {
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

void kp_unanswered_add(struct kp_unanswered *into, const struct kp_tree *tree)
{
    struct kp_spans captures = {0};
    uint8_t *const answered = answered_find(tree);
    captures_find(&captures, tree);
    for (size_t i = 0; i < tree->count; i++) {
        const enum kp_vendor_call call = kp_vendor_call(call_of(tree, i));
        if (call != KP_VENDOR_LAUNCH && call != KP_VENDOR_LAUNCH_GRAPH) continue;
        if (kp_spans_has(&captures, tree->nodes[i].start_ns)) continue;
        const bool is_graph = call == KP_VENDOR_LAUNCH_GRAPH;
        *(is_graph ? &into->graphs : &into->kernels) += 1;
        *(is_graph ? &into->graphs_lost : &into->kernels_lost) += !answered[i];
    }
    kp_spans_fini(&captures);
    free(answered);
}

static bool is_much(size_t lost, size_t all) { return lost * 100 > all * LOST_PERCENT; }

bool kp_unanswered_much(const struct kp_unanswered *of)
{
    return is_much(of->kernels_lost, of->kernels) || is_much(of->graphs_lost, of->graphs);
}

bool kp_unanswered_most(const struct kp_unanswered *of)
{
    return is_much(of->graphs_lost, of->graphs) || of->kernels_lost * MOST_PARTS > of->kernels;
}

void kp_unanswered_text(char *out, size_t bytes, const struct kp_unanswered *of)
{
    if (is_much(of->graphs_lost, of->graphs))
        snprintf(out, bytes, "the work of %zu of %zu graphs that were launched is not in the trace", of->graphs_lost,
                 of->graphs);
    else
        snprintf(out, bytes, "%zu of the %zu kernels that were launched are not in the trace", of->kernels_lost,
                 of->kernels);
}
