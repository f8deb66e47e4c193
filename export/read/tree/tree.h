// SPDX-License-Identifier: Apache-2.0
/*
 * tree.h - the tree of a trace's host events, with the device work that they launched
 *
 * Times in microseconds are doubles, computed from the profiler's start in torch's order of operations. So the last
 * digit of a mean or a percentage is torch's.
 */
#pragma once

#include "export/read/kineto/kineto.h"

struct kp_node {
    uint32_t event;                            /* index into the trace */
    uint32_t name;                             /* string id after torch's rewriting */
    uint32_t stack;                            /* string id; set by kp_tree_set_stacks */
    int32_t parent, first_child, next_sibling; /* -1: none */
    int32_t forward;                           /* of backward: the op that made it, or -1. Set with stack */
    int32_t launcher;                          /* of device work: the op that has its time, or -1 */
    int32_t call;                              /* of device work: the host's call that launched it, or -1 */
    bool on_device : 1, is_annotation : 1, is_python : 1, removed : 1;
    bool is_async : 1; /* stands outside the tree, no self time */
    int64_t start_ns, end_ns;
};
/* Device work that a node launched. */
struct kp_node_work {
    double device_us; /* kp_tree_build adds its children's */
    double called_us; /* the same of calls in no op, as of graphs and Triton; torch leaves it out */
};

struct kp_tree {
    struct kp_kineto *trace;
    struct kp_node *nodes; /* by (start, -end, order of recording) */
    size_t count, capacity;
    struct kp_node_work *works;        /* by node; NULL: no work of a device */
    int64_t *cpu_bytes, *device_bytes; /* by event: allocated while it ran; NULL: no such record of memory */
    bool has_device;
    int64_t first_call; /* the least correlation of a call that launches, as they count up; 0: no call is there */
    size_t uncalled;    /* work of a device whose call is not there */
    size_t orphans;     /* work of a device, and backward ops, that name an op which the trace has not */
    size_t unfolded;    /* of a trace in pieces: children that are perhaps their parent's only ones, which is split */
};
static inline const struct kp_kineto_event *kp_tree_event(const struct kp_tree *tree, size_t node)
{
    return &tree->trace->events[tree->nodes[node].event];
}
/* The stack of a node (string id): what kp_tree_set_stacks gave it, or its own. */
static inline uint32_t kp_tree_stack(const struct kp_tree *tree, const struct kp_node *node)
{
    return node->stack ? node->stack : tree->trace->events[node->event].stack;
}

static inline struct kp_node_work kp_tree_work(const struct kp_tree *tree, size_t node)
{
    return tree->works ? tree->works[node] : (struct kp_node_work){0, 0};
}
static inline int64_t kp_tree_cpu_bytes(const struct kp_tree *tree, size_t node)
{
    return tree->cpu_bytes ? tree->cpu_bytes[tree->nodes[node].event] : 0;
}
static inline int64_t kp_tree_device_bytes(const struct kp_tree *tree, size_t node)
{
    return tree->device_bytes ? tree->device_bytes[tree->nodes[node].event] : 0;
}

/* The figures that a node adds to its row in torch's table. */
struct kp_values {
    double cpu_total, self_cpu, device_total, self_device;
    int64_t self_cpu_bytes, self_device_bytes;
};

/* Nodes of ops and ranges by their External ids: treedevice.c. */
struct kp_op_id {
    int64_t id;
    uint32_t node;
};
struct kp_op_ids {
    struct kp_op_id *ids; /* by (id, node) */
    size_t count, capacity;
};
void kp_op_ids_gather(struct kp_op_ids *ids, const struct kp_tree *tree);
void kp_op_ids_fini(struct kp_op_ids *ids);
/* Returns the first of `count` rows whose key is `key` or more. A row begins with its key; they are sorted by it. */
size_t kp_rows_from(const void *rows, size_t count, size_t row_bytes, int64_t key);

int kp_tree_build(struct kp_tree *tree, struct kp_kineto *trace);
/* "Tensor" of aten::add.Tensor, a string id; 0: none. */
uint32_t kp_tree_overload(const struct kp_tree *tree, const struct kp_node *node);
void kp_tree_add_kernels(struct kp_tree *tree); /* treedevice.c; part of kp_tree_build */
/* When a work of a device was asked for: its op began, else the call, else (neither is there) the work itself.
 * INT64_MIN: before the recording, as its correlation is less than that of any call. */
int64_t kp_tree_asked_ns(const struct kp_tree *tree, size_t node);
/* treecalls.c: gives events without a call stack the Python calls around them. It runs before kp_tree_set_stacks.
 * `all` false is for torch's files with stacks: only ranges on a device and CUDA calls outside ops get one. */
void kp_tree_fill_stacks(struct kp_tree *tree, bool all);
/* The same, where a frame's line is that of its call, which torch does not show. 0: not known. */
void kp_tree_fill_line_stacks(struct kp_tree *tree, bool all);
/* The same for what our own views show: where no event of the file has a stack, Python's calls give all of them, as in
 * torch.profiler's traces with_stack=True. */
void kp_tree_fill_calls(struct kp_tree *tree);
/* The name (string id) of a call of Python. If it was open when the recording began, the name in the file has the line
 * at which it was then, and not that of its `def`: here it has line 0, which is none. */
uint32_t kp_tree_call_name(const struct kp_tree *tree, const struct kp_node *node);
/* The own line of a node (string id): of a call of Python the program's function itself; else the innermost of its
 * stack; 0: none. */
uint32_t kp_tree_line(const struct kp_tree *tree, const struct kp_node *node);
/* The line that called a call of Python or an op, "file.py:12"; "": not known. */
const char *kp_tree_call_from(const struct kp_tree *tree, const struct kp_kineto_event *e);
void kp_tree_set_stacks(struct kp_tree *tree); /* treestacks.c; before grouping by stack */
/* The same, but a backward op gets the stack of the op that made its node: torch takes the first of its number. So does
 * what autograd's engine runs beside it, in its range, but hooks of Python. */
void kp_tree_set_forward_stacks(struct kp_tree *tree);
bool kp_node_is_backward(const struct kp_tree *tree, size_t node); /* after it: has it another op's stack? */
void kp_tree_values(const struct kp_tree *tree, size_t node, struct kp_values *out);
/* The op that asked for what a node allocates: the nearest that does more than allocate, or the outermost allocator. */
int32_t kp_tree_asker(const struct kp_tree *tree, int32_t node);
void kp_tree_fini(struct kp_tree *tree);
/* Returns a node's length in microseconds, rounded as by torch. */
static inline double kp_tree_span_us(const struct kp_tree *tree, size_t node)
{
    const struct kp_node *n = &tree->nodes[node];
    double start = (double)(n->start_ns - tree->trace->start_ns) / 1000.0;
    return (double)(n->end_ns - tree->trace->start_ns) / 1000.0 - start;
}
static inline bool kp_name_begins(const char *name, const char *with) { return strncmp(name, with, strlen(with)) == 0; }
/* NULL ends the names. */
static inline bool kp_name_is_one_of(const char *name, const char *const *names)
{
    while (*names && strcmp(name, *names) != 0) names++;
    return *names;
}
static inline bool kp_name_has_one_of(const char *name, const char *const *words)
{
    while (*words && !strstr(name, *words)) words++;
    return *words;
}
/* Is it one of these, or has it one of these in it? */
#define KP_NAME_IS(name, ...)                                      \
    __extension__({                                                \
        static const char *const of_names[] = {__VA_ARGS__, NULL}; \
        kp_name_is_one_of((name), of_names);                       \
    })
#define KP_NAME_HAS(name, ...)                                     \
    __extension__({                                                \
        static const char *const of_names[] = {__VA_ARGS__, NULL}; \
        kp_name_has_one_of((name), of_names);                      \
    })
