// SPDX-License-Identifier: Apache-2.0
/* toprows.h - the rows of `kprof report`: ops, lines, modules or shapes with what they cost */
#ifndef KP_TOPROWS_H
#define KP_TOPROWS_H

#include "export/report/chosen.h"
#include "export/report/keyindex.h"

enum kp_top_by { KP_TOP_BY_OP, KP_TOP_BY_LINE, KP_TOP_BY_MODULE, KP_TOP_BY_SHAPE };
enum kp_top_sort { KP_TOP_SELF, KP_TOP_TOTAL, KP_TOP_COUNT, KP_TOP_MEM, KP_TOP_GPU };

struct kp_top_row {
    uint32_t name, shapes; /* string ids */
    uint32_t line;         /* of the own line with the most self time, 0: none */
    uint32_t lines;        /* how many own lines */
    bool is_line_backward; /* backward ops of that line */
    bool is_backward;      /* by line, by module: backward ops of that forward line or module */
    int64_t count;         /* by line, by module: without those inside another of the row */
    double self_ns, total_ns, gpu_self_ns, gpu_total_ns;
    double step_self_ns; /* of self time, or on a GPU gpu_self_ns, what lies in whole steps */
    int64_t self_bytes, gpu_self_bytes;
};
/* What the ops of one line have in one row. */
struct kp_top_share {
    uint32_t row, line;
    bool is_backward;
    double self_ns; /* on a GPU its work */
};
struct kp_top {
    struct kp_top_row *rows;
    size_t count, capacity;
    struct kp_top_share *shares;
    size_t share_capacity;
    struct kp_keyindex keys, share_keys; /* of rows, until they are ordered, and of shares */
    struct kp_kineto *trace;
    enum kp_top_by by;
    struct kp_top_row sum; /* of all rows: self times and bytes */
    bool has_gpu, has_memory, has_gpu_memory, has_lines;
    size_t steps;
};

void kp_top_build(struct kp_top *out, const struct kp_tree *tree, const struct kp_chosen *chosen, enum kp_top_by by);
/* An empty one, to which others are added. Its strings are those of `trace`. */
void kp_top_init(struct kp_top *out, struct kp_kineto *trace, enum kp_top_by by);
/* Adds the rows of another trace, or of a piece of one. Neither may be ordered before. */
void kp_top_add(struct kp_top *into, const struct kp_top *more);
void kp_top_order(struct kp_top *top, enum kp_top_sort sort); /* descending; equals by self time, then by name */
void kp_top_fini(struct kp_top *top);

#endif
