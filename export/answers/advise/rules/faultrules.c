// SPDX-License-Identifier: Apache-2.0
/* faultrules.c - page faults: the C library gives memory back and takes it again, or memory is read from a disk */
#include "export/answers/advise/rules/rules.h"

#include "export/read/kineto/pagefaults.h"

static const char kept_change[] = "MALLOC_TRIM_THRESHOLD_ is set, so malloc may not be the cause: workers' batches in "
                                  "shared memory or mapped files can be. To find out: perf record -e page-faults -g.";
static const char keep_change[] = "Start the program with MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=-1, so that malloc "
                                  "keeps its memory, or with tcmalloc (LD_PRELOAD=libtcmalloc_minimal.so.4). kprof "
                                  "itself reduces page faults, so measure the effect without kprof.";
static const char read_change[] = "Memory is short, or mapped files are not in memory: see vmstat 1 (si, bi). Read "
                                  "such files earlier, or use less memory.";

void kp_rules_faults(struct kp_costrules *x)
{
    struct kp_pagefaults faults;
    struct kp_finding f = {.id = KP_FINDING_FAULTS};
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
        f.what = KP_TEXT("%.0f page faults per step read from a disk, at least 0.1 ms each", faults.major);
        f.change = read_change;
    } else {
        f.what =
            KP_TEXT("%.0f page faults per step%s: malloc returns large blocks to the kernel and requests them again",
                    is_of_bare ? faults.bare : faults.minor,
                    !is_of_bare ? "" : KP_TEXT(" without recording (%.0f while recording)", faults.minor));
        f.change = faults.is_memory_kept ? kept_change : keep_change;
    }
    f.is_critical = kp_advise_is_critical(&f, x->out->steps);
    kp_costrules_tell(x, &f);
}
