// SPDX-License-Identifier: Apache-2.0
/*
 * loadcore.c - takes the time in which its thread had no core out of what the loading of data costs, or the time
 * without an op
 *
 * The kernel counts that for a step, and no trace tells in which part of it. A thread that sleeps wants no core, so the
 * parts in which it is awake have the wait by their length. It sleeps in such a part as long as in the whole window, at
 * most. If that is not known, it may sleep in all of the part, and nothing is taken out.
 */
#include "export/answers/advise/rules/load/loadwaits.h"

#include <math.h>
#include <stdlib.h>

#include "export/answers/advise/stepkinds/longsteps.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/answers/top/timeshares.h"

#define LOADS_SHARE 0.1 /* of the mean: a step loads something */

/* Are these all the steps of the window? A window without a schedule says no number. One that counts the step in which
 * the program starts does so in its number alone: the times of its thread begin behind it. */
static bool are_all(const struct kp_costrules *x, const struct kp_chosen *chosen)
{
    const double said = kp_costrules_fact(x, "kprof.steps");
    struct kp_chosen all;
    char why[256];
    if (said > 0) return said == (double)(chosen->step_count + chosen->parts.has_startup);
    const bool are_same = kp_chosen_all(&all, x->tree, why, sizeof why) == 0 && all.step_count == chosen->step_count;
    kp_chosen_fini(&all);
    return are_same;
}

double kp_loadcore_asleep_ns(const struct kp_costrules *x)
{
    const struct kp_chosen *const chosen = x->whole ? x->whole->chosen : x->chosen;
    const double had_us = kp_costrules_fact(x, "kprof.core_had_us"),
                 waited_us = kp_costrules_fact(x, "kprof.core_waited_us");
    if (!(had_us > 0) || chosen->ended_by == KP_STEPENDS_PASS || !are_all(x, chosen)) return -1;
    return fmax(0, kp_chosen_steps_ns(chosen) - 1e3 * (had_us + waited_us));
}

double kp_loadcore_awake_share(const struct kp_costrules *x, enum kp_split_part part)
{
    const struct kp_costrules *const of = x->whole ? x->whole : x;
    const double asleep = kp_loadcore_asleep_ns(x);
    double sum = 0;
    for (size_t i = 0; i < of->chosen->step_count; i++) sum += (double)of->splits[i].part_ns[part];
    return asleep >= 0 && asleep < sum ? 1 - asleep / sum : 0;
}

/* By step, ns. A trace that names no steps has the wait of all of them: by their length. */
static double *waits_of(const struct kp_costrules *x)
{
    double *const waits = kp_waitedsteps_find(x);
    const double share = kp_summary_core_waited(x->tree->trace);
    for (size_t i = 0; i < x->out->steps && !kp_kineto_fact(x->tree->trace, KP_FACT_CORE_STEPS); i++)
        waits[i] = share * (double)x->splits[i].step_ns;
    return waits;
}

static size_t loading_count(const struct kp_step_split *splits, size_t count)
{
    double sum = 0;
    size_t loading = 0;
    for (size_t i = 0; i < count; i++) sum += (double)splits[i].part_ns[KP_SPLIT_LOADING];
    for (size_t i = 0; i < count; i++)
        loading += (double)splits[i].part_ns[KP_SPLIT_LOADING] > LOADS_SHARE * sum / (double)count;
    return loading;
}

struct kp_step_split *kp_loadcore_splits(const struct kp_costrules *rules, const struct kp_step_split *splits,
                                         enum kp_split_part part, struct kp_loadcore *out)
{
    struct kp_costrules of = *rules;
    of.splits = splits;
    const double awake = kp_loadcore_awake_share(rules, part), steps = (double)rules->out->steps;
    double *const waits = waits_of(&of);
    struct kp_step_split *const rest = kp_kineto_room(rules->out->steps + 1, sizeof *rest);
    *out = (struct kp_loadcore){0};
    for (size_t i = 0; i < rules->out->steps; i++) {
        const double of_part = (double)splits[i].part_ns[part], step = (double)splits[i].step_ns;
        const double wanted = step - (1 - awake) * of_part, all = waits[i] < wanted ? waits[i] : wanted;
        const double without = wanted > 0 ? all * awake * of_part / wanted : 0;
        rest[i] = splits[i];
        if (!(awake > 0)) continue;
        rest[i].part_ns[part] -= (int64_t)without;
        rest[i].step_ns -= (int64_t)all;
        out->load_ns += without / steps;
        out->step_ns += all / steps;
    }
    out->loading_steps = loading_count(rest, rules->out->steps);
    free(waits);
    return rest;
}
