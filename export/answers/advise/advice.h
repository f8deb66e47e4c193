// SPDX-License-Identifier: Apache-2.0
/* advice.h - what is slow in a trace, what it costs a step, and what to change (decisions/061) */
#pragma once

#include "export/answers/advise/parts/finding.h"

/*
 * Own lines need kp_tree_set_forward_stacks(), kernels and copies a trace read with keep_works. All texts are the
 * trace's, or ours for ever.
 */
void kp_advice_make(struct kp_advice *out, const struct kp_tree *tree, const struct kp_chosen *chosen);

/* By each of the chosen steps: whether it holds an evaluation, beside a training. */
void kp_advice_evaluations(bool *out, const struct kp_tree *tree, const struct kp_chosen *chosen);
/* Which steps are longer by what they are for: sentences of the advice, without what to type; or NULL. */
struct kp_advice_kinds {
    const char *evaluated, *prompts;
};
void kp_advice_kinds_make(struct kp_advice_kinds *out, const struct kp_tree *tree, const struct kp_chosen *chosen);
/* The name of the steps, if they are guesses: "calls of a model"; NULL: they are none. */
const char *kp_advice_guesses(const struct kp_kineto *trace);
