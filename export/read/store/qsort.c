// SPDX-License-Identifier: Apache-2.0
/* qsort.c - qsort and qsort_r of items that mostly are in order, and quantiles */
#include "export/read/store/qsort.h"
#include "collector/base/kp_order.h"

#include <stdbool.h>
#include <stdlib.h>

static bool is_sorted(const char *items, size_t count, size_t bytes, int (*order)(const void *, const void *, void *),
                      void *context)
{
    size_t i = 1;
    while (i < count && order(items + (i - 1) * bytes, items + i * bytes, context) <= 0) i++;
    return i >= count;
}

static int order_call(const void *a, const void *b, void *order)
{
    return (*(int (**)(const void *, const void *))order)(a, b);
}

void kp_qsort(void *items, size_t count, size_t bytes, int (*order)(const void *, const void *))
{
    if (!is_sorted(items, count, bytes, order_call, &order)) qsort(items, count, bytes, order);
}

void kp_qsort_r(void *items, size_t count, size_t bytes, int (*order)(const void *, const void *, void *),
                void *context)
{
    if (!is_sorted(items, count, bytes, order, context)) qsort_r(items, count, bytes, order, context);
}

/* ---- quantiles ---- */

KP_ORDER_NUMBERS(value_order, double)

double kp_quantile(double *values, size_t count, double share)
{
    if (!count) return 0;
    kp_qsort(values, count, sizeof *values, value_order);
    const double at = share * (double)(count - 1);
    const size_t low = (size_t)at, high = low + 1 < count ? low + 1 : low;
    return values[low] + (values[high] - values[low]) * (at - (double)low);
}
