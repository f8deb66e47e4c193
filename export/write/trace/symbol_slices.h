// SPDX-License-Identifier: Apache-2.0
/* symbol_slices.h - calls of functions by name (KPROF_SYMBOLS) in a trace */
#pragma once

#include "export/write/out/trace.h"

struct kp_named;
/* *out stays NULL when the spool has no calls by name. 0 or -ENOMEM. */
int kp_named_open(struct kp_named **out, struct kp_trace *t);
void kp_named_close(struct kp_named *n);
/* Takes every other slice of a thread's row, in order of start, so that calls nest in it. 0 or -ENOMEM. */
int kp_named_around(struct kp_named *n, const struct kp_event *e);
int kp_named_write(struct kp_named *n, const struct kp_event *e); /* 0 or -errno */
void kp_named_rows_write(struct kp_named *n);                     /* names of the rows beside the threads' own rows */
