// SPDX-License-Identifier: Apache-2.0
/* adviseparts.h - what the files of this room share: places in a trace, the causes of idle, and what costs where */
#pragma once

#include <string.h>

#include "export/advise/advise.h"
#include "export/report/keyindex.h"
#include "export/report/ownline.h"

#define KP_FINDING_THREADS "too-many-threads"
#define KP_FINDING_SHARED "shared-gpu"
#define KP_FINDING_READS "reads-in-step"
#define KP_FINDING_GC "python-gc"
#define KP_FINDING_GROWS "memory-grows"
#define KP_FINDING_RESIDENT "resident-grows"
#define KP_FINDING_NO_OP "no-op-runs"
#define KP_FINDING_INPUT "input-in-step"
#define KP_FINDING_GIL "gil-wait"
/* A range of the host that is no op, whatever old files call it. */
static inline bool kp_advise_is_range(const char *name)
{
    return kp_kineto_is_step(name) || strncmp(name, "Optimizer.", 10) == 0 || kp_kineto_is_loader(name);
}

/* torch names what its compiler does so; "Torch-Compiled Region" is compiled code that runs. */
static inline bool kp_advise_is_compiling(const char *name)
{
    return strstr(name, "(dynamo_timed)") || strstr(name, "CachingAutotuner.benchmark") ||
           strstr(name, "async_compile.");
}

#define KP_ADVISE_GC_RANGE "Python GC"                  /* torch's own (record_python_gc_info) */
#define KP_ADVISE_GC_CALL "<built-in function collect>" /* gc.collect() by the program */
static inline bool kp_advise_is_collecting(const char *name)
{
    return strcmp(name, KP_ADVISE_GC_RANGE) == 0 || strcmp(name, KP_ADVISE_GC_CALL) == 0;
}

/* ---- compiling.c ---- */

typedef void (*kp_compile_fn)(void *context, int32_t node, int64_t start_ns, int64_t end_ns);
/* Each time in which torch.compile compiles, by a node at its end; times of one thread may lie in one another. */
void kp_compiles_each(const struct kp_tree *tree, kp_compile_fn fn, void *context);

/* ---- costplace.c: which op, on which line, costs how much ---- */

struct kp_costplace {
    size_t count;                        /* how often something was added */
    int64_t ns, most_ns;                 /* most_ns: the largest that was added */
    uint32_t name, stack, after;         /* string ids; after: the stack of the op before that one */
    bool is_backward, is_after_backward; /* the stack, or after, is that of the forward op */
};
struct kp_costplaces {       /* all zero: empty */
    struct kp_keyindex keys; /* rows: struct kp_costplace */
};
void kp_costplaces_add(struct kp_costplaces *places, const struct kp_tree *tree, int32_t node, int32_t before,
                       int64_t ns);
uint64_t kp_costplace_key(const struct kp_tree *tree, int32_t node); /* of its place: the op and the stack */
uint64_t kp_costplace_key_of(const struct kp_costplace *place);      /* the same */
uint32_t kp_costplace_line(struct kp_ownlines *lines, const struct kp_tree *tree, int32_t node); /* its own; 0: none */
const struct kp_costplace *kp_costplaces_most(const struct kp_costplaces *places); /* that costs most; NULL: none */
/* Names the place that costs most. */
void kp_costplaces_tell(const struct kp_costplaces *places, struct kp_kineto *trace, struct kp_finding *out);
void kp_costplaces_fini(struct kp_costplaces *places);
/* Writes the own lines that cost most, each with its ms a step: "train.py:12 main (3.100 ms), ..."; "" without. */
void kp_costplaces_lines(const struct kp_costplaces *places, struct kp_kineto *trace, size_t steps, char *out,
                         size_t bytes);
/* Writes the own lines with the most additions, each with those a step: "6.0 at train.py:12 clip, ..."; "" without. */
void kp_costplaces_counts(const struct kp_costplaces *places, struct kp_kineto *trace, size_t steps, char *out,
                          size_t bytes);
/* The outermost op around a node, or the node. */
int32_t kp_costplace_op(const struct kp_tree *tree, int32_t node);

struct kp_costrules;
/* launchplace.c: what to change where a GPU waits for launches, where more is known than the rule says. */
void kp_launchplace_tell(const struct kp_costrules *rules, struct kp_finding *out);

/* ---- gputurns.c ---- */

struct kp_late { /* works of a GPU on which nothing ran for a while, though they were launched */
    struct kp_late_work *of;
    size_t count, capacity;
};
/* Gaps of one length before such work: the turns of another process on the same GPU. */
struct kp_turns {
    size_t count;
    int64_t each_ns; /* their median */
};
/* The gap before the work of a node, and how much of it was after the launch. Keeps long ones. */
void kp_turns_add(struct kp_late *late, const struct kp_tree *tree, int32_t node, int64_t gap_ns, int64_t launched_ns);
struct kp_turns kp_turns_find(struct kp_late *late); /* none: count 0 */

/* ---- idlecause.c ---- */

struct kp_idle {
    struct kp_spans of[KP_IDLE_CAUSES]; /* settled; they do not overlap */
    struct kp_costplaces places[KP_IDLE_CAUSES];
    int64_t backlog_ns; /* how much more a GPU has to do at the last step's end than at the first one's begin */
    struct kp_turns turns;
};
/* Divides the chosen time outside of `worked` (settled) by its cause. */
void kp_idle_find(struct kp_idle *out, const struct kp_tree *tree, const struct kp_chosen *chosen,
                  const struct kp_spans *worked, bool has_gpu);
void kp_idle_fini(struct kp_idle *idle);

/* ---- gpusteps.c ---- */

/*
 * The same steps where the GPU does what each launched: from its first work to that of the next one. False: one of them
 * launched none, or they overlap. The caller ends `out` with kp_chosen_fini() either way.
 */
bool kp_gpu_steps_make(struct kp_chosen *out, const struct kp_tree *tree, const struct kp_chosen *chosen);
/* Is the GPU so far behind its host that the host's steps are not the GPU's? backlog_ns: as in kp_split_places. */
bool kp_gpu_steps_are_behind(size_t steps, double step_ns, double backlog_ns);

/* ---- stepsplit.c ---- */

struct kp_split_places {
    struct kp_costplaces parts[KP_SPLIT_PARTS], causes[KP_IDLE_CAUSES];
    struct kp_spans computed, launching; /* with a GPU: it computes or communicates; it waits for launches */
    int64_t backlog_ns;
    struct kp_turns turns;
};
/* As kp_step_split_all(), with causes; adds what costs where. NULL: nothing of either. */
bool kp_step_split_places(struct kp_step_split *out, const struct kp_tree *tree, const struct kp_chosen *chosen,
                          struct kp_split_places *places);
void kp_split_places_fini(struct kp_split_places *places);
/* What a work of a device is to a step, by its category and name; KP_SPLIT_IDLE: a wait of a stream. */
enum kp_split_part kp_split_part_of_device(const char *cat, const char *name);

/* ---- costrules.c: what a step costs by a rule of its own, and whether that is a finding ---- */

enum { KP_STEPS_LEAST = 2, KP_OP_COMPUTES_NS = 100000 }; /* steps that must pass a bound; shorter ops only launch */
#define KP_SHARE_CRITICAL 0.20
/* A fifth of a step, in at least half of the steps. */
static inline bool kp_advise_is_critical(const struct kp_finding *finding, size_t steps)
{
    return finding->share >= KP_SHARE_CRITICAL && 2 * finding->steps >= steps;
}
#define KP_CAUSE(cause) (KP_SPLIT_PARTS + (cause)) /* as a measure, beside the parts */

struct kp_device_work {
    int64_t start_ns, end_ns;
    const struct kp_kineto_work *said; /* NULL: the file says nothing */
    int32_t node, call;                /* call -1: not in the trace */
    enum kp_split_part part;           /* KP_SPLIT_COMPUTE, _COMM, _COPIES */
};
struct kp_costrules {
    const struct kp_tree *tree;
    const struct kp_chosen *chosen;
    const struct kp_step_split *splits; /* one a step */
    const struct kp_split_places *places;
    const struct kp_costrules *whole; /* of all steps, where these are the steady ones; or NULL */
    struct kp_spans evaluated;        /* times in which the model is evaluated */
    struct kp_spans read_idle;        /* times without an op that the finding of reads has told */
    struct kp_step_split *trained;    /* the splits without those (of parts with a GPU: loading); NULL: as splits */
    double *waited;                   /* by step: what findings of waits have told of it (waitrules.c); NULL: none */
    bool *is_long; /* by step: it lasts much longer than the others, which slow-steps tells; NULL: not judged yet */
    double usual_times, usual_share; /* longer than so often this quantile: threads have told it; 0: they have not */
    struct kp_advice *out;
    struct kp_device_work *works; /* by start */
    size_t work_count, work_capacity;
    int32_t *loaders;       /* by node: the DataLoader's call around it, or -1 */
    const char *unrecorded; /* what was not recorded, with the settings; NULL: all was */
    uint32_t explained;     /* bits of measures that a finding here tells better than the rules over parts */
};
struct kp_cost_rule {
    double bound;      /* share of a step */
    uint32_t explains; /* bits of measures, where the finding is at least half of them */
    const char *id, *what, *change;
};
struct kp_cost {
    double *of;   /* ns, by step */
    size_t least; /* steps that must pass the bound; 0: KP_STEPS_LEAST */
    double of_ns; /* the bound is a share of this; 0: of the mean step */
    struct kp_costplaces places;
};
void kp_costrules_open(struct kp_costrules *rules); /* works and loaders, of what is set already */
void kp_costrules_fini(struct kp_costrules *rules);
const char *kp_costrules_name(const struct kp_costrules *rules, int32_t node);
bool kp_costrules_is_op(const struct kp_costrules *rules, size_t node); /* of the host, and no range */
int32_t kp_costrules_place(const struct kp_device_work *work);          /* the call that launched it, or itself */
/* Launched by a call of its own: not one of the works of a CUDA graph, which are one launch together. */
bool kp_costrules_is_launch(const struct kp_costrules *rules, const struct kp_device_work *work);
struct kp_cost kp_cost_open(const struct kp_costrules *rules);
/* Charges each step with its part of a time, times `weight`, and a place (-1: none) with all of them. */
void kp_cost_add(struct kp_cost *cost, const struct kp_costrules *rules, int32_t node, int64_t start_ns, int64_t end_ns,
                 double weight);
/* Adds a finding where the rule's bound is passed. Frees the cost. Returns the finding, or NULL. */
struct kp_finding *kp_cost_tell(struct kp_cost *cost, struct kp_costrules *rules, const struct kp_cost_rule *rule);
void kp_cost_drop(struct kp_cost *cost); /* without a finding */
/* Adds a finding, and returns it. */
struct kp_finding *kp_costrules_tell(struct kp_costrules *rules, const struct kp_finding *finding);
struct kp_finding *kp_costrules_find(const struct kp_costrules *rules, const char *id); /* told before, or NULL */
void kp_costrules_unjudged(struct kp_costrules *rules, const char *what); /* not recorded: the trace is INCOMPLETE */
/* A text that lives as long as the trace. */
const char *kp_costrules_text(const struct kp_costrules *rules, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "step 7", "steps 7, 12 and 3 more, each 5th step": the numbers of these of the chosen steps, in this order. */
const char *kp_costrules_numbers(const struct kp_costrules *rules, const size_t *at, size_t count);
/* The same before a verb: with a comma behind "each 5th step". */
const char *kp_costrules_numbers_of(const struct kp_costrules *rules, const size_t *at, size_t count);
/* The same of three numbers at most. */
const char *kp_costrules_few(const struct kp_costrules *rules, const size_t *at, size_t count);
bool kp_costrules_has_calls(const struct kp_costrules *rules);  /* of Python */
bool kp_costrules_is_crowded(const struct kp_costrules *rules); /* its steps wait for a core (timeshares.h) */
double kp_costrules_fact(const struct kp_costrules *rules, const char *path); /* a number; 0: not in the file */
/* Sorts them, and returns the value at this share of them, 0 to 1. */
double kp_quantile(double *values, size_t count, double share);

/* ---- steadysteps.c ---- */

struct kp_steady {
    struct kp_chosen chosen;
    struct kp_step_split *splits, *trained;
    struct kp_split_places places;
};
/* The steps that are not long. False: all are, or they do not tell. kp_steady_fini() ends it either way. */
bool kp_steady_open(struct kp_steady *out, const struct kp_costrules *rules);
void kp_steady_fini(struct kp_steady *steady);
void kp_gpu_figures_make(struct kp_gpu_figures *out, const struct kp_costrules *rules);

/* hostrules.c: what to do against long collections of garbage; whether they have half of what a step is longer. */
#define KP_COLLECTING_CHANGE                                                                                         \
    "Call gc.freeze() after start-up, which leaves out what lives then. Where the program calls gc.collect(): less " \
    "often; where it does not: gc.disable(), and gc.collect() every N steps."
void kp_rules_collecting_explicit(struct kp_finding *finding); /* the program itself collects: another change */
bool kp_rules_is_collecting(const struct kp_costrules *rules, size_t step, double more_ns);
/* Adds where Python collected garbage in the steps that `of` has more than 0 of. */
void kp_rules_collecting_places(const struct kp_costrules *rules, const double *of, struct kp_costplaces *places);
void kp_rules_collecting(struct kp_costrules *rules); /* before kp_rules_steps(), which leaves them to it where told */
/* lostwork.c: a sentence, if kernels were launched and are not in the trace; or NULL. */
const char *kp_lost_work(struct kp_costrules *rules);
void kp_rules_copies(struct kp_costrules *rules);               /* copyrules.c */
void kp_rules_launches(struct kp_costrules *rules);             /* launchrules.c */
void kp_rules_kernels(struct kp_costrules *rules);              /* kernelrules.c */
void kp_rules_attention(struct kp_costrules *rules);            /* attentionrules.c */
void kp_rules_fusing(struct kp_costrules *rules);               /* fuserules.c */
void kp_rules_bandwidth(struct kp_costrules *rules);            /* bandwidth.c */
void kp_rules_steps(struct kp_costrules *rules);                /* steprules.c */
void kp_rules_memory(struct kp_costrules *rules);               /* memoryrules.c */
void kp_rules_resident(struct kp_costrules *rules);             /* residentrule.c */
void kp_rules_host(struct kp_costrules *rules);                 /* hostrules.c */
void kp_rules_threads(struct kp_costrules *rules);              /* threadrules.c */
void kp_rules_each_step(struct kp_costrules *rules);            /* hostrules.c: what the host does in every step */
void kp_rules_anomaly(struct kp_costrules *rules);              /* anomalyrule.c */
void kp_rules_float64(struct kp_costrules *rules);              /* float64rule.c */
void kp_rules_parts(struct kp_costrules *rules);                /* partrules.c */
long kp_rules_threads_wanted(const struct kp_costrules *rules); /* of a host that has more; 0: it has not */
