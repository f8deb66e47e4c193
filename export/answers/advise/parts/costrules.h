// SPDX-License-Identifier: Apache-2.0
/* costrules.h - what a step costs by a rule of its own, and whether that is a finding */
#pragma once

#include "export/answers/advise/parts/adviseparts.h"
#include "export/read/store/qsort.h"
#include "export/read/store/sample.h"

enum { KP_STEPS_LEAST = 2, KP_OP_COMPUTES_NS = 100000 }; /* steps that must pass a bound; shorter ops only launch */
/* A fifth of a step, in at least half of the steps. Costs of each Nth step need no half: steprules.c. */
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
    double *told;                     /* by step: what findings of causes of their own have told of it; NULL: none */
    bool *is_long; /* by step: it lasts much longer than the others, which slow-steps tells; NULL: not judged yet */
    double core_waited_ns;           /* of the mean step, which the splits are without; 0: they have it */
    double asleep_ns;                /* its thread slept so long a step, without calls of Python; 0: not known */
    double usual_times, usual_share; /* longer than so often this quantile: threads have told it; 0: they have not */
    struct kp_advice *out;
    struct kp_device_work *works; /* by start */
    size_t work_count, work_capacity;
    struct kp_thread_of_steps thread; /* that of the steps */
    bool has_thread;
    struct kp_spans thread_ops; /* times in which it runs an op; filled where other threads run some */
    int32_t *loaders;           /* by node: the DataLoader's call around it, or -1 */
    bool *has_backward;         /* by node: it is a forward op, of which a node of autograd ran */
    const char *unrecorded;     /* what was not recorded, with the settings; NULL: all was */
    uint32_t explained;         /* bits of measures that a finding here tells better than the rules over parts */
};
struct kp_cost_rule {
    double bound;      /* share of a step */
    uint32_t explains; /* bits of measures, where the finding is at least half of them */
    const char *id, *what, *change;
};
#define KP_RULE_MILD (1u << 31)        /* in `explains`: its finding is never critical */
#define KP_RULE_TELLS_STEPS (1u << 30) /* there: its finding tells why steps are slow */
struct kp_cost {
    struct kp_costrules *x;
    double *of;   /* ns, by step */
    size_t least; /* steps that must pass the bound; 0: KP_STEPS_LEAST */
    double of_ns; /* the bound is a share of this; 0: of the mean step */
    struct kp_costplaces places;
    bool *charged; /* by node: outermost ops of a forward pass, for kp_cost_add_backward; NULL: none */
};
void kp_costrules_open(struct kp_costrules *rules); /* works and loaders, of what is set already */
void kp_costrules_fini(struct kp_costrules *rules);
const char *kp_costrules_name(const struct kp_costrules *rules, int32_t node);
bool kp_costrules_is_op(const struct kp_costrules *rules, size_t node);           /* of the host, and no range */
bool kp_costrules_is_outer(const struct kp_costrules *rules, size_t node);        /* an op that no other one calls */
uint32_t kp_costrules_stack_facts(const struct kp_costrules *rules, size_t node); /* of its stack (namefacts.h) */
bool kp_costrules_is_of_thread(const struct kp_costrules *rules, size_t node);    /* of the steps; false: not known */
bool kp_costrules_is_beside(const struct kp_costrules *rules, size_t node);       /* of the host, in another thread */
bool kp_costrules_in_steps(const struct kp_costrules *rules, size_t node); /* it begins in the chosen time of them */
size_t kp_costrules_step(const struct kp_costrules *rules, size_t node);   /* it begins in; step_count: in none */
int64_t kp_costrules_ns(const struct kp_costrules *rules, size_t node);    /* how long it lasts */
int32_t kp_costrules_place(const struct kp_device_work *work);             /* the call that launched it, or itself */
/* Launched by a call of its own: not one of the works of a CUDA graph, which are one launch together. */
bool kp_costrules_is_launch(const struct kp_costrules *rules, const struct kp_device_work *work);
struct kp_cost kp_cost_open(struct kp_costrules *rules);
/* Charges each step with its part of a time, times `weight`, and a place (-1: none) with all of them. If there is no
 * GPU, the work of another thread costs a step the time in which the thread of the steps runs no op: else both run at
 * once. */
void kp_cost_add(struct kp_cost *cost, int32_t node, int64_t start_ns, int64_t end_ns, double weight);
void kp_cost_add_node(struct kp_cost *cost, size_t node, double weight); /* with its own time */
/* Charges each op from `first` on, of its thread and of no other op, with the time from the end of the one before: a
 * line with more or slower ops costs more. Sets `charged`. Returns how many they are. */
size_t kp_cost_add_run(struct kp_cost *cost, size_t first, int64_t end_ns);
void kp_cost_add_forward(struct kp_cost *cost,
                         size_t node); /* as kp_cost_add_node; sets `charged` of its outermost op */
void kp_cost_add_work(struct kp_cost *cost, const struct kp_device_work *work, double weight);
/* The share of a time in which no GPU computes; without a GPU all of it. */
double kp_cost_exposed(const struct kp_costrules *rules, int64_t start_ns, int64_t end_ns);
/* Adds the times of all nodes with one of these facts (namefacts.h), and settles them. */
void kp_costrules_spans(const struct kp_costrules *rules, uint32_t facts, struct kp_spans *out);
/* Charges what autograd's engine does for the nodes that belong to what is in `charged`, with its own work before each.
 */
void kp_cost_add_backward(struct kp_cost *cost);
/* Adds a finding where the rule's bound is passed. Frees the cost. Returns the finding, or NULL. */
struct kp_finding *kp_cost_tell(struct kp_cost *cost, const struct kp_cost_rule *rule);
struct kp_finding *kp_cost_tell_if(struct kp_cost *cost, const struct kp_cost_rule *rule, bool is); /* else drops it */
/* Tells the cost of the nodes with this mark (`marks`: by node) that lie in no other; with a GPU of the work that they
 * launched. */
struct kp_finding *kp_cost_tell_marked(struct kp_costrules *rules, const struct kp_cost_rule *rule,
                                       const uint8_t *marks, uint8_t mark);
struct kp_finding *kp_cost_drop(struct kp_cost *cost); /* without a finding: NULL */
double kp_cost_mean(const struct kp_cost *cost);       /* of a step */
/* Adds a finding, and returns it. */
struct kp_finding *kp_costrules_tell(struct kp_costrules *rules, const struct kp_finding *finding);
/* True if the cost has no waits for a core in it (core_waited_ns): so is the time that it is a share of. `finding` may
 * be NULL. */
void kp_costrules_core(const struct kp_costrules *rules, struct kp_finding *finding);
void kp_costrules_told(struct kp_costrules *rules, const double *of); /* by step: a finding has told so much of it */
/* Have these findings told half of the `ns` that steps with weights above 0 last longer than those below? */
bool kp_costrules_is_told(const struct kp_costrules *rules, const double *weights, double ns);
struct kp_finding *kp_costrules_find(const struct kp_costrules *rules, const char *id); /* told before, or NULL */
void kp_costrules_unjudged(struct kp_costrules *rules, const char *what); /* not recorded: the trace is INCOMPLETE */
/* A text that lives as long as the trace. */
const char *kp_costrules_text(const struct kp_costrules *rules, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
#define KP_TEXT(...) kp_costrules_text(x, __VA_ARGS__) /* of the rules `x` */
/* "of an ordinary step without evaluations"; NULL: of all. */
const char *kp_costrules_share_of(const struct kp_costrules *rules, const struct kp_finding_steps *of);
enum { KP_NUMBERS_MOST = 5, KP_NUMBERS_FEW = 3 };
/* "step 7", "steps 7, 12 and 3 more, each 5th step": these of the chosen steps, as kp_finding_steps_text() has them.
 * `after`: what stands behind "each 5th step", as a comma before a verb. */
const char *kp_costrules_numbers(const struct kp_costrules *rules, const size_t *at, size_t count, size_t most,
                                 const char *after);
long kp_costrules_each_nth(const struct kp_costrules *rules, const size_t *at, size_t count); /* 5: each 5th; 0: no */
/* Sorts these of the chosen steps by `ns`, the longest first. Returns their numbers without words. */
struct kp_waited_steps kp_costrules_waited(const struct kp_costrules *rules, size_t *at, size_t count,
                                           const double *ns);
bool kp_costrules_has_calls(const struct kp_costrules *rules);  /* of Python */
bool kp_costrules_is_crowded(const struct kp_costrules *rules); /* its steps wait for a core (timeshares.h) */
double kp_costrules_fact(const struct kp_costrules *rules, const char *path); /* a number; 0: not in the file */
