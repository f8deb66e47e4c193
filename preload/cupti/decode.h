// SPDX-License-Identifier: Apache-2.0
/*
 * decode.h - bytes of CUPTI's activity records -> records of kp_device.h: pure, no state, no call
 */
#ifndef KP_CUPTI_DECODE_H
#define KP_CUPTI_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/format/kp_device.h"

/* CUPTI's numbers of activity kinds: the same in every release. */
enum kp_cupti_kind {
    KP_CUPTI_MEMCPY = 1,
    KP_CUPTI_MEMSET = 2,
    KP_CUPTI_KERNEL = 3,
    KP_CUPTI_DRIVER = 4,
    KP_CUPTI_RUNTIME = 5,
    KP_CUPTI_DEVICE = 8,
    KP_CUPTI_CONTEXT = 9,
    KP_CUPTI_CONCURRENT_KERNEL = 10,
    KP_CUPTI_OVERHEAD = 17,
    KP_CUPTI_MEMCPY2 = 22,
    KP_CUPTI_CUDA_EVENT = 36,
    KP_CUPTI_STREAM = 37,
    KP_CUPTI_SYNCHRONIZATION = 38,
    KP_CUPTI_EXTERNAL_CORRELATION = 39,
    KP_CUPTI_GRAPH_TRACE = 51,
    KP_CUPTI_KINDS = 64, /* the highest known is 59 */
};

enum {
#define KP_FIELD(kind, field, offset, bytes, needs) \
    KP_AT_##kind##_##field = (offset), KP_BYTES_##kind##_##field = (bytes), KP_NEEDS_##kind##_##field = (needs),
#include "preload/cupti/layout.def"
#undef KP_FIELD
};

/* What one record turned into. head.kind 0: nothing that is kept. */
struct kp_decoded {
    union {
        struct kp_rec head;
        struct kp_rec_api api;
        struct kp_rec_kernel kernel;
        struct kp_rec_copy copy;
        struct kp_rec_sync sync;
        struct kp_rec_cudaevent event;
        struct kp_rec_overhead overhead;
        struct kp_rec_graphrun graphrun;
        struct kp_rec_context context;
        struct kp_rec_device device;
    };
    const char *name; /* text of a KERNEL or a DEVICE: belongs to CUPTI */
    bool is_invalid;  /* start 0 or end < start: CUPTI did not collect its times */
};

/*
 * One record of `bytes` bytes. Work whose times are no good has KP_DEV_NO_TIME and is worth keeping; a call, a wait or
 * an overhead is not (is_invalid without the flag). API: name and tid are left to the caller.
 */
void kp_decode_record(const uint8_t *record, uint32_t bytes, struct kp_decoded *out);

/*
 * The walk over a buffer: sizes[kind] as probed. kp_walk_next gives one record after another; zeroed holes are passed
 * over in steps of 8. NULL: the end. `lost`: bytes behind a kind nobody knows, or in a record that the end cuts off.
 */
struct kp_walk {
    const uint8_t *at, *end;
    const uint16_t *sizes; /* KP_CUPTI_KINDS of them */
    size_t lost, holes;
};
static inline uint32_t kp_walk_kind(const uint8_t *record)
{
    uint32_t kind;
    __builtin_memcpy(&kind, record, sizeof kind);
    return kind;
}
const uint8_t *kp_walk_next(struct kp_walk *walk, uint32_t *bytes);

#endif
