// SPDX-License-Identifier: Apache-2.0
/* kineto_torn.h - the end of a trace whose file ends early */
#pragma once

#include "export/read/kineto/kineto.h"

/* How much of a trace is there. */
struct kp_kineto_torn {
    int64_t span_ns; /* from the first event on so much of the host is known; is_known false: all is */
    bool is_known, has_cut;
    size_t whole; /* steps, from number `first` to `last` */
    long first, last, cut;
};
/* Shortens what goes on at the end of such a trace, and marks a step there as cut. */
void kp_kineto_end_torn(struct kp_kineto *trace, struct kp_kineto_torn *out);
