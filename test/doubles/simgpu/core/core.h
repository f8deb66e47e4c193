// SPDX-License-Identifier: Apache-2.0
/*
 * core.h - what the files of the simulated driver share: devices, contexts, streams, events, work
 *
 * One lock (sim_lock) for all state. It is never held while the host waits or an observer or host function is called.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "test/doubles/simgpu/core/settings.h"
#include "test/doubles/simgpu/simgpu.h"

#define SIM_NEVER UINT64_MAX
#define SIM_NOT_APPLICABLE 0xffffffffu
enum { SIM_MAX_DEVICES = 16, SIM_NULL_STREAM_ID = 7, SIM_FIRST_STREAM_ID = 13 };
enum { SIM_COPY_ENGINES = 3 }; /* to the device, from it, within it */
enum { SIM_MAGIC_STREAM = 0x5354524d, SIM_MAGIC_EVENT = 0x45564e54, SIM_MAGIC_CONTEXT = 0x43545854 };

/* Errors of both APIs that the core itself gives; the numbers are the same in both. */
enum {
    SIM_OK = 0,
    SIM_INVALID_VALUE = 1,
    SIM_OUT_OF_MEMORY = 2,
    SIM_NOT_INITIALIZED = 3,
    SIM_STUB_LIBRARY = 34,
    SIM_NO_DEVICE = 100,
    SIM_INVALID_DEVICE = 101,
    SIM_INVALID_IMAGE = 200,
    SIM_INVALID_CONTEXT = 201,
    SIM_PEER_ALREADY = 704,
    SIM_PEER_NOT_ENABLED = 705,
    SIM_ALREADY_MAPPED = 208,
    SIM_INVALID_HANDLE = 400,
    SIM_NOT_FOUND = 500,
    SIM_NOT_READY = 600,
    SIM_ILLEGAL_ADDRESS = 700,
    SIM_HOST_ALREADY_REGISTERED = 712,
    SIM_HOST_NOT_REGISTERED = 713,
    SIM_LAUNCH_FAILED = 719,
    SIM_NOT_SUPPORTED = 801,
    SIM_CAPTURE_UNSUPPORTED = 900,
    SIM_CAPTURE_INVALIDATED = 901,
    SIM_CAPTURE_UNMATCHED = 903,
    SIM_CAPTURE_UNJOINED = 904,
    SIM_CAPTURE_ISOLATION = 905,
    SIM_CAPTURED_EVENT = 907,
    SIM_CAPTURE_WRONG_THREAD = 908,
};

struct sim_capture;
struct sim_node;

/* A set of graph nodes: what the next node of a captured stream depends on. */
struct sim_nodes {
    struct sim_node **at;
    size_t count, room;
};

struct sim_context;

struct sim_stream {
    uint32_t magic, id;
    struct sim_context *context;
    int32_t priority;
    uint32_t flags;                     /* 1: does not wait for the null stream */
    uint64_t busy_until;                /* when all that was put in has ended */
    uint64_t host_asked, host_returned; /* host functions put in, and come back */
    struct sim_capture *capture;        /* being recorded into a graph */
    struct sim_nodes tail;
    struct sim_stream *next;
    uint64_t uid;
};

struct sim_event {
    uint32_t magic, id, flags; /* 1 blocking sync, 2 no timing, 4 interprocess */
    struct sim_context *context;
    struct sim_stream *stream; /* of the last recording */
    uint32_t stream_id;
    uint64_t time, sync_id;      /* when it is reached; 0: never recorded */
    uint64_t host_asked;         /* host functions of the stream that come before it */
    struct sim_capture *capture; /* recorded while its stream was captured */
    struct sim_nodes nodes;
};

struct sim_context {
    uint32_t magic, id;
    int device;
    bool is_primary, is_made;
    uint32_t flags, references;
    struct sim_stream null_stream, *streams;
    uint32_t next_stream_id, next_event_id;
    uint64_t next_sync_id;
    int error; /* asynchronous and sticky, seen from error_at on */
    uint64_t error_at;
    uint64_t limits[8];
    struct sim_context *next;
};

struct sim_device {
    struct simgpu_device facts;
    struct sim_context primary;
    uint64_t used_bytes;
    uint64_t copy_busy[SIM_COPY_ENGINES], kernel_busy[128];
    uint32_t peers; /* bit i: may reach device i */
};

enum { SIM_MAGIC_KERNEL = 0x4b45524e };
struct sim_kernel { /* CUfunction and CUkernel alike */
    uint32_t magic;
    const char *name;
    uint32_t registers, static_smem, local_bytes, max_threads, max_dynamic_smem;
    void *library;
    struct sim_kernel *next;
};

/* A copy or a fill of memory, done for real when its work is enqueued (kernels compute nothing). */
struct sim_data {
    void *dst;
    const void *src; /* NULL: fill with value */
    size_t width, height, dst_pitch, src_pitch;
    uint32_t value, value_bytes;
    size_t depth, dst_slice, src_slice; /* depth 0 is 1 */
};

/* What is put into a stream or a node of a graph. */
struct sim_op {
    struct simgpu_work work; /* ids and times are filled in when it is enqueued */
    struct sim_data data;
    void (*host_fn)(void *arg);
    void *host_arg;
    struct sim_event *event;
    bool is_external;     /* an event that is a node of its own in a graph */
    uint64_t duration_ns; /* 0: by the rules */
};

/* --- locks, state of the process (core.c) --- */
void sim_lock(void);
void sim_unlock(void);
int sim_init(void);       /* cuInit; 0 or its error */
int sim_init_state(void); /* 0, or why calls fail: not initialised, forked */
const struct simgpu_observer *sim_observer(void);
struct sim_device *sim_device_at(int index); /* NULL: no such device */
int sim_device_count(void);
extern const struct simgpu_core sim_core_table;

/* --- calls (call.c) --- */
void sim_call_enter(struct simgpu_call *call);
void sim_call_exit(struct simgpu_call *call, int result);
void sim_calls_disturb(void);
void sim_call_alias(uint32_t cbid);
uint32_t sim_correlation(void); /* of the call this thread is in */
const struct simgpu_call *sim_call_current(void);

/* --- faults (fault.c) --- */
int sim_fault_of_call(const char *name);   /* 0, or the error that this call must give */
int sim_fault_of_kernel(bool *is_hanging); /* counts kernels; error that the context falls into at its end */

/* --- time (clock.c) --- */
uint64_t sim_now(void);
uint64_t sim_device_ns(uint64_t host_ns);
void sim_sleep_until(uint64_t host_ns); /* SIM_NEVER: does not return */
uint64_t sim_duration(const struct sim_op *op, const struct simgpu_device *device);

/* --- contexts and streams (context.c, stream.c) --- */
struct sim_context *sim_context_current(void);
int sim_context_bind(struct sim_context *context); /* the top of this thread's stack becomes this one */
int sim_context_push(struct sim_context *context);
struct sim_context *sim_context_pop(void);
struct sim_context *sim_context_primary(int device); /* made if need be */
struct sim_context *sim_context_create(int device, uint32_t flags);
void sim_context_destroy(struct sim_context *context);
void sim_context_reset_primary(int device);
int sim_context_error(struct sim_context *context); /* 0 or the sticky error, once its time has come */
struct sim_context *sim_contexts(void);             /* all, linked; call with the lock held */
struct sim_stream *sim_stream_of(void *handle);     /* NULL, 1 and 2 stand for the default streams; NULL: invalid */
struct sim_stream *sim_stream_create(struct sim_context *context, uint32_t flags, int priority);
void sim_stream_destroy(struct sim_stream *stream);
uint64_t sim_stream_ready_ns(const struct sim_stream *stream); /* lock held: when all that it must follow has ended */
int sim_stream_synchronize(struct sim_stream *stream);
int sim_stream_query(struct sim_stream *stream);
int sim_context_synchronize(struct sim_context *context);
void sim_synced(uint32_t type, const struct sim_context *context, uint32_t stream, const struct sim_event *event,
                uint64_t start_ns);
void sim_queried(uint32_t type, const struct sim_context *context, uint32_t stream, const struct sim_event *event,
                 int result);

/* --- events (event.c) --- */
struct sim_event *sim_event_create(struct sim_context *context, uint32_t flags);
bool sim_event_is(const struct sim_event *event);
void sim_event_destroy(struct sim_event *event);
int sim_event_record(struct sim_event *event, struct sim_stream *stream, bool is_external);
int sim_event_wait(struct sim_stream *stream, struct sim_event *event, bool is_external);
int sim_event_query(struct sim_event *event);
int sim_event_synchronize(struct sim_event *event);
int sim_event_elapsed_ms(float *ms, struct sim_event *from, struct sim_event *to);

/* --- work (work.c, timeline.c) --- */
int sim_enqueue(struct sim_stream *stream, struct sim_op *op); /* captured instead when the stream is */
uint64_t sim_enqueue_now(struct sim_stream *stream, struct sim_op *op, uint64_t not_before_ns); /* returns its end */
void sim_next_kernel(uint64_t start_ns, uint64_t end_ns); /* see struct simgpu_core */
void sim_host_function_returned(struct sim_stream *stream);
void sim_data_apply(const struct sim_data *data);
struct sim_kernel *sim_kernel_of(const char *name);
void sim_timeline_add(uint64_t at_ns, void (*fn)(void *arg), void *arg, bool is_host_function);
void sim_timeline_after_fork(void);
void sim_host_functions_wait(struct sim_stream *stream, uint64_t ticket); /* until that many have returned */

/* --- capture (capture.c) --- */
int sim_capture_op(struct sim_stream *stream, const struct sim_op *op);
int sim_capture_implicit(
    const struct sim_stream *stream); /* lock held; 0, or the error of work in the null stream beside a capture */

/* --- ground truth (truth.c) --- */
void sim_truth_work(const struct simgpu_work *work);
void sim_truth_call(const struct simgpu_call *call);
void sim_truth_sync(const struct simgpu_sync *sync);
void sim_truth_alloc(const struct simgpu_alloc *alloc);
void sim_truth_note(const char *what, const char *detail);
