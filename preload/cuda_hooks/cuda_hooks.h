// SPDX-License-Identifier: Apache-2.0
/*
 * cuda_hooks.h - shared by the files of preload/cuda_hooks, which record CUDA calls by taps where CUPTI is missing
 *
 *   runtime.def  driver.def   the tapped functions, a row each
 *   runtime.c    driver.c     the taps made of those rows
 *   call.c       begin and end of a call: its API record, its correlation id
 *   work.c       the device work of a call: an event before and one after it, until it is resolved
 *   resolve.c    the thread kprof-gpu: finds finished work and writes its records with times
 *   event_clock.c converts device time to ticks, by reference events whose host time is known
 *   kernels.c      names of kernels
 *   ids.c        numbers of streams and contexts
 *   cudart_find.c       finds libcudart and libcuda in the link map, and the functions that we call
 *   cuda_hooks_source.c     two sources: the runtime, the driver
 *
 * We call the driver, not the runtime: driver functions do not change the error that cudaGetLastError returns. If only
 * the runtime can answer (cudaFuncGetName), that error is checked before and restored after.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/base/kp_atomic.h"
#include "collector/format/kp_device.h"
#include "collector/record/kp_record.h"
#include "preload/hook/hook.h"

struct kp_dim3 {
    unsigned x, y, z;
};
struct kp_runtime_config { /* cudaLaunchConfig_t */
    struct kp_dim3 grid, block;
    size_t smem;
    void *stream, *attributes;
    unsigned attribute_count;
};
struct kp_driver_config { /* CUlaunchConfig */
    struct kp_dim3 grid, block;
    unsigned smem;
    void *stream, *attributes;
    unsigned attribute_count;
};

/* --- cudart_find.c: functions that we call; NULL if the library lacks one --- */

#define KP_DRIVER_CALLS(X)                                 \
    X(int, cuCtxGetCurrent, (void **))                     \
    X(int, cuCtxGetDevice, (int *))                        \
    X(int, cuCtxPushCurrent_v2, (void *))                  \
    X(int, cuCtxPopCurrent_v2, (void **))                  \
    X(int, cuStreamIsCapturing, (void *, int *))           \
    X(int, cuStreamCreate, (void **, unsigned))            \
    X(int, cuThreadExchangeStreamCaptureMode, (int *))     \
    X(int, cuEventCreate, (void **, unsigned))             \
    X(int, cuEventDestroy_v2, (void *))                    \
    X(int, cuEventRecord, (void *, void *))                \
    X(int, cuEventQuery, (void *))                         \
    X(int, cuEventElapsedTime, (float *, void *, void *))  \
    X(int, cuPointerGetAttribute, (void *, int, uint64_t)) \
    X(int, cuFuncGetName, (const char **, void *))         \
    X(int, cuFuncGetAttribute, (int *, int, void *))       \
    X(int, cuKernelGetFunction, (void **, void *))         \
    X(int, cuKernelGetName, (const char **, void *))       \
    X(int, cuDeviceGetName, (char *, int, int))            \
    X(int, cuDeviceGetAttribute, (int *, int, int))        \
    X(int, cuDeviceTotalMem_v2, (size_t *, int))
struct kp_cudrv {
#define KP_MEMBER(result, name, arguments) result(*name) arguments;
    KP_DRIVER_CALLS(KP_MEMBER)
    _Atomic bool is_filled, has_events; /* has_events: every function that timing needs was found */
};
extern struct kp_cudrv kp_cudrv;

#define KP_RUNTIME_CALLS(X)                                \
    X(int, cudaFuncGetName, (const char **, const void *)) \
    X(int, cudaGetFuncBySymbol, (void **, const void *))   \
    X(int, cudaPeekAtLastError, (void))                    \
    X(int, cudaStreamIsCapturing, (void *, int *))         \
    X(int, cudaGetLastError, (void))
struct kp_cudart {
    KP_RUNTIME_CALLS(KP_MEMBER)
#undef KP_MEMBER
};
extern struct kp_cudart kp_cudart;

/* Finds a mapped library by its stem ("libcudart", "libcuda"; not a toolkit's stub) and keeps a reference for ever.
 * NULL: none. Not in a hook. */
void *kp_cuda_hooks_library(const char *stem);
void kp_cuda_hooks_fill_runtime(void *library);
void kp_cuda_hooks_fill_driver(void *library);

/* --- call.c --- */

enum kp_name_by {
    KP_BY_FUNCTION,
    KP_BY_KERNEL,
    KP_BY_CUFUNCTION
}; /* host function, cudaKernel_t or CUkernel, CUfunction */

/* The device work of a call; kind 0: none. */
struct kp_work {
    uint8_t kind;     /* KP_KIND_KERNEL, MEMCPY, MEMSET, GRAPHRUN */
    bool is_blocking; /* the call returns when the work is done: no events around it */
    uint8_t copy_kind, name_by, is_async, is_peer;
    const void *function;           /* KERNEL */
    const struct kp_kernel *kernel; /* facts about it; NULL: none */
    struct kp_dim3 grid, block;
    uint64_t smem, bytes;
    const void *source, *target; /* of a copy, to find the kinds of memory */
    uint32_t value, source_device, target_device;
};

struct kp_item; /* work.c */
struct kp_hooked_call {
    struct kp_thread *thread; /* NULL: not recorded */
    uint64_t gate, start;
    uint32_t correlation;
    bool is_inner;        /* made inside another recorded call, which owns the work */
    bool is_capturing;    /* the stream is being captured: the work goes into a graph and does not run */
    void *stream;         /* in the driver's form */
    struct kp_item *item; /* events around the work; NULL: none */
    struct kp_work work;
};
struct kp_call_kind {
    const char *name;
    uint32_t cbid;
    bool is_driver;
};
/* false: the call is not recorded. After true kp_call_end must follow, on the same thread. */
bool kp_call_begin(struct kp_hooked_call *call);
void kp_call_end(struct kp_hooked_call *call, const struct kp_call_kind *kind, int result);
bool kp_call_seen(void);                      /* the host has called any tapped function */
extern _Atomic bool kp_call_any, kp_call_off; /* off: kprof_toggle, no call is recorded */

/* --- work.c --- */

/* These call the driver, so not in a hook. */
void kp_work_begin(struct kp_hooked_call *call);
void kp_work_end(struct kp_hooked_call *call, int result);
/* Inside a hook: writes the record without times if there are no events, else hands the item to the resolver. */
void kp_work_put(struct kp_hooked_call *call, struct kp_thread *lane, uint32_t name);

enum { KP_ITEM_FREE, KP_ITEM_TAKEN, KP_ITEM_READY };
struct kp_item {
    _Atomic uint32_t state; /* KP_ITEM_*. READY: it belongs to the resolver, which frees it */
    uint32_t cycle, bytes;
    struct kp_context *context; /* context of the events; NULL: no events yet */
    void *start, *end;          /* events */
    uint64_t ticks;             /* time right before the real call: the work cannot have started earlier */
    union {
        struct kp_rec head;
        struct kp_rec_kernel kernel;
        struct kp_rec_copy copy;
        struct kp_rec_graphrun run;
    } rec;
};
enum { KP_ITEMS = 8192 };
int kp_items_open(void);
extern struct kp_item *kp_items; /* an array of KP_ITEMS */

/* --- ids.c --- */

struct kp_base { /* a reference event: it happened at `ticks`, plus or minus `width` */
    void *event;
    uint64_t ticks, width;
};
enum { KP_CONTEXTS = 16, KP_BASES = 8 };
struct kp_context {
    _Atomic(void *) handle;
    uint32_t number;
    int device;
    _Atomic bool is_gone; /* the host reset it: its events are destroyed */
    /* used by the resolver only */
    bool is_told;
    void *stream;
    struct kp_base bases[KP_BASES];
    uint32_t base_count;
    uint64_t base_ticks;
};
extern struct kp_context kp_contexts[KP_CONTEXTS];
struct kp_context *kp_context_current(void); /* NULL: none is current, or the table is full */
/* Numbers like CUPTI's: 7 is the default stream, others from 13 on. KP_DEV_NONE: too many streams. */
uint32_t kp_stream_number(void *stream, uint32_t tid);

/* --- event_clock.c: called by the resolver --- */

/* Needs the context current. false: no reference event was made. */
bool kp_event_clock_make(struct kp_context *context);
/* *ticks: when the event happened. false: not known. */
bool kp_event_clock_ticks(struct kp_context *context, void *event, uint64_t not_before, uint64_t *ticks);
void kp_event_clock_sample(void); /* takes a sample to measure the length of a tick */

/* --- resolve.c --- */

int kp_resolve_start(void);
void kp_resolve_wake(void); /* a window opens: the resolver looks often from now on */
bool kp_resolve_is_drained(uint64_t end_ticks);
void kp_resolve_close(uint32_t cycle);
/* Before the host destroys contexts (cudaDeviceReset): waits, bounded, for the resolver, then forgets their events. */
void kp_contexts_forget(void);
extern _Atomic uint32_t kp_resolve_busy; /* 1: the resolver is calling CUDA; 2: it must not */

/* --- kernels.c --- */

struct kp_kernel {
    _Atomic(const void *) key;      /* host function, kernel handle or CUfunction */
    _Atomic(const char *) name;     /* NULL: not known yet */
    _Atomic(const void *) function; /* of a kernel handle: the host function it was made of */
    _Atomic bool is_known;          /* the facts below and the name are complete */
    uint32_t registers, static_smem, local;
};
/* Finds or makes the entry of a kernel. NULL: the table is full, or there is no memory for it. */
struct kp_kernel *kp_kernel_find(const void *key);
/* Asks CUDA for the name; not in a hook. Returns `room` with a made-up name if CUDA has none; NULL: no name. */
const char *kp_kernel_ask(struct kp_kernel *kernel, enum kp_name_by by, char *room, size_t room_bytes);
void kp_kernel_register(const void *function, const char *name); /* __cudaRegisterFunction */
void kp_kernel_link(const void *kernel, const void *function);   /* __cudaGetKernel */

/* --- cudart_find.c, for the next two --- */

/* Taps the rows that `library` has; they are never removed. `taps` has rows_n entries and must stay valid. Returns the
 * number of taps or -errno of kp_hook_add_taps. */
int kp_rows_tap(void *library, const struct kp_tap_row *rows, size_t rows_n, struct kp_tap *taps);

/* --- runtime.c, driver.c --- */

/* Install the taps that the library has. Return their number or -errno. */
int kp_runtime_tap(void *library);
int kp_runtime_tap_registration(void *library);
int kp_driver_tap(void *library);
