// SPDX-License-Identifier: Apache-2.0
/* kp_search.h - binary search in a sorted array: the lower bound */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef bool (*kp_below_fn)(const void *item, const void *key);

/*
 * The number of items below the key, which is the index of the first item not below it. Items below the key come first
 * in the array.
 */
static inline __attribute__((always_inline)) size_t kp_search(const void *items, size_t bytes, size_t n,
                                                              kp_below_fn is_below, const void *key)
{
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (is_below((const uint8_t *)items + middle * bytes, key)) low = middle + 1;
        else high = middle;
    }
    return low;
}
