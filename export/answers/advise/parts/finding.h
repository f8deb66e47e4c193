// SPDX-License-Identifier: Apache-2.0
/* finding.h - what a step is made of, what a finding and the advice of a trace are, and their words */
#pragma once

#include "export/read/facts/steps/usualsteps.h"
#include "export/read/tree/chosen.h"
#include "export/answers/ranks/rankwaits.h"

enum { KP_FINDINGS_MAX = 40, KP_UNJUDGED_MAX = 6, KP_WAITED_MAX = 6 };
#define KP_SHARE_HEALTHY 0.90 /* of a step: it computes */
#define KP_SHARE_CRITICAL 0.20
#define KP_SHARE_ELSEWHERE 0.25
#define KP_SHARE_MOST 0.50 /* of all steps' time, in few steps as well */

/* The parts that a step's time goes to. Each moment counts once, for the first part that it belongs to. */
enum kp_split_part {
    KP_SPLIT_COMPUTE, /* kernels of a GPU; without GPU work, ops of the host */
    KP_SPLIT_COMM,    /* NCCL kernels while nothing computes; without GPU work, collectives on the host */
    KP_SPLIT_COPIES,  /* copies and fills while nothing computes or communicates */
    KP_SPLIT_LOADING, /* the DataLoader while none of these runs; without GPU work it comes before ops */
    KP_SPLIT_IDLE,    /* the rest */
    KP_SPLIT_PARTS
};
/* Why a GPU has nothing to do. Steps that have no GPU work: why no op runs; a trace tells the first two from the
 * rest. */
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
/* The steps that a finding's cost and share are of. All false and 0: all steps. */
struct kp_finding_steps {
    bool is_steady;  /* those that are not slow */
    bool is_trained; /* without evaluations */
    double core_ns;  /* without waits for a core, which take so long; 0: with them */
    bool has_waits;  /* for a core: many, so they are a part of the cost */
    double mean_ns;  /* is_steady: how long they are; 0: not known */
};
#define KP_OF_WAITS "of a step with waits for a CPU core" /* in words: of all steps, with has_waits */
/* The time that each of some steps waits, or lasts longer than the others. All 0: not known. */
struct kp_some_steps {
    double most_ns, least_ns, all_ns; /* all: the sum */
};
/* A group of steps that a busy machine may have made longer. */
struct kp_waited_steps {
    const char *what; /* a sentence */
    size_t count;
    long longest; /* its number */
    struct kp_some_steps some;
};
struct kp_finding {
    const char *id, *what, *change; /* the change is a sentence */
    const char *first;              /* of data-loading: the begin of `change`, whatever workers tell; or NULL */
    const char *where;              /* what costs most of it: an op or a range by its name in the trace, or NULL */
    const char *module;             /* of that: "Net_0.Linear_1", or NULL */
    const char *frame;              /* the innermost frame of its stack, or NULL */
    const char *line;               /* the program's own, "train.py:12 main", or NULL. Idle: of the op that ends it */
    const char *also_line;          /* another one, which has a quarter of the cost or more; NULL: none */
    const char *after;              /* idle: the own line of the op before it, or NULL */
    const char *until;              /* loading: the own line of the op behind it, or NULL */
    bool is_backward, is_after_backward; /* line, or after, is the forward line: backward of it ran */
    double step_ns, share;               /* the mean of a step; share of it, 0 to 1. Both 0: a cost that is no time */
    struct kp_finding_steps of;          /* both are of these steps alone */
    const char *share_of;                /* `of` in words: "of an ordinary step"; NULL: of all */
    double step_bytes;                   /* of memory that a step leaves, or that is in question; 0: it is about time */
    double once_ns;                      /* what it costs step once_step, which alone has it; 0: others have it, too */
    long once_step;
    double length_ns, no_core_ns; /* how long that step is, and waits for a core, which once_ns is without */
    struct kp_some_steps some;    /* of `steps` */
    double saves_ns;              /* of data-loading: what so many workers save a step, at most; 0: not known */
    long workers;                 /* 0: any number */
    bool has_most_step;
    long most_step;                /* has_most_step: the step with most of it; else it is not known by step */
    size_t steps;                  /* in which it passes its bound; of no-op-runs: that have half of what it costs */
    bool is_critical, is_gap;      /* is_gap: it costs the time before `where`, in which nothing runs */
    struct kp_longer_steps longer; /* by communication, the longest first, for the other ranks to explain */
    bool is_bursty;                /* of loading: `steps` of them wait for most of it */
    bool is_at_most; /* its time is that of Python, of which each call was recorded: that makes it longer */
    bool is_of_main; /* of loading: no wait for workers; the thread that asks computes */
    bool is_small;   /* of collectives: many of a few bytes each, which the other ranks do not explain */
};
struct kp_usual_split {
    struct kp_usual_steps of;
    double mean_ns[KP_SPLIT_PARTS], step_ns; /* of these steps; of.left_out 0: nothing is set */
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
    const char *ended_word, *recorded; /* "killed"; how much of it: kp_ended_recorded */
    const char *silent;                /* that it ran no operator for long at the end (kp_silence_say); or NULL */
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
    const char *evaluated_how; /* how to time them, and to save time: the end of `evaluated` */
    const char *evaluated_as;  /* "rollouts", "evaluations" or "gradient-free passes" */
    double evaluated_share;    /* of the time of the steps and of those outside of them */
    const char *unread;        /* a sentence: of a device the trace has kernels that are not read; or NULL */
    const char *recomputed;    /* a sentence: what activation checkpointing computes again; or NULL */
    const char *filled;        /* a sentence: memory that grows where it was reserved before; or NULL */
    const char *again;         /* a sentence: what each step runs without gradients as well; or NULL */
    struct kp_waited_steps waited[KP_WAITED_MAX]; /* the dearest group first */
    size_t waited_count;
    const char *waited_why;      /* a sentence: what else than a busy machine it may be; or NULL */
    const char *grown;           /* a sentence: steps get slower by inputs that grow; or NULL */
    const char *crowded;         /* sentences: how much of its time a thread waits for a core, if much; or NULL */
    const char *crowded_verdict; /* the first of them, without its full stop */
    const char *crowded_by;      /* the end of them: who has the cores, as far as this trace tells */
    bool is_crowded_by_own;      /* threads of the program itself */
    double evaluated_ns, waited_ns, crowded_ns; /* what these cost, the mean of a step */
    struct kp_usual_split usual;
    const char *outside;       /* a sentence: how much of a phase lies in no step, if much does; or NULL */
    const char *guessed;       /* a sentence: its steps are guessed, of before a training; or NULL */
    const char *step_thread;   /* "the main thread", which runs the steps; "the thread of the steps" */
    size_t step_threads;       /* that run steps, each some */
    const char *at_once;       /* a sentence: several threads run steps at once; or NULL */
    const char *most;          /* a sentence: the own lines, or ops, with most time, and their shares; or NULL */
    const char *prompts;       /* a sentence: which steps of a generation take a prompt; or NULL */
    const char *no_op;         /* a sentence: no op runs for nearly as much of a step as a finding; or NULL */
    const char *met;           /* a sentence: collectives wait for ranks that have no core; or NULL */
    struct kp_gpu_figures gpu; /* with has_gpu */
    double elsewhere; /* without a finding: of a step, what is in no part of a training, if that is much; else 0 */
    const char *elsewhere_line; /* has at least half of it; or NULL */
    bool is_healthy, has_gpu, is_evaluated_inside;
    bool is_well; /* nothing is found in what was recorded, and it computes, with a core when it wants one; healthy, but
                     for what was not recorded */
};

/* ---- findingtext.c: what a finding and the advice say in words, for all that show them ---- */

enum { KP_STEPS_TEXT_BYTES = 192 };
/* Writes "step 7", "steps 7, 12" (all in the order of time), or "steps 12, 7, longest first, and 3 more" where more
 * than `most` are given, the longest first or in the order of time. Returns `out`. */
const char *kp_finding_steps_text(char *out, size_t bytes, const long *numbers, size_t count, size_t most);

enum { KP_NOTES_MAX = 20 + KP_WAITED_MAX };
struct kp_note {
    const char *text, *title; /* a sentence; what it tells */
};
/* Lists the sentences that are no finding, in the order in which they are shown. Returns how many. */
size_t kp_advice_notes(const struct kp_advice *advice, struct kp_note notes[KP_NOTES_MAX]);
/* Puts the group among `waited` and its time into waited_ns. */
void kp_advice_waited_add(struct kp_advice *advice, const struct kp_waited_steps *steps);
/* Something lacks in what was recorded; `missing` may also tell of settings that were off. */
bool kp_advice_is_incomplete(const struct kp_advice *advice);
enum kp_verdict {
    KP_VERDICT_FOUND,
    KP_VERDICT_INCOMPLETE,
    KP_VERDICT_NO_CORE, /* of this rank, or of those that its collectives wait for; nothing else is found */
    KP_VERDICT_HEALTHY,
    KP_VERDICT_NOTHING /* is found, and it is not healthy */
};
enum kp_verdict kp_advice_verdict(const struct kp_advice *advice);
/* Does `crowded` stand above all findings? If a core lacks, all of their times are longer, but nothing is above
 * critical, or costs more than the wait: one step that compiles again may. */
bool kp_advice_is_crowded_first(const struct kp_advice *advice);
/* Do evaluations take more than each finding, and as much as one that is critical? */
bool kp_advice_is_evaluated_first(const struct kp_advice *advice);
/* The part that most of a GPU's step goes to, as the findings have it: "GPU compute" if the compute is healthy, or the
 * first finding is one of kernels and compute is half of a step; "host launches", "data loading" or "copies" if the
 * first finding is that. NULL: none of these, or not judged. */
const char *kp_advice_bound(const struct kp_advice *advice);
/* The place of a finding: its line, "between LINE and LINE", or for loading "LINE, around LINE". NULL: not known. The
 * text may be of `room`. */
const char *kp_finding_line(const struct kp_finding *finding, char *room, size_t bytes);
/* True if that begins with "between", "after", "before" or "around", and not with a line. */
bool kp_finding_is_beside(const struct kp_finding *finding);
/* Puts a finding there among those of the advice: those behind it move down, and of too many the last one goes. */
void kp_finding_insert(struct kp_advice *advice, size_t at, const struct kp_finding *finding);
/* Takes one of its findings out of the advice: those behind it move up. */
void kp_finding_drop(struct kp_advice *advice, struct kp_finding *finding);

/* gpusteps.c: where a host is ahead of its GPU, the GPU's steps, one for each of the host's. False: it is not. */
bool kp_gpu_steps_ahead(struct kp_chosen *out, const struct kp_tree *tree, const struct kp_chosen *chosen);

/* ---- rankwords.c ---- */

#define KP_FINDING_COMM "exposed-communication"
enum { KP_COMM_SMALL = 16384 }; /* bytes of a collective: to send half of it saves nothing */
#define KP_COMM_FEWER                                                                                                  \
    "Start fewer collectives: these send a few bytes each, so their number costs, not their size. Join small tensors " \
    "(torch.stack) and reduce them once, and exchange metrics every N steps."
#define KP_FINDING_LATE "late-rank"
#define KP_FINDING_LONG "slow-steps"
struct kp_rankwords {
    char what[640], change[KP_RANKCAUSE_BYTES + 320];
    bool is_for_gpu; /* true of a GPU's collectives, too */
    bool is_note;    /* what waits for a core is no finding: `what` is a note */
    double part;     /* of the finding's cost, 0 to 1 */
    double small;    /* the same where that is_small, and keeps its words; 0: it does not keep them */
};
/* Says of a finding of KP_FINDING_COMM, which the traces of all ranks explain, whether its rank waits for another, or
 * (without a GPU) for the network or a core. False: these tell no more. */
bool kp_finding_of_rank(struct kp_rankwords *out, const struct kp_rankwaits *ranks, long rank);
/* For steps that are long by communication: whether other ranks had no core then, or which one came last. False:
 * neither is known. */
bool kp_finding_of_longer(struct kp_rankwords *out, const struct kp_rankwaits *ranks, long rank,
                          const struct kp_longer_steps *steps);
/* Writes who has the cores that a rank wanted, as the traces of all ranks of its machine tell. False: they do not, or
 * what its own trace says is more. `is_by_own`: as the advice's. */
bool kp_finding_of_cores(char *out, size_t bytes, const struct kp_rankwaits *ranks, long rank, bool is_by_own);
/* All of that for the advice of a rank. */
void kp_advice_of_rank(struct kp_advice *advice, const struct kp_rankwaits *ranks, long rank, struct kp_strings *texts);
/* The finding of the rank for which the others wait. No trace alone tells it: that rank's steps compute all the time.
 * Its words are those of `words`. False: it is not late, or they wait for less than communication must cost. */
bool kp_finding_of_late(struct kp_finding *out, struct kp_rankwords *words, const struct kp_rankwaits *ranks,
                        long rank);

/* stepsplit.c: one split for each of the chosen steps, without causes. Returns whether a GPU worked. */
bool kp_step_split_all(struct kp_step_split *out, const struct kp_tree *tree, const struct kp_chosen *chosen);
/* How long a GPU computes what each of the chosen steps asked for, whenever it does. One ns number for each. */
void kp_step_compute_asked(int64_t *out, const struct kp_tree *tree, const struct kp_chosen *chosen);
