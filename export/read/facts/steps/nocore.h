// SPDX-License-Identifier: Apache-2.0
/* nocore.h - how long each step of a trace waited for a core, as far as the trace tells */
#pragma once

#include "export/read/tree/chosen.h"

enum { KP_NOCORE_TOLD_PART = 10 }; /* what is less than a tenth of a step explains nothing */
/*
 * Writes for each step how long its thread had no core, ns. Steps with one wait together share it by what they last
 * longer than the median; where some of them are not among these, none gets any. A list that ends before the steps do
 * tells nothing of later ones. False: no step waited, or the trace does not tell.
 */
bool kp_nocore_of(double *out, const struct kp_kineto *trace, const struct kp_step *steps, size_t count);
/* The same of steps that are some of all the steps of `tree`. Steps behind the end of a list share what their window
 * waited beside it, by their length. */
bool kp_nocore_of_some(double *out, const struct kp_tree *tree, const struct kp_step *steps, size_t count);

/* The time for which the thread of the steps had a core in some of all steps. */
struct kp_nocore_times {
    double had_ns, waited_ns; /* waited: it was ready to run, and had none */
    bool is_of_all;           /* of all that was recorded: which steps waited is not known */
};
/* `all`: steps of the trace, of which those are meant that is_in has. All 0: the trace does not tell. */
void kp_nocore_times_of(struct kp_nocore_times *out, const struct kp_kineto *trace, const struct kp_step *all,
                        size_t count, const bool *is_in);
void kp_nocore_times_of_some(struct kp_nocore_times *out, const struct kp_tree *tree, const struct kp_step *steps,
                             size_t count);
