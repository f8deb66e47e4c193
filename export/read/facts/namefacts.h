// SPDX-License-Identifier: Apache-2.0
/* namefacts.h - what an event is by its name, found once for each name (names.def, vendor.def, pywait.def) */
#pragma once

#include "export/read/facts/pywait.h"
#include "export/read/frames/workerframe.h"
#include "export/read/tree/tree.h"

#define KP_NAME_GC_RANGE "Python GC"                  /* torch's own (record_python_gc_info) */
#define KP_NAME_GC_CALL "<built-in function collect>" /* gc.collect() by the program */
enum kp_namefact {
    KP_NAME_KNOWN = 1 << 0,
    KP_NAME_STEP = 1 << 1,         /* the range of a step */
    KP_NAME_LOADER = 1 << 2,       /* kp_kineto_is_loader */
    KP_NAME_LOADER_START = 1 << 3, /* kp_kineto_is_loader_start */
    KP_NAME_OPTIMIZER = 1 << 4,    /* the range of an optimizer */
    KP_NAME_ENGINE = 1 << 5,       /* KP_ENGINE_RANGE */
    KP_NAME_COMPILES = 1 << 6,
    KP_NAME_COLLECTS = 1 << 7,
    KP_NAME_INPUT = 1 << 8, /* a function, or a stack that has one */
    KP_NAME_WAIT = 1 << 9,  /* this and the next four: vendor.h */
    KP_NAME_COMM = 1 << 10,
    KP_NAME_COMM_OP = 1 << 11,
    KP_NAME_COLLECTIVE = 1 << 12,
    KP_NAME_MATRIX = 1 << 13,
    KP_NAME_IDLE = 1 << 14,         /* kp_pywait_is_idle */
    KP_NAME_WORKERFRAME = 1 << 15,  /* times an enum kp_workerframe: two bits */
    KP_NAME_FORMATS = 1 << 17,      /* torch makes a text of a tensor; or a stack */
    KP_NAME_DEEPCOPY = 1 << 18,     /* copy.deepcopy(), or a stack that has it */
    KP_NAME_RECOMPUTES = 1 << 19,   /* what a hook of saved tensors runs, or a stack that has it */
    KP_NAME_DDP_BUFFERS = 1 << 20,  /* DistributedDataParallel sends buffers, or a stack that has it */
    KP_NAME_DECOMPRESSES = 1 << 21, /* a call of Python, of zlib, an archive, .. */
    KP_NAME_SAMPLES = 1 << 22,      /* a DataLoader asks its sampler, or a stack that has it */
    KP_NAME_OBJECTS = 1 << 23,      /* ranks send each other objects as pickles, or a stack that has it */
    KP_NAME_PYWAIT = 1 << 24,       /* times an enum kp_pywait; the uppermost bits */
    KP_NAME_OF_STACKS = KP_NAME_INPUT | KP_NAME_FORMATS | KP_NAME_DEEPCOPY | KP_NAME_RECOMPUTES | KP_NAME_DDP_BUFFERS |
                        KP_NAME_SAMPLES | KP_NAME_OBJECTS,
    KP_NAME_RANGE = KP_NAME_STEP | KP_NAME_OPTIMIZER | KP_NAME_LOADER /* no op, whatever old files call it */
};
uint32_t kp_namefacts_find(const struct kp_kineto *trace, uint32_t id); /* and keeps them */
/* The facts of a string of the trace. Not for several threads at once. */
static inline uint32_t kp_namefacts(const struct kp_kineto *trace, uint32_t id)
{
    const uint32_t known = kp_strings_marked(trace->strings, KP_STRINGS_FACTS, id);
    return known ? known : kp_namefacts_find(trace, id);
}
static inline enum kp_workerframe kp_namefacts_workerframe(const struct kp_kineto *trace, uint32_t id)
{
    return (enum kp_workerframe)(kp_namefacts(trace, id) / KP_NAME_WORKERFRAME % 4);
}
static inline enum kp_pywait kp_namefacts_pywait(const struct kp_kineto *trace, uint32_t id)
{
    return (enum kp_pywait)(kp_namefacts(trace, id) / KP_NAME_PYWAIT);
}
bool kp_namefacts_has_workers(const struct kp_kineto *trace); /* a DataLoader of the program has some */
/* Has the name of a node's event one of these facts? */
static inline bool kp_node_is(const struct kp_tree *tree, size_t node, uint32_t facts)
{
    return kp_namefacts(tree->trace, kp_tree_event(tree, node)->name) & facts;
}
/* The same of a node or one that it lies in. -1: false. */
static inline bool kp_node_is_in(const struct kp_tree *tree, int32_t node, uint32_t facts)
{
    for (; node >= 0; node = tree->nodes[node].parent)
        if (kp_node_is(tree, (size_t)node, facts)) return true;
    return false;
}
