// SPDX-License-Identifier: Apache-2.0
/*
 * diffranks.c - a rank of A beside the same rank of B
 *
 * In the steps of all ranks together one rank that is late vanishes: the others wait for it, and their steps get as
 * long. So ranks are compared by what a step takes without its wait in collectives.
 */
#include "export/answers/diff/diff.h"

#include <math.h>
#include <stdlib.h>

#include "export/answers/ranks/rankwaits.h"
#include "export/read/facts/steps/nocore.h"
#include "export/read/store/qsort.h"

void kp_diff_take(struct kp_diff *d, const struct kp_diff *one, int side, const struct kp_kineto *trace,
                  const char *label)
{
    const long rank = kp_rankwaits_rank(trace);
    kp_diff_merge(d, one, side);
    kp_diff_head_take(d, one, side, trace, label);
    if (rank < 0) return;
    struct kp_diff *const of = kp_diff_rank_get(d, rank);
    kp_diff_merge(of, one, side);
    kp_diff_head_take(of, one, side, trace, label);
}

/* Some steps did not wait as all did. */
static void core_take(struct kp_diff *d, int side, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct kp_diff_side *const one = &d->sides[side];
    struct kp_nocore_times times;
    if (!chosen->step_count) return;
    double *const waits = kp_kineto_zeros(chosen->step_count, sizeof *waits);
    (void)kp_nocore_of_some(waits, tree, chosen->steps, chosen->step_count);
    kp_diff_waits_add(d, side, chosen->steps, waits, chosen->step_count);
    free(waits);
    kp_nocore_times_of_some(&times, tree, chosen->steps, chosen->step_count);
    one->has_core = true;
    one->core_had_us = times.is_of_all ? 0 : times.had_ns / 1e3;
    one->core_waited_us = times.is_of_all ? 0 : times.waited_ns / 1e3;
}

void kp_diff_add(struct kp_diff *d, int side, const struct kp_tree *tree, const struct kp_chosen *chosen,
                 const char *label)
{
    struct kp_diff one;
    kp_diff_open(&one);
    kp_diff_gather(&one, side, tree, chosen, false);
    core_take(&one, side, tree, chosen);
    one.sides[side].has_gpu = kp_diff_gpu_worked(tree);
    one.sides[side].has_steps = chosen->step_count != 0;
    kp_diff_take(d, &one, side, tree->trace, label);
    kp_diff_close(&one);
}

/* Is it a change by which a rank differs? Among many ranks some pass an interval, or pairs, by chance. */
static bool is_real(const struct kp_diff *d, const struct kp_diff_row *own)
{
    const bool is_told = own->verdict == KP_DIFF_MORE || own->verdict == KP_DIFF_LESS;
    return is_told && (d->step.verdict != KP_DIFF_NOISE || fabs(own->change) > own->noise);
}

const struct kp_diff_rank *kp_diff_rank_most(const struct kp_diff *d, double *others)
{
    const struct kp_diff_rank *most = NULL;
    double *const changes = kp_kineto_room(d->rank_count + 1, sizeof *changes);
    size_t count = 0;
    for (size_t i = 0; i < d->rank_count; i++) {
        const struct kp_diff_rank *const r = &d->ranks[i];
        if (is_real(d, &r->of->own) && (!most || fabs(r->of->own.change) > fabs(most->of->own.change))) most = r;
    }
    for (size_t i = 0; i < d->rank_count; i++)
        if (&d->ranks[i] != most) changes[count++] = d->ranks[i].of->own.change;
    *others = kp_quantile(changes, count, 0.5);
    free(changes);
    const bool is_alone = most && count && fabs(most->of->own.change - *others) > fabs(most->of->own.change) / 2;
    return is_alone ? most : NULL;
}
