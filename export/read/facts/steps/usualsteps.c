// SPDX-License-Identifier: Apache-2.0
/* usualsteps.c - leaves out few steps that have half of all time: the mean of all is that of none */
#include "export/read/facts/steps/usualsteps.h"

#include <math.h>

#include "export/read/store/qsort.h"

#define USUAL_MEDIANS 5.0 /* a longer step is none of the usual ones */
#define USUAL_LESS 0.5    /* of all time, those have: then they make the mean */

struct kp_usual_steps kp_usual_steps_of(double *lengths, size_t count)
{
    struct kp_usual_steps of = {.most_ns = USUAL_MEDIANS * kp_quantile(lengths, count, 0.5)};
    double all_ns = 0, long_ns = 0;
    for (size_t i = 0; i < count; i++) {
        all_ns += lengths[i];
        if (lengths[i] <= of.most_ns) continue;
        of.left_out++;
        long_ns += lengths[i];
    }
    of.left_out_share = all_ns > 0 ? long_ns / all_ns : 0;
    return of.left_out && of.left_out_share >= USUAL_LESS ? of : (struct kp_usual_steps){.most_ns = INFINITY};
}
