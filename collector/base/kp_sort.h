// SPDX-License-Identifier: Apache-2.0
/*
 * kp_sort.h - heap sort, and a heap for callers that take one item after another
 *
 * libc's qsort may call malloc, so the library has its own sort. It neither recurses nor allocates, and is not stable.
 * All is inlined: with a constant item size and order the compiler makes a loop of plain moves and compares.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { KP_SORT_ITEM_MAX = 128 }; /* bytes of an item */
typedef bool (*kp_before_fn)(const void *a, const void *b, const void *context);

/* Moves item `at` down to its place in the heap. is_max: the last item in order is on top, otherwise the first. */
static inline __attribute__((always_inline)) void kp_heap_sift(void *items, size_t bytes, size_t at, size_t n,
                                                               bool is_max, kp_before_fn is_before, const void *context)
{
    _Alignas(16) uint8_t x[KP_SORT_ITEM_MAX];
    uint8_t *p = items;
    memcpy(x, p + at * bytes, bytes);
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        const uint8_t *c = p + child * bytes, *right = c + bytes;
        if (child + 1 < n && (is_max ? is_before(c, right, context) : is_before(right, c, context))) child++, c = right;
        if (!(is_max ? is_before(x, c, context) : is_before(c, x, context))) break;
        memcpy(p + at * bytes, c, bytes);
    }
    memcpy(p + at * bytes, x, bytes);
}

/* Makes a heap of items in any order. items[0] becomes the top. */
static inline __attribute__((always_inline)) void kp_heap_make(void *items, size_t bytes, size_t n, bool is_max,
                                                               kp_before_fn is_before, const void *context)
{
    for (size_t i = n / 2; i-- > 0;) kp_heap_sift(items, bytes, i, n, is_max, is_before, context);
}

static inline __attribute__((always_inline)) void kp_sort(void *items, size_t bytes, size_t n, kp_before_fn is_before,
                                                          const void *context)
{
    _Alignas(16) uint8_t top[KP_SORT_ITEM_MAX];
    uint8_t *p = items;
    kp_heap_make(items, bytes, n, true, is_before, context);
    while (n > 1) {
        memcpy(top, p, bytes);
        memcpy(p, p + --n * bytes, bytes);
        memcpy(p + n * bytes, top, bytes);
        kp_heap_sift(items, bytes, 0, n, true, is_before, context);
    }
}

static inline bool kp_sort_u64_before(const void *a, const void *b, const void *unused)
{
    (void)unused;
    return *(const uint64_t *)a < *(const uint64_t *)b;
}

/* Sorts numbers, the least first. */
static inline void kp_sort_u64(uint64_t *numbers, size_t n)
{
    kp_sort(numbers, sizeof *numbers, n, kp_sort_u64_before, NULL);
}
