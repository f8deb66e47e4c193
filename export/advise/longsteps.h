// SPDX-License-Identifier: Apache-2.0
/* longsteps.h - what the rules over steps know of a step: its cause, slower ops, an evaluation, a prompt */
#ifndef KP_LONGSTEPS_H
#define KP_LONGSTEPS_H

#include "export/advise/adviseparts.h"
#include "export/report/ownline.h"

/* ---- longsteps.c: which long steps have one cause ---- */

struct kp_longsteps {
    const double *more; /* by step: how much longer than the median, ns; 0: it is not long */
    double median_ns;
    size_t *group, groups; /* by step: 1 to `groups`, the longest first; 0: not long */
    bool *is_slower;       /* by step: it is longer by as many calls of the same ops, which are slower */
};
void kp_longsteps_find(struct kp_longsteps *out, const struct kp_costrules *rules, const double *more,
                       double median_ns);
void kp_longsteps_fini(struct kp_longsteps *longer);
size_t kp_longsteps_node(const struct kp_tree *tree, int64_t ns); /* the first that does not begin before */
/* Gives each outermost op of a step, or each gap before one, which the op before it begins; -1: not known. */
typedef void (*kp_longsteps_fn)(void *context, size_t step, int32_t node, int32_t before, int64_t ns);
void kp_longsteps_walk(const struct kp_costrules *rules, size_t step, bool are_gaps, kp_longsteps_fn give,
                       void *context);

/* ---- slowerops.c: ops that run as often as in the other steps, but slower ---- */

enum kp_opkind {
    KP_OP_OF_OTHERS,
    KP_OP_OF_LIBRARY,  /* ATen's */
    KP_OP_OF_AUTOGRAD, /* a node in C++ */
    KP_OP_WITH_HOOKS   /* torch's, which may run functions of the program */
};
struct kp_opcalls {
    enum kp_opkind kind;
    size_t count;
    double ns;
    int32_t node; /* one of them */
    bool has_shapes;
};
struct kp_opcallset { /* all zero: empty */
    struct kp_keyindex keys;
    struct kp_opcalls *of; /* by number in `keys` */
    size_t capacity;
};
struct kp_slowerops {
    const struct kp_costrules *x;
    struct kp_opcallset usual;
    struct kp_ownlines lines;
    size_t steps;    /* those that are not longer */
    bool has_shapes; /* of some op */
};
struct kp_slower {
    double ns, shaped_ns; /* of which the shapes are known to be the same */
    int32_t node;         /* one of the calls that have most of it; -1 */
};
void kp_slowerops_open(struct kp_slowerops *out, const struct kp_costrules *rules, const double *longer);
struct kp_slower kp_slowerops_of(struct kp_slowerops *slower, size_t step);
void kp_slowerops_fini(struct kp_slowerops *slower);

/* ---- evalsteps.c: the steps of a training that hold an evaluation ---- */

/* Tells them, and adds when they evaluate. */
void kp_evalsteps_tell(const struct kp_costrules *rules, struct kp_spans *times);
/* Takes that from the steps. */
void kp_evalsteps_leave_out(const struct kp_costrules *rules, const struct kp_spans *times,
                            struct kp_step_split *splits);

/* ---- promptsteps.c: the steps of a generation that take a prompt ---- */

/* Sets is_prompt[i] of each chosen step; where there are such steps beside those of a token, tells them. */
void kp_promptsteps_tell(const struct kp_costrules *rules, bool *is_prompt);

#endif
