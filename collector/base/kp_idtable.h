// SPDX-License-Identifier: Apache-2.0
/*
 * kp_idtable.h - a hash table from a 64-bit id to an item of the caller
 *
 * Open addressing, at most half full, in mapped memory. Not for two threads at a time; not signal-safe.
 */
#pragma once

#include <stdint.h>

struct kp_idtable {
    void *items; /* each begins with its uint64_t id, which is 0 in a free place */
    uint32_t n, cap;
    uint32_t item_bytes; /* set by the caller before the first add, with all other fields 0 */
};

void *kp_idtable_find(const struct kp_idtable *table, uint64_t id); /* NULL: not there */
/* The item of an id, which is not 0. A new item is zero but for its id. NULL: no memory. An add moves the items. */
void *kp_idtable_add(struct kp_idtable *table, uint64_t id) __attribute__((warn_unused_result));
/* Asks for the memory of an id's item, which is looked up soon. */
void kp_idtable_prefetch(const struct kp_idtable *table, uint64_t id);
void kp_idtable_fini(struct kp_idtable *table);
