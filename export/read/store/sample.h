// SPDX-License-Identifier: Apache-2.0
/* sample.h - numbers that are gathered one by one, for a quantile of them */
#pragma once

#include <stddef.h>

struct kp_sample { /* all zero: empty */
    double *of;
    size_t count, capacity;
};
void kp_sample_add(struct kp_sample *sample, double value);
/* Returns kp_quantile() of them, and frees them. */
double kp_sample_end(struct kp_sample *sample, double share);
