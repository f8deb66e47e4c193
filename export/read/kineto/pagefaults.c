// SPDX-License-Identifier: Apache-2.0
/* pagefaults.c - the page faults that the thread of the steps took in a trace's window, and what they cost */
#include "export/read/kineto/pagefaults.h"

#include "export/read/kineto/kineto_facts.h"

enum { BARE_LEAST = 3 };
#define MANY 256          /* the least that a step has where it has many, in preload/procfacts/faultcount.c */
#define STEPS_LEAST 0.5   /* of the steps have many: else a few of them take what they keep */
#define MAJOR_NS 100000.0 /* an SSD reads a page in no less */

bool kp_pagefaults_of(const struct kp_kineto *trace, struct kp_pagefaults *out)
{
    const double steps = (double)kp_kineto_number(trace, "kprof.fault_steps");
    *out = (struct kp_pagefaults){0};
    if (!(steps > 0)) return false;
    out->minor = (double)kp_kineto_number(trace, "kprof.faults_minor") / steps;
    out->major = (double)kp_kineto_number(trace, "kprof.faults_major") / steps;
    out->many = (double)kp_kineto_number(trace, "kprof.fault_steps_many") / steps;
    if (kp_kineto_number(trace, "kprof.fault_steps_bare") >= BARE_LEAST)
        out->bare = (double)kp_kineto_number(trace, "kprof.faults_bare");
    out->minor_ns =
        (out->bare > out->minor ? out->bare : out->minor) * (double)kp_kineto_number(trace, "kprof.fault_ns");
    out->major_ns = out->major * MAJOR_NS;
    out->is_memory_kept = kp_kineto_fact(trace, "kprof.malloc_trim_threshold") != NULL;
    return true;
}

bool kp_pagefaults_are_found(const struct kp_pagefaults *f, double step_ns)
{
    const bool are_read = f->major_ns > f->minor_ns;
    const double ns = are_read ? f->major_ns : f->minor_ns;
    if (!(step_ns > 0) || ns < KP_PAGEFAULTS_MUCH * step_ns || ns > step_ns) return false;
    return are_read || f->many >= STEPS_LEAST || f->bare >= MANY;
}
