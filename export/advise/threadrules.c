// SPDX-License-Identifier: Apache-2.0
/* threadrules.c - threads that take the cores from one another */
#include "export/advise/adviseparts.h"
#include "export/report/timeshares.h"

enum { THREADS_CRITICAL = 4 }; /* times as many as there should be: they come first */

long kp_rules_threads_wanted(const struct kp_costrules *x)
{
    if (x->out->has_gpu) return 0;
    return kp_summary_threads_wanted((long)kp_costrules_fact(x, "kprof.cores"),
                                     (long)kp_costrules_fact(x, "kprof.busy_threads"),
                                     (long)kp_costrules_fact(x, "kprof.omp_num_threads"),
                                     (long)kp_costrules_fact(x, "kprof.local_world_size"), false);
}

/* What it costs no trace tells: threads that wait for one another turn, or give their core away. */
void kp_rules_threads(struct kp_costrules *x)
{
    const long cores = (long)kp_costrules_fact(x, "kprof.cores"),
               busy = (long)kp_costrules_fact(x, "kprof.busy_threads");
    const long omp = (long)kp_costrules_fact(x, "kprof.omp_num_threads");
    const long ranks = (long)kp_costrules_fact(x, "kprof.local_world_size");
    const long wanted = kp_rules_threads_wanted(x), threads = busy > omp ? busy : omp;
    const char *of_ranks = ranks > 1 ? kp_costrules_text(x, " of each of %ld ranks", ranks) : "";
    const char *plural = cores == 1 ? "" : "s";
    if (!wanted) return;
    struct kp_finding f = {.id = KP_FINDING_THREADS, .steps = x->chosen->step_count};
    f.what = busy >= omp
                 ? kp_costrules_text(x, "%ld busy threads%s compute on %ld core%s, and take them from one another",
                                     busy, of_ranks, cores, plural)
                 : kp_costrules_text(x,
                                     "OMP_NUM_THREADS=%ld%s on %ld core%s (%ld busy threads): they take the "
                                     "cores from one another",
                                     omp, of_ranks, cores, plural, busy);
    const char *share = ranks > 1 ? ": the cores divided by the ranks" : "";
    if (kp_summary_threads_are_set(cores, omp, ranks))
        f.change = kp_costrules_text(
            x, "OMP_NUM_THREADS is %ld, so the program sets them: torch.set_num_threads(%ld)%s.", omp, wanted, share);
    else
        f.change =
            kp_costrules_text(x, "Set OMP_NUM_THREADS=%ld, or torch.set_num_threads(%ld)%s.", wanted, wanted, share);
    f.is_critical = threads >= THREADS_CRITICAL * wanted;
    kp_costrules_tell(x, &f);
}
