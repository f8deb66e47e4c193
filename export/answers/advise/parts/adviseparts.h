// SPDX-License-Identifier: Apache-2.0
/* adviseparts.h - what the files of this room share: places in a trace, the causes of idle, and what costs where */
#pragma once

#include <string.h>

#include "export/answers/advise/parts/finding.h"
#include "export/read/facts/namefacts.h"
#include "export/read/store/keyindex.h"
#include "export/read/frames/ownline.h"

#define KP_FINDING_THREADS "too-many-threads"
#define KP_FINDING_SHARED "shared-gpu"
#define KP_FINDING_READS "reads-in-step"
#define KP_FINDING_TEXTS "tensors-as-text"
#define KP_FINDING_OPTIMIZER "optimizer-unfused"
#define KP_FINDING_GC "python-gc"
#define KP_FINDING_FAULTS "page-faults"
#define KP_FINDING_GROWS "memory-grows"
#define KP_FINDING_RESIDENT "resident-grows"
#define KP_FINDING_FILES "open-files-grow"
#define KP_FINDING_NO_OP "no-op-runs"
#define KP_FINDING_INPUT "input-in-step"
#define KP_FINDING_GIL "gil-wait"
#define KP_FINDING_COMPILE "recompilation"

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
/* The same of a range without a call stack, which the op `start` began. -1: it has its own. */
void kp_costplaces_add_started(struct kp_costplaces *places, const struct kp_tree *tree, int32_t node, int32_t start,
                               int32_t before, int64_t ns);
uint64_t kp_costplace_key(const struct kp_tree *tree, int32_t node);  /* of its place: the op and the stack */
uint64_t kp_costplace_key_of(const struct kp_costplace *place);       /* the same */
uint32_t kp_costplace_line(const struct kp_tree *tree, int32_t node); /* its own; 0: none */
const struct kp_costplace *kp_costplaces_most(const struct kp_costplaces *places); /* that costs most; NULL: none */
/* Names the place that costs most. */
void kp_costplaces_tell(const struct kp_costplaces *places, struct kp_kineto *trace, struct kp_finding *out);
void kp_costplaces_fini(struct kp_costplaces *places);
/* The own lines that cost most, each with its ms a step: "train.py:12 main (3.100 ms), ..."; "" without. */
const char *kp_costplaces_lines(const struct kp_costplaces *places, struct kp_kineto *trace, size_t steps);
/* The own lines with the most additions, each with those a step: "6 at train.py:12 clip, ..."; "" without. */
const char *kp_costplaces_counts(const struct kp_costplaces *places, struct kp_kineto *trace, size_t steps);
/* The op that launched a work of a device, else the call that did, else the node itself. */
int32_t kp_costplace_launcher(const struct kp_tree *tree, size_t node);
/* The outermost op around a node, or the node. */
int32_t kp_costplace_op(const struct kp_tree *tree, int32_t node);

/* ---- kindtimes.c: times of one kind, by their place and their turn in the step ---- */

struct kp_kindtime {
    uint64_t kind;
    double ns;
    size_t step;
};
struct kp_kindtimes { /* all zero: empty */
    struct kp_kindtime *of;
    size_t count, capacity;
    struct kp_keyindex places;
};
void kp_kindtimes_add(struct kp_kindtimes *times, uint64_t place, size_t step, double ns);
/* Sorts them by kind and length; returns the end of the kind that begins at `from`. */
void kp_kindtimes_sort(struct kp_kindtimes *times);
size_t kp_kindtimes_end(const struct kp_kindtimes *times, size_t from);
/* The quickest tenth of such a kind, which waited for nothing, if any did. */
double kp_kindtimes_quickest(const struct kp_kindtime *of, size_t count);
void kp_kindtimes_fini(struct kp_kindtimes *times);

/* ---- idlecause.c ---- */

/* Gaps of one length before such work: the turns of another process on the same GPU. */
struct kp_turns {
    size_t count;
    int64_t each_ns; /* their median */
};
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
/* The part of a step that a device's work belongs to, by its category and name; KP_SPLIT_IDLE: a wait of a stream. */
enum kp_split_part kp_split_part_of_device(const struct kp_kineto *trace, const struct kp_kineto_event *event);

/* ---- steadysteps.c ---- */

struct kp_costrules;
struct kp_steady {
    struct kp_chosen chosen;
    struct kp_step_split *splits, *trained;
    struct kp_split_places places;
};
/* The steps that are not long. False: all are, or they do not tell. kp_steady_fini() ends it either way. */
bool kp_steady_open(struct kp_steady *out, const struct kp_costrules *rules);
void kp_steady_fini(struct kp_steady *steady);
void kp_gpu_figures_make(struct kp_gpu_figures *out, const struct kp_costrules *rules);
