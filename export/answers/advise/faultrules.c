// SPDX-License-Identifier: Apache-2.0
/* faultrules.c - page faults: the C library gives memory back and takes it again, or memory is read from a disk */
#include "export/answers/advise/faultrules.h"

#include "export/read/kineto/pagefaults.h"

static const char kept_change[] =
    "MALLOC_TRIM_THRESHOLD_ is set, so they may not be the C library's: batches in the shared memory of workers, files "
    "that are mapped. perf record -e page-faults -g tells who takes them.";
static const char keep_change[] =
    "Start the program with MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=-1: glibc then keeps what it has; or with "
    "tcmalloc (LD_PRELOAD=libtcmalloc_minimal.so.4). Recording lowers their number: time both without kprof.";
static const char read_change[] =
    "Memory is short, or files are mapped that are not in memory: see vmstat 1 (si, bi). Read such files before they "
    "are needed, or use less memory.";

void kp_rules_faults(struct kp_costrules *x)
{
    struct kp_pagefaults faults;
    struct kp_finding f = {.id = "page-faults"};
    const double step_ns = x->out->step_ns, steps = (double)x->out->steps;
    if (kp_costrules_find(x, "recompilation")) return; /* a compiler takes memory in these steps */
    if (x->out->has_gpu || !kp_pagefaults_of(x->tree->trace, &faults) || !(step_ns > 0)) return;
    const bool are_read = faults.major_ns > faults.minor_ns;
    f.step_ns = are_read ? faults.major_ns : faults.minor_ns;
    f.share = f.step_ns / step_ns;
    const bool is_of_bare = faults.bare > faults.minor;
    f.steps = (size_t)((are_read || is_of_bare ? 1 : faults.many) * steps + 0.5);
    if (!kp_pagefaults_are_found(&faults, step_ns)) return;
    if (are_read) {
        f.what =
            kp_costrules_text(x, "%.0f page faults a step read from a disk, 0.1 ms each at the least", faults.major);
        f.change = read_change;
    } else {
        f.what = kp_costrules_text(
            x,
            "%.0f page faults a step%s: the C library gives large blocks back to the system and "
            "takes them again",
            is_of_bare ? faults.bare : faults.minor,
            !is_of_bare ? "" : kp_costrules_text(x, " while nothing was recorded (%.0f in these)", faults.minor));
        f.change = faults.is_memory_kept ? kept_change : keep_change;
    }
    f.is_critical = kp_advise_is_critical(&f, x->out->steps);
    kp_costrules_tell(x, &f);
}
