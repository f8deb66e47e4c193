// SPDX-License-Identifier: Apache-2.0
/*
 * nameset.c - a growing set of names, by their hashes
 *
 * Called by: calltrace_source.c, hidden.c, on the thread that exports
 * Memory:    8 bytes a name and about as much free, mapped; at most 32 MB
 * On fail:   a name that finds no room is not added, and is_full is set
 */
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_hash.h"
#include "preload/calltrace/calltrace.h"
#include "collector/base/kp_poison.h"

enum { FIRST = 1u << 15, MOST = 1u << 22 };

static uint64_t hash_of(const char *name) { return kp_hash64(name, strlen(name)) | 1; /* 0: free */ }

/* The entry of the hash, or the free entry where it belongs. */
static uint64_t *place(uint64_t *of, uint32_t cap, uint64_t hash)
{
    uint32_t at = (uint32_t)(hash >> 20) % cap;
    while (of[at] && of[at] != hash) at = (at + 1) % cap;
    return &of[at];
}

/* Makes room for one more name. At least a quarter of the entries stays free, so that searches stay short. */
static bool make_room(struct kp_calltrace_names *s)
{
    if (s->n < s->cap / 4 * 3) return true;
    const uint32_t cap = s->cap ? s->cap * 2 : FIRST;
    uint64_t *more = cap <= MOST ? kp_map_alloc(cap * sizeof *more) : NULL;
    if (!more) return false;
    for (uint32_t i = 0; i < s->cap; i++)
        if (s->of[i]) *place(more, cap, s->of[i]) = s->of[i];
    if (s->of) kp_map_free(s->of, s->cap * sizeof *s->of);
    s->of = more;
    s->cap = cap;
    return true;
}

bool kp_calltrace_names_have(const struct kp_calltrace_names *s, const char *name)
{
    return s->cap && *place(s->of, s->cap, hash_of(name)) != 0;
}

bool kp_calltrace_names_add(struct kp_calltrace_names *s, const char *name)
{
    const uint64_t hash = hash_of(name);
    if (s->cap && *place(s->of, s->cap, hash)) return false;
    if (!make_room(s)) {
        s->is_full = true;
        return true;
    }
    *place(s->of, s->cap, hash) = hash;
    s->n++;
    return true;
}

void kp_calltrace_names_clear(struct kp_calltrace_names *s)
{
    if (s->of) kp_map_free(s->of, s->cap * sizeof *s->of);
    *s = (struct kp_calltrace_names){0};
}
