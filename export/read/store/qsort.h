// SPDX-License-Identifier: Apache-2.0
/* qsort.h - qsort and qsort_r of items that mostly are in order, as what is read from a trace; quantiles */
#pragma once

#include <stddef.h>

/* As the C library's, but one pass where the items are sorted: that would compare each log(count) times. */
void kp_qsort(void *items, size_t count, size_t bytes, int (*order)(const void *, const void *));
void kp_qsort_r(void *items, size_t count, size_t bytes, int (*order)(const void *, const void *, void *),
                void *context);

/* ---- quantiles ---- */

/* Sorts the values. share: from 0 to 1; 0.5: the median, of an even count the mean of both. Returns 0 if there are no
 * values. */
double kp_quantile(double *values, size_t count, double share);
