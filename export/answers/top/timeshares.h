// SPDX-License-Identifier: Apache-2.0
/* timeshares.h - the numbers above a report: wall time, steps, and where the time went */
#pragma once

#include "export/read/tree/chosen.h"
#include "export/read/facts/unanswered.h"

struct kp_summary {
    int64_t when_ns; /* the trace's first event, since the Unix epoch; 0: the file does not say */
    int64_t wall_ns; /* of what was chosen */
    size_t steps;
    long first_step, last_step;                                        /* by number */
    int64_t step_median_ns, step_mean_ns, step_least_ns, step_most_ns; /* of the steps that were chosen */
    int64_t before_ns, after_ns;        /* of wall_ns, before the first step and after the last */
    int64_t first_ns, rest_median_ns;   /* the first step, and the median of the others */
    bool is_first_slow;                 /* it may carry a start */
    long slowest_step;                  /* the one of step_most_ns */
    int64_t no_core_ns;                 /* of all these steps: their thread had no core; 0: not known, or none */
    int64_t slowest_no_core_ns;         /* of the slowest */
    bool is_uneven, is_uneven_by_cores; /* some steps are much longer; and without that time none is */
    /* The shares: of the steps alone where much lies outside of them (imports, a model being built), else of all. */
    bool is_of_steps;
    int64_t outside_ns; /* of a phase, what lies in no whole step */
    int64_t shared_ns;
    int64_t data_ns, op_ns, comm_ns, rest_ns; /* add up to shared_ns; comm: collectives on the host, beside no op */
    int64_t call_ns;                          /* of op_ns, about: the GPU's runtime runs in no op */
    int64_t gpu_wait_ns;                      /* of shared_ns: some thread waits for a GPU */
    int64_t gpu_wait_idle_ns;                 /* of that, no recorded work runs on it */
    int64_t gpu_wait_alone_ns;                /* of that, in waits in which none of it runs at any time */
    int64_t gpu_ns;                           /* some GPU works */
    int64_t gpu_step_ns;                      /* what a step asks of GPUs, whenever they do it; the mean */
    bool has_gpu, has_gpu_outside;            /* outside: of what is shown, and nothing in it */
    bool has_ops;                             /* some op was recorded */
    struct kp_unanswered unanswered;          /* launches without work, in all of the trace */
    size_t reads;                             /* of single values, in the steps (valuereads.h) */
    uint64_t lost;                            /* events that were dropped or skipped, as the file says */
    bool is_lost_least;                       /* more than that may be lost */
    long cores, busy_threads;                 /* that the program may use; threads that ran; 0: not in the file */
    double core_waited;     /* the share of the time that the thread of the steps wanted a core, and had none */
    int64_t core_waited_ns; /* how long that was, in the window */
    int64_t own_threads_ns; /* other threads of the program had a core for so long, in the window; 0: little */
    bool is_crowded;        /* that makes its steps longer */
    bool is_core_of_all;    /* of some steps: both are of all that was recorded, since waits are not known by step */
    int64_t bare_ns;     /* a step before the window, in which nothing was recorded, the median; 0: not in the file */
    long bare_steps;     /* of so many */
    long omp_threads;    /* OMP_NUM_THREADS; 0: not set */
    long threads_wanted; /* what OMP_NUM_THREADS should be instead; 0: nothing wrong with the threads */
    bool waits_for_slowest; /* ops wait for threads whose cores others have */
    bool threads_are_set;   /* by the program itself, whatever OMP_NUM_THREADS says */
};

/*
 * The share of the time in which the thread of the steps wanted a core that it had none, 0 to 1; 0: not in the file.
 * Other programs have the cores then, a container's limit keeps them, or the program has more threads than cores.
 */
double kp_summary_core_waited(const struct kp_kineto *trace);
#define KP_CORE_WAITED_SHORT /* behind "the main thread " */ \
    "had no CPU core for %.0f %% of the time in which it was ready to run"
#define KP_CORE_WAITED_TEXT KP_CORE_WAITED_SHORT ". Its work took %.1f times as long as on a free core"
#define KP_CORE_WAITED_ARGS(share) 100 * (share), 1 / (1 - (share))
#define KP_CORE_WAITED_HALF 0.5 /* others have as much of its core as it has */
#define KP_CORE_WAITED_MUCH 0.1 /* what is less changes times by no more than they differ anyway */
/*
 * Whether that makes steps longer that last so many ns together. A thread that sleeps seldom wants a core, and then may
 * wait for it each time.
 */
bool kp_summary_is_crowded(const struct kp_kineto *trace, double steps_ns);
/*
 * How long other threads of the program had a core meanwhile, if that is a quarter as long as the thread of the steps
 * had one, and they are no pool of torch's; 0: not so, or not in the file. If torch shares ops, so long at least: the
 * most that its threads had is left out.
 */
int64_t kp_summary_own_threads_ns(const struct kp_kineto *trace);
/* The same, if that is little, too: beside the recorder's own, which are left out. */
int64_t kp_summary_others_ns(const struct kp_kineto *trace);
/* The median of a step before the window, of so many in which nothing was recorded; 0: not in the file. */
int64_t kp_summary_bare_ns(const struct kp_kineto *trace, long *steps);
#define KP_BARE_MUCH 1.05 /* recorded steps that last no more times as long differ by less than steps do anyway */
/* The facts that a trace has about threads; 0: not in the file, or not set. */
struct kp_threads {
    long cores, busy, omp, ranks; /* busy: that ran; omp: OMP_NUM_THREADS; ranks: on the machine */
    long torch;                   /* with which torch computes an op in the thread of the steps */
};
struct kp_threads kp_threads_of(const struct kp_kineto *trace);
/*
 * If more run than there are cores, the program itself sets the number: OMP_NUM_THREADS asks for no more. Or it is not
 * set (0), so torch takes no more, and a pool of others ran.
 */
bool kp_threads_are_set(const struct kp_threads *threads);
/* torch's own are no more than the cores, or not known; others beside them may be too many. */
bool kp_threads_are_of_others(const struct kp_threads *threads);
/* threads_wanted of these. */
long kp_threads_wanted(const struct kp_threads *threads, bool has_gpu);
/* The same of a trace; 0 also where its thread of the steps hardly waited for a core. */
long kp_summary_threads_of(const struct kp_kineto *trace, bool has_gpu);
/* For steps that are some of all, and hold waits together with others: looks at all steps for these. */
void kp_summary_no_core(struct kp_summary *out, const struct kp_tree *tree, const struct kp_chosen *chosen);
/*
 * The threads are no more than the cores, and others have these: each op that they share waits for the slowest. False
 * also of OMP_NUM_THREADS=1, with which torch shares no op.
 */
bool kp_summary_wait_for_slowest(const struct kp_kineto *trace, double steps_ns, bool has_gpu);
void kp_summary_make(struct kp_summary *out, const struct kp_tree *tree, const struct kp_chosen *chosen);

/* The same of a trace in pieces: each is added, and all together are a summary. */
struct kp_summary_times {
    /* busy: in an op, in a call of the GPU's runtime, or data; call: the second, in no op; comm: also collectives */
    int64_t length_ns, data_ns, busy_ns, call_ns, comm_ns, wait_ns, wait_idle_ns, wait_alone_ns, gpu_ns;
};
struct kp_summary_parts { /* all zero: no piece yet */
    struct kp_summary_times all, in_steps;
    int64_t when_ns, end_ns; /* of what was chosen */
    int64_t since_ns;        /* the first event of the whole trace */
    size_t reads;
    int64_t gpu_asked_ns;                /* what steps asked of GPUs */
    bool has_gpu, has_any_gpu, has_when; /* has_gpu: in what was chosen */
    bool has_ops;
    struct kp_unanswered unanswered;
};
void kp_summary_add(struct kp_summary_parts *into, const struct kp_tree *tree, const struct kp_chosen *chosen);
/* `chosen`: of all pieces the steps. */
void kp_summary_end(struct kp_summary *out, const struct kp_summary_parts *parts, const struct kp_kineto *trace,
                    const struct kp_chosen *chosen);
