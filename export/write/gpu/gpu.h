// SPDX-License-Identifier: Apache-2.0
/*
 * gpu.h - the GPU side of a trace being written, shared by the files that write its parts
 *
 *   cuda_calls.c    calls into CUDA, in the walk of the host's events. Each is linked to the op around it.
 *   correlation.c   maps a correlation id to that op and its annotation
 *   activity.c      kernels, copies and fills, in a second walk, joined by correlation id
 *   cuda_sync.c     cuda_sync events, in a third walk when there are any
 *   streams.c       the streams seen: their rows, and the order of work on them
 *   collectives.c   arguments of collectives, on their op and on their kernels
 *   annotations.c   annotations that launched work, and its extent on each stream
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "export/write/names/demangle.h"
#include "export/write/out/scratch.h"
#include "export/write/out/slice.h"
#include "collector/format/kp_device.h"

/* ---- opstack.c: the ops of each thread that are open at the current time of a walk ---- */

struct kp_open_op {
    uint64_t start_ns, end_ns;
    uint32_t external;   /* External id of the innermost op, at or around this, that is no annotation; or 0 */
    uint32_t annotation; /* 1 + place in the stack of the innermost annotation, at or around this; or 0 */
    /* of an annotation */
    uint32_t own, note; /* its External id; its number among the notes, or 0 before it launched work */
    const char *name;   /* NULL: a step */
    uint64_t step;
};
struct kp_op_thread {
    uint32_t tid; /* 0: free place */
    uint32_t n, cap;
    bool is_named;        /* its row of the trace was written */
    uint64_t last_end_ns; /* of the op that was closed last */
    struct kp_open_op *of;
};
struct kp_opstack {
    struct kp_op_thread *threads; /* a hash table, at most half full */
    uint32_t n, cap;
};

/* made when missing, or NULL without memory */
struct kp_op_thread *kp_opstack_thread(struct kp_opstack *s, uint32_t tid);
void kp_opstack_close(struct kp_op_thread *thread, uint64_t now_ns); /* closes ops that ended by now_ns */
/* Opens an op behind those that are open. The caller fills in the rest. NULL: no memory. */
struct kp_open_op *kp_opstack_open(struct kp_op_thread *thread, uint64_t start_ns, uint64_t end_ns);
void kp_opstack_fini(struct kp_opstack *s);

/* ---- occupancy.c: blocks of a kernel on a multiprocessor, by CUDA's public rules ---- */

enum { KP_LIMIT_WARPS = 1, KP_LIMIT_REGS = 2, KP_LIMIT_SMEM = 4, KP_LIMIT_BLOCKS = 8 };
struct kp_occupancy {
    int32_t active;                                /* blocks on a multiprocessor: the least of the limits */
    int32_t by_regs, by_smem, by_warps, by_blocks; /* INT32_MAX: no limit */
    int32_t registers, smem;                       /* what a block gets */
    uint32_t limits;                               /* KP_LIMIT_*: those that bind */
    int32_t percent;                               /* est. achieved occupancy, as Kineto rounds it */
    float blocks_per_sm, warps_per_sm;             /* infinite when the device is not known */
};
void kp_occupancy_make(struct kp_occupancy *o, const struct kp_rec_device *device /* NULL: not known */,
                       const struct kp_rec_kernel *kernel);

/* --- correlation.c: one entry a correlation id, in pages of the scratch --- */

enum { KP_LINK_PAGE = 8192 /* entries: 64 KB */, KP_LINK_PAGES = 1 << 19 };
struct kp_link {
    uint32_t external : 31, is_there : 1; /* External id of the op, or 0; a call of this window has the id */
    uint32_t note : 31, has_arrow : 1;    /* number of the annotation, or 0; a call of the id begins an arrow */
};
struct kp_links {
    struct kp_link **pages; /* address space for all ids; memory for those seen */
    uint32_t last;          /* page of the last look-up */
};
struct kp_link *kp_links_make(struct kp_links *l, struct kp_scratch *scratch,
                              uint32_t correlation); /* NULL: no memory */
const struct kp_link *kp_links_get(struct kp_links *l, struct kp_scratch *scratch,
                                   uint32_t correlation); /* NULL: no call of this window */
void kp_links_fini(struct kp_links *l);

/* --- streams.c --- */

enum { KP_STREAMS = 8192, KP_GPU_ROWS = 256 /* devices that get rows of their own */ };
struct kp_stream {
    uint32_t device, stream;
    bool is_there, has_work, has_row, has_sync_row;
    uint8_t flags;            /* of the latest work's record */
    uint64_t raw_end, end_ns; /* of the latest work */
};
struct kp_gpu_context {
    uint32_t context, device;
};

/* --- annotations.c --- */

struct kp_annotation {       /* an annotation that launched work */
    uint32_t external, span; /* its External id; its first span, or 0 */
    const char *name;        /* NULL: a step */
    uint64_t step;
};
struct kp_span {
    uint64_t start_ns, end_ns;
    uint32_t device, stream, next, pad;
};

/* --- cuda_sync.c --- */

struct kp_event_record { /* a cudaEventRecord */
    uint32_t context, event, correlation, stream;
};

/* --- counts: what the trace says of each kind --- */

struct kp_gpu_count {
    uint64_t shown, outside, no_time, invalid;
};
struct kp_gpu {
    struct kp_scratch scratch;
    struct kp_opstack ops;
    struct kp_links links;
    struct kp_list notes, spans, records, comms;
    struct kp_demangle names;
    struct kp_gpu_count count[KP_KIND_N];
    uint64_t unlinked; /* calls and work without a link, for lack of memory */
    uint64_t syncs;    /* SYNC records seen in the second walk */
    uint64_t walked;
    bool has_overhead;
    bool has_process[KP_GPU_ROWS];
    struct kp_gpu_context contexts[256]; /* seen in work records, for contexts without a CONTEXT record */
    uint32_t contexts_n;
    struct kp_stream streams[KP_STREAMS]; /* a hash table */
    uint32_t streams_n;
    struct kp_shape *shapes; /* activity.c */
};

/* --- the walk of the host's events --- */
void kp_gpu_op(struct kp_trace *t, const struct kp_event *e,
               uint64_t external); /* an op, a step or an NVTX range begins */
void kp_call_write(struct kp_trace *t, const struct kp_event *e);
void kp_nvtx_write(struct kp_trace *t, const struct kp_event *e);
uint32_t kp_note_number(struct kp_gpu *g, struct kp_op_thread *thread); /* of the innermost annotation, or 0 */

/* --- the walks of the devices' records --- */
int kp_work_write(struct kp_trace *t); /* kernels, copies, fills, overhead; 0 or -errno */
void kp_waits_record(struct kp_gpu *g, const struct kp_rec_cudaevent *event);
int kp_waits_write(struct kp_trace *t);  /* cuda_sync, after all work; 0 or -errno */
void kp_notes_write(struct kp_trace *t); /* gpu_user_annotation */
void kp_note_extend(struct kp_gpu *g, uint32_t note, uint32_t device, uint32_t stream, uint64_t start_ns,
                    uint64_t end_ns);

struct kp_stream *kp_stream_get(struct kp_gpu *g, uint32_t device, uint32_t stream); /* NULL: too many */
/*
 * The start of work as shown. It is not before the end of the stream's work before it, unless the two overlapped.
 */
uint64_t kp_stream_follow(struct kp_stream *stream, const struct kp_device_event *e);
void kp_context_see(struct kp_gpu *g, uint32_t context, uint32_t device);
uint32_t kp_context_device(const struct kp_trace *t, uint32_t context);
void kp_rows_write(struct kp_trace *t);        /* process and thread rows of what was seen */
void kp_device_keys_write(struct kp_trace *t); /* deviceProperties and versions, among the keys at the top */
/* Whether a record belongs to this window. If not, it is counted. *link becomes the launching call's, or NULL. */
bool kp_work_belongs(struct kp_trace *t, const struct kp_device_event *e, uint32_t correlation,
                     const struct kp_link **link);
bool kp_gpu_has_counts(const struct kp_trace *t); /* GPU work, or some that is missing */
void kp_gpu_counts_write(struct kp_trace *t);     /* "kprof_gpu", behind the events */

int kp_gpu_open(struct kp_trace *t); /* 0 or -ENOMEM; t->gpu stays NULL when the spool has no GPU records */
void kp_gpu_close(struct kp_gpu *g);
