// SPDX-License-Identifier: Apache-2.0
/* kp_order.h - defines a static function for qsort: in which order two items of a type stand, by one field or more */
#pragma once

/* By one field behind the other: KP_ORDERED(name, type, KP_UP(field) KP_DOWN(next)). */
#define KP_ORDERED(name, type, ...)               \
    static int name(const void *a, const void *b) \
    {                                             \
        const type *x = a, *y = b;                \
        __VA_ARGS__ return 0;                     \
    }
#define KP_UP(field)                    \
    if (x->field < y->field) return -1; \
    if (x->field > y->field) return 1;
#define KP_DOWN(field)                 \
    if (x->field < y->field) return 1; \
    if (x->field > y->field) return -1;
/* The least first. */
#define KP_ORDER(name, type, field) KP_ORDERED(name, type, KP_UP(field))
/* The most first. */
#define KP_ORDER_DOWN(name, type, field) KP_ORDERED(name, type, KP_DOWN(field))
/* The least first; those with an equal one by the next field, the least first. */
#define KP_ORDER2(name, type, field, next) KP_ORDERED(name, type, KP_UP(field) KP_UP(next))
#define KP_ORDER3(name, type, field, next, last) KP_ORDERED(name, type, KP_UP(field) KP_UP(next) KP_UP(last))
/* Numbers, the least first. */
#define KP_ORDER_NUMBERS(name, type)                           \
    static int name(const void *a, const void *b)              \
    {                                                          \
        const type x = *(const type *)a, y = *(const type *)b; \
        return (x > y) - (x < y);                              \
    }
/* Indexes by a list of numbers, the most first; equal ones as they lie there. For qsort_r with the list. */
#define KP_ORDER_BY(name, type)                                               \
    static int name(const void *a, const void *b, void *list)                 \
    {                                                                         \
        const size_t i = *(const size_t *)a, k = *(const size_t *)b;          \
        const type *of = list;                                                \
        return of[i] != of[k] ? (of[i] < of[k] ? 1 : -1) : (i > k) - (i < k); \
    }
