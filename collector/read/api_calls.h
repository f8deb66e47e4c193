// SPDX-License-Identifier: Apache-2.0
/* api_calls.h - the CUDA calls of a cycle, in order of the middle of each call */
#pragma once

#include "collector/read/order.h"

struct kp_api_calls_run;
struct kp_api_calls_lead { /* a chunk with calls */
    uint64_t middle_ns;
    uint32_t piece;
    struct kp_api_calls_run *run; /* NULL: not opened yet */
};
struct kp_api_call {
    uint64_t middle_ns, start_ns, end_ns;
    struct kp_rec_api api; /* a copy */
};
struct kp_api_calls {
    struct kp_reader *r;
    struct kp_pieces pieces;
    struct kp_api_calls_lead *heap; /* earliest first */
    uint32_t n;
    struct kp_api_calls_run *unused;
    uint64_t begin_ns, end_ns; /* the window: calls that start outside are left out */
    uint64_t invalid;          /* calls with impossible times */
    struct kp_api_call call;   /* the current call, if n > 0 */
};

int kp_api_calls_init(struct kp_api_calls *c, struct kp_reader *r,
                      const struct kp_rec_cycle *cycle); /* 0 or -ENOMEM; anchor the clock map before */
int kp_api_calls_next(struct kp_api_calls *c);           /* moves on; 0 or -ENOMEM. The end is n == 0. */
void kp_api_calls_fini(struct kp_api_calls *c);
