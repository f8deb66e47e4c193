// SPDX-License-Identifier: Apache-2.0
/* waitedsteps.c - steps that last long because their thread had no core: told, and judged without that time */
#include "export/answers/advise/stepkinds/longsteps.h"

#include <stdlib.h>

#include "export/read/facts/nocore.h"

#define EXPLAINS_SHARE 0.5 /* of what a step has more */
#define TOLD_SHARE 0.03    /* of all time, as a finding's */
#define TOLD_NS 50e6       /* of one step */
#define BUSIER_SHARE 0.1   /* of a step: so much more it waits in the end than at first */

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

bool kp_waitedsteps_grow(const struct kp_costrules *x, const double *waits, struct kp_steptrend *out)
{
    return kp_costrules_is_crowded(x) && kp_steptrend_find(out, waits, x->chosen->step_count) &&
           out->late_ns - out->early_ns >= BUSIER_SHARE * x->out->step_ns;
}

/* `at`: the one that waited longest is the first. */
static const char *steps_text(const struct kp_costrules *x, const size_t *at, const struct kp_waited_steps *of)
{
    const double ms = of->some.most_ns / 1e6;
    if (of->count == 1) return KP_TEXT("step %ld was slow because it waited %.1f ms for a CPU core", of->longest, ms);
    return KP_TEXT("%s were slow because they waited for a CPU core, step %ld for %.1f ms",
                   kp_costrules_numbers(x, at, of->count, KP_NUMBERS_FEW, ","), of->longest, ms);
}

void kp_waitedsteps_tell(struct kp_costrules *x, const double *waits, const double *more)
{
    const size_t steps = x->chosen->step_count;
    size_t count = 0, *at = kp_kineto_room(steps + 1, sizeof *at);
    for (size_t i = 0; i < steps; i++)
        if (more[i] > 0 && waits[i] >= EXPLAINS_SHARE * more[i]) at[count++] = i;
    struct kp_waited_steps of = kp_costrules_waited(x, at, count, waits);
    if (count && (of.some.all_ns >= TOLD_SHARE * x->out->step_ns * (double)steps || of.some.most_ns >= TOLD_NS)) {
        of.what = steps_text(x, at, &of);
        kp_advice_waited_add(x->out, &of);
    }
    free(at);
}
