// SPDX-License-Identifier: Apache-2.0
/* quantile.c - sorts values, and finds the one below which a share of them lies */
#include "export/read/store/quantile.h"

#include "collector/base/kp_order.h"
#include "export/read/store/qsort.h"

KP_ORDER_NUMBERS(value_order, double)

double kp_quantile(double *values, size_t count, double share)
{
    if (!count) return 0;
    kp_qsort(values, count, sizeof *values, value_order);
    const double at = share * (double)(count - 1);
    const size_t low = (size_t)at, high = low + 1 < count ? low + 1 : low;
    return values[low] + (values[high] - values[low]) * (at - (double)low);
}
