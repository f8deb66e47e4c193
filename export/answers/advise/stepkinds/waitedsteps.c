// SPDX-License-Identifier: Apache-2.0
/* waitedsteps.c - steps that last long because their thread had no core: told, and judged without that time */
#include "export/answers/advise/stepkinds/longsteps.h"

#include <stdlib.h>

#include "export/read/facts/steps/nocore.h"

#define LONG_MEDIANS 1.5   /* a long step */
#define EXPLAINS_SHARE 0.5 /* of what a step has more */
#define TOLD_SHARE 0.03    /* of all time, as a finding's */
#define TOLD_NS 50e6       /* of one step */
#define BUSIER_SHARE 0.1   /* of a step: so much more it waits in the end than at first */
#define BUSIER_TIMES \
    1.1 /* the share of a step that it waits: longer steps wait longer on a machine as busy as before */

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
    struct kp_steptrend all;
    const size_t steps = x->chosen->step_count;
    double *const of = kp_kineto_room(steps + 1, sizeof *of);
    for (size_t i = 0; i < steps; i++) of[i] = (double)x->splits[i].step_ns;
    (void)kp_steptrend_find(&all, of, steps); /* their medians */
    free(of);
    return kp_costrules_is_crowded(x) && kp_steptrend_find(out, waits, steps) &&
           out->late_ns - out->early_ns >= BUSIER_SHARE * x->out->step_ns &&
           out->late_ns * all.early_ns >= BUSIER_TIMES * out->early_ns * all.late_ns;
}

/* `at`: the one that waited longest is the first. */
static const char *steps_text(const struct kp_costrules *x, const size_t *at, const struct kp_waited_steps *of)
{
    const double ms = of->some.most_ns / 1e6;
    if (of->count == 1) return KP_TEXT("step %ld was slow because it waited %.1f ms for a CPU core", of->longest, ms);
    return KP_TEXT("%s were slow because they waited for a CPU core, step %ld for %.1f ms",
                   kp_costrules_numbers(x, at, of->count, KP_NUMBERS_FEW, ","), of->longest, ms);
}

static void waits_tell(struct kp_costrules *x, const double *waits, const double *more)
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

struct waited {
    const double *of, *waits; /* by step: its length without the waits; these */
    const bool *is_prompt;
    double *more; /* how much longer a step is, where most of that is its wait; else 0 */
};

/* Compares some of the steps with each other: a wait like that of all makes none of them long. */
static size_t some_judge(const struct waited *w, size_t from, size_t end, double *room)
{
    size_t waited = 0;
    memcpy(room, w->waits + from, (end - from) * sizeof *room);
    const double usual = kp_quantile(room, end - from, 0.5);
    for (size_t i = from; i < end; i++) room[i - from] = w->of[i] + w->waits[i];
    const double median = kp_quantile(room, end - from, 0.5);
    for (size_t i = from; i < end; i++) {
        const double ns = w->of[i] + w->waits[i];
        const bool is_waits = w->waits[i] - usual >= EXPLAINS_SHARE * (ns - median) && !w->is_prompt[i];
        w->more[i] = is_waits && ns > LONG_MEDIANS * median ? ns - median : 0;
        waited += w->more[i] > 0;
    }
    return waited;
}

/* The thirds of steps that grow without their waits are judged each alone: of a step it is then no wait that it is
 * longer than the first ones. */
void kp_waitedsteps_judge(struct kp_costrules *x, const double *of, const double *waits, const bool *is_prompt)
{
    const size_t count = x->chosen->step_count;
    double *const room = kp_kineto_room(2 * count + 1, sizeof *room);
    const struct waited w = {of, waits, is_prompt, room + count};
    struct kp_steptrend trend;
    const size_t parts = kp_steptrend_find(&trend, of, count) ? 3 : 1;
    size_t waited = 0;
    for (size_t i = 0; i < parts; i++) waited += some_judge(&w, i * count / parts, (i + 1) * count / parts, room);
    for (size_t i = 0; i < count && 2 * waited <= count; i++) x->is_long[i] |= w.more[i] > 0; /* in its gaps */
    waits_tell(x, waits, w.more);
    free(room);
}
