// SPDX-License-Identifier: Apache-2.0
/*
 * evalpasses.c - how many forward passes ops without gradients are, by how often each runs
 *
 * A training step may hold several passes (accumulation, two towers, two models), so it is no unit. Each op of a model
 * runs as often in every pass. So the greatest common divisor of how often ops ran is how many passes they were, where
 * a model has ops that it runs differently often. One that runs all of its ops equally often does not tell passes from
 * layers: there a pass is what a training step has.
 */
#include "export/advise/evalsteps.h"

#define ONCE_LEAST 0.75 /* of the calls of a training step: attention without gradients runs fewer ops */
#define NAMES_SHARE 0.5 /* of the time of the ops that are looked at: those that run more often without gradients */

static size_t common(size_t a, size_t b)
{
    while (b) {
        const size_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Calls of one name without gradients, beyond the usual. */
static double calls_more(const struct kp_forward_names *names, size_t n, size_t step)
{
    const struct kp_forward_name *const f = &names->of[n];
    return (double)f->calls[step] - (step < names->steps ? f->usual : 0);
}

/* What most time says, where at least half of all the time has some; of[]: what each name says, in whole steps. */
static size_t steps_by_names(const struct kp_forward_names *names, size_t step, size_t of[KP_FORWARD_NAMES_MOST])
{
    int64_t all = 0, have = 0, most = 0, ns[KP_FORWARD_NAMES_MOST] = {0};
    size_t found = 0;
    for (size_t n = 0; n < names->count; n++) {
        of[n] = 0;
        if (names->of[n].a_step > 0) all += names->of[n].ns;
        const double a_step = names->of[n].a_step, of_name = a_step > 0 ? calls_more(names, n, step) / a_step : 0;
        if (of_name < ONCE_LEAST) continue;
        have += names->of[n].ns;
        of[n] = (size_t)(of_name + 0.5);
        for (size_t k = 0; k <= n; k++)
            if (of[k] == of[n]) ns[k] += names->of[n].ns;
    }
    for (size_t n = 0; n < names->count; n++) {
        if (!of[n] || ns[n] <= most) continue;
        most = ns[n];
        found = of[n];
    }
    return all && (double)have >= NAMES_SHARE * (double)all ? found : 0;
}

size_t kp_evalsteps_passes(const struct kp_forward_names *names, size_t step)
{
    size_t of[KP_FORWARD_NAMES_MOST], trained = 0, ran = 0;
    double first = 0;
    bool differ = false;
    const size_t steps = steps_by_names(names, step, of);
    for (size_t n = 0; steps && n < names->count; n++) {
        const struct kp_forward_name *const f = &names->of[n];
        if (of[n] != steps) continue;
        differ |= first > 0 && f->a_step != first;
        first = f->a_step;
        trained = common(trained, (size_t)f->a_step);
        ran = common(ran, (size_t)calls_more(names, n, step));
    }
    return differ && trained > 1 && ran > steps ? ran : steps;
}
