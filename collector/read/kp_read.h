// SPDX-License-Identifier: Apache-2.0
/*
 * kp_read.h - the door of the read side: gives the events of a spool in order, even of a torn spool
 *
 * Called by: the CLI, the export thread inside the host, tests. A reader serves one thread; many readers may exist at
 *            once.
 * Memory:    bounded: the mapped file, and an index entry for each piece of a chunk. Recovery is the normal path.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/format/kp_device.h"
#include "collector/format/kp_format.h"

struct kp_reader;

#define KP_SPOOL_MOST_BYTES (INT64_C(1) << 37) /* the largest KPROF_MAX_MB: a longer file is no spool */

struct kp_cycle {
    uint32_t number, steps;
    uint64_t begin_ns, end_ns, warm_begin_ns; /* ns since the Unix epoch */
    uint64_t first_step, last_step, lost;
    bool complete;  /* the writer closed it. False: the process died first, and end_ns is the last event's end */
    bool last_part; /* records from before begin_ns went (KPROF_RING) */
    bool exported, cut_short; /* a trace was written; the program ended before the last step */
};

/*
 * A collective as torch described it, checked. The values of all lists follow each other; kp_comms_shown counts those
 * of each list.
 */
struct kp_comms {
    struct kp_rec_comms rec;
    int64_t values[KP_COMMS_LISTS * KP_COMMS_SHOWN];
};

/*
 * An event, valid during the callback only. The name and overload of an OP live as long as the reader. Times are ns
 * since the Unix epoch, start <= end.
 */
struct kp_event {
    enum kp_kind kind;    /* OP, STEP or PYCALL; in a timeline also API, NVTX, MEMORY and SYMBOL */
    const char *name;     /* never NULL, NUL-terminated ("name lost" when it could not be kept) */
    const char *overload; /* "" when none */
    uint64_t start_ns, end_ns;
    uint32_t tid, thread_no; /* kernel tid of the thread where it began */
    uint32_t rt_tid;         /* torch's logical id of the creating thread */
    uint8_t scope;           /* RecordScope: 0 function, 1 backward, 2 TorchScript, 7 user */
    bool ends_step;          /* OP: the schedule counted its end as that of a step */
    uint8_t flags;           /* KP_OP_* of the record; STEP: KP_STEP_*, KP_OP_UNFINISHED */
    int64_t seq;             /* -1: none */
    uint64_t fwd_tid;        /* torch's logical id, 0: none */
    uint64_t handle;
    uint64_t step;         /* STEP: number */
    const uint8_t *inputs; /* kp_inputs.h, or NULL */
    uint32_t inputs_bytes, inputs_count;
    uint32_t stack;      /* innermost Python frame, for kp_reader_frame, or 0 */
    const char *modules; /* of TorchScript, joined as torch.profiler does, or NULL. Lives as long as the reader */
    uint32_t native;     /* innermost frame of machine code, for kp_reader_native, or 0 */
    const struct kp_comms *comms; /* of record_param_comms, or NULL */
    /* API. `flags` has KP_DEV_*. The walk gives a call at its middle. */
    uint64_t middle_ns;
    uint32_t correlation, cbid;
    int32_t result;
    /* NVTX */
    uint8_t nvtx;       /* KP_NVTX_* */
    const char *domain; /* NULL: the default domain */
    uint64_t nvtx_id;
    /*
     * PYCALL. `name` is the function, `overload` where it was called, and `flags` has KP_PY_*. For a MODULE: the
     * object and its class. KP_PY_FURTHER: a further part of a call that a range crosses (decisions/131).
     */
    uint64_t call_end_ns; /* when the call ends: a part of it may end before */
    uint64_t module_self, module_type;
    const char *module_key; /* its key in the module around it, up to a tab; NULL: not known */
    /* SYMBOL. `name` is the function as the linker calls it, `overload` the object that has it. */
    /* MEMORY. `flags` has KP_MEMORY_*. Device -1 is the CPU. */
    uint64_t address, allocated, reserved;
    int64_t bytes;
    uint8_t device_type;
    int8_t device;
};

/* Work of a GPU, a wait for it, or CUPTI's own time. Valid during the callback only, the name as long as the reader. */
enum { KP_TIME_OK, KP_TIME_NONE, KP_TIME_INVALID };
struct kp_device_event {
    enum kp_kind kind;   /* KERNEL, MEMCPY, MEMSET, SYNC, CUDAEVENT, OVERHEAD, GRAPHRUN */
    uint8_t time_status; /* KP_TIME_OK, KP_TIME_NONE (it never ended) or KP_TIME_INVALID (impossible times) */
    const char *name;    /* of a kernel, as recorded */
    uint64_t start_ns, end_ns;
    uint64_t raw_start, raw_end; /* before mapping: two ranges of one clock keep their order */
    union {
        struct kp_rec head;
        struct kp_rec_kernel kernel;
        struct kp_rec_copy copy;
        struct kp_rec_sync sync;
        struct kp_rec_cudaevent event;
        struct kp_rec_overhead overhead;
        struct kp_rec_graphrun run;
    } of;
};

/* Returning non-zero stops the walk and becomes its result. */
typedef int (*kp_event_fn)(void *context, const struct kp_event *event);
typedef int (*kp_device_fn)(void *context, const struct kp_device_event *event);
typedef int (*kp_thread_fn)(void *context, uint32_t tid, uint32_t thread_no, const char *name);

/*
 * Opens a reader on an open file, which the caller closes. `path` is for messages. The file is mapped, so truncating
 * it ends this process with SIGBUS. The caller copies or refuses a file that other users may write to
 * (kp_filecheck.h). 0 or -errno: -EINVAL not a spool, -ENOTSUP a newer version, -ENODATA no chunk in it. `why` gets
 * one clear line.
 */
int kp_reader_open_fd(struct kp_reader **out, int fd, const char *path, char *why, size_t why_bytes);
/* The same of both halves of a spool; the half in memory is copied, so that changes to it do no harm. */
struct kp_reader_halves {
    int memory, disk; /* descriptors, which the caller closes; negative: not there */
    uint32_t cycle;   /* only this cycle will be asked for; 0: any */
};
int kp_reader_open_halves(struct kp_reader **out, const struct kp_reader_halves *halves, const char *path, char *why,
                          size_t why_bytes);
/* Opens the half in memory that the header of a file on a disk names. -ENOENT: there is none. Fills in its path. */
int kp_half_find(int disk, char *path, size_t bytes);
void kp_half_remove(int disk); /* removes that half, before the one on the disk: else kp_join_dead makes that again */
/*
 * Writes the half in memory of each process of this user that ended here without a word to the disk, and removes it.
 * Spools of this folder, an absolute path without links, and of `children` in it at once. Others after ten minutes,
 * since they take memory. Removes those whose folder is gone. Waits for disks. is_brief: looks at a few, of this
 * folder alone, for a program's exit.
 */
void kp_join_dead(const char *folder, bool is_brief);
/* The same of the spool whose half on the disk is open for writing. Its process is gone. 0 or -errno. */
int kp_join_half(int disk);
uint64_t kp_reader_last_ns(const struct kp_reader *reader); /* the last clock sample, in ns since the epoch; 0: none */
void kp_reader_close(struct kp_reader *reader);
const struct kp_file_head *kp_reader_head(const struct kp_reader *reader);
const char *kp_reader_text(const struct kp_reader *reader, const char *key); /* value of a header line, or NULL */
/* The header's "key=value" line after `previous` (NULL: its first line). NULL: no more. */
const char *kp_reader_line(const struct kp_reader *reader, const char *previous);
size_t kp_reader_cycles(const struct kp_reader *reader);
/* A worker's first thread in a cycle: how long it had or wanted a core, how long of that it had none. */
struct kp_busy {
    uint64_t ns, waited_ns, of_ns; /* of so long; 0: not known */
    bool is_wait_known;
};
struct kp_busy kp_reader_busy(struct kp_reader *reader, uint32_t cycle);
int kp_reader_cycle(const struct kp_reader *reader, size_t index, struct kp_cycle *out);
/* Names of the threads with events in a cycle. */
int kp_reader_threads(struct kp_reader *reader, uint32_t cycle, kp_thread_fn fn, void *context);
/*
 * Every event that started inside the cycle's window, with all threads merged by start time. So parents come before
 * their children, and forward ops before the backward ops they cause. Torn records are skipped and counted.
 */
int kp_reader_events(struct kp_reader *reader, uint32_t cycle, kp_event_fn fn, void *context);
/*
 * As kp_reader_events, with CUDA calls, NVTX ranges and allocations of tensors. A call comes at its middle, so after
 * the op that made it. Calls start inside the window, as ops do. *invalid (may be NULL) counts calls with impossible
 * times.
 */
int kp_reader_timeline(struct kp_reader *reader, uint32_t cycle, kp_event_fn fn, void *context, uint64_t *invalid);
/*
 * Every device record that may belong to a cycle, in the order of delivery. That includes records of the warm-up, and
 * late records in chunks of later cycles. The caller chooses as docs/internals/research/trace-format.md says.
 */
int kp_reader_device(struct kp_reader *reader, uint32_t cycle, kp_device_fn fn, void *context);
/* An allocation or free of a host thread (trace), or the sum of several (count). */
struct kp_heap_event {
    uint64_t start_ns;
    uint32_t thread_no; /* 0: not known */
    uint32_t stack;     /* innermost frame, for kp_reader_native. 0: lost */
    bool is_count, tells_live;
    uint8_t flags; /* KP_HEAP_* of one block */
    uint64_t address;
    /* blocks of the heap. In a trace one of the two is 1, unless the block is mapped or restored */
    uint64_t taken, given;
    uint64_t bytes; /* requested; 0 for a freed block, unless it is mapped */
    int64_t live;   /* count, with tells_live: the heap's growth */
};
struct kp_heap_walk;
/* Opens a walk over a cycle's heap events, with threads merged by time. 0 or -errno. Close it before its reader. */
int kp_reader_heap_open(struct kp_heap_walk **out, struct kp_reader *reader, uint32_t cycle);
bool kp_reader_heap_next(struct kp_heap_walk *walk, struct kp_heap_event *out); /* false: no more */
void kp_reader_heap_close(struct kp_heap_walk *walk);
bool kp_reader_has_device(const struct kp_reader *reader); /* the spool has records of GPUs */
uint32_t kp_reader_gpus(const struct kp_reader *reader);   /* highest device id + 1 */
const struct kp_rec_device *kp_reader_gpu(const struct kp_reader *reader, uint32_t id); /* NULL: not known */
int64_t kp_reader_context_device(const struct kp_reader *reader, uint32_t context);     /* -1: not known */
const char *kp_reader_name(const struct kp_reader *reader, uint32_t id);                /* "": no name */
/* A frame of a Python stack. *stack becomes its caller's, 0 after the outermost. NULL: none, or its text was lost. */
const char *kp_reader_frame(const struct kp_reader *reader, uint32_t *stack);
/* The line that stands in a stack's place where calls were recorded, "file.py:12"; NULL: it is a stack, or none. */
const char *kp_reader_call_line(const struct kp_reader *reader, uint32_t stack);
bool kp_reader_called_by_c(const struct kp_reader *reader,
                           uint32_t stack); /* the interpreter was entered for this frame */
/*
 * A frame of a machine code stack, as kp_reader_native gives it. The path lives as long as the reader. Frames of a
 * damaged file may form a circle, so the caller counts to KP_FRAMES_MAX.
 */
enum { KP_FRAMES_MAX = 1024 };
struct kp_frame {
    uint32_t module;               /* equal numbers are the same module at the same place; 0 without one */
    const char *path;              /* "" without a module: `offset` is the address in the process */
    char build_id[72];             /* hexadecimal, or "-" */
    uint64_t offset, base, lo, hi; /* the return address less base; the module's addresses */
};
struct kp_frame_at { /* the two fields of struct kp_frame that tell frames apart */
    uint32_t module;
    uint64_t offset;
};
/* Gets every frame of machine code, in the order of their ids. Non-zero stops the walk and becomes its result. */
typedef int (*kp_frame_fn)(void *context, uint32_t id, const struct kp_frame_at *frame);
int kp_reader_natives(const struct kp_reader *reader, kp_frame_fn fn, void *context);
bool kp_reader_native(const struct kp_reader *reader, uint32_t *stack, struct kp_frame *out);
/* As kp_reader_native, without what a text of the spool says of the module: much faster. */
bool kp_reader_native_at(const struct kp_reader *reader, uint32_t *stack, struct kp_frame_at *out);
/* The Python stack that a block's stack has beside its machine code (kp_heap.h), and *stack becomes that machine code.
 * 0: none, and *stack stays. */
uint32_t kp_reader_python_beside(const struct kp_reader *reader, uint32_t *stack);
uint64_t kp_reader_skipped(const struct kp_reader *reader);
void kp_reader_skipped_set(struct kp_reader *reader, uint64_t skipped); /* restores an earlier count */
