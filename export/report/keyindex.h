// SPDX-License-Identifier: Apache-2.0
/* keyindex.h - numbers from 0 on for 64-bit keys, in the order they are first asked for */
#ifndef KP_KEYINDEX_H
#define KP_KEYINDEX_H

#include <stddef.h>
#include <stdint.h>

struct kp_keyindex { /* all zero: empty */
    uint64_t *keys;  /* by number */
    uint32_t *slots; /* number + 1, 0: free; a power of two */
    size_t count, capacity, slot_count, last;
};
/* The key's number; `count` when it is new, which is one more then. Out of memory ends the command, as kp_kineto_grow
 * does. */
size_t kp_keyindex_get(struct kp_keyindex *index, uint64_t key);
void kp_keyindex_fini(struct kp_keyindex *index);

#endif
