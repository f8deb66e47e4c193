// SPDX-License-Identifier: Apache-2.0
/* toprows.h - the rows of `kprof report`, by what enum kp_top_by names, with what they cost */
#pragma once

#include "export/read/tree/chosen.h"
#include "export/read/store/keyindex.h"
#include "export/read/parse/kineto_pieces.h"
#include "export/answers/stacks/stepparts.h"
#include "export/answers/top/timeshares.h"

enum kp_top_by {
    KP_TOP_BY_OP,
    KP_TOP_BY_LINE,
    KP_TOP_BY_LIBRARY,
    KP_TOP_BY_FUNCTION, /* of Python, of any file; or what C frame is innermost */
    KP_TOP_BY_MODULE,
    KP_TOP_BY_CLASS, /* as by module, until kp_top_join_modules */
    KP_TOP_BY_SHAPE,
    KP_TOP_BY_KERNEL,
    KP_TOP_BY_SYMBOL /* calls that KPROF_SYMBOLS recorded, alone */
};
enum kp_top_sort { KP_TOP_SELF, KP_TOP_TOTAL, KP_TOP_COUNT, KP_TOP_MEM, KP_TOP_GPU };

struct kp_top_cost {
#define KP_FIGURE(type, field, joins, page) type field;
#include "export/answers/top/topcolumns.def"
#undef KP_FIGURE
};
/* Stands before a line, or module, of the forward op: of its backward ops. */
#define KP_TOP_BACKWARD_OF "backward of "
#define KP_TOP_STEP "ProfilerStep*" /* a row: what of the steps no op covers */
/* A row: work of a GPU that was asked for before the recording (kp_tree_asked_ns). By kernel it is what launched it. */
#define KP_TOP_BEFORE "(launched before the recording)"

struct kp_top_row {
    uint32_t name, shapes; /* string ids */
    /* The number of the own line with the most self time, 0: none. By kernel: of the op. By line: of the line that
     * calls it */
    uint32_t line;
    uint32_t lines;           /* how many own lines, ops, or lines that call it */
    double line_ns;           /* that self time, on a GPU its work */
    uint32_t modules;         /* by class: how many */
    bool is_line_backward;    /* backward ops of that line */
    bool is_backward;         /* by line, by module: backward ops of that forward line or module */
    struct kp_top_cost cost;  /* count: by line and by module without those inside another of the row */
    struct kp_top_cost steps; /* of that, what lies in whole steps */
    double
        begun_ns; /* by place: of the self time of `steps`, what a backend of collectives works or waits; of one tree */
    double begun_alone_ns; /* of that, what runs beside nothing else (kp_commstarts_alone) */
};
/* The figures of the ops of one line in one row. */
struct kp_top_share {
    uint32_t row, line;
    bool is_backward;
    double self_ns, step_self_ns; /* on a GPU its work */
};
struct kp_top {
    struct kp_top_row *rows;
    size_t count, capacity;
    struct kp_top_share *shares;
    size_t share_count, share_capacity;
    struct kp_keyindex keys, share_keys; /* of rows, until they are ordered, and of shares */
    struct kp_kineto *trace;
    enum kp_top_by by;
    enum kp_top_sort sort; /* of the last ordering */
    struct kp_top_row sum; /* of all rows: self times and bytes */
    bool has_gpu, has_memory, has_gpu_memory, has_lines;
    bool has_calls, has_modules; /* of Python, and of an nn.Module among them */
    bool has_begun;              /* a row has begun_ns */
    bool is_of_steps;            /* kp_top_keep_steps() was called */
    size_t steps;                /* 0: rows have no ms a step */
    size_t calls;                /* whole ones of what is asked for by its name; 0: rows have no ms a call */
    size_t runs;                 /* of the phase; 0: rows have no ms a run */
    int64_t gap_ns, step_gap_ns; /* no op, range or call runs: of what was chosen, and of its steps */
    bool has_gap;                /* kp_top_add_gap() was called */
};

void kp_top_build(struct kp_top *out, const struct kp_tree *tree, const struct kp_chosen *chosen, enum kp_top_by by);
/* Gives the rows of each of the chosen steps, in order: those of kp_top_build() where that step alone is chosen. */
typedef void (*kp_top_step_fn)(void *context, size_t step, const struct kp_top *top);
void kp_top_each_step(const struct kp_tree *tree, const struct kp_chosen *chosen, enum kp_top_by by,
                      kp_top_step_fn give, void *context);
/* An empty one, to which others are added. Its strings are those of `trace`. */
void kp_top_init(struct kp_top *out, struct kp_kineto *trace, enum kp_top_by by);
/* Adds the rows of another trace, or of a piece of one. Neither may be ordered before. */
void kp_top_add(struct kp_top *into, const struct kp_top *more);
/* Adds a row for the time that no node has; where steps are marked it lies outside of them. Before the two below. */
void kp_top_add_gap(struct kp_top *top, bool has_marked_steps);
/* Leaves what lies in whole steps alone (decisions/090). Before ordering; nothing can be added any more. */
void kp_top_keep_steps(struct kp_top *top);
double kp_top_row_step_ns(const struct kp_top *top, const struct kp_top_row *row); /* self time in steps, or GPU's */
double kp_top_row_step_total_ns(const struct kp_top *top, const struct kp_top_row *row);
double kp_top_row_self_ns(const struct kp_top *top, const struct kp_top_row *row); /* in all, or GPU's */
void kp_top_order(struct kp_top *top, enum kp_top_sort sort); /* descending; equals by self time, then by name */
/* For topmodules.c: adds up costs; and, once the rows of shares are others, shares of one row and line. */
void kp_top_cost_add(struct kp_top_cost *to, const struct kp_top_cost *from);
void kp_top_shares_join(struct kp_top *top);
void kp_top_fini(struct kp_top *top);
static inline bool kp_top_is_by_line(const struct kp_top *top) /* of the program, or of libraries, too */
{
    return top->by == KP_TOP_BY_LINE || top->by == KP_TOP_BY_LIBRARY;
}
static inline bool kp_top_is_by_place(const struct kp_top *top) /* by line, function, module or class */
{
    return top->by != KP_TOP_BY_OP && top->by != KP_TOP_BY_SHAPE && top->by != KP_TOP_BY_KERNEL;
}
static inline bool kp_top_is_by_module(const struct kp_top *top) /* or by class */
{
    return top->by == KP_TOP_BY_MODULE || top->by == KP_TOP_BY_CLASS;
}

/* ---- slowest.c ---- */

struct kp_slowest {
    size_t count, of;  /* so many of all. 0: they are too few, or the slowest last hardly longer */
    double least_ns;   /* the shortest of them */
    double more_ns;    /* what one of them lasts longer than the others, in the mean */
    double no_core_ns; /* of that, their thread waited for a core; 0: or the trace does not tell */
    double place_ns;   /* what one place has of that, of the time with and without a core */
    uint32_t name;     /* string id of the place; 0: time in which nothing runs */
    uint32_t shapes;   /* of what it gets, where they were recorded; or 0 */
    uint32_t line;     /* its own line; or 0 */
    bool is_backward;
};
/* The number of calls that are asked for by name, else of the steps. */
void kp_slowest_find(struct kp_slowest *out, const struct kp_tree *tree, const struct kp_chosen *chosen);
enum { KP_SLOWEST_BYTES = 640 };
/* "6 of 600 calls take 38.4 ms or longer, 37.1 ms more than the others; 35.2 ms of that is aten::addmm, at ..."; ""
 * where nothing is found. Returns `out`. */
char *kp_slowest_text(char *out, size_t bytes, const struct kp_slowest *slowest, const struct kp_kineto *trace,
                      const char *each);

/* ---- topmodules.c ---- */

/*
 * For rows by module: puts the backward of a module into its row. A row's total then has forward and backward, also of
 * the modules inside of it. By class it then makes one row of all modules of a class. Before ordering; nothing can be
 * added any more. Other rows stay.
 */
void kp_top_join_modules(struct kp_top *top);

/* ---- toppieces.c ---- */

struct kp_toppieces;
/* Takes the tree of a piece, too. Called by a thread of the pieces. */
typedef void (*kp_toppiece_fn)(void *context, const struct kp_tree *tree, const struct kp_chosen *chosen);
struct kp_toppieces *kp_toppieces_open(enum kp_top_by by, kp_toppiece_fn give, void *context); /* give: or NULL */
void kp_toppieces_close(struct kp_toppieces *pieces);
struct kp_kineto_pieces *kp_toppieces_reading(struct kp_toppieces *pieces); /* as kp_treepieces_reading */
/* Adds what is left of the trace, and gives the report of all. False: the pieces do not add up to the whole, which must
 * be read again. The rows have the strings of `rest`; the steps of `chosen` are the caller's (kp_chosen_fini). */
bool kp_toppieces_end(struct kp_toppieces *pieces, struct kp_kineto *rest, struct kp_top *top,
                      struct kp_summary *summary, struct kp_stepparts *parts, struct kp_chosen *chosen);
