// SPDX-License-Identifier: Apache-2.0
/*
 * kp_device.h - a spool's records about GPUs: calls into CUDA, work on devices, waits, clocks, NVTX ranges
 *
 * These records lie in chunks of kind KP_CHUNK_DEVICE, written by lanes (kp_record.h) and not by host threads. They
 * arrive in any order, minutes late at worst. A lane's chunk has the number of the cycle that was current when its
 * records were decoded. So records that a cycle misses may lie in chunks of later cycles.
 *
 * Times are "device clock", the clock that CUPTI stamps with. DEVCLOCK records tie a domain of that clock to ticks.
 * With the flag KP_DEV_TICKS times are ticks of this spool. Both 0, or end 0: unknown to CUPTI (see KP_DEV_NO_TIME).
 */
#pragma once

#include <stdint.h>

#include "collector/format/kp_format.h"

/* flags of struct kp_rec in the records below */
enum {
    KP_DEV_TICKS = 1u << 0,   /* times are ticks: from the library's hooks, not from CUPTI */
    KP_DEV_EVENTS = 1u << 1,  /* KERNEL, MEMCPY, MEMSET: times were measured by CUDA events around the work */
    KP_DEV_DRIVER = 1u << 2,  /* API: a cu* call, not a cuda* call */
    KP_DEV_NO_TIME = 1u << 3, /* work that was launched but never seen to end: times mean nothing */
    KP_DEV_DOMAIN = 1u << 4,  /* domain & 1 of the times' clock domain: a change of CUPTI's clock flips it */
};
#define KP_DEV_NONE 0xffffffffu /* a stream or event that is not applicable, as CUPTI writes it */

/* KP_KIND_API: a call of the CUDA runtime or driver. Its head.name is the function without _vNNNN. */
struct kp_rec_api {
    struct kp_rec head;
    uint64_t start, end;
    uint32_t correlation; /* shared by a runtime call, the driver call inside it and the work they launch */
    uint32_t cbid;        /* CUPTI's number of the function; 0 when KP_DEV_TICKS and not known */
    uint32_t tid;         /* kernel tid, or 0 when only thread_id is known */
    uint32_t thread_id;   /* as CUPTI gives it (low half of pthread_self, or the tid) */
    int32_t result;
    uint32_t stream; /* KP_DEV_NONE with CUPTI, which does not tell it */
};

/* KP_KIND_KERNEL. Its head.name is mangled, as in the device code. */
struct kp_rec_kernel {
    struct kp_rec head;
    uint64_t start, end, queued;
    uint32_t correlation, device, context, stream;
    uint32_t grid[3], block[3];
    uint32_t static_smem, dynamic_smem;
    uint32_t local_per_thread, registers;
    uint64_t graph_node;
    uint32_t graph, channel;
    int32_t priority; /* only when has & KP_KERNEL_PRIORITY */
    uint8_t channel_type, launch_type, has, pad;
};
enum {
    KP_KERNEL_GRAPH = 1,
    KP_KERNEL_CHANNEL = 2,
    KP_KERNEL_PRIORITY = 4,
    KP_KERNEL_SHAPE = 8 /* grid, block, memory are known */
};

/* KP_KIND_MEMCPY, KP_KIND_MEMSET. */
struct kp_rec_copy {
    struct kp_rec head;
    uint64_t start, end, bytes;
    uint32_t correlation, device, context, stream;
    uint8_t kind, src_kind, dst_kind, is_async; /* CUPTI's numbers. In a MEMSET, dst_kind is the memory's */
    uint8_t channel_type, has, is_peer, pad;
    uint64_t graph_node;
    uint32_t graph, channel;
    uint32_t value;                                            /* MEMSET */
    uint32_t src_device, src_context, dst_device, dst_context; /* only when is_peer */
    uint32_t pad2;
};

/* KP_KIND_SYNC. */
struct kp_rec_sync {
    struct kp_rec head;
    uint64_t start, end;
    uint32_t correlation, type; /* 1 event, 2 stream waits for event, 3 stream, 4 context */
    uint32_t context, stream, event, result;
    uint64_t event_sync; /* equals kp_rec_cudaevent.event_sync, or 0 */
};

/* KP_KIND_CUDAEVENT: cudaEventRecord. */
struct kp_rec_cudaevent {
    struct kp_rec head;
    uint32_t correlation, context, stream, event;
    uint64_t event_sync, device_time; /* 0: not known */
};

/* KP_KIND_OVERHEAD: time CUPTI itself took. */
struct kp_rec_overhead {
    struct kp_rec head;
    uint64_t start, end;
    uint32_t type; /* CUPTI's overhead kind */
    uint32_t object, pid_or_device, tid_or_context;
    uint32_t correlation, pad;
};

/* KP_KIND_GRAPHRUN: a whole graph as one piece of work (only when another tool switched CUPTI to graph level). */
struct kp_rec_graphrun {
    struct kp_rec head;
    uint64_t start, end;
    uint32_t correlation, device, context, stream, graph, pad;
};

/*
 * KP_KIND_NVTX: a range or mark. It lies in the chunk of the thread that made it, put at its start. Times are ticks,
 * and head.name is its text.
 */
enum {
    KP_NVTX_RANGE = 0,
    KP_NVTX_MARK = 1,
    KP_NVTX_START = 2,
    KP_NVTX_END = 3
}; /* START and END pair by id, over threads */
struct kp_rec_nvtx {
    struct kp_rec head;
    uint64_t start;
    _Atomic uint64_t ticks; /* as in an op: 0 while open */
    uint64_t id;
    uint32_t domain; /* name id of the domain, 0 for the default domain */
    uint8_t type, pad[3];
};

/* --- META records --- */

/* KP_KIND_DEVCLOCK: device clock and ticks at the same time (best of several tries), within +-width ticks. */
struct kp_rec_devclock {
    struct kp_rec head;
    uint64_t ticks, device, width;
    uint32_t domain, pad; /* domain rises by 1 when CUPTI's clock changes */
};

/* KP_KIND_DEVICE: head.name is the device's name. A field of 0 is not known. */
struct kp_rec_device {
    struct kp_rec head;
    uint32_t id, major, minor, warp_size;
    uint64_t total_memory;
    uint32_t max_threads_per_block, max_threads_per_sm, regs_per_block, regs_per_sm;
    uint32_t smem_per_block, smem_per_block_optin, smem_per_sm, sms;
    uint32_t max_blocks_per_sm, max_warps_per_sm;
    uint32_t core_clock_khz, mig;
    uint64_t bandwidth_kb;
    uint8_t uuid[16];
};

/* KP_KIND_CONTEXT. */
struct kp_rec_context {
    struct kp_rec head;
    uint32_t context, device, null_stream, sms;
};

/* KP_KIND_THREADID: maps CUPTI's thread id (API.thread_id) to a tid, for calls decoded before the thread was known. */
struct kp_rec_threadid {
    struct kp_rec head;
    uint32_t thread_id, tid;
};
