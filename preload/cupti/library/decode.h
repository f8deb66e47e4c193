// SPDX-License-Identifier: Apache-2.0
/*
 * decode.h - turns the bytes of CUPTI's activity records into records of kp_device.h; pure, without state or calls
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/format/kp_device.h"

enum kp_cupti_kind {
#define KP_CUPTI_KIND(name, number, decode, least, enable) KP_CUPTI_##name = (number),
#include "preload/cupti/cuptikind.def"
#undef KP_CUPTI_KIND
    KP_CUPTI_KINDS = 64, /* the highest known is 59 */
};

enum {
#define KP_FIELD(kind, field, offset, bytes, needs) \
    KP_AT_##kind##_##field = (offset), KP_BYTES_##kind##_##field = (bytes), KP_NEEDS_##kind##_##field = (needs),
#include "preload/cupti/library/layout.def"
#undef KP_FIELD
};

/* A decoded record. head.kind 0: drop it. */
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
    const char *name; /* of a KERNEL or a DEVICE; CUPTI's memory */
    bool is_invalid;  /* start 0 or end < start: CUPTI did not collect its times */
};

/*
 * Decodes one record of `bytes` bytes. Device work without valid times gets KP_DEV_NO_TIME and should be kept. A call,
 * wait or overhead without them gets is_invalid alone and should be dropped. For API the caller sets name and tid.
 */
void kp_decode_record(const uint8_t *record, uint32_t bytes, struct kp_decoded *out);

/*
 * A walk over the records of a buffer. kp_walk_next returns the next record, NULL at the end, and skips zeroed holes in
 * steps of 8 bytes. It stops at an unknown kind or a record that the end cuts off; `lost` counts the bytes from there.
 */
struct kp_walk {
    const uint8_t *at, *end;
    const uint16_t *sizes; /* bytes of a record by kind, KP_CUPTI_KINDS of them (probe.c) */
    size_t lost, holes;
};
static inline uint32_t kp_walk_kind(const uint8_t *record)
{
    uint32_t kind;
    __builtin_memcpy(&kind, record, sizeof kind);
    return kind;
}
const uint8_t *kp_walk_next(struct kp_walk *walk, uint32_t *bytes);
