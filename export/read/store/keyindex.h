// SPDX-License-Identifier: Apache-2.0
/* keyindex.h - numbers 64-bit keys from 0 on, in the order of first use, and keeps a row for each */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct kp_keyindex { /* all zero: empty */
    uint64_t *keys;  /* by number */
    uint32_t *slots; /* number + 1, 0: free; a power of two */
    size_t count, capacity, slot_count, last;
    void *rows; /* by number, of kp_keyindex_row; a caller may take them away, and leave NULL */
    size_t row_capacity;
};
/* Returns the key's number. A new key gets the old `count`. Out of memory calls exit(), as in kp_kineto_grow. */
size_t kp_keyindex_get(struct kp_keyindex *index, uint64_t key);
/* Returns the key's row, which lies until the next new key comes. That of a new key begins as a copy of `first`. */
void *kp_keyindex_row(struct kp_keyindex *index, uint64_t key, const void *first, size_t bytes);
/* The row of an index whose rows are numbers: 0 at first. */
double *kp_keyindex_sum(struct kp_keyindex *index, uint64_t key);
/* Returns the key of such an index with the largest row, by number; 0 if it is empty. */
size_t kp_keyindex_most(const struct kp_keyindex *index);
void kp_keyindex_fini(struct kp_keyindex *index);
