// SPDX-License-Identifier: Apache-2.0
/* parts.h - the parts of a trace that the files of this folder write for each other */
#pragma once

#include "collector/base/kp_rank.h"
#include "collector/read/kp_read.h"
#include "export/write/out/json.h"
#include "export/write/out/trace.h"

void kp_head_write(struct kp_trace *t); /* all up to and with the metadata events */
int kp_tail_write(struct kp_trace *t);  /* span, instants, traceName; 0 or -ENOMEM */
struct kp_rank kp_rank_of_trace(const struct kp_trace *t);
const char *kp_phase_name(const struct kp_trace *t); /* of the window, NULL: in none */
/* Members of KPROF_METADATA and of kprof_metadata(), each as `  "key": value,\n`. */
void kp_metadata_write(struct kp_trace *t);
/* The user's trace_id, a JSON string with its quotes. NULL: none. */
const char *kp_metadata_trace_id(const struct kp_trace *t, size_t *bytes);
void kp_event_write(struct kp_trace *t, const struct kp_event *e);

/* memory_write.c: Writes an event of kind MEMORY, or nothing for a block that the window did not allocate. 0 or
 * -ENOMEM. */
int kp_memory_write(struct kp_trace *t, const struct kp_event *e);

/* input_args.c: Writes `,"Concrete Inputs":[..],"Input type":[..],"Input Strides":[..],"Input Dims":[..]` into an
 * args object that already has a member. Writes nothing for an event without inputs. */
void kp_inputs_write(struct kp_json *j, const struct kp_event *event);

/* symbol_slices.c: calls of functions by name (KPROF_SYMBOLS) in a trace */
struct kp_named;
/* *out stays NULL when the spool has no calls by name. 0 or -ENOMEM. */
int kp_named_open(struct kp_named **out, struct kp_trace *t);
void kp_named_close(struct kp_named *n);
/* Takes every other slice of a thread's row, in order of start, so that calls nest in it. 0 or -ENOMEM. */
int kp_named_around(struct kp_named *n, const struct kp_event *e);
int kp_named_write(struct kp_named *n, const struct kp_event *e); /* 0 or -errno */
void kp_named_rows_write(struct kp_named *n);                     /* names of the rows beside the threads' own rows */
