// SPDX-License-Identifier: Apache-2.0
/* qsort.c - qsort and qsort_r of items that mostly are in order */
#include "export/read/store/qsort.h"

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
