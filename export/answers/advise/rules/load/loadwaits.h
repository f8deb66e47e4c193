// SPDX-License-Identifier: Apache-2.0
/* loadwaits.h - what a loader makes the steps wait: each a little, or a few of them for all; without a core or with */
#pragma once

#include "export/answers/advise/parts/costrules.h"

/* Says where few steps wait for most of it, and what to change, while the workers are not known. */
void kp_loadwaits_tell(const struct kp_costrules *rules, const struct kp_step_split *splits, struct kp_finding *out);

/*
 * Does the thread sleep in this part, for other ranks or for workers that load? It wants no core there, and how long
 * they wait for one no trace tells: such a part is a share of the step as it was, with its waits.
 */
bool kp_part_is_of_others(const struct kp_costrules *rules, enum kp_split_part part);

/*
 * loadepochs.c: where the steps with `waits` for a loader with workers begin an epoch, says so, and what to change.
 * False: they do not, or a step asks for no batch.
 */
#define KP_LOADER_KEEPS "Keep the workers: DataLoader(..., persistent_workers=True)."
bool kp_loadepochs_tell(const struct kp_costrules *rules, const double *waits, struct kp_finding *out);
/* Says that each step makes a new iterator of the loader for one batch, if it does, and what to change. False: none
 * does. */
bool kp_loadepochs_each(const struct kp_costrules *rules, struct kp_finding *out);

/* loadtensors.c: where a batch comes as many tensors, whose receipt takes much of the wait, says so, and what to change
 * first. False: it does not. */
bool kp_loadtensors_tell(const struct kp_costrules *rules, struct kp_finding *out);

/* ---- loadcore.c: what of it is time in which the machine had no core for the thread ---- */

struct kp_loadcore {
    double load_ns, step_ns; /* the mean of a step: what was taken out of the part, and of all of it */
    size_t loading_steps;    /* that load something */
};
/* How long the thread of the steps slept in all of them: it had no core, and wanted none. -1: not known. */
double kp_loadcore_asleep_ns(const struct kp_costrules *rules);
/* The share of a part of all steps in which the thread is awake for sure. 0: not known. */
double kp_loadcore_awake_share(const struct kp_costrules *rules, enum kp_split_part part);
/* The splits without what a part surely has of that time, their steps without all of it. The caller frees them. */
struct kp_step_split *kp_loadcore_splits(const struct kp_costrules *rules, const struct kp_step_split *splits,
                                         enum kp_split_part part, struct kp_loadcore *out);
/* loadsampler.c: "; its sampler takes 3.1 ms of that .."; "": it takes less than a tenth of the loading. */
const char *kp_loadsampler_text(struct kp_costrules *rules);
/* The same file: without calls of Python, says whether the thread sleeps in next(), as far as it is known. */
void kp_loadsampler_awake(const struct kp_costrules *rules, struct kp_finding *out);
/* "Items decompress what they read at data.py:21 __getitem__: ..", and what to do, with a blank behind; "": they do
 * not, for a third of the loading, or no calls of Python were recorded. */
const char *kp_loadunpack_text(const struct kp_costrules *x);
/* "decompress at data.py:21 __getitem__ (74 % of loading)", where that is half of it or more; NULL: it is not. */
const char *kp_loadunpack_most(const struct kp_costrules *x);
/* loadplace.c: the line that the loading of data spends most time in, or those around; what to change. */
void kp_loadplace_tell(const struct kp_costrules *rules, const struct kp_loadcore *taken, struct kp_finding *out);
