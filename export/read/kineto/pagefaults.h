// SPDX-License-Identifier: Apache-2.0
/* pagefaults.h - the page faults that the thread of the steps took in a trace's window, and what they cost */
#pragma once

#include <stdbool.h>

#include "export/read/kineto/kineto.h"

#define KP_PAGEFAULTS_MUCH 0.05 /* of a step: recording makes them fewer, decisions/118 */

struct kp_pagefaults {
    double minor, major; /* a step */
    double bare;         /* median of the steps before, in which nothing was recorded; 0: not known */
    double many;         /* the share of the steps that have many, 0 to 1 */
    double minor_ns;     /* what the minor ones cost a step, or a bare one if that is more; 0: not measured */
    double major_ns;     /* what the major ones cost a step at the least */
    bool is_memory_kept; /* the program runs with MALLOC_TRIM_THRESHOLD_ */
};

/* Whether they are a finding of kprof advise: the C library's, in most steps, or read from a disk. */
bool kp_pagefaults_are_found(const struct kp_pagefaults *faults, double step_ns);
/* False: the file has none. */
bool kp_pagefaults_of(const struct kp_kineto *trace, struct kp_pagefaults *out);
