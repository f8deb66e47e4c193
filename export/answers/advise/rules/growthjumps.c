// SPDX-License-Identifier: Apache-2.0
/*
 * growthjumps.c - whether what grows does so in jumps that are equally far apart, as what a program keeps by plan
 *
 * A rise is what a look has above all looks before it. On a circle of N steps the rises of each Nth step lie at one
 * place, and others lie anywhere. So the length of their mean, as arrows from the centre, is 1 for jumps of each Nth
 * step, and about 0 for a growth of each step. A heap hands out what was freed before it grows, so a jump may show some
 * steps late: 0.8 is enough. Divisors of N have the same place, so the largest N counts that is better than those
 * beside it.
 */
#include "export/answers/advise/rules/growthjumps.h"

#include <math.h>
#include <stdlib.h>

#include "export/read/kineto/kineto.h"

enum { JUMPS_LEAST = 4, DISTANCE_LEAST = 4 };
#define TOGETHER_LEAST 0.8
#define CIRCLE 6.28318530717958648
#define CHANCE_MOST 0.25 /* that rises anywhere lie together so */

struct jumps { /* only looks that rise: the others have no arrow */
    double *steps, *rises, all, squares, span;
    size_t count;
};

/* The length of the mean arrow: 0 to 1. */
static double together(const struct jumps *j, long distance)
{
    double right = 0, up = 0;
    for (size_t i = 0; i < j->count; i++) {
        const double angle = CIRCLE * j->steps[i] / (double)distance;
        right += j->rises[i] * cos(angle);
        up += j->rises[i] * sin(angle);
    }
    return hypot(right, up) / j->all;
}

/* So many equal rises anywhere lie together so with this chance, at one of the distances that are tried (Rayleigh). */
static bool is_chance(const struct jumps *j, double length, long distances)
{
    const double rises = j->all * j->all / j->squares;
    return exp(-rises * length * length) * (double)distances > CHANCE_MOST;
}

static long distance_find(const struct jumps *j)
{
    const long most = (long)j->span / JUMPS_LEAST;
    double above = 0, length;
    for (long n = most; n >= DISTANCE_LEAST; n--, above = length) {
        length = together(j, n);
        if (length < TOGETHER_LEAST || length < above || together(j, n - 1) > length) continue;
        return is_chance(j, length, most - DISTANCE_LEAST + 1) ? 0 : n;
    }
    return 0;
}

long kp_growthjumps_distance(const double *steps, const double *amounts, size_t count)
{
    struct jumps j = {.span = count ? steps[count - 1] - steps[0] : 0};
    double most = count ? amounts[0] : 0;
    j.steps = kp_kineto_room(count + 1, sizeof *j.steps);
    j.rises = kp_kineto_room(count + 1, sizeof *j.rises);
    for (size_t i = 0; i < count; i++) {
        if (amounts[i] <= most) continue;
        const double rise = amounts[i] - most;
        j.steps[j.count] = steps[i];
        j.rises[j.count++] = rise;
        j.all += rise;
        j.squares += rise * rise;
        most = amounts[i];
    }
    const long distance = j.all > 0 ? distance_find(&j) : 0;
    free(j.steps);
    free(j.rises);
    return distance;
}
