// SPDX-License-Identifier: Apache-2.0
/* chosen.h - the part of a trace that a report is about: some steps, some ranges, or a span of time */
#pragma once

#include "export/read/tree/tree.h"
#include "export/read/tree/spans.h"
#include "export/read/kineto/stepends.h"

struct kp_choice {
    long first_step, last_step; /* -1: all */
    const char *within;         /* a glob, or NULL */
    bool has_from, has_to;
    int64_t from_ns, to_ns; /* after the profiler's start */
};
struct kp_step {
    int64_t start_ns, end_ns;
    int64_t inside_ns; /* of it, what was chosen */
    long number;
};
/* A call of what was asked for by its name. One that steps or ranges cut in parts (decisions/131) is one call. */
struct kp_call_span {
    int64_t start_ns, end_ns; /* start first: kp_rows_from */
    uint64_t thread;          /* kp_tree_thread */
    uint32_t name;            /* string id */
};
struct kp_chosen {
    struct kp_spans spans;          /* of time; with nothing asked, from the first event to the end of the last */
    enum kp_stepends_kind ended_by; /* the trace marks no steps: what each lasts from and to */
    size_t optimizer_steps;         /* then, in all of the trace: step 0 among them, of which no begin is known */
    size_t within_calls;            /* of `within`: without those inside another */
    struct kp_call_span *calls;     /* these, by start; those of several threads may overlap */
    size_t call_capacity;
    size_t passes;         /* calls of the model in these; set by kp_chosen_count_passes() */
    size_t outside_calls;  /* left out by kp_chosen_keep_steps(): they have no part in a whole step */
    int64_t outside_ns;    /* what it left out */
    size_t within_left;    /* calls of installed packages' functions of that name, left out beside the program's own */
    uint32_t within_other; /* the name of one of these */
    int64_t since_ns;      /* the first event of the whole trace */
    bool is_of_calls;      /* `within` names calls of CUDA: what they launched is in it, and not what their ops did */
    bool is_phase;         /* all of it is a window of a phase, from its begin to its end */
    bool goes_on;          /* of a piece: another one comes */
    bool has_thread;       /* `steps` are calls of one thread, as kp_top_each_step() takes them */
    uint64_t thread;       /* then: kp_tree_thread */
    bool is_by_stacks;     /* `within` was found in stacks alone: the ops under it are the time */
    struct kp_step *steps; /* those wholly in it, by time; with `within` those it has a part of */
    size_t step_count, step_capacity;
    long first_total, last_total; /* numbers of the first and last of these */
    size_t step_total;            /* before `within`: whole steps of the trace, or of what else was asked for */
    int64_t step_total_ns;        /* their time */
    struct kp_spans in_steps;     /* what was chosen of those steps */
    /* Left out, as they are not whole: the step with the program's start in it, and the one that its end cut short. */
    struct kp_partsteps {
        bool has_startup, has_cut;
        long startup, cut;
    } parts;
};

/* Returns 0, or -ENOENT with a line in `why`: no such step or name. */
int kp_chosen_make(struct kp_chosen *out, const struct kp_tree *tree, const struct kp_choice *choice, char *why,
                   size_t why_bytes);
/* The same of all that is in the trace. */
int kp_chosen_all(struct kp_chosen *out, const struct kp_tree *tree, char *why, size_t why_bytes);
void kp_chosen_fini(struct kp_chosen *chosen);

/* The state that a piece of a trace takes over from those before it. All zero: it is the first. */
struct kp_seam {
    bool is_later, has_steps;
    int64_t since_ns;        /* a later piece begins where the one before it ended */
    struct kp_stepends ends; /* whose steps stand for steps that the trace does not mark */
    int64_t optimizer_ns;    /* when its last step ended */
    long optimizer_number;   /* how many there were */
};
/* Chooses all of a piece that ends at `until_ns`, INT64_MAX: with its last event. False: its steps contradict those of
 * the pieces before it, or it has no time. */
bool kp_chosen_piece(struct kp_chosen *out, const struct kp_tree *tree, struct kp_seam *seam, int64_t until_ns);
/* Adds the steps of a piece behind those of `into`. */
void kp_chosen_add_steps(struct kp_chosen *into, const struct kp_chosen *piece);
/*
 * Are the steps so much less than all that was chosen that a view of a program shows them alone? Start-up and what
 * comes after the last step lie outside then (decisions/088).
 */
bool kp_chosen_are_steps_a_part(int64_t steps_ns, int64_t all_ns);
bool kp_chosen_is_of_steps(const struct kp_chosen *chosen);
/* Leaves what lies in whole steps alone, where some does: then times and calls are of one set. */
void kp_chosen_keep_steps(struct kp_chosen *chosen);
/* How long one of the calls lasts, also where a part of it is left out; 0: none is counted. */
int64_t kp_chosen_call_ns(const struct kp_chosen *chosen);
/* The chosen time of those step_total steps, as a part of their time; 0: none is. `with_outside`: both with what lies
 * in none of them. */
double kp_chosen_steps_share(const struct kp_chosen *chosen, bool with_outside);
/* Is a part of a call left out, or a part of one in that is not counted? Then no row can be told by call. */
bool kp_chosen_are_calls_cut(const struct kp_chosen *chosen);
/* Counts the forward passes in the calls: those of the nn.Module that is outermost there and lasts longest (a loss is a
 * module, too). Python's calls have to be in the trace. */
void kp_chosen_count_passes(struct kp_chosen *chosen, const struct kp_tree *tree);
/* How long what was chosen lasts before the first step, and after the last. */
void kp_chosen_outside(const struct kp_chosen *chosen, int64_t *before_ns, int64_t *after_ns);

/* How long all the steps last together. */
double kp_chosen_steps_ns(const struct kp_chosen *chosen);
/* The first of some steps, in order and hardly overlapping, that ends after a time. `count`: none does. */
size_t kp_step_after(const struct kp_step *steps, size_t count, int64_t ns);
/* The step that a time lies in. `count`: none. */
size_t kp_step_at(const struct kp_step *steps, size_t count, int64_t ns);
/* When a work of a device was asked for (kp_tree_asked_ns); where calls of CUDA were chosen, by its call. */
int64_t kp_chosen_asked_ns(const struct kp_chosen *chosen, const struct kp_tree *tree, size_t node);
/* Whether a GPU is asked for work in the steps, or in all that was chosen where there are none. Or it is busy there for
 * some of the time: the end of what it was asked for before is not enough. */
bool kp_chosen_has_gpu(const struct kp_chosen *chosen, const struct kp_tree *tree);
/* Whether the node is one step, ProfilerStep#N, of the host. Such a step need not be whole. */
bool kp_node_is_step(const struct kp_tree *tree, const struct kp_node *node);
struct kp_thread_of_steps {
    int64_t pid, tid;
};
/* The number of the first steps, or of the first ranges that may end one. False: the trace has none. */
bool kp_chosen_thread(struct kp_thread_of_steps *out, const struct kp_tree *tree);

#define KP_CHOSEN_NO_CALLS "; Python's calls are not recorded: --with-stack 1"
