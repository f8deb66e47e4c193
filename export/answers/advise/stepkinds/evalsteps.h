// SPDX-License-Identifier: Apache-2.0
/* evalsteps.h - which steps of a training hold an evaluation, by how often forward ops run without gradients */
#pragma once

#include "export/answers/advise/stepkinds/longsteps.h"

enum {
    KP_FORWARD_NAMES_MOST = 64,
    KP_FORWARD_NAMES_LONG = 8,
    KP_EVALSTEPS_FEW = 3
}; /* the longest tell whether something ran */
#define KP_EVALSTEPS_SHARE ", %.1f %% of the time of all steps"

enum kp_pass_mark { KP_PASS_NONE, KP_PASS_TRAINING, KP_PASS_EVALUATION }; /* a node is a pass of that, or a part */
struct kp_passes {
    size_t with, without;
};
struct kp_forward_name {
    uint32_t name;
    int64_t ns;      /* in all, with gradients */
    double a_step;   /* calls with gradients, the median of the steps */
    double usual;    /* calls without: kp_evalsteps_usual */
    bool is_layer;   /* kp_evalsteps_is_layer */
    uint32_t *calls; /* without, by step; of a whole trace also before the steps and behind them */
};
struct kp_forward_names {
    struct kp_forward_name of[KP_FORWARD_NAMES_MOST]; /* the longest first */
    size_t count, steps;                              /* calls of a later number are outside of the steps */
};

/* evalpasses.c: an op of a layer with weights, which each pass of a model runs as often. */
bool kp_evalsteps_is_layer(const char *name);
/* A forward op with gradients, in no backward. */
bool kp_evalsteps_is_forward(const struct kp_kineto_event *event);
bool kp_evalsteps_has_gradients(const struct kp_kineto_event *event);
/* Passes of a step without gradients, by its ops. 0: at most half of their time lies in some. */
size_t kp_evalsteps_passes(const struct kp_forward_names *names, size_t step);
double kp_evalsteps_median(const uint32_t *calls, size_t steps);
double kp_evalsteps_usual(const uint32_t *without, size_t steps); /* the median; of few steps the least */
/* Do most steps train alone? Else passes without backward are a part of the training. */
bool kp_evalsteps_are(const struct kp_passes *of, size_t steps, size_t least);
/* "step 10 holds 12 forward passes", "steps 10, 20 and 3 more hold 12 to 14 forward passes". */
const char *kp_evalsteps_numbers(const struct kp_costrules *rules, const struct kp_passes *of, size_t passes_least);
/* evalkind.c: what passes without gradients are, in words. */
struct kp_evalkind {
    const char *one, *of, *many, *save; /* "evaluation", "", "evaluations", how to save time */
};
struct kp_evalsigns {
    const struct kp_spans *times; /* of the passes in steps */
    bool is_named, has_outside;   /* a function of the program is named so (evalplace.c); some run outside of steps */
    double more_asks;             /* how often such a step asks a loader, more than others */
};
const struct kp_evalkind *kp_evalkind_of(const struct kp_costrules *rules, const struct kp_evalsigns *signs);
const struct kp_evalkind *kp_evalkind_unknown(void);
bool kp_evalkind_is_name(const char *name); /* "evaluate", "run_validation", "test"; NULL: false */
/* "3 evaluations inside of the training take ABOUT 12.0 msSHARE, and are no slow steps of it: NUMBERS ..": so many take
 * so many ns together. about: "some ", or "". share: with its comma, or "". */
const char *kp_evalsteps_text(const struct kp_costrules *rules, size_t found, const struct kp_evalkind *kind,
                              const char *about, double ns, const char *share, const char *numbers);
/* evalplace.c: ", at train.py:41 main", the line from which most of these times are called; "": no stack tells.
 * is_named, or NULL: that line, or what it calls, is in a function named as an evaluation. */
const char *kp_evalplace_text(const struct kp_costrules *rules, const struct kp_spans *times, bool *is_named);
/*
 * secondpass.c: a sentence of what each step runs without gradients beside its training, or NULL. `marks`: by node, one
 * of kp_pass_mark each.
 */
const char *kp_secondpass_text(const struct kp_costrules *rules, const uint8_t *marks);
/* recomputed.c: a sentence of what activation checkpointing costs, or NULL. */
const char *kp_recomputed_text(const struct kp_costrules *rules);
