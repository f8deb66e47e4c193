// SPDX-License-Identifier: Apache-2.0
/* advise.h - what is slow in a trace, what it costs a step, and what to change (decisions/061) */
#pragma once

#include "export/read/tree/chosen.h"
#include "export/answers/ranks/rankwaits.h"

enum { KP_FINDINGS_MAX = 40, KP_UNJUDGED_MAX = 6 };
#define KP_SHARE_HEALTHY 0.90 /* of a step: it computes */

/* Where a step's time goes. Each moment counts once, for the first part that it belongs to. */
enum kp_split_part {
    KP_SPLIT_COMPUTE, /* kernels of a GPU; without GPU work, ops of the host */
    KP_SPLIT_COMM,    /* NCCL kernels while nothing computes; without GPU work, collectives on the host */
    KP_SPLIT_COPIES,  /* copies and fills while nothing computes or communicates */
    KP_SPLIT_LOADING, /* the DataLoader while none of these runs; without GPU work it comes before ops */
    KP_SPLIT_IDLE,    /* the rest */
    KP_SPLIT_PARTS
};
/* Why a GPU has nothing to do. Without GPU work: why no op runs, of which a trace tells the first two and the rest. */
enum kp_idle_cause {
    KP_IDLE_GC,         /* Python collects garbage */
    KP_IDLE_COMPILE,    /* torch.compile or Triton compile */
    KP_IDLE_ALLOC,      /* the host allocates or frees memory of a device */
    KP_IDLE_SYNC,       /* the host had waited until the queue was empty: at most as long as it waited */
    KP_IDLE_LAUNCH,     /* the host is in an op or a call, or a launch is under way */
    KP_IDLE_DEPENDENCY, /* the next work was launched before, and waits for another stream or a copy */
    KP_IDLE_PYTHON,     /* none of these: Python between ops, or a wait */
    KP_IDLE_CAUSES
};
struct kp_step_split {
    int64_t part_ns[KP_SPLIT_PARTS];  /* add up to the step */
    int64_t cause_ns[KP_IDLE_CAUSES]; /* add up to part_ns[KP_SPLIT_IDLE], or all 0: not asked for */
    int64_t step_ns;
};
struct kp_finding {
    const char *id, *what, *change; /* the change is a sentence */
    const char *where;              /* what costs most of it: an op or a range by its name in the trace, or NULL */
    const char *module;             /* of that: "Net_0.Linear_1", or NULL */
    const char *frame;              /* the innermost frame of its stack, or NULL */
    const char *line;               /* the program's own, "train.py:12 main", or NULL. Idle: of the op that ends it */
    const char *after;              /* idle: the own line of the op before it, or NULL */
    const char *until;              /* loading: the own line of the op behind it, or NULL */
    bool is_backward, is_after_backward; /* line, or after, is the forward line: backward of it ran */
    double step_ns, share;               /* the mean of a step; share of it, 0 to 1. Both 0: a cost that is no time */
    const char *share_of;                /* both are of these steps alone: "of steps that are not slow"; NULL: of all */
    double step_bytes;                   /* of memory that a step leaves, or that is in question; 0: it is about time */
    double once_ns;                      /* what it costs step once_step, which alone has it; 0: others have it, too */
    long once_step;
    size_t steps;             /* in which it passes its bound; of no-op-runs: that have half of what it costs */
    bool is_critical, is_gap; /* is_gap: it costs the time before `where`, in which nothing runs */
    bool is_bursty;           /* of loading: `steps` of them wait for most of it */
};
struct kp_gpu_figures {   /* shares, 0 to 1; -1: not in the file */
    double busy;          /* of the steps: kernels run, as TensorBoard's "GPU Utilization" */
    double sm_efficiency; /* of the steps' multiprocessors: they have a block ("Est. SM Efficiency") */
    double occupancy;     /* of the warps that fit, while kernels run ("Est. Achieved Occupancy") */
    double tensor_cores;  /* of the kernels' time: those that use tensor cores */
    double comm_hidden;   /* of the time in collectives: something computes beside ("comp_comm_overlap") */
    size_t queue_most;    /* launches of one stream that waited at once */
};
struct kp_advice {
    struct kp_finding findings[KP_FINDINGS_MAX]; /* the critical ones first, then the largest */
    size_t count, steps;
    double mean_ns[KP_SPLIT_PARTS], cause_ns[KP_IDLE_CAUSES], step_ns; /* means over the steps */
    enum kp_stepends_kind ended_by; /* the trace marks no steps: what ended them (chosen.h), up to last_step */
    long last_step;
    double median_ns;     /* of a step */
    const char *overlaps; /* works of a GPU whose end cannot be; or NULL */
    bool is_gpu_lost;     /* so much of a GPU's work is not in the trace that its idle time is not known */
    const char *ended;    /* how the program ended (kp_lastwords_ended), behind ended_word; NULL: by itself */
    const char *ended_word;
    const char *missing; /* INCOMPLETE: what lacks, with the setting that shows it; or NULL. Then it is not healthy */
    bool is_unrecorded;  /* `missing` tells of settings that were off, and of nothing that lacks in what was recorded */
    const char *unjudged[KP_UNJUDGED_MAX]; /* what the trace does not tell, each with the setting that shows it */
    size_t unjudged_count;
    const char *seen;      /* what was looked at and costs little; or NULL */
    const char *slowed_by; /* a sentence: the recording itself made steps longer; or NULL */
    const char *lines_by;  /* a sentence: the setting that gives findings their lines. NULL: they have them */
    const char *ahead;     /* a sentence: the host is ahead of its GPU; or NULL */
    bool is_late;          /* it waits for the GPU now and then, and the steps are the host's; else, ahead, the GPU's */
    const char *evaluated; /* a sentence: which evaluations there are; or NULL */
    const char *waited;    /* a sentence: which steps a busy machine may have made longer; or NULL */
    const char *crowded;   /* a sentence: how much of its time a thread waits for a core, if much; or NULL */
    double evaluated_ns, waited_ns; /* what these two cost, the mean of a step */
    const char *outside;            /* a sentence: how much of a phase lies in no step, if much does; or NULL */
    const char *guessed;            /* a sentence: its steps are guessed, of before a training; or NULL */
    const char *most;               /* a sentence: the own lines with most time, with ms and share; or NULL */
    const char *prompts;            /* a sentence: which steps of a generation take a prompt; or NULL */
    const char *no_op;              /* a sentence: no op runs for nearly as much of a step as a finding; or NULL */
    struct kp_gpu_figures gpu;      /* with has_gpu */
    bool is_healthy, has_gpu;
    bool is_well; /* nothing is found in what was recorded, and it computes, with a core when it wants one; healthy, but
                     for what was not recorded */
};

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

/* ---- evalpieces.c: the evaluations of a trace that is read in pieces (toppieces.h) ---- */

struct kp_evalpieces;
struct kp_evalpieces *kp_evalpieces_open(void); /* NULL: no memory */
void kp_evalpieces_close(struct kp_evalpieces *pieces);
/* Whether some step holds an evaluation: then the whole trace tells how long. */
bool kp_evalpieces_has(const struct kp_evalpieces *pieces);
/* Counts forward ops in the steps of one more piece. `pieces` is a struct kp_evalpieces. */
void kp_evalpieces_add(void *pieces, const struct kp_tree *tree, const struct kp_chosen *chosen);
/* The sentence of kp_advice_kinds for all the steps, as a text of `trace`; NULL: no step holds an evaluation. */
const char *kp_evalpieces_text(const struct kp_evalpieces *pieces, struct kp_kineto *trace,
                               const struct kp_chosen *steps);

/* ---- promptsteps.c: the same of the steps of a generation that take a prompt ---- */

struct kp_promptpieces;
struct kp_promptpieces *kp_promptpieces_open(void); /* NULL: no memory */
void kp_promptpieces_close(struct kp_promptpieces *pieces);
void kp_promptpieces_add(void *pieces, const struct kp_tree *tree, const struct kp_chosen *chosen);
/* After the last piece, once. */
const char *kp_promptpieces_text(struct kp_promptpieces *pieces, struct kp_kineto *trace,
                                 const struct kp_chosen *steps);

/* ---- findingtext.c: what a finding and the advice say in words, for all that show them ---- */

/* What the steps are, where they are guesses: "calls of a model"; NULL: they are none. */
const char *kp_advice_guesses(const struct kp_kineto *trace);
enum { KP_NOTES_MAX = 12 };
/* Lists the sentences that are no finding, in the order in which they are shown. Returns how many. */
size_t kp_advice_notes(const struct kp_advice *advice, const char *notes[KP_NOTES_MAX]);
/* Something lacks in what was recorded; `missing` may also tell of settings that were off. */
bool kp_advice_is_incomplete(const struct kp_advice *advice);
/* Does `crowded` stand above all findings? Without a core all of their times are longer, but nothing is above what is
 * critical. */
bool kp_advice_is_crowded_first(const struct kp_advice *advice);
/* Of a GPU's steps what most of a step goes to, as the findings have it: "GPU compute" where the compute is healthy, or
 * the first finding is one of kernels and compute is half of a step; "host launches", "data loading" or "copies"
 * where the first finding is that. NULL: none of these, or not judged. */
const char *kp_advice_bound(const struct kp_advice *advice);
/* Where a finding lies: its line, "between LINE and LINE", or of loading "LINE, around LINE". NULL: not known. The text
 * may be of `room`. */
const char *kp_finding_line(const struct kp_finding *finding, char *room, size_t bytes);

/* gpusteps.c: where a host is ahead of its GPU, the GPU's steps, one for each of the host's. False: it is not. */
bool kp_gpu_steps_ahead(struct kp_chosen *out, const struct kp_tree *tree, const struct kp_chosen *chosen);

#define KP_FINDING_COMM "exposed-communication"
#define KP_FINDING_LATE "late-rank"
struct kp_rankwords {
    char what[200], change[KP_RANKCAUSE_BYTES + 320];
    bool is_for_gpu; /* true of a GPU's collectives, too */
};
/* Says of a finding of KP_FINDING_COMM, which the traces of all ranks explain, whether its rank waits for another, or
 * (without a GPU) for the network. False: these tell no more. */
bool kp_finding_of_rank(struct kp_rankwords *out, const struct kp_rankwaits *ranks, long rank);
/* The finding of the rank for which the others wait. No trace alone tells it: that rank's steps compute all the time.
 * Its words are those of `words`. False: it is not late, or they wait for less than communication must cost. */
bool kp_finding_of_late(struct kp_finding *out, struct kp_rankwords *words, const struct kp_rankwaits *ranks,
                        long rank);

/* ---- loadsavings.c: what workers save of a step that loads its batch itself ---- */

#define KP_HAND_OVER_NS 3e6 /* to take a batch of a worker whose items cost nothing, at most (decisions/114) */
struct kp_loading {
    double load_ns, step_ns;   /* of a step that loads: its loading, and all of it */
    double waits, core_waited; /* shares: of the loading that may wait; of the time without a core (timeshares.h) */
    long cores;                /* 0: not known */
    bool waits_known, has_gpu; /* waits_known: no more than that waits, and no less */
};
enum kp_loading_size {
    KP_LOADING_SHORT,  /* no longer than it takes to take a batch from a worker */
    KP_LOADING_MIDDLE, /* so little longer that it may be either from run to run */
    KP_LOADING_LONG
};
/* The most that so many workers save of such a step (0: any number): what they cost themselves is not in it. */
double kp_loading_saves_ns(const struct kp_loading *loading, long workers);
enum kp_loading_size kp_loading_size_of(const struct kp_loading *loading);
/* How many hide the loading, at most one a core, and of items that wait two; 0: not known. */
long kp_loading_workers(const struct kp_loading *loading);

/* stepsplit.c: one split for each of the chosen steps, without causes. Returns whether a GPU worked. */
bool kp_step_split_all(struct kp_step_split *out, const struct kp_tree *tree, const struct kp_chosen *chosen);
/* How long a GPU computes what each of the chosen steps asked for, whenever it does. One ns number for each. */
void kp_step_compute_asked(int64_t *out, const struct kp_tree *tree, const struct kp_chosen *chosen);
