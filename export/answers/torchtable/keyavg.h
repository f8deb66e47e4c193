// SPDX-License-Identifier: Apache-2.0
/* keyavg.h - torch's key_averages() over a trace: self times, rows by key. Times are as in tree.h. */
#pragma once

#include <stdio.h>

#include "export/read/tree/tree.h"

struct kp_row {
    uint32_t name, overload, shapes; /* string ids */
    const char **stack;              /* frames, innermost first: strings of the trace */
    uint32_t stack_count;
    uint32_t stack_text; /* string id: the same frames as a text, by which rows are told apart */
    int64_t count;
    double cpu_total, self_cpu, device_total, self_device, cpu_avg, device_avg;
    int64_t cpu_bytes, device_bytes, self_cpu_bytes, self_device_bytes;
    double flops;
    bool on_device, is_annotation, has_parent, is_async;
};

struct kp_keyavg_options {
    bool by_shape, by_overload, python_functions;
    uint32_t by_stack; /* frames, 0: no */
};
struct kp_keyavg {
    struct kp_row *rows; /* in order of first appearance */
    size_t count, capacity;
    struct kp_kineto *trace;
    bool has_device, with_flops, profile_memory;
};

int kp_keyavg_build(struct kp_keyavg *out, const struct kp_tree *tree, const struct kp_keyavg_options *options);
/* Adds the rows of an earlier window behind those of `into`, as torch.profiler's acc_events does. */
void kp_keyavg_merge(struct kp_keyavg *into, const struct kp_keyavg *earlier);
void kp_keyavg_fini(struct kp_keyavg *averages);

/* Sorts rows by one of torch's attribute names ("cuda" means "device"), descending and stable. -EINVAL: no such key. */
int kp_keyavg_sort(struct kp_keyavg *averages, const char *key);
bool kp_keyavg_is_helper(const char *frame); /* a frame of autograd that torch leaves out of stacks */
bool kp_keyavg_has_key(const char *key);
const char *kp_keyavg_keys(void); /* the names, blank-separated, for the usage message */

/* Returns an op's FLOPs by torch's formula, 0 if torch has none. */
double kp_flops(const char *name, const char *shapes, const char *concrete, bool is_first_tensor);

/* ---- folded.c: call stacks with their times, for torch's export_stacks and flame graphs ---- */

/* Reads a metric of export_stacks: self_cpu_time_total or self_cuda_time_total (also xpu, privateuse1, device). Returns
 * false for another name. */
bool kp_folded_metric(const char *name, bool *on_device);
/*
 * Calls `fn` for every event with a stack and at least one microsecond, in torch's order. Frames go from the outermost
 * to the innermost, joined by ';'. A blank in them becomes '_'.
 */
typedef void (*kp_folded_fn)(void *context, const char *stack, int64_t us);
void kp_folded_walk(const struct kp_tree *tree, bool on_device, kp_folded_fn fn, void *context);

/* ---- table.c: prints rows the way key_averages().table() does, letter for letter ---- */

struct kp_table_options {
    const char *sort_by;                        /* NULL: order of first appearance */
    const char *header;                         /* NULL: none */
    long row_limit;                             /* -1: all */
    int name_width, shapes_width, source_width; /* most letters; 0: no limit */
    bool top_level_only;
    char time_unit; /* 's', 'm', 'u'; 0: by size */
};
#define KP_TABLE_DEFAULTS                                                          \
    {                                                                              \
        .row_limit = 100, .name_width = 55, .shapes_width = 80, .source_width = 75 \
    }

/* Sorts the rows by sort_by, if set, and prints them. It prints nothing if there are no rows. -EINVAL: unknown key. */
int kp_table_print(FILE *out, struct kp_keyavg *averages, const struct kp_table_options *options);
