// SPDX-License-Identifier: Apache-2.0
/* tap.h - macros that make taps of the rows of runtime.def and driver.def; included by runtime.c and driver.c only */
#pragma once

#include "preload/cuda_hooks/cuda_hooks.h"

typedef struct kp_dim3 D3;
typedef unsigned int U;
typedef unsigned long long UL;

#define PER_THREAD ((void *)(uintptr_t)2)
#define OWN(stream) kp_tap_own(stream)
#define NO_STREAM ((void *)(uintptr_t)KP_DEV_NONE) /* no address, and no handle of CUDA's */
static inline void *kp_tap_own(void *stream) { return stream ? stream : PER_THREAD; }

/* CUPTI's numbers of copy kinds; 0: derived from the memory kinds of its two ends. */
enum { KIND_BY_PLACE = 0, KIND_HTOD = 1, KIND_DTOH = 2, KIND_DTOD = 8, KIND_HTOH = 9 };

#define NOTHING ((struct kp_work){.kind = 0})
#define LAUNCH(by, f, g, b, m) \
    ((struct kp_work){.kind = KP_KIND_KERNEL, .name_by = (by), .function = (f), .grid = (g), .block = (b), .smem = (m)})
#define LAUNCH_BY(by, f, c) ((c) ? LAUNCH(by, f, (c)->grid, (c)->block, (c)->smem) : NOTHING)
#define GRAPH ((struct kp_work){.kind = KP_KIND_GRAPHRUN})
#define COPY_AS(d, p, n, k, blocks)                     \
    ((struct kp_work){.kind = KP_KIND_MEMCPY,           \
                      .copy_kind = (uint8_t)KIND_OF(k), \
                      .is_async = !(blocks),            \
                      .is_blocking = (blocks),          \
                      .target = (d),                    \
                      .source = (p),                    \
                      .bytes = (n)})
#define COPY(d, p, n, k) COPY_AS(d, p, n, k, true)
#define COPY_ASYNC(d, p, n, k) COPY_AS(d, p, n, k, false)
#define FILL_AS(d, v, n, blocks) \
    ((struct kp_work){           \
        .kind = KP_KIND_MEMSET, .target = (d), .value = (uint32_t)(v), .bytes = (n), .is_async = !(blocks)})
#define FILL(d, v, n) FILL_AS(d, v, n, true)
#define FILL_ASYNC(d, v, n) FILL_AS(d, v, n, false)

/* Defines one tap. In every case it calls the real function once, with the host's arguments, and returns its result. */
#define KP_TAP_DEFINE(is_driver_, symbol, shown, cbid_, parameters, arguments, stream_, work_) \
    static int(*real_##symbol) parameters;                                                     \
    static int tap_##symbol parameters                                                         \
    {                                                                                          \
        static const struct kp_call_kind kind = {(shown), (cbid_), (is_driver_)};              \
        struct kp_hooked_call call;                                                            \
        if (!kp_call_begin(&call)) return real_##symbol arguments;                             \
        call.stream = (stream_);                                                               \
        call.work = work_;                                                                     \
        if (call.work.kind) kp_work_begin(&call);                                              \
        int result = real_##symbol arguments;                                                  \
        kp_call_end(&call, &kind, result);                                                     \
        return result;                                                                         \
    }
