// SPDX-License-Identifier: Apache-2.0
/* stack_circle.h - finds circles in call stacks: in a damaged file, a frame's callers may lead back to it */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "collector/read/kp_read.h"

enum { KP_ROUND_SLOTS = 2 * KP_FRAMES_MAX };
struct kp_round { /* the frames of a stack, in a hash table; a higher count empties it */
    uint32_t id[KP_ROUND_SLOTS], walk[KP_ROUND_SLOTS], now, n;
};

static inline void kp_round_begin(struct kp_round *r)
{
    r->n = 0;
    if (++r->now) return;
    memset(r->walk, 0, sizeof r->walk);
    r->now = 1;
}

/* False: the stack has this frame already, or KP_FRAMES_MAX frames. The stack ends before it. */
static inline bool kp_round_add(struct kp_round *r, uint32_t id)
{
    uint32_t at = id * 0x9e3779b1u >> 16 & (KP_ROUND_SLOTS - 1);
    for (; r->walk[at] == r->now; at = (at + 1) & (KP_ROUND_SLOTS - 1))
        if (r->id[at] == id) return false;
    r->walk[at] = r->now;
    r->id[at] = id;
    return r->n++ < KP_FRAMES_MAX;
}
