// SPDX-License-Identifier: Apache-2.0
/* addr_ranges.c - finds the range that an address lies in, among ranges that may overlap */
#include "export/read/symbols/addr_ranges.h"

#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "collector/base/kp_search.h"
#include "export/read/store/stringtable.h"

void kp_addr_ranges_add(struct kp_addr_ranges *r, uint64_t lo, uint64_t hi, uint64_t weight, uint32_t what)
{
    if (hi <= lo) return;
    *KP_KINETO_NEXT(r->of, r->n, r->capacity) =
        (struct kp_addr_range){.lo = lo, .hi = hi, .weight = weight, .what = what};
}

KP_ORDER2(order, struct kp_addr_range, lo, weight)

void kp_addr_ranges_sort(struct kp_addr_ranges *r)
{
    uint64_t most = 0;
    if (r->n) qsort(r->of, r->n, sizeof *r->of, order);
    for (size_t i = 0; i < r->n; i++) {
        most = r->of[i].hi > most ? r->of[i].hi : most;
        r->of[i].most = most;
    }
}

static bool has_begun(const void *range, const void *at)
{
    return ((const struct kp_addr_range *)range)->lo <= *(const uint64_t *)at;
}

const struct kp_addr_range *kp_addr_ranges_find(const struct kp_addr_ranges *r, uint64_t at)
{
    const struct kp_addr_range *best = NULL;
    size_t behind = kp_search(r->of, sizeof *r->of, r->n, has_begun, &at);
    while (behind > 0 && r->of[behind - 1].most > at) {
        const struct kp_addr_range *x = &r->of[--behind];
        if (x->hi > at && (!best || x->weight < best->weight)) best = x;
    }
    return best;
}

void kp_addr_ranges_fini(struct kp_addr_ranges *r)
{
    free(r->of);
    *r = (struct kp_addr_ranges){0};
}
