// SPDX-License-Identifier: Apache-2.0
/* toptable.h - prints what `kprof report` shows by default: head lines and rows, as text or as JSON */
#pragma once

#include <stdio.h>

#include "export/read/kineto/kineto_windows.h"
#include "export/answers/stacks/stepparts.h"
#include "export/answers/top/timeshares.h"
#include "export/answers/top/toprows.h"
#include "export/read/kineto/phasetimes.h"
#include "export/show/fields.h"

struct kp_top_report {
    const char *label; /* the trace as the user named it */
    const struct kp_summary *summary;
    const struct kp_top *top; /* sorted */
    const struct kp_choice *choice;
    const struct kp_chosen *chosen;
    const struct kp_stepparts *parts;  /* of the steps, or NULL */
    const char *sort, *by;             /* as the user writes them */
    size_t most;                       /* rows, 0: all */
    const struct kp_kineto_runs *runs; /* of the phase, or NULL */
    const struct kp_slowest *slowest;  /* of the calls or steps, or NULL */
    const char *bound_by;              /* what most of a step goes to (kp_advice_bound), or NULL */
    double gpu_step_ns;                /* the host is ahead of a GPU, where a step takes so long, the mean; or 0 */
    const char *evaluated, *prompts;   /* sentences of the advice: which steps are longer by that, or NULL */
    const char *ended;                 /* how the program ended (kp_lastwords_ended), or NULL; see kp_top_ended */
    bool is_spool;                     /* of a program that may still run */
};

void kp_top_head_print(FILE *out, const struct kp_top_report *r); /* tophead.c */
/* How the program ended, in the words of kprof why. NULL: by itself, it may still run, or nothing tells. */
const char *kp_top_ended(const struct kp_top_report *r); /* tophead.c */
void kp_top_table_print(FILE *out, const struct kp_top_report *r);
/* topcolumns.c: the columns of a row; the table is a struct kp_top_report */
enum {
#define KP_NUMBER(id, ...) KP_TOP_COLUMN_##id,
#define KP_TEXT KP_NUMBER
#include "export/answers/top/topcolumns.def"
#undef KP_NUMBER
#undef KP_TEXT
    KP_TOP_COLUMNS
};
extern const struct kp_column kp_top_columns[KP_TOP_COLUMNS];
bool kp_top_shows_memory(const struct kp_top *top);
bool kp_top_shows_lines(const struct kp_top *top); /* of the program, beside rows of something else */
/* topcopies.c: by kernel, a line for each direction and kind of host memory of copies, and for fills */
void kp_top_copies_print(FILE *out, const struct kp_top *top);
/* GB/s of copies; 0: the file does not say how many bytes. */
double kp_top_gbps(const struct kp_top_cost *cost);
/* tophead.c: what another recording of the program would show; nothing for a trace that libkprof did not write */
void kp_top_more_print(FILE *out, const struct kp_top_report *r);
void kp_top_json_print(FILE *out, const struct kp_top_report *r); /* topjson.c: one object, one line */
extern const struct kp_fields *const kp_top_schema;

/* A row's name for people, at most `bytes`. */
const char *kp_top_row_name(const struct kp_top *top, const struct kp_top_row *row, char *out, size_t bytes);
/* A row's part of all self time, of the GPU's where there is one, from 0 to 1. */
double kp_top_row_share(const struct kp_top *top, const struct kp_top_row *row);
size_t kp_top_shown(const struct kp_top_report *report); /* how many of its rows */

/* ---- phaserows.c: the phases of a run (KPROF_PHASES), a row each, from the traces of their windows ---- */

struct kp_phaserow {
    char *phase;
    size_t traces, steps, capacity;
    double *step_ns;                           /* of each step */
    int64_t wall_ns, op_ns, data_ns, other_ns; /* as in kp_summary */
    struct kp_kineto_windows windows;
    struct kp_kineto_runs runs; /* of these windows, once it is printed */
};
struct kp_phaserows { /* all zero: empty */
    struct kp_phaserow *of;
    size_t count, capacity;
    struct kp_phasetimes times; /* of the trace that ended last; of one process alone */
    bool are_several;           /* processes, so the times are of none */
    int64_t pid;
    bool has_parts; /* not all of the traces was chosen: nothing is known of runs */
};

/* with_runs: all of the trace is chosen. */
void kp_phaserows_add(struct kp_phaserows *rows, const struct kp_kineto *trace, const struct kp_chosen *chosen,
                      const struct kp_summary *summary, bool with_runs);
/* Sorts the steps' lengths and the windows. */
void kp_phaserows_print(FILE *out, struct kp_phaserows *rows);
void kp_phaserows_fini(struct kp_phaserows *rows);
