// SPDX-License-Identifier: Apache-2.0
/* keyindex.c - numbers 64-bit keys by a hash table, since a trace may have any number of threads */
#include "export/read/store/keyindex.h"

#include <stdlib.h>
#include <string.h>

#include "export/read/store/stringtable.h"

enum { FIRST = 64 };

static inline size_t place_of(const struct kp_keyindex *x, uint64_t key)
{
    const uint64_t h = (key ^ key >> 32) * UINT64_C(0xc4ceb9fe1a85ec53);
    size_t at = (size_t)(h ^ h >> 32) & (x->slot_count - 1);
    while (x->slots[at] && x->keys[x->slots[at] - 1] != key) at = (at + 1) & (x->slot_count - 1);
    return at;
}

static void widen(struct kp_keyindex *x)
{
    size_t count = x->slot_count ? 2 * x->slot_count : FIRST;
    free(x->slots);
    x->slots = kp_kineto_zeros(count, sizeof *x->slots);
    x->slot_count = count;
    for (size_t i = 0; i < x->count; i++) x->slots[place_of(x, x->keys[i])] = (uint32_t)i + 1;
}

static __attribute__((noinline)) size_t key_add(struct kp_keyindex *x, uint64_t key)
{
    if (2 * (x->count + 1) > x->slot_count) widen(x);
    *KP_KINETO_NEXT(x->keys, x->count, x->capacity) = key;
    x->slots[place_of(x, key)] = (uint32_t)x->count;
    return x->count - 1;
}

size_t kp_keyindex_get(struct kp_keyindex *x, uint64_t key)
{
    if (x->last < x->count && x->keys[x->last] == key) return x->last;
    if (x->slot_count) {
        const uint32_t slot = x->slots[place_of(x, key)];
        if (slot) return x->last = slot - 1;
    }
    return x->last = key_add(x, key);
}

void *kp_keyindex_row(struct kp_keyindex *x, uint64_t key, const void *first, size_t bytes)
{
    const size_t had = x->count, at = kp_keyindex_get(x, key);
    if (at == had) {
        x->rows = kp_kineto_grow(x->rows, &x->row_capacity, had + 1, bytes);
        memcpy((char *)x->rows + at * bytes, first, bytes);
    }
    return (char *)x->rows + at * bytes;
}

double *kp_keyindex_sum(struct kp_keyindex *x, uint64_t key)
{
    return kp_keyindex_row(x, key, &(double){0}, sizeof(double));
}

size_t kp_keyindex_most(const struct kp_keyindex *x)
{
    const double *const of = x->rows;
    size_t most = 0;
    for (size_t i = 1; i < x->count; i++)
        if (of[i] > of[most]) most = i;
    return most;
}

void kp_keyindex_fini(struct kp_keyindex *x)
{
    free(x->rows);
    free(x->keys);
    free(x->slots);
    *x = (struct kp_keyindex){0};
}
