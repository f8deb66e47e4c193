// SPDX-License-Identifier: Apache-2.0
/* stepparts.h - forward, backward, optimizer: what of the steps' time each is, by the roots of `kprof stacks` */
#pragma once

#include <stdio.h>

#include "export/read/tree/chosen.h"
#include "export/answers/stacks/walltime.h"

struct kp_parts_sum {
    int64_t steps_ns; /* the wall time of the steps */
    int64_t host_ns[KP_PARTS], gpu_ns[KP_PARTS];
    int64_t between_ns; /* of host_ns[KP_PART_OTHER]: no op ran, and no Python function is known that did */
};
struct kp_stepparts { /* all zero: nothing yet */
    struct kp_parts_sum all;
    struct kp_parts_sum *each; /* of a step */
    size_t count, capacity;
};
/* Adds what was chosen of the steps of a trace, or of a piece of it. kp_tree_set_forward_stacks() was called on the
 * tree. */
void kp_stepparts_add(struct kp_stepparts *into, const struct kp_tree *tree, const struct kp_chosen *chosen);
void kp_stepparts_fini(struct kp_stepparts *parts);
/* Whether there are steps that train: only then is a step known to be made of these. */
bool kp_stepparts_has(const struct kp_stepparts *parts);
bool kp_stepparts_has_gpu(const struct kp_stepparts *parts); /* and a GPU worked in them */
/* A backward pass has a forward one, which files before 2021 do not tell: it is then part of "other". */
bool kp_stepparts_has_forward(const struct kp_stepparts *parts);
/* The parts in the order in which they are shown. Time of the steps that is in no part, as a moment between two pieces
 * of a trace, is "other". Threads beside the main one have none. */
enum { KP_STEPPARTS_SHOWN = 5 };
extern const enum kp_part kp_stepparts_order[KP_STEPPARTS_SHOWN];
/* Nanoseconds of the host by part, in that order, of one of parts->each. They add up to the step. */
void kp_stepparts_row(int64_t row[KP_STEPPARTS_SHOWN], const struct kp_parts_sum *step);
int64_t kp_stepparts_ns(const struct kp_stepparts *parts, enum kp_part part, bool on_gpu); /* of all steps */
/*
 * Writes "forward 47.1 %, backward 39.2 %, optimizer 9.3 %, other 4.4 % (3.1 % in gaps between these)": 100.0 %
 * together, of the steps that are usual (usualsteps.h). The host's text says how many are not. If no Python calls are
 * recorded, the time between two parts is Python's, of either.
 */
const char *kp_stepparts_text(char *out, size_t bytes, const struct kp_stepparts *parts, bool on_gpu);
/* Twenty letters: each is a twentieth of a usual step, and the part's first letter. */
enum { KP_STEPPARTS_BAR = 20 };
const char *kp_stepparts_bar(char out[KP_STEPPARTS_BAR + 1], const struct kp_stepparts *parts);
