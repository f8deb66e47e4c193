// SPDX-License-Identifier: Apache-2.0
/*
 * sharedsteps.c - long steps that have the cause of another group, too: each 50th saves, and logs as each 10th
 *
 * A group's profile is the time that its steps have more, by op and by gap before an op. A long step of a rarer group
 * shares it where the step has most of that profile, and more beside. That part of the step is the other group's. One
 * that has nothing more is of that group.
 */
#include "export/answers/advise/stepkinds/longsteps.h"

#include <stdlib.h>

#define HAS_SHARE 0.7  /* of a profile: then the step has it */
#define REST_SHARE 0.2 /* of what the step has more: beside the profile, else it is of that group */
enum { LEAST = 3 };    /* steps of a group that others may share */

struct profile {
    struct kp_keyindex by[2]; /* of ops, of gaps before ops; rows: ns */
};

static void profile_add(struct profile *p, const struct kp_costrules *x, size_t step, double weight)
{
    for (int k = 0; k < 2; k++) kp_longsteps_places(&p->by[k], x, step, k, weight);
}

static void profile_fini(struct profile *p)
{
    for (int k = 0; k < 2; k++) kp_keyindex_fini(&p->by[k]);
}

/* Adds another profile, times `weight`. */
static void profile_mix(struct profile *p, const struct profile *other, double weight)
{
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < other->by[k].count; i++)
            *kp_keyindex_sum(&p->by[k], other->by[k].keys[i]) += weight * ((const double *)other->by[k].rows)[i];
}

/* The mean of the `size` steps of a group (0: of those that are not long). */
static struct profile group_profile(const struct kp_costrules *x, const struct kp_longsteps *l, size_t group,
                                    size_t size)
{
    struct profile p = {0};
    for (size_t i = 0; i < x->chosen->step_count; i++)
        if (l->group[i] == group) profile_add(&p, x, i, 1 / (double)size);
    return p;
}

/* The time that both have more. */
static double common_ns(const struct profile *p, struct profile *step)
{
    double ns = 0;
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < p->by[k].count; i++) {
            const double of = ((const double *)p->by[k].rows)[i],
                         has = *kp_keyindex_sum(&step->by[k], p->by[k].keys[i]);
            if (of > 0 && has > 0) ns += of < has ? of : has;
        }
    return ns;
}

/* Has each step of rarer groups this group's cause, too? Then it keeps the one of which it has most. `sizes`: steps of
 * each group. */
static void group_share(struct kp_longsteps *l, const struct kp_costrules *x, const struct profile *usual,
                        const size_t *sizes, size_t group)
{
    if (sizes[group] < LEAST) return;
    struct profile p = group_profile(x, l, group, sizes[group]);
    profile_mix(&p, usual, -1);
    const double profile_ns = common_ns(&p, &p); /* all that it has more */
    for (size_t i = 0; i < x->chosen->step_count; i++) {
        if (!l->group[i] || sizes[l->group[i]] >= sizes[group]) continue;
        struct profile step = {0};
        profile_add(&step, x, i, 1);
        profile_mix(&step, usual, -1);
        const double ns = common_ns(&p, &step);
        const bool has = ns >= HAS_SHARE * profile_ns && ns > l->shared[i];
        if (has && ns <= (1 - REST_SHARE) * l->more[i]) {
            l->shared[i] = ns;
            l->shared_with[i] = group;
        } else if (has) {
            l->group[i] = group;
            l->has_cause[i] = true;
        }
        profile_fini(&step);
    }
    profile_fini(&p);
}

void kp_sharedsteps_find(struct kp_longsteps *l, const struct kp_costrules *x)
{
    const size_t steps = x->chosen->step_count;
    l->shared = kp_kineto_zeros(steps + 1, sizeof *l->shared);
    l->shared_with = kp_kineto_zeros(steps + 1, sizeof *l->shared_with);
    if (l->groups < 2 || x->out->has_gpu) return;
    size_t *const sizes = kp_kineto_zeros(l->groups + 1, sizeof *sizes);
    for (size_t i = 0; i < steps; i++) sizes[l->group[i]]++;
    struct profile usual = group_profile(x, l, 0, sizes[0]);
    bool *const is_of_program = kp_kineto_zeros(l->groups + 1, sizeof *is_of_program);
    for (size_t i = 0; i < steps; i++) is_of_program[l->group[i]] |= l->group[i] && l->has_cause[i];
    for (size_t g = 1; g <= l->groups; g++)
        if (is_of_program[g]) group_share(l, x, &usual, sizes, g);
    free(is_of_program);
    free(sizes);
    profile_fini(&usual);
}
