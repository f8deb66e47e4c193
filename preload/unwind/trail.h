// SPDX-License-Identifier: Apache-2.0
/*
 * trail.h - a thread's last walk, kept so that the next one need only look whether the words it read are still the same
 *
 * A walk is decided by the state it begins in (pc, sp, fp), the rules, and the words it reads from the stack. So once
 * it is in a state in which the last one was, and the words read from there outwards hold what they held, the rest is
 * as it was. A trail that is given up leaves n = 0. Not for stacks other than the thread's own, nor for what a signal
 * struck.
 */
#ifndef KP_UNWIND_TRAIL_H
#define KP_UNWIND_TRAIL_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/unwind/kp_unwind.h"

enum { KP_TRAIL_WORDS = 4 };

struct kp_trail_frame {
    uintptr_t pc, sp, fp;
    uintptr_t at[KP_TRAIL_WORDS], value[KP_TRAIL_WORDS]; /* words the step outwards read */
    uint32_t words, id; /* id: of the stack from here outwards, the caller's to fill in */
};
struct kp_trail {
    uint32_t generation;
    uint32_t n, fresh_n;
    struct kp_trail_frame of[KP_UNWIND_DEPTH];    /* outermost first: those that are as they were */
    struct kp_trail_frame fresh[KP_UNWIND_DEPTH]; /* innermost first: those inside them that are new */
};

/* false: not this way (kp_unwind_walk does it). Else the caller moves the fresh frames behind the others. */
bool kp_unwind_trail_walk(struct kp_trail *trail);

#endif
