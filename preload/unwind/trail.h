// SPDX-License-Identifier: Apache-2.0
/*
 * trail.h - a thread's last walk, kept so that the next one only checks that the words it read are unchanged
 *
 * A walk depends on its first state (pc, sp, fp), the rules, and the words it reads from the stack. A walk may
 * reach a state of the last walk. If the words read from there outwards are unchanged, the outer frames are the same. A
 * trail that is given up has n = 0. It serves only a thread's own stack, and no frame that a signal interrupted.
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
    uint32_t words, id;                                  /* id: of the stack from here outwards; the caller sets it */
};
struct kp_trail {
    uint32_t generation;
    uint32_t n, fresh_n;
    struct kp_trail_frame of[KP_UNWIND_DEPTH];    /* outermost first: unchanged frames */
    struct kp_trail_frame fresh[KP_UNWIND_DEPTH]; /* innermost first: new frames inside them */
};

/* false: use kp_unwind_walk instead. After true the caller moves the fresh frames behind the others. */
bool kp_unwind_trail_walk(struct kp_trail *trail);

#endif
