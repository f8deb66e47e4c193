// SPDX-License-Identifier: Apache-2.0
/* stepspans.h - the times of steps by their numbers, gathered while a trace is read, of which no event is kept */
#pragma once

#include "export/read/kineto/kineto.h"
#include "export/read/kineto/passends.h"
#include "export/read/tree/spans.h"

struct kp_stepmark {
    int64_t start_ns, end_ns;
    int64_t pid, tid; /* of the step of an optimizer that ends it; -1: the file has names instead */
    uint32_t name;
    long number; /* -1: a step of an optimizer */
};
struct kp_stepspans { /* all zero: empty */
    struct kp_stepmark *of;
    size_t count, capacity;
    bool has_steps;            /* the trace marks steps itself */
    bool are_marked;           /* it marks which ranges of optimizers ended one */
    struct kp_passends passes; /* of a trace in which nothing else ends them */
};
void kp_stepspans_see(struct kp_stepspans *steps, const struct kp_kineto *trace, const struct kp_kineto_event *event);
/*
 * Adds the times of steps A to B, with the numbers that every command shows: of ProfilerStep#N or, where the trace has
 * none, from an optimizer's step to its next (chosen.h). -ENOENT with a line in `why`: it has none of them.
 */
int kp_stepspans_cut(struct kp_stepspans *steps, const struct kp_kineto *trace, long first, long last,
                     struct kp_spans *out, char *why, size_t why_bytes);
void kp_stepspans_fini(struct kp_stepspans *steps);
