// SPDX-License-Identifier: Apache-2.0
/* quantile.h - the value below which a share of all values lies */
#pragma once

#include <stddef.h>

/* Sorts the values. share: from 0 to 1; 0.5: the median, of an even count the mean of both. Without values: 0. */
double kp_quantile(double *values, size_t count, double share);
