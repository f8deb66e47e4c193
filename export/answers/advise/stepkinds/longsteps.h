// SPDX-License-Identifier: Apache-2.0
/* longsteps.h - what the rules over steps know of a step: its cause, slower ops, an evaluation, a prompt */
#pragma once

#include "export/answers/advise/parts/costrules.h"

/* ---- longsteps.c: which long steps have one cause ---- */

struct kp_longsteps {
    const double *more;  /* by step: how much longer than the median, ns; 0: it is not long */
    const double *waits; /* by step: of its length its thread had no core, which is not in `more` */
    const double *of;    /* by step: its length without them */
    const bool *is_nth;  /* by step: it is one of those that are each Nth one */
    double median_ns;
    size_t *group, groups; /* by step: 1 to `groups`, the longest first; 0: not long */
    bool *is_slower;       /* by step: it is longer by as many calls of the same ops, which are slower */
    bool *has_cause; /* by step: what it has more, the program does then alone, or waits for: jitter does not hit one
                        place so often */
    bool *is_gap;    /* by step: most of what it has more is time in which no op runs */
    double *shared;  /* by step: of `more`, what the steps of another group have more, which is that group's */
    size_t *shared_with; /* by step: that group; 0: none */
};
void kp_longsteps_find(struct kp_longsteps *out, const struct kp_costrules *rules, const double *more,
                       double median_ns);
void kp_longsteps_fini(struct kp_longsteps *longer);
/* Is it too much for chance that `hits` of `count` long steps are so by a place of that time a step? */
bool kp_longsteps_is_often(const struct kp_longsteps *longer, size_t hits, size_t count, double usual_ns);
/* Did Python collect garbage in half of what a step is longer? */
bool kp_longsteps_is_collecting(const struct kp_costrules *rules, size_t step, double more_ns);
/* The share of a step in which its thread had a core. `of_ns`: its length without the waits. */
double kp_longsteps_on_core(const struct kp_costrules *rules, size_t step, double of_ns);
size_t kp_longsteps_node(const struct kp_tree *tree, int64_t ns); /* the first that does not begin before */
/* Each outermost op of a step, or each gap before one, which the op before it begins:
 * for (struct kp_longsteps_walk w = kp_longsteps_walk_of(..); kp_longsteps_next(&w);) */
struct kp_longsteps_walk {
    const struct kp_costrules *x;
    bool are_gaps;
    int32_t node, before; /* before: -1: not known */
    int64_t ns;
    int64_t end_ns, until_ns; /* of the step; of the ops so far */
    size_t at;                /* the next node */
    int32_t last;             /* the op before that */
};
struct kp_longsteps_walk kp_longsteps_walk_of(const struct kp_costrules *rules, size_t step, bool are_gaps);
bool kp_longsteps_next(struct kp_longsteps_walk *walk);

/* Adds the time of each outermost op of a step, or of each gap before one, by its place, times `weight`. */
void kp_longsteps_places(struct kp_keyindex *to, const struct kp_costrules *rules, size_t step, bool are_gaps,
                         double weight);

/* ---- longplace.c ---- */

/* Sets the place to the line that calls all of what steps with weights above 0 have more ops than those below, where
 * that lies at several lines. `where` is the function that it calls. */
void kp_longplace_tell(const struct kp_costrules *rules, const double *weights, struct kp_finding *out);
/* Is almost all of that in backward passes? Then their graph grows, and not the inputs. */
bool kp_longplace_is_backward(const struct kp_costrules *rules, const double *weights);

/* ---- sharedsteps.c: steps with the causes of two groups ---- */

/* Sets `shared` and `shared_with`. */
void kp_sharedsteps_find(struct kp_longsteps *longer, const struct kp_costrules *rules);

/* ---- slowerops.c: ops that run as often as in the other steps, but slower ---- */

bool kp_slowerops_is_of_library(const struct kp_costrules *rules, size_t node); /* an op of ATen, in no evaluation */
double kp_slowerops_self_ns(const struct kp_tree *tree, size_t node); /* how long it lasts, without what it calls */

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
struct kp_slowerops {
    const struct kp_costrules *x;
    const double *of;         /* by step, without its waits for a core: as much of each op counts */
    struct kp_keyindex usual; /* rows: struct kp_opcalls */
    size_t steps;             /* those that are not longer */
    bool has_shapes;          /* of some op */
};
struct kp_slower {
    double ns, shaped_ns;      /* of which the shapes are known to be the same */
    double added_ns;           /* of calls that are more than in the others */
    int32_t node;              /* one of the calls that have most of it, where no hooks run; -1 */
    size_t calls;              /* the number of the calls, of any kind, that have most of it */
    double calls_ns, usual_ns; /* what these have more; and in the mean of the other steps */
};
void kp_slowerops_open(struct kp_slowerops *out, const struct kp_costrules *rules, const double *longer,
                       const double *of);
struct kp_slower kp_slowerops_of(struct kp_slowerops *slower, size_t step);
void kp_slowerops_fini(struct kp_slowerops *slower);

/* ---- gapplace.c ---- */

/*
 * Names the call of Python, and the program's own line, that has most of the time without an op, where it is a tenth of
 * `of_ns` at least. Each step counts by its weight. ns 0: none has, or no calls were recorded.
 * A gap between two lines of a function stays one (is_gap), where that function's own code has the time.
 */
#define KP_GAP_OF_FUNCTION "the function's own Python code"
struct kp_gap_call {
    double ns, itself_ns; /* ns: with callees */
    bool is_python;       /* a function of the program, under which next to no op runs */
};
struct kp_gap_call kp_gapplace_tell(const struct kp_costrules *rules, const double *weights, double of_ns,
                                    struct kp_finding *out);
/* For each step with a weight: the line and call that have most of that time. Equal numbers are one place; 0: not
 * known. */
void kp_gapplace_steps(const struct kp_costrules *rules, const double *weights, uint64_t *calls);
/* How much of that time such a place has in the mean of the steps without a weight, ns. */
double kp_gapplace_usual(const struct kp_costrules *rules, const double *weights, uint64_t call);

bool kp_gapplace_is_function(const char *line, const char *function); /* a line of it, or both of one */
/* "train.py:12 <listcomp>", a function of its own up to Python 3.11, as part of one of that file. */
bool kp_gapplace_is_inner(const char *line, const char *function);
bool kp_gapplace_is_within(const char *line, const char *function); /* one of both */

/* ---- readtimes.c: the function that reads values one by one ---- */

/* When the function of a line of the program runs, as far as calls or ops tell. Settled; none where it is not known. */
void kp_readtimes_find(struct kp_spans *out, const struct kp_costrules *rules, const char *line);
/* The part of these times (settled) that is without an op. */
void kp_readtimes_idle(struct kp_spans *out, const struct kp_costrules *rules, const struct kp_spans *times);

/* ---- steptrend.c ---- */

struct kp_steptrend {
    double early_ns, late_ns; /* medians of the first and of the last third of the steps */
    size_t jump;              /* the first step that is slower, where they grow all at once; 0: bit by bit */
};
/* Do these times grow from step to step, by more than their noise? `of`: by step, ns. */
bool kp_steptrend_find(struct kp_steptrend *out, const double *of, size_t count);

/* ---- waitedsteps.c: long steps whose thread had no core, as the kernel counted ---- */

/* By step: how long, ns; all 0 where the trace does not tell. The caller frees them. */
double *kp_waitedsteps_find(const struct kp_costrules *rules);
/* Did the machine get busier: do these waits grow from step to step, and by more than the steps do? */
bool kp_waitedsteps_grow(const struct kp_costrules *rules, const double *waits, struct kp_steptrend *out);
/*
 * Steps that are long by their waits, most of it: a note tells them, for the program has not made them long. The rest
 * of such a step may be named as well, or be little of all time. `of`: by step, without the waits.
 */
void kp_waitedsteps_judge(struct kp_costrules *rules, const double *of, const double *waits, const bool *is_prompt);

/* ---- growth.c: why steps get slower from one to the next ---- */

/* A sentence: their inputs grow, so that most ops take longer alike. NULL: they do not, or that is not known. `of`: by
 * step, without its waits for a core. */
const char *kp_growth_of_inputs(const struct kp_costrules *rules, const double *of, const struct kp_steptrend *trend);
/* Adds to the finding how much more often its op runs in the end, where that is why, and what does it but `is_carried`,
 * a graph. */
void kp_growth_of_calls(const struct kp_costrules *rules, struct kp_finding *out, bool is_carried);

/* ---- stepbegin.c ---- */

/*
 * ", at its begin, behind the optimizer of step 7", where the steps that `of` has more than 0 of have that before their
 * first forward op, against those that are not `longer`. "": they do not, or an optimizer does not count the steps.
 */
const char *kp_stepbegin_text(const struct kp_costrules *rules, const double *of, const double *longer);

/* ---- evalsteps.c: the steps of a training that hold an evaluation ---- */

/* Tells them, and adds when they evaluate. */
void kp_evalsteps_tell(const struct kp_costrules *rules, struct kp_spans *times);
/* Takes that from the steps. */
void kp_evalsteps_leave_out(const struct kp_costrules *rules, const struct kp_spans *times,
                            struct kp_step_split *splits);

/* ---- promptsteps.c: the steps of a generation that take a prompt ---- */

/* Reads the tokens of an embedding, "[[50257, 128], [1, 12], [], [], []]": 12. 0: another form. */
long kp_prompt_tokens(const char *shapes);
/* Sets is_prompt[i] of each chosen step; where there are such steps beside those of a token, tells them. */
void kp_promptsteps_tell(const struct kp_costrules *rules, bool *is_prompt);
