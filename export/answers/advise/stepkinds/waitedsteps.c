// SPDX-License-Identifier: Apache-2.0
/* waitedsteps.c - steps that last long because their thread had no core: told, and judged without that time */
#include "export/answers/advise/stepkinds/longsteps.h"

#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "export/read/facts/nocore.h"

#define EXPLAINS_SHARE 0.5 /* of what a step has more */
#define TOLD_SHARE 0.03    /* of all time, as a finding's */
#define TOLD_NS 50e6       /* of one step */

double *kp_waitedsteps_find(const struct kp_costrules *x)
{
    const struct kp_chosen *const c = x->chosen;
    double *const waits = kp_kineto_room(c->step_count + 1, sizeof *waits);
    kp_nocore_of_some(waits, x->tree, c->steps, c->step_count);
    for (size_t i = 0; i < c->step_count; i++) { /* an evaluation has its part of them */
        const double all_ns = (double)(c->steps[i].end_ns - c->steps[i].start_ns);
        waits[i] = all_ns > 0 ? waits[i] * (double)x->splits[i].step_ns / all_ns : 0;
    }
    return waits;
}

const char *kp_waitedsteps_beside(const struct kp_costrules *x, double wait_ns)
{
    return wait_ns >= 1e5 ? kp_costrules_text(x, " not counting %.1f ms without a CPU core", wait_ns / 1e6) : "";
}

/* Does that explain why the step is long? */
static bool is_explained(double more_ns, double wait_ns) { return more_ns > 0 && wait_ns >= EXPLAINS_SHARE * more_ns; }

/* `at`: the one that waited longest is the first. */
static const char *steps_text(const struct kp_costrules *x, const size_t *at, size_t count, const double *waits)
{
    const double ms = waits[at[0]] / 1e6;
    const long longest = x->chosen->steps[at[0]].number;
    if (count == 1)
        return kp_costrules_text(x, "step %ld was slow because it waited %.1f ms for a CPU core", longest, ms);
    return kp_costrules_text(x, "%s were slow because they waited for a CPU core, step %ld for %.1f ms",
                             kp_costrules_few(x, at, count), longest, ms);
}

KP_ORDER_BY(longest_first, double)

void kp_waitedsteps_tell(struct kp_costrules *x, double *waits, const double *more)
{
    const size_t steps = x->chosen->step_count;
    size_t count = 0, *at = kp_kineto_room(steps + 1, sizeof *at);
    double ns = 0;
    for (size_t i = 0; i < steps; i++) {
        if (!is_explained(more[i], waits[i])) continue;
        at[count++] = i;
        ns += waits[i];
    }
    qsort_r(at, count, sizeof *at, longest_first, waits);
    if (count && (ns >= TOLD_SHARE * x->out->step_ns * (double)steps || waits[at[0]] >= TOLD_NS)) {
        const char *const text = steps_text(x, at, count, waits);
        x->out->waited = x->out->waited ? kp_costrules_text(x, "%s; %s", text, x->out->waited) : text;
        x->out->waited_ns += ns / (double)steps;
    }
    free(at);
}
