// SPDX-License-Identifier: Apache-2.0
/* parts.h - the parts of a trace that the files of this folder write for each other */
#pragma once

#include "collector/base/kp_rank.h"
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
