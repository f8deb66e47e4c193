// SPDX-License-Identifier: Apache-2.0
/* keyavg.h - torch's key_averages() over a trace: self times, rows by key. Times are as in tree.h. */
#pragma once

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
