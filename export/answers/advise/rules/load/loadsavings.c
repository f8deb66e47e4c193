// SPDX-License-Identifier: Apache-2.0
/*
 * loadsavings.c - what workers save at most of a step that loads its batch itself, and whether that is worth a try
 *
 * If all loading lies beside the training, a step still lasts as long as the rest of it does. Nor is it shorter than
 * what computes in it, items and training, takes of all cores. A wait takes none. To take a batch from a worker costs
 * time, too (decisions/114), so less than the bound is saved. Each worker loads one batch at a time.
 */
#include "export/answers/advise/rules/load/loadsavings.h"

#define WAITS_SHARE 0.5      /* of loading: its items wait, and leave their cores to others */
#define HAND_OVER_LEAST 0.5  /* times KP_HAND_OVER_NS: items that wait need no core while the batch is handed over */
#define HAND_OVER_DOUBLE 2.0 /* times: what is less differs from run to run */

/* The time that a step still lasts with any number of workers. */
static double rest_ns(const struct kp_loading *l)
{
    const double rest = l->step_ns > l->load_ns ? l->step_ns - l->load_ns : 0;
    const double computes = l->load_ns * (1 - l->waits) + (l->has_gpu ? 0 : rest);
    const double on_cores = l->cores > 0 ? computes / (double)l->cores : 0;
    return on_cores > rest ? on_cores : rest;
}

double kp_loading_saves_ns(const struct kp_loading *l, long workers)
{
    const double rest = rest_ns(l), each = workers > 0 ? l->load_ns / (double)workers : 0;
    const double least = each > rest ? each : rest;
    return l->step_ns > least ? l->step_ns - least : 0;
}

enum kp_loading_size kp_loading_size_of(const struct kp_loading *l)
{
    if (l->waits >= WAITS_SHARE && l->waits_known)
        return l->load_ns < HAND_OVER_LEAST * KP_HAND_OVER_NS ? KP_LOADING_SHORT : KP_LOADING_LONG;
    const double on_a_core = l->load_ns * (1 - l->core_waited);
    if (on_a_core < KP_HAND_OVER_NS) return KP_LOADING_SHORT;
    return on_a_core < HAND_OVER_DOUBLE * KP_HAND_OVER_NS ? KP_LOADING_MIDDLE : KP_LOADING_LONG;
}

/* Items that compute need a core each. Items that wait need one to be handed over (decisions/116). */
static long workers_most(const struct kp_loading *l)
{
    enum { FEW = 4, MANY = 16 };
    if (l->waits < WAITS_SHARE) return l->cores;
    if (2 * l->cores < FEW) return FEW;
    return 2 * l->cores < MANY ? 2 * l->cores : MANY;
}

long kp_loading_workers(const struct kp_loading *l)
{
    const double rest = l->step_ns - l->load_ns > KP_HAND_OVER_NS / 2 ? l->step_ns - l->load_ns : KP_HAND_OVER_NS / 2;
    const long hide = (long)(l->load_ns / rest) + 1, most = workers_most(l);
    if (!l->waits_known || l->cores <= 0) return 0;
    return hide < most ? hide : most;
}
