// SPDX-License-Identifier: Apache-2.0
/*
 * gpusteps.c - the steps of a GPU whose host is ahead of it
 *
 * The launches of the host's step run later there, so a step of the GPU lasts from the first work of the one to the
 * first work of the next. The last ends with its work.
 */
#include "export/answers/advise/parts/adviseparts.h"

#include <stdlib.h>

#define BEHIND_MOST 0.20 /* of all steps: how much longer they are on the GPU */

static void works_find(struct kp_chosen *out, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    for (size_t i = 0; i < chosen->step_count; i++) out->steps[i].start_ns = INT64_MAX, out->steps[i].end_ns = 0;
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *node = &tree->nodes[i];
        if (kp_tree_event(tree, i)->kind != KP_KINETO_GPU || node->call < 0) continue;
        const size_t at = kp_step_at(chosen->steps, chosen->step_count, tree->nodes[node->call].start_ns);
        if (at == chosen->step_count) continue;
        struct kp_step *step = &out->steps[at];
        if (node->start_ns < step->start_ns) step->start_ns = node->start_ns;
        if (node->end_ns > step->end_ns) step->end_ns = node->end_ns;
    }
}

bool kp_gpu_steps_make(struct kp_chosen *out, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    const size_t count = chosen->step_count;
    *out = (struct kp_chosen){.ended_by = chosen->ended_by, .step_total = chosen->step_total};
    if (!count) return false;
    out->steps = kp_kineto_room(count, sizeof *out->steps);
    memcpy(out->steps, chosen->steps, count * sizeof *out->steps);
    out->step_count = out->step_capacity = count;
    works_find(out, tree, chosen);
    for (size_t i = 0; i < count; i++) {
        struct kp_step *step = &out->steps[i];
        if (i + 1 < count) step->end_ns = out->steps[i + 1].start_ns;
        step->inside_ns = step->end_ns - step->start_ns;
        if (step->end_ns == INT64_MAX || step->inside_ns <= 0) return false;
        kp_spans_add(&out->in_steps, step->start_ns, step->end_ns);
        kp_spans_add(&out->spans, step->start_ns, step->end_ns);
    }
    kp_spans_settle(&out->in_steps);
    kp_spans_settle(&out->spans);
    return true;
}

/* Steps are the host's. They are the GPU's, too, where it does in them what they launch: its queue does not grow. */
bool kp_gpu_steps_are_behind(size_t steps, double step_ns, double backlog_ns)
{
    return steps && backlog_ns > step_ns && backlog_ns > BEHIND_MOST * step_ns * (double)steps;
}

bool kp_gpu_steps_ahead(struct kp_chosen *out, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct kp_split_places places = {0};
    const size_t count = chosen->step_count;
    struct kp_step_split *const splits = kp_kineto_room(count + 1, sizeof *splits);
    const bool has_gpu = count && kp_step_split_places(splits, tree, chosen, &places);
    double step_ns = 0;
    for (size_t i = 0; i < count; i++) step_ns += (double)splits[i].step_ns / (double)count;
    const bool is_behind = has_gpu && kp_gpu_steps_are_behind(count, step_ns, (double)places.backlog_ns);
    free(splits);
    kp_split_places_fini(&places);
    *out = (struct kp_chosen){0};
    if (is_behind && kp_gpu_steps_make(out, tree, chosen)) return true;
    kp_chosen_fini(out);
    return false;
}
