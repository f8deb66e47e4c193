// SPDX-License-Identifier: Apache-2.0
/* kp_order.h - defines a static function for qsort: in which order two items of a type stand, by one field or more */
#pragma once

/* The least first. */
#define KP_ORDER(name, type, field)                           \
    static int name(const void *a, const void *b)             \
    {                                                         \
        const type *x = a, *y = b;                            \
        return (x->field > y->field) - (x->field < y->field); \
    }
/* Numbers, the least first. */
#define KP_ORDER_NUMBERS(name, type)                           \
    static int name(const void *a, const void *b)              \
    {                                                          \
        const type x = *(const type *)a, y = *(const type *)b; \
        return (x > y) - (x < y);                              \
    }
/* The most first. */
#define KP_ORDER_DOWN(name, type, field)                      \
    static int name(const void *a, const void *b)             \
    {                                                         \
        const type *x = a, *y = b;                            \
        return (x->field < y->field) - (x->field > y->field); \
    }
/* Indexes by a list of numbers, the most first; equal ones as they lie there. For qsort_r with the list. */
#define KP_ORDER_BY(name, type)                                               \
    static int name(const void *a, const void *b, void *list)                 \
    {                                                                         \
        const size_t i = *(const size_t *)a, k = *(const size_t *)b;          \
        const type *of = list;                                                \
        return of[i] != of[k] ? (of[i] < of[k] ? 1 : -1) : (i > k) - (i < k); \
    }
/* The least first; those with an equal one by the next field, the least first. */
#define KP_ORDER2(name, type, field, next)                             \
    static int name(const void *a, const void *b)                      \
    {                                                                  \
        const type *x = a, *y = b;                                     \
        if (x->field != y->field) return x->field < y->field ? -1 : 1; \
        return (x->next > y->next) - (x->next < y->next);              \
    }
#define KP_ORDER3(name, type, field, next, last)                       \
    static int name(const void *a, const void *b)                      \
    {                                                                  \
        const type *x = a, *y = b;                                     \
        if (x->field != y->field) return x->field < y->field ? -1 : 1; \
        if (x->next != y->next) return x->next < y->next ? -1 : 1;     \
        return (x->last > y->last) - (x->last < y->last);              \
    }
