// SPDX-License-Identifier: Apache-2.0
/*
 * diff.h - two runs of a program, step beside step: what changed by more than steps differ among themselves
 *
 * Each side is any number of traces. Each step of them is a sample of every row. A trace without steps is one sample.
 */
#pragma once

#include <stdio.h>

#include "export/read/tree/chosen.h"
#include "export/read/store/keyindex.h"
#include "export/read/parse/kineto_pieces.h"

enum { KP_DIFF_A, KP_DIFF_B, KP_DIFF_SIDES };

enum kp_diff_group {
    KP_DIFF_PARTS,      /* of a step, as `kprof advise` divides it */
    KP_DIFF_LINES,      /* self time by the program's own line, of the GPU where one works */
    KP_DIFF_OPS,        /* self time on the host */
    KP_DIFF_GPU_OPS,    /* time of the kernels that an op launched */
    KP_DIFF_KERNELS,    /* device work by name */
    KP_DIFF_MODULES,    /* self time by nn.Module, of the GPU where one works */
    KP_DIFF_MEMORY,     /* bytes: the peak of each device, and what is allocated */
    KP_DIFF_OPS_MEMORY, /* bytes that an op allocates less those it frees */
    KP_DIFF_GROUPS
};
enum kp_diff_verdict {
    KP_DIFF_NOISE,    /* steps of one side differ as much */
    KP_DIFF_MORE,     /* B has more than A, beyond the noise */
    KP_DIFF_LESS,     /* B has less */
    KP_DIFF_APPEARED, /* only B has it */
    KP_DIFF_WENT,     /* only A has it */
    KP_DIFF_UNKNOWN,  /* too few steps to know the noise */
};

struct kp_diff_row {
    double *values[KP_DIFF_SIDES]; /* by sample; ns or bytes */
    size_t capacity[KP_DIFF_SIDES], filled[KP_DIFF_SIDES];
    double count[KP_DIFF_SIDES];                       /* events; after kp_diff_settle for each sample */
    double middle[KP_DIFF_SIDES];                      /* the median of the samples */
    double spread[KP_DIFF_SIDES], change, noise;       /* change: of the medians. noise: what it must exceed */
    double below[KP_DIFF_SIDES], above[KP_DIFF_SIDES]; /* how far the interval of each median reaches */
    double low, high;                                  /* the change lies between them, with 99 % confidence */
    double pairs; /* of all pairs of a sample of A and one of B, the share in which B's is more; equal ones half */
    uint32_t shapes[KP_DIFF_SIDES]; /* of ops: the inputs of the first call that has shapes, a text; 0: none */
    uint32_t name;
    uint8_t group, verdict;
    bool has_interval;                /* low and high are known: the step or a part of it, and many samples */
    bool is_by_interval, is_by_pairs; /* the change is no more than `noise`; the interval or the pairs show it */
};
/* Were the first calls of the two sides given inputs of other shapes? */
static inline bool kp_diff_has_other_shapes(const struct kp_diff_row *row)
{
    return row->shapes[KP_DIFF_A] && row->shapes[KP_DIFF_B] && row->shapes[KP_DIFF_A] != row->shapes[KP_DIFF_B];
}

/* diffbatch.c: how many samples a step takes, by the first dimension of what layers are given (with shapes) */
enum { KP_DIFF_BATCHES = 16 };
struct kp_diff_batches {
    double calls; /* of layers; those of more sizes than fit are counted here alone */
    struct {
        int64_t size;
        double calls;
    } of[KP_DIFF_BATCHES];
    size_t count;
};
void kp_diff_batches_take(struct kp_diff_batches *b, const char *op, const char *shapes);
void kp_diff_batches_merge(struct kp_diff_batches *to, const struct kp_diff_batches *from);
/* The size that more than half of the calls have; 0: none, or no shapes. */
int64_t kp_diff_batches_size(const struct kp_diff_batches *b);

/* The head of a side. Texts are ids of kp_diff.strings, 0: unknown. */
struct kp_diff_side {
    uint32_t program, torch, host, script;
    uint32_t *files;
    size_t file_count, file_capacity;
    size_t samples; /* steps, or traces without */
    bool is_ahead;  /* of some file the host is ahead of its GPU: its steps are the GPU's */
    bool has_steps, has_gpu, has_memory, has_modules, has_shapes, has_lines, has_python;
    uint64_t lost;
    double core_had_us, core_waited_us; /* of the threads of the steps, in all files (timeshares.h) */
    bool has_core;                      /* of one file: these are of its steps; else its head has them */
    double ops;                         /* torch's ops; after kp_diff_settle for each sample */
    struct kp_diff_batches batches;
};
struct kp_diff_rank { /* a rank of a job beside the same rank of the other */
    long rank;
    struct kp_diff *of;
};
struct kp_diff {
    struct kp_diff_side sides[KP_DIFF_SIDES];
    struct kp_strings *strings;
    struct kp_keyindex keys; /* (name, group): the row's number */
    struct kp_diff_row *rows;
    size_t count, capacity;
    struct kp_diff_row step;    /* the length of a step */
    struct kp_diff_row own;     /* that without its wait in collectives */
    struct kp_diff_row on_core; /* that without its wait for a core */
    struct kp_diff_rank *ranks; /* once settled: those that both sides have, by number */
    size_t rank_count, rank_capacity;
    size_t group_from[KP_DIFF_GROUPS + 1]; /* once settled: rows by group, the largest change first */
};
struct kp_diff_show {
    size_t most;  /* rows of a table, 0: all */
    bool has_all; /* also rows within the noise */
};

void kp_diff_open(struct kp_diff *d);
void kp_diff_close(struct kp_diff *d);
/* diffranks.c: adds a trace to a side */
void kp_diff_add(struct kp_diff *d, int side, const struct kp_tree *tree, const struct kp_chosen *chosen,
                 const char *label);

/* diffpieces.c: adds a trace while it is read, so that its memory has a bound */
struct kp_diffpieces;
struct kp_diffpieces *kp_diffpieces_open(int side);
void kp_diffpieces_close(struct kp_diffpieces *pieces);
struct kp_kineto_pieces *kp_diffpieces_reading(struct kp_diffpieces *pieces); /* as kp_treepieces_reading */
/* Adds all to `into`, with what is left of the trace. False: nothing was added, the whole must be read. */
bool kp_diffpieces_end(struct kp_diffpieces *pieces, struct kp_kineto *rest, struct kp_diff *into, const char *label);

void kp_diff_settle(struct kp_diff *d); /* after the last trace */
/* The change of the step in percent of A's, 0 if A has no time. */
double kp_diff_percent(const struct kp_diff *d);
/* Whether the step's change is less than steps differ by, so that pairs or the interval show it, and a side has one run
 * alone: then a machine that was busier in one of both gives the same. */
bool kp_diff_may_be_the_machine(const struct kp_diff *d);
/* How long a step of a side waits for a core, ns: no more than the share that its thread waited of what it wanted. */
double kp_diff_core_wait(const struct kp_diff *d, int side);
/* Whether the change is no more than `percent`, or noise, without these waits, of which B has much. False for steps of
 * a GPU. */
bool kp_diff_is_core_wait(const struct kp_diff *d, double percent);
/* Whether waits for a core hide a change of the step: it is within the noise, and not without them. */
bool kp_diff_is_hidden(const struct kp_diff *d);
/* The change of the time a sample takes, in percent. False: the sides' batches are the same, or one is not known. */
bool kp_diff_sample_percent(const struct kp_diff *d, double *percent);
/* The row's part of the change of the step, or 0 where the step did not change. 0 for bytes. */
double kp_diff_share(const struct kp_diff *d, const struct kp_diff_row *row);
static inline bool kp_diff_is_bytes(int group) { return group >= KP_DIFF_MEMORY; }
/* difflines.c: the own line that changed most, as `of` did and beyond the noise; NULL: none, or no lines. */
const struct kp_diff_row *kp_diff_line_most(const struct kp_diff *d, const struct kp_diff_row *of);
/* diffranks.c: the rank whose own part of a step changed most, beyond the noise and twice as much as that of most
 * others, whose change is written to `others`; NULL: none. */
const struct kp_diff_rank *kp_diff_rank_most(const struct kp_diff *d, double *others);
struct kp_diff_explained { /* of the change of a step */
    double rows_ns;        /* rows of ops and functions beyond the noise */
    double gap_ns;         /* time in which no op runs */
    bool is_gap_in_rows;   /* Python's calls are rows of both sides, so gaps are, too */
};
/* False: a GPU worked, or the step did not change. */
bool kp_diff_explain(const struct kp_diff *d, struct kp_diff_explained *out);
const char *kp_diff_verdict_text(const struct kp_diff_row *row);

void kp_diff_print(FILE *out, const struct kp_diff *d, const struct kp_diff_show *show);
void kp_diff_json(FILE *out, const struct kp_diff *d); /* one object, one line, every row */
extern const struct kp_fields *const kp_diff_schema;

/* --- for this room --- */

struct kp_diff *kp_diff_rank_get(struct kp_diff *d, long rank);
struct kp_diff_row *kp_diff_row_get(struct kp_diff *d, int group, uint32_t name);
void kp_diff_sample_add(struct kp_diff_row *row, int side, size_t sample, double value);
/* diffgather.c: samples of the steps of a tree; `is_part`: it has none, and its time belongs to the sample that others
 * of its trace add to */
void kp_diff_gather(struct kp_diff *d, int side, const struct kp_tree *tree, const struct kp_chosen *chosen,
                    bool is_part);
bool kp_diff_gpu_worked(const struct kp_tree *tree);
/* Adds steps without their waits for a core, ns, to one trace's own comparison. */
void kp_diff_waits_add(struct kp_diff *one, int side, const struct kp_step *steps, const double *waits, size_t count);
void kp_diff_head_take(struct kp_diff *d, const struct kp_diff *one, int side, const struct kp_kineto *trace,
                       const char *label);
/* diffranks.c: adds a trace's own comparison, `one`, to a side, and to that of its rank */
void kp_diff_take(struct kp_diff *d, const struct kp_diff *one, int side, const struct kp_kineto *trace,
                  const char *label);
/* Adds the samples of another comparison's side behind those of this one. */
void kp_diff_merge(struct kp_diff *d, const struct kp_diff *from, int side);
#define KP_DIFF_NO_OP "no operator runs"
#define KP_DIFF_IDLE "idle" /* the same of a GPU */
/* difflines.c: joins the rows of lines that moved. Before the rows are measured. */
void kp_diff_lines_meet(struct kp_diff *d);
/* diffnames.c: what differs from run to run and is no name is left out: line numbers, addresses, numbers of steps. */
uint32_t kp_diff_name(struct kp_strings *strings, const char *name);
