// SPDX-License-Identifier: Apache-2.0
/* advise.h - what is slow in a trace, what it costs a step, and what to change (decisions/061) */
#ifndef KP_ADVISE_H
#define KP_ADVISE_H

#include "export/report/chosen.h"

enum { KP_FINDINGS_MAX = 8 };

/* Where a step's time goes. Each moment counts once, for the first part that it belongs to. */
enum kp_step_part {
    KP_STEP_COMPUTE, /* kernels of a GPU; without GPU work, ops of the host */
    KP_STEP_COMM,    /* NCCL kernels while nothing computes */
    KP_STEP_COPIES,  /* copies and fills while nothing computes or communicates */
    KP_STEP_LOADING, /* the DataLoader while none of these runs; without GPU work it comes before ops */
    KP_STEP_IDLE,    /* the rest */
    KP_STEP_PARTS
};
struct kp_step_split {
    int64_t part_ns[KP_STEP_PARTS]; /* add up to the step */
    int64_t step_ns;
};
struct kp_finding {
    const char *id, *what, *change; /* the change is a sentence */
    const char *where;              /* a name in the trace, or NULL */
    double step_ns, share;          /* the mean over the steps; share of a step, 0 to 1 */
    size_t steps;                   /* in which it passes its bound */
    bool is_critical;
};
struct kp_advice {
    struct kp_finding findings[KP_FINDINGS_MAX]; /* the largest first */
    size_t count, steps;
    double mean_ns[KP_STEP_PARTS], step_ns; /* means over the steps */
    const char *missing;                    /* INCOMPLETE: what lacks, with the setting that shows it; or NULL */
    bool is_healthy, has_gpu;
};

void kp_advice_make(struct kp_advice *out, const struct kp_tree *tree, const struct kp_chosen *chosen);

/* stepsplit.c: one split for each of the chosen steps. Returns whether a GPU worked. */
bool kp_step_split_all(struct kp_step_split *out, const struct kp_tree *tree, const struct kp_chosen *chosen);

#endif
