// SPDX-License-Identifier: Apache-2.0
/* loadsavings.h - what workers save of a step that loads its batch itself, and whether that is worth a try */
#pragma once

#include <stdbool.h>

#define KP_HAND_OVER_NS 3e6 /* to take a batch of a worker whose items cost nothing, at most (decisions/114) */
struct kp_loading {
    double load_ns, step_ns;   /* of a step that loads: its loading, and all of it */
    double waits, core_waited; /* shares: of the loading that may wait; of the time without a core (timeshares.h) */
    long cores;                /* 0: not known */
    bool waits_known, has_gpu; /* waits_known: no more than that waits, and no less */
};
enum kp_loading_size {
    KP_LOADING_SHORT,  /* no longer than it takes to take a batch from a worker */
    KP_LOADING_MIDDLE, /* so little longer that it may be either from run to run */
    KP_LOADING_LONG
};
/* The most that so many workers save of such a step (0: any number): what they cost themselves is not in it. */
double kp_loading_saves_ns(const struct kp_loading *loading, long workers);
enum kp_loading_size kp_loading_size_of(const struct kp_loading *loading);
/* How many hide the loading, at most one a core, and of items that wait two; 0: not known. */
long kp_loading_workers(const struct kp_loading *loading);
