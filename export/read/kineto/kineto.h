// SPDX-License-Identifier: Apache-2.0
/* kineto.h - a trace in memory: events of 88 bytes, whose texts are ids of strings (stringtable.h) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "export/read/store/stringtable.h"

enum kp_kineto_kind {
    KP_KINETO_OTHER,
    KP_KINETO_OP,         /* cpu_op and its older names */
    KP_KINETO_ANNOTATION, /* user_annotation */
    KP_KINETO_PYTHON,     /* python_function */
    KP_KINETO_RUNTIME,    /* calls of the CUDA, HIP, XPU runtimes and drivers, on the host */
    KP_KINETO_OVERHEAD,
    KP_KINETO_MEMORY, /* [memory] and [OutOfMemory] */
    KP_KINETO_GPU,    /* kernels, copies, sets, syncs on a device */
    KP_KINETO_GPU_ANNOTATION,
    KP_KINETO_GPU_WAIT, /* of kp_kineto_works_settle(): a wait (cuda_sync), which is no work */
};

#define KP_KINETO_UNFINISHED 1u /* the op was open when profiling stopped */
#define KP_KINETO_TEXT_PID 2u   /* pid is a string id */
#define KP_KINETO_TEXT_TID 4u
#define KP_KINETO_HAS_SEQ 8u
/* A cut between pieces runs through the event (kineto_pieces.h), or a range through the call of Python (decisions/131):
 * a part of it; and of these all but the first. */
#define KP_KINETO_SPLIT 32u
#define KP_KINETO_CONTINUED 64u
#define KP_KINETO_OPEN_AT_START 128u /* flag of a split call of Python: it was open when the recording began */
#define KP_KINETO_LISTS 128u         /* Input Dims have lists of tensors: see concrete. PYTHON: OPEN_AT_START */
#define KP_KINETO_TENSOR_FIRST 16u   /* the first input is a tensor, maybe without dimensions, and not a number */

struct kp_kineto_event {
    int64_t start_ns, dur_ns; /* start: since the Unix epoch when the file has a base */
    int64_t pid, tid;
    int64_t external_id; /* 0: none */
    int64_t number;      /* MEMORY: bytes; GPU: bytes of a copy or fill; see kp_kineto_has_before; else the sequence
                          * number */
    int64_t fwd_tid;     /* torch's logical id of the forward thread; RUNTIME and GPU: the CUPTI correlation */
    uint32_t args_bytes; /* in args_text, behind those of the events before; with keep_args */
    uint32_t name, cat;  /* string ids */
    uint32_t shapes;     /* Input Dims as Python prints them; 0: none */
    uint32_t concrete;   /* Concrete Inputs of a few ops, one a line; 0: none. Else CallFrom. LISTS: Input
                          * Dims by kp_shapetext_short. A step that is not whole: "start-up" or "cut short". A range
                          * that ended a step: stepends.h. */
    uint32_t stack;      /* Call stack, 0: none */
    uint32_t index;      /* Ev Idx, UINT32_MAX: none */
    uint8_t device_type; /* MEMORY: c10 device type. OP: KP_TYPES_* of its tensors (shapetext.h) */
    uint8_t kind, flags;
    char phase;
};
/* A call of Python, or a range: its `number` is how long it took before a cut. */
static inline bool kp_kineto_has_before(const struct kp_kineto_event *e)
{
    return (e->kind == KP_KINETO_PYTHON || e->kind == KP_KINETO_ANNOTATION) && !(e->flags & KP_KINETO_HAS_SEQ);
}

/* The facts of a [memory] or [OutOfMemory] event beyond its bytes, in the order of the file. */
struct kp_kineto_memory {
    uint64_t address;            /* 0: not in the file */
    int64_t bytes;               /* as written; the event's `number` is clamped, so that sums fit */
    int64_t allocated, reserved; /* the allocator's totals after it, -1 if not in the file */
    uint32_t event;
    int32_t device; /* -1: none, the CPU */
};

/* The args of work of a device, with keep_works; in the order of the file. */
struct kp_kineto_work {
    int64_t bytes;              /* of a copy or a fill; 0: not in the file */
    uint32_t grid[3], block[3]; /* 0: not in the file */
    int32_t registers;          /* of a thread; 0: not in the file */
    int32_t local_bytes;        /* of a thread: registers that did not fit, and arrays; 0: none, or not in the file */
    int64_t shared;             /* bytes, of a block; -1: not in the file */
    uint32_t event;
    int32_t stream;                 /* -1: not in the file */
    float blocks_per_sm, occupancy; /* occupancy in percent; -1: not in the file */
    uint32_t group, members; /* of a collective: its group's name as a hash, ranks as a string id; 0: not in the file */
    int32_t group_size;      /* 0: not in the file */
    int64_t sequence;        /* its number in that group; -1: not in the file */
    int64_t bus_bytes;       /* what a rank's link moves for it at best, as NCCL's tests count; 0: not known */
};

/* A scalar of the file's head: "host_name", or the path of a member, as "kprof.drops.OP.no chunk". */
struct kp_kineto_fact {
    uint32_t path, text; /* string ids */
};
struct kp_kineto;
struct kp_kineto_pieces;
struct kp_kineto_windows;
typedef bool (*kp_kineto_keep_fn)(const void *context, const struct kp_kineto *trace,
                                  const struct kp_kineto_event *event);

struct kp_kineto {
    struct kp_kineto_event *events;
    size_t count, capacity;
    size_t seen;     /* events in the file, kept or not */
    size_t overlaps; /* works of a device that overlaps.c cut, the longest by overlap_ns */
    int64_t overlap_ns;
    size_t processes; /* whose ops, ranges or calls are in it (kineto_processes.h) */
    struct kp_kineto_memory *memory;
    size_t memory_count, memory_capacity;
    struct kp_kineto_work *works; /* kineto_works.c */
    size_t work_count, work_capacity;
    struct kp_strings *strings;
    char *args_text;
    size_t args_bytes, args_capacity;
    struct kp_kineto_fact *facts; /* kineto_facts.c */
    size_t fact_count, fact_capacity;
    struct kp_kineto_windows *windows; /* of a phase (kineto_windows.h). NULL: of none */
    uint32_t program;                  /* string id: the first process's name; 0: not in the file */
    int64_t base_ns;                   /* 0: the file has none */
    int64_t start_ns; /* when the profiler started; the first event's start where the file does not say */
    int64_t first_ns; /* start of the earliest event, kept or not */
    int64_t end_ns;   /* when it stopped; the end of ops that were still open then */
    bool has_start, has_first;
    bool has_events; /* the file has a list of events, maybe empty; false: not a trace */
    bool with_flops, profile_memory, record_shapes, with_stack;
    uint32_t memory_before, memory_freed; /* string ids of kprof_memory_before and kprof_memory_freed */
    int64_t memory_unkept;                /* kprof_memory_unkept: blocks of before whose size is not known */
    bool has_memory_before;
    bool keep_works;
    bool lasting_names;         /* as kp_framename_lasting() makes them */
    bool has_stacks;            /* some event carries its call stack */
    bool has_npu;               /* the process of an NPU's kernels (torch_npu), which are not read */
    bool has_heap;              /* the host's heap was traced beside it: set by what found that */
    bool has_step_ends;         /* ours: it marks which ranges ended a step (stepends.h) */
    int64_t pass_pid, pass_tid; /* then, of the thread that calls the engine */
    bool has_pass_ends;         /* backward passes end its steps, and some are flagged (passends.h) */
    bool is_ours;               /* libkprof wrote it: kp_tree_fill_stacks() fills all stacks of such a file */
    kp_kineto_keep_fn keep;     /* see kp_kineto_wish */
    const void *keep_context;
    bool torn; /* the file ended early; the events before the cut are here */
};

struct kp_kineto *kp_kineto_new(void);
void kp_kineto_close(struct kp_kineto *trace);

/* The process of its ops, else of its first event of the host: an event of a GPU has the GPU's number. */
int64_t kp_kineto_pid(const struct kp_kineto *trace);
static inline const char *kp_kineto_text(const struct kp_kineto *trace, uint32_t id)
{
    return kp_strings_get(trace->strings, id);
}

/* The device whose kernels are in the file and are not read, "an MTIA device"; NULL: there is none. */
const char *kp_kineto_unread(const struct kp_kineto *trace);

/* A thread of any process in the trace, as a key. */
static inline uint64_t kp_tree_thread(const struct kp_kineto_event *e)
{
    return (uint64_t)e->tid ^ ((uint64_t)e->pid << 32);
}
/* Has its thread the number of its process? torch gives 0 for both to a thread of Python that runs no op. */
static inline bool kp_kineto_is_main_thread(const struct kp_kineto_event *e) { return e->tid == e->pid && e->tid; }
static inline uint32_t kp_kineto_shapes(const struct kp_kineto_event *e)
{
    return e->flags & KP_KINETO_LISTS ? e->concrete : e->shapes;
}

/* Are the Concrete Inputs of an op kept? Most are never read. */
bool kp_kineto_keeps_concrete(const struct kp_kineto *trace, const struct kp_kineto_event *op);

enum { KP_KINETO_SAMPLER_LINES = 200 };
/* Is it the name of the call in which torch's DataLoader begins an epoch, and starts workers that were not kept? At the
 * head of that file is __iter__ of _InfiniteConstantSampler, which each batch of an IterableDataset calls. */
static inline bool kp_kineto_is_loader_start(const char *name)
{
    static const char file[] = "torch/utils/data/dataloader.py(";
    const char *const end = strrchr(name, ')'); /* "torch/utils/data/dataloader.py(492): __iter__" */
    const char *const at = end && strcmp(end, "): __iter__") == 0 ? strstr(name, file) : NULL;
    return at && strtol(at + sizeof file - 1, NULL, 10) > KP_KINETO_SAMPLER_LINES;
}
/* The same, or that of the range in which it gives a batch? */
static inline bool kp_kineto_is_loader(const char *name)
{
    return strncmp(name, "enumerate(DataLoader)#", 22) == 0 || kp_kineto_is_loader_start(name);
}
/* Does the range `name` belong to a loader with workers? */
static inline bool kp_kineto_is_of_workers(const char *name)
{
    return name && strstr(name, "_MultiProcessingDataLoaderIter");
}

/* Autograd's engine has a range around each node that it runs: these words, and the node's name. */
#define KP_ENGINE_RANGE "autograd::engine::evaluate_function: "
#define KP_ACCUMULATE_GRAD "torch::autograd::AccumulateGrad"
static inline bool kp_kineto_is_engine(const char *name)
{
    return strncmp(name, KP_ENGINE_RANGE, sizeof KP_ENGINE_RANGE - 1) == 0;
}

/* Is it the name of a step's range? Its number stands behind the '#'. */
static inline bool kp_kineto_is_step(const char *name) { return strncmp(name, "ProfilerStep#", 13) == 0; }

/* kineto_works.c: adds the work of the last event. `args`: as with keep_args */
void kp_kineto_work_add(struct kp_kineto *trace, uint32_t event, const char *args, size_t bytes);
const struct kp_kineto_work *kp_kineto_work_of(const struct kp_kineto *trace, uint32_t event); /* or NULL */
