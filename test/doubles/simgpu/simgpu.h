// SPDX-License-Identifier: Apache-2.0
/*
 * simgpu.h - the simulated GPU: what its three libraries agree on
 *
 *   libcudart.so.N  (cudart/)        names of kernels, runtime API      --+
 *   libcuda.so.1    (core/, cuda/)   devices, streams, time               |-- simgpu_core(): one table, from
 *                   libcuda.so.1
 *   libcupti.so.N   (cupti/)         records of what the core reports   --+
 *
 * The core lives in libcuda.so.1, one per process. The others find it as the real ones do: dlopen("libcuda.so.1") when
 * it is first needed (cudart) or dlopen with RTLD_NOLOAD first (cupti), then dlsym("simgpu_core")(). They never link
 * it.
 *
 * Time. Host times are CLOCK_MONOTONIC ns. The device has a clock of its own: device = host * (1 + drift) + offset.
 * Work enqueued at host time t on a stream starts at max(t + latency, end of what is before it, what it waits for, a
 * free engine) and lasts as its rule says: all known at once, so nothing "runs"; only synchronising calls really wait.
 *
 * Settings are environment variables, read at the first call; core/settings.c has the list with its defaults. What
 * there is:
 * SIMGPU_DEVICES, _MEMORY_MB, _DRIVER_VERSION; the clocks _OFFSET_NS, _DRIFT_PPM; how long work takes: _LATENCY_NS,
 * _KERNEL_NS, _BLOCK_NS, _RULES="part of a name=ns;...", _COPY_GBS, _KERNEL_SLOTS, _JITTER_PERCENT and _SEED; trouble:
 * _FAIL=<call, or "kernel" for an asynchronous error>:<n>[:<error>],..., _HANG=<n-th kernel never ends>, _STUB=1
 * (cuInit answers 34), _NO_DEVICE=1 (100); what is told: _LOG=<file of ground truth, JSON lines>, _LOG_CALLS=1,
 * _NESTED_DRIVER=1. SIMCUPTI_* are cupti's.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum simgpu_domain { SIMGPU_DRIVER = 1, SIMGPU_RUNTIME = 2 }; /* CUPTI's callback domains */

/* One call of an API. cudart's call and the cu* call inside it share the correlation. */
struct simgpu_call {
    enum simgpu_domain domain;
    uint32_t cbid;      /* CUPTI's number: cbids.def has those that matter, others get their header's number */
    const char *name;   /* "cudaLaunchKernel_v7000" as cuptiGetCallbackName tells it */
    const void *params; /* the <fn>_params struct of CUPTI's callbacks, or NULL */
    const char *symbol; /* mangled kernel name of launches, or NULL */
    uint32_t correlation;
    uint64_t enter_ns, exit_ns; /* host; exit set when it returns */
    int result;          /* set by call_enter already when the call must fail (an injected error); then by call_exit */
    void *observer_data; /* the observer's, from enter to exit */
};

enum simgpu_kind {
    SIMGPU_KERNEL,
    SIMGPU_MEMCPY,
    SIMGPU_MEMSET,
    SIMGPU_HOST_FUNCTION,
    SIMGPU_EVENT_RECORD,
    SIMGPU_EVENT_WAIT
};

/* A piece of work in a stream. Lives until its observer was told that it is done (and at least until its end). */
struct simgpu_work {
    enum simgpu_kind kind;
    uint32_t device, context, stream; /* CUPTI's numbers */
    uint32_t correlation;
    uint64_t start_ns, end_ns; /* host clock, decided at enqueue; UINT64_MAX: never */
    const char *name;          /* KERNEL: mangled; lives as long as the process */
    uint32_t grid[3], block[3], cluster[3];
    uint32_t static_smem, dynamic_smem, registers, local_per_thread;
    int32_t priority;
    uint64_t graph_node; /* 0: not of a graph */
    uint32_t graph;      /* the executable graph; source_*: the template it was made from */
    uint32_t source_graph;
    uint64_t source_graph_node;
    uint64_t graph_launch; /* which launch of it (1, 2, ...); the last node of a launch has is_graph_last */
    bool is_graph_last;
    uint64_t bytes;                                  /* MEMCPY, MEMSET */
    uint8_t copy_kind, src_kind, dst_kind, is_async; /* CUPTI's numbers */
    uint32_t value;                                  /* MEMSET */
    uint32_t peer_src_device, peer_dst_device, peer_src_context, peer_dst_context;
    bool is_peer;
    uint32_t event;      /* EVENT_*: CUPTI's event id */
    uint64_t event_sync; /* which recording of it */
    void *observer_data;
};

/* a finished wait of the host (types 1, 3, 4), a stream that waits for an event (2), a query (1, 3) */
struct simgpu_sync {
    uint32_t type; /* CUPTI's: 1 event, 2 stream waits for event, 3 stream, 4 context */
    bool is_query;
    int result;                                   /* of a query: 0, or 600: not ready */
    uint32_t context, stream, event, correlation; /* 0xffffffff: not applicable */
    uint64_t event_sync, start_ns, end_ns;
};

struct simgpu_alloc {
    bool is_free;
    uint8_t kind; /* CUPTI's memory kind */
    uint64_t address, bytes, host_ns;
    uint32_t device, context, stream, correlation;
};

/* What cupti is told. All but work_done on the calling host thread, with no lock of the core held. */
struct simgpu_observer {
    void (*enter)(struct simgpu_call *call);
    void (*exit)(struct simgpu_call *call);
    void (*work_enqueued)(struct simgpu_work *work); /* between enter and exit of its call */
    void (*work_done)(struct simgpu_work *work);     /* once, on the core's own thread, after its end passed */
    void (*synced)(const struct simgpu_sync *sync);
    void (*allocated)(const struct simgpu_alloc *alloc);
    void (*context_made)(uint32_t context, uint32_t device, uint32_t null_stream);
    void (*stream_made)(uint32_t context, uint32_t stream, int32_t priority, uint32_t flag);
    void (*process_exit)(void);
};

struct simgpu_device {
    char name[96];
    uint8_t uuid[16];
    uint32_t major, minor, sms, warp_size, max_threads_per_block, max_threads_per_sm, max_blocks_per_sm;
    uint32_t regs_per_block, regs_per_sm, smem_per_block, smem_per_block_optin, smem_per_sm, l2_bytes;
    uint32_t clock_khz, memory_clock_khz, memory_bus_bits, copy_engines;
    uint64_t total_memory, bandwidth_kb;
};

/* The table that libcuda.so.1 hands out. Pointers that are NULL are not there (an older core). */
struct simgpu_core {
    uint32_t size; /* of this struct */
    /* --- for cupti --- */
    void (*observe)(const struct simgpu_observer *observer); /* replaces the one before; NULL: nobody */
    bool (*is_initialised)(void); /* cuInit succeeded in this process (false again in a forked child) */
    int (*device_count)(void);
    const struct simgpu_device *(*device)(int index);
    uint64_t (*host_ns)(void);
    uint64_t (*device_ns)(uint64_t host_ns); /* the device's own clock at a host time */
    uint32_t (*context_of)(int device);      /* 0: not made yet */
    void (*each_context)(void (*fn)(void *, uint32_t context, uint32_t device, uint32_t null_stream), void *arg);
    void (*each_stream)(void (*fn)(void *, uint32_t context, uint32_t stream, int32_t priority), void *arg);
    uint64_t (*stream_id)(void *cuda_stream, uint32_t *context); /* CUPTI's number of a CUstream */
    /* --- for cudart: every call is bracketed --- */
    void (*call_enter)(struct simgpu_call *call); /* gives the correlation: a new one, or that of the call around it;
                                                     sets call->result when it must fail: then only call_exit follows */
    void (*call_exit)(struct simgpu_call *call, int result);
    /* Kernels by name: the CUfunction that libcuda knows for a mangled name (made at first sight). */
    void *(*function)(const char *mangled_name);
    /* --- for nccl --- */
    /* The next kernel that this thread launches takes these host times (end UINT64_MAX: never ends), its start no
     * earlier than its stream is free: a collective ends when its slowest rank says so. NULL: the core decides as
     * always. */
    void (*next_kernel)(uint64_t start_ns, uint64_t end_ns);
    const char *(*function_name)(const void *function); /* NULL: not a CUfunction or CUkernel of libcuda */
    void *(*current_context)(void);                     /* this thread's CUcontext, without a call of the API */
    int (*use_device)(int index); /* makes the primary context (if need be) and the thread's current one */
    int (*sticky_error)(void);    /* of the thread's context: 0, or what every call answers now */
    void (*note)(const char *what, const char *detail); /* a line of the ground truth */
    void (*calls_disturb)(void); /* each thread that is inside a call now keeps that call's correlation for good */
};

const struct simgpu_core *simgpu_core(void); /* exported by libcuda.so.1 */
