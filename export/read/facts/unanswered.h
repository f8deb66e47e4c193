// SPDX-License-Identifier: Apache-2.0
/* unanswered.h - launches of which the trace has no work: CUPTI's records came too late, or graphs were not recorded */
#pragma once

#include "export/read/tree/tree.h"

struct kp_unanswered { /* all zero: none */
    size_t kernels, kernels_lost, graphs, graphs_lost;
};
void kp_unanswered_add(struct kp_unanswered *into, const struct kp_tree *tree);
/* Is so much of it lost that what the GPU does is not known? A part cut out of a trace may lack a launch or two. */
bool kp_unanswered_much(const struct kp_unanswered *of);
/* Is it so much that nothing can be said of when the GPU is idle? */
bool kp_unanswered_most(const struct kp_unanswered *of);
/* "the work of 6 of 6 graphs that were launched is not in the trace" */
void kp_unanswered_text(char *out, size_t bytes, const struct kp_unanswered *of);
