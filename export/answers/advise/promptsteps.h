// SPDX-License-Identifier: Apache-2.0
/* promptsteps.h - what tells the steps of a generation that take a prompt, of a trace as a whole or in pieces */
#pragma once

#include "export/answers/advise/longsteps.h"

/* Without shapes: the op that has most time in the steps. */
struct kp_prompt_op {
    uint32_t name; /* 0: none has enough calls a step */
    int64_t ns;
    size_t calls, embeddings; /* embeddings: of all the steps */
    bool has_backward;        /* the steps are not of a model alone */
};
struct kp_prompt_op kp_prompt_op_find(const struct kp_costrules *rules);
/* By step, what its ops tell. */
struct kp_prompt_ops {
    double *calls, *longer; /* of that op: all, and those that last far longer than its median call */
    uint64_t *ops;          /* which ops it runs and how often, in whatever order: a sum of hashes of their names */
};
#define KP_PROMPT_LONG_TIMES 2.0 /* the median call: a call of a larger input */

/* Notes the tokens of each chosen step, where shapes tell them; 0: not known. */
void kp_prompt_tokens_read(const struct kp_costrules *rules, long *tokens);
/* The same by the ops: 1 or 2 tokens stand for one and for more. */
void kp_prompt_tokens_guess(const struct kp_prompt_ops *by, long *tokens, size_t steps);
/* The sentence of kp_advice.prompts, where some steps take more than one token; NULL: none does. */
const char *kp_prompts_text(const struct kp_costrules *rules, const long *tokens, bool is_known);
