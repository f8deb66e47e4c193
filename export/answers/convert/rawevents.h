// SPDX-License-Identifier: Apache-2.0
/*
 * rawevents.h - cuts the text of a trace into its events, one at a time, each with its fields as they are written
 *
 * Memory does not grow with the file: one event is held. Who calls it has read the text once by kp_kineto_read(), so
 * that it is known to be JSON. Text that is none gives no event or an error, and is never read beyond its end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/base/kp_jsonvalue.h"
#include "export/read/kineto/kineto.h"
#include "export/read/parse/kineto_parse.h"

enum kp_raw_key {
    KP_RAW_PH,
    KP_RAW_CAT,
    KP_RAW_NAME,
    KP_RAW_PID,
    KP_RAW_TID,
    KP_RAW_TS,
    KP_RAW_DUR,
    KP_RAW_ID,
    KP_RAW_ARGS,
    KP_RAW_KEYS
};
struct kp_raw_event {
    struct kp_jsonvalue whole;           /* from { to } */
    struct kp_jsonvalue of[KP_RAW_KEYS]; /* values as written, strings with their quotes */
    char phase;
    int64_t start_ns, end_ns; /* as the file counts time; end_ns is start_ns but for phase X */
};
/* A result other than 0 ends the reading and becomes its result. `rest` takes what stands before and after the events,
 * the brackets of their list among it; NULL: nobody wants it. */
typedef int (*kp_raw_fn)(void *context, const struct kp_raw_event *event);
struct kp_raw_calls {
    kp_raw_fn event;
    int (*rest)(void *context, const char *text, size_t bytes, bool is_before);
};
/* Returns 0 or -errno (-EINVAL: an event of more than 64 MB), with a line in `why`. */
int kp_raw_read(const struct kp_texts *texts, const struct kp_raw_calls *calls, void *context, char *why,
                size_t why_bytes);

/* Reads the text of one event. */
void kp_raw_parse(struct kp_raw_event *out, const char *text, size_t bytes);
