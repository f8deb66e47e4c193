// SPDX-License-Identifier: Apache-2.0
/* addr_ranges.h - finds the range that an address lies in, among ranges that may overlap */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct kp_addr_range {
    uint64_t lo, hi; /* hi: behind its last address */
    uint64_t most;   /* highest hi of all up to this one */
    uint64_t weight; /* of several that hold an address the lightest is told */
    uint32_t what;   /* the caller's */
};
struct kp_addr_ranges {
    struct kp_addr_range *of;
    size_t n, capacity;
};
/* Empty ones are left out. */
void kp_addr_ranges_add(struct kp_addr_ranges *r, uint64_t lo, uint64_t hi, uint64_t weight, uint32_t what);
void kp_addr_ranges_sort(struct kp_addr_ranges *r); /* once, behind the last _add and before the first _find */
const struct kp_addr_range *kp_addr_ranges_find(const struct kp_addr_ranges *r, uint64_t at); /* NULL: in none */
void kp_addr_ranges_fini(struct kp_addr_ranges *r);
