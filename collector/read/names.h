// SPDX-License-Identifier: Apache-2.0
/* names.h - the string table of a spool: from an id to its text in the mapping */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct kp_name {
    const char *name, *overload; /* NULL: not found */
};
struct kp_names {
    struct kp_name *of; /* by id */
    uint32_t cap;       /* ids below this may be looked up */
    struct kp_names_copy *copies;
};

/*
 * Adds every good string of a STRINGS chunk, of which the file has `bytes`. Ids from `limit` on are refused. 0 or
 * -ENOMEM.
 */
int kp_names_add_chunk(struct kp_names *n, const uint8_t *chunk, uint32_t bytes, uint32_t limit);
void kp_names_fini(struct kp_names *n);
static inline const struct kp_name *kp_names_get(const struct kp_names *n, uint32_t id)
{
    return id < n->cap && n->of[id].name ? &n->of[id] : NULL;
}
