// SPDX-License-Identifier: Apache-2.0
/* percentiles.c - how long half, 90 and 99 % of steps or calls last at most */
#include "export/read/facts/steps/percentiles.h"

#include <stdlib.h>

#include "export/read/store/qsort.h"
#include "export/read/store/stringtable.h"

/* Frees the values. */
static struct kp_percentiles percentiles_of(double *values, size_t count)
{
    const struct kp_percentiles p = {kp_quantile(values, count, 0.5), kp_quantile(values, count, 0.9),
                                     kp_quantile(values, count, 0.99), count};
    free(values);
    return p;
}

struct kp_percentiles kp_percentiles_of_steps(const struct kp_chosen *chosen)
{
    double *const values = kp_kineto_room(chosen->step_count + 1, sizeof *values);
    for (size_t i = 0; i < chosen->step_count; i++) values[i] = (double)chosen->steps[i].inside_ns;
    return percentiles_of(values, chosen->step_count);
}

struct kp_percentiles kp_percentiles_of_calls(const struct kp_chosen *chosen)
{
    double *const values = kp_kineto_room(chosen->within_calls + 1, sizeof *values);
    for (size_t i = 0; i < chosen->within_calls; i++)
        values[i] = (double)(chosen->calls[i].end_ns - chosen->calls[i].start_ns);
    return percentiles_of(values, chosen->within_calls);
}
