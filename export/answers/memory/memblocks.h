// SPDX-License-Identifier: Apache-2.0
/*
 * memblocks.h - memory in a trace: blocks by category, the timeline, the peak, and what grows from step to step
 *
 * A trace has no tensors, only blocks and the ops around them. docs/decisions/023 says how these give torch's
 * categories.
 */
#pragma once

#include <stdio.h>

#include "export/read/tree/tree.h"
#include "export/read/kineto/stepends.h"

/* torch's categories in torch's order; the last one is ours. */
enum kp_mem_category {
    KP_MEM_PARAMETER,
    KP_MEM_OPTIMIZER,
    KP_MEM_INPUT,
    KP_MEM_TEMPORARY,
    KP_MEM_ACTIVATION,
    KP_MEM_GRADIENT,
    KP_MEM_AUTOGRAD,
    KP_MEM_UNKNOWN,
    KP_MEM_BEFORE /* allocated before the window: its op is unknown */,
    KP_MEM_CATEGORIES
};

/* The place in the program of an event: indices of nodes in the tree, -1 for none. */
struct kp_mem_place {
    int32_t op, top;   /* innermost and outermost op */
    int32_t leaf;      /* the outermost that has a schema or is an autograd node: one step of torch's data flow */
    int32_t engine;    /* the outermost evaluate_function of autograd */
    int32_t optimizer; /* Optimizer.step# */
    int32_t range;     /* innermost annotation */
    int32_t pass;      /* index of the backward pass */
    uint64_t thread;
};

struct kp_mem_block {
    int64_t from_ns, to_ns; /* INT64_MIN: before the window; INT64_MAX: alive at its end */
    int64_t bytes;
    uint64_t address;
    struct kp_mem_place place;
    int32_t freed_leaf;
    int32_t step; /* index of the step it was allocated in, -1: none */
    uint16_t device;
    uint8_t category;
};

struct kp_mem_device {
    int type, id;          /* c10 device type and index; CPU: 0, -1 */
    char name[24];         /* CPU, GPU 0 */
    size_t first, count;   /* its blocks */
    int64_t before_bytes;  /* allocated before the window and not freed in it */
    int64_t reserved_most; /* -1: not in the file */
    bool knows_before;     /* what was allocated before the window is counted */
};
struct kp_mem_step {
    int64_t from_ns, to_ns; /* from_ns first, here and in a pass: kp_rows_from */
    long number;
};
struct kp_mem_pass {                    /* one backward pass of one thread */
    int64_t from_ns, to_ns, forward_ns; /* forward_ns: when the forward pass of its nodes began, INT64_MAX if unknown */
    int64_t most_seq;
    uint64_t forward_thread;
    unsigned optimizers; /* how many Optimizer.step# had begun */
    bool open;
};
struct kp_mem_node { /* a node of autograd that a pass walked */
    int64_t seq;
    int32_t pass;
};
struct kp_mem_out { /* an [OutOfMemory] */
    int64_t at_ns, bytes, allocated;
    struct kp_mem_place place;
    uint16_t device;
};

#define KP_MEM_NO_ADDRESSES "its events of memory have no addresses (as of torch 1.9), so blocks cannot be followed"
struct kp_memview {
    struct kp_tree *tree;
    struct kp_mem_block *blocks; /* by device, then by time */
    size_t block_count, block_capacity;
    struct kp_mem_device *devices; /* CPU first, GPUs by number */
    size_t device_count, device_capacity;
    struct kp_mem_step *steps;
    size_t step_count, step_capacity;
    struct kp_mem_pass *passes;
    size_t pass_count, pass_capacity;
    struct kp_mem_node *nodes;
    size_t node_count, node_capacity;
    struct kp_mem_out *outs;
    size_t out_count, out_capacity;
    int32_t *placed;          /* by node: itself, or the nearest parent that has a stack; -1: none has */
    int64_t begin_ns, end_ns; /* of the window */
    int64_t zero_ns;          /* shown times are after this, the profiler's start, as --from takes them */
    const char *step_source;  /* "ProfilerStep", or what ended them: "Optimizer.step", "DataLoader" */
    bool no_addresses;        /* some memory events have no address (traces of 2021) */
};

/* If the trace has stacks, the caller has called kp_tree_fill_stacks and kp_tree_set_forward_stacks. -ENODATA: no event
 * of memory, or none that has an address. */
int kp_memview_build(struct kp_memview *view, struct kp_tree *tree);
void kp_memview_fini(struct kp_memview *view);
void kp_memview_categories(struct kp_memview *view); /* memcategory.c; part of kp_memview_build */
const char *kp_mem_category_name(unsigned category);
const char *kp_mem_op_name(const struct kp_memview *view, int32_t node); /* "" for -1 */
static inline bool kp_mem_is_optimizer(const char *name) { return kp_stepends_is_optimizer(name); }

/* ---- memcurve.c: totals over time ---- */

struct kp_mem_point {
    int64_t at_ns;
    int64_t bytes; /* negative: freed */
    uint32_t block;
    uint8_t category;
};
struct kp_mem_sum {
    int64_t total, of[KP_MEM_CATEGORIES];
};
struct kp_mem_curve {
    struct kp_mem_point *points; /* by time */
    size_t count, capacity;
    struct kp_mem_sum begin, end, most, peak; /* most: each category's own highest; peak: all at peak_ns */
    int64_t peak_ns;
    const struct kp_mem_device *device;
};
/* Builds the curve of [from_ns, to_ns]. */
void kp_mem_curve_build(struct kp_mem_curve *curve, const struct kp_memview *view, size_t device, int64_t from_ns,
                        int64_t to_ns);
void kp_mem_curve_fini(struct kp_mem_curve *curve);
void kp_mem_sum_add(struct kp_mem_sum *sum, const struct kp_mem_point *point);
/* Returns the sums at the highest moment of each of n equal stretches, which the caller frees. at_ns gets its time. */
struct kp_mem_sum *kp_mem_curve_slices(const struct kp_mem_curve *curve, int64_t from_ns, int64_t to_ns, size_t n,
                                       int64_t *at_ns);

/* ---- memgroups.c: blocks by op ---- */

struct kp_mem_group {
    uint32_t op, top, stack; /* string ids; op 0: outside any op; of several stacks the one with most bytes */
    uint32_t others;         /* of what was taken: further call sites */
    uint32_t shapes;         /* of what was taken: those of its op's inputs, with most bytes; else 0 */
    uint8_t category;
    bool is_older;       /* allocated before the window */
    bool is_backward;    /* the stack is of the forward op, whose backward asked for it */
    int64_t bytes, kept; /* kept: of what was taken, still there when its op ended */
    size_t count;
    long first_step, last_step, steps; /* of leaks: indices of steps, and in how many there are some */
};
struct kp_mem_groups {
    struct kp_mem_group *rows; /* most bytes first */
    size_t count, capacity;
};
void kp_mem_groups_live(struct kp_mem_groups *groups, const struct kp_memview *view, size_t device, int64_t at_ns);
/* Makes one row of those that read the same: two lines of a library that one of the program's calls. */
void kp_mem_groups_alike(struct kp_mem_groups *groups, const struct kp_memview *view);
/* The blocks that were allocated in a time, freed since or not, by the op that asked for them. They have no
 * category. */
void kp_mem_groups_taken(struct kp_mem_groups *groups, const struct kp_memview *view, size_t device, int64_t from_ns,
                         int64_t to_ns);
/* Gathers blocks from steps before the last that outlive the last step. Keeps the rows of at least two steps and of
 * half of them, or of steps again and again. */
void kp_mem_groups_leaks(struct kp_mem_groups *groups, const struct kp_memview *view, size_t device);
/* How many rows are shown, and the bytes and blocks of those behind. */
struct kp_mem_show;
size_t kp_mem_groups_shown(const struct kp_mem_groups *groups, const struct kp_mem_show *show);
struct kp_mem_group kp_mem_groups_rest(const struct kp_mem_groups *groups, size_t shown);
void kp_mem_groups_fini(struct kp_mem_groups *groups);

/* ---- what is shown ---- */

#define KP_MEM_BEFORE_MISSING "Memory allocated before recording began is not in the trace and not counted."

struct kp_mem_show {
    int device;     /* index, -1: all */
    long row_limit; /* -1: all */
    int64_t from_ns, to_ns;
    bool is_part; /* that is the time of some steps */
    long first_step, last_step;
    const char *label;
    const char *members; /* JSON to put first into the object, or NULL */
};
static inline bool kp_mem_shows(const struct kp_mem_show *show, size_t device)
{
    return show->device < 0 || (size_t)show->device == device;
}
/* The time that --from and --to take, and that `kprof events` prints. */
static inline double kp_mem_ms(const struct kp_memview *view, int64_t ns) { return (double)(ns - view->zero_ns) / 1e6; }
/*
 * Shows the steps from `first` to `last`. False: the window has none of them. With -1 for both the steps, where they
 * are a part of the window and have the highest moment of each device that is shown, or else all of it.
 */
bool kp_memview_steps(const struct kp_memview *view, struct kp_mem_show *show, long first, long last);
void kp_memtable_write(FILE *out, const struct kp_memview *view, const struct kp_mem_show *show); /* memtable.c */
void kp_memjson_write(FILE *out, const struct kp_memview *view, const struct kp_mem_show *show);  /* memjson.c */
extern const struct kp_fields *const kp_memjson_schema;
void kp_memjson_raw(FILE *out, const struct kp_memview *view,
                    size_t device); /* torch's export_memory_timeline(.raw.json.gz) */
void kp_memsvg_write(FILE *out, const struct kp_memview *view, const struct kp_mem_show *show); /* memdraw.c */

/* memdraw.c: the curve in a file, which curve.js draws. Its data is JSON without a text of the trace, so it may stand
 * in HTML and XML as it is. The script draws each element of class "curve", once all of them are there. */
void kp_memdraw_data(FILE *out, const struct kp_memview *view, const struct kp_mem_show *show,
                     const struct kp_mem_curve *curve);
void kp_memdraw_script(FILE *out);
/* memassets.S. The scripts for a page end before what a file has of its own. */
extern const char kp_memcurve_script[], kp_memcurve_script_end[], kp_memcurve_file_end[];
/* mempage.c: one HTML page. view NULL: the trace has no tensors' memory. heap NULL: it has no heap of the host; else
 * that as text, where lines without an indent are titles, four blanks begin a site and eight a frame. */
void kp_mempage_write(FILE *out, const struct kp_memview *view, const struct kp_mem_show *show, const char *heap);
/* Sets the row's stack and is_backward: those of the node, or of the nearest around it that has a stack. -1: none. */
void kp_mem_group_place(struct kp_mem_group *row, const struct kp_memview *view, int32_t node);
/* Module and innermost frame, with "backward of" before them where they are those of the forward op. */
const char *kp_mem_place_text(const struct kp_memview *view, const struct kp_mem_group *row, char *out, size_t bytes);
long kp_mem_step_at(const struct kp_memview *view, int64_t at_ns); /* index, -1: none */
