// SPDX-License-Identifier: Apache-2.0
/* slice.h - writes pieces that a trace's events share: a place and a time, an arrow's end, a row's name */
#pragma once

#include "export/write/out/trace.h"

/* Writes from the end of a name to the duration. tid may be any number. */
void kp_slice_place_write(struct kp_trace *t, uint64_t pid, int64_t tid, uint64_t start_ns, uint64_t end_ns);
/* Writes an end of an arrow, from a CUDA call ('s') to its work ('f'), say. `kind`: "ac2g". */
void kp_slice_arrow_write(struct kp_trace *t, char phase, const char *kind, uint64_t id, uint64_t pid, int64_t tid,
                          uint64_t start_ns);
/* Writes an M event on a row of any process. Its argument is a string or, when text is NULL, a number. */
void kp_row_write(struct kp_trace *t, const char *name, uint64_t pid, uint64_t tid, const char *arg, const char *text,
                  uint64_t number);
void kp_thread_row_write(struct kp_trace *t, uint32_t tid, const char *name);

/* ts of a time: relative to the base, never negative. kp_json_fmt writes it by %ju. */
static inline uint64_t kp_ts_of(const struct kp_trace *t, uint64_t ns) { return ns > t->base_ns ? ns - t->base_ns : 0; }
