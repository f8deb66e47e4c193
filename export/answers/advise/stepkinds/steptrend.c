// SPDX-License-Identifier: Apache-2.0
/* steptrend.c - times that grow from step to step */
#include <math.h>
#include <stdlib.h>

#include "export/answers/advise/stepkinds/longsteps.h"

#define GROWN_LEAST 1.10  /* of the last third over the first */
#define GROWN_SIGMAS 3.0  /* of Kendall's sum where steps have no order */
#define GROWN_SPREADS 2.0 /* the growth exceeds so many spreads of steps near each other, as in kprof diff */
#define NORMAL_SIGMA 1.4826
#define JUMP_SHARE 0.10 /* of the growth, that at least lies on each side of the middle third where steps grow */
enum { STEPS_LEAST = 9, STEPS_MOST = 3000 }; /* all pairs are compared */

/* Kendall's sum of all pairs, in standard deviations. */
static double sigmas_of(const double *of, size_t count)
{
    const double n = (double)count, variance = n * (n - 1) * (2 * n + 5) / 18;
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++) sum += (of[k] > of[i]) - (of[k] < of[i]);
    return sum / sqrt(variance);
}

/* How much steps near each other differ: of each from the one before, which a slow growth hardly moves. */
static double spread_of(const double *of, size_t count, double *room)
{
    for (size_t i = 1; i < count; i++) room[i - 1] = fabs(of[i] - of[i - 1]);
    return NORMAL_SIGMA / sqrt(2) * kp_quantile(room, count - 1, 0.5);
}

static double median_of(const double *of, size_t count, double *room)
{
    memcpy(room, of, count * sizeof *room);
    return kp_quantile(room, count, 0.5);
}

/* Pettitt's test: where what comes after exceeds what comes before in most pairs. */
static size_t jump_find(const double *of, size_t count)
{
    double sum = 0, most = 0;
    size_t at = 0;
    for (size_t i = 0; i + 1 < count; i++) {
        for (size_t k = 0; k < count; k++) sum += (of[k] > of[i]) - (of[k] < of[i]);
        if (sum > most) most = sum, at = i + 1;
    }
    return at;
}

/* Is the middle third as the first one, or as the last? */
static bool is_jump(const struct kp_steptrend *trend, double middle_ns)
{
    const double least = JUMP_SHARE * (trend->late_ns - trend->early_ns);
    return middle_ns - trend->early_ns < least || trend->late_ns - middle_ns < least;
}

bool kp_steptrend_find(struct kp_steptrend *out, const double *of, size_t count)
{
    const size_t third = count / 3;
    *out = (struct kp_steptrend){0};
    if (count < STEPS_LEAST || count > STEPS_MOST) return false;
    double *const room = kp_kineto_room(count, sizeof *room);
    out->early_ns = median_of(of, third, room);
    out->late_ns = median_of(of + count - third, third, room);
    const double spread = spread_of(of, count, room), middle_ns = median_of(of + third, count - 2 * third, room);
    free(room);
    if (is_jump(out, middle_ns)) out->jump = jump_find(of, count);
    return out->late_ns >= GROWN_LEAST * out->early_ns && sigmas_of(of, count) >= GROWN_SIGMAS &&
           out->late_ns - out->early_ns >= GROWN_SPREADS * spread;
}
