// SPDX-License-Identifier: Apache-2.0
/* keyindex.h - numbers 64-bit keys from 0 on, in the order of first use */
#ifndef KP_KEYINDEX_H
#define KP_KEYINDEX_H

#include <stddef.h>
#include <stdint.h>

struct kp_keyindex { /* all zero: empty */
    uint64_t *keys;  /* by number */
    uint32_t *slots; /* number + 1, 0: free; a power of two */
    size_t count, capacity, slot_count, last;
};
/* Returns the key's number. A new key gets the old `count`. Out of memory calls exit(), as in kp_kineto_grow. */
size_t kp_keyindex_get(struct kp_keyindex *index, uint64_t key);
void kp_keyindex_fini(struct kp_keyindex *index);

#endif
