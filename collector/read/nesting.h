// SPDX-License-Identifier: Apache-2.0
/* nesting.h - keeps events of a thread apart by a nanosecond where a coarse clock gives two of them one end */
#pragma once

#include <stdint.h>

enum { KP_NESTING_MAX = 64 }; /* events that are open within each other; deeper ones stay as they are */

struct kp_nesting_end {
    uint64_t ns, recorded_ns; /* what was given back, and what came */
};

struct kp_nesting {
    struct kp_nesting_end ends[KP_NESTING_MAX];
    uint64_t last_start_ns;
    uint32_t n;
};

/*
 * Takes the events of one thread in order of start, an outer one before its inner ones. An event that ends when the one
 * around it ends is given an end one nanosecond earlier. One that begins when the one before it ends begins one
 * nanosecond later. Others keep their times, also those that truly overlap.
 */
void kp_nesting_fit(struct kp_nesting *nesting, uint64_t *start_ns, uint64_t *end_ns);
