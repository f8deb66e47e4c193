// SPDX-License-Identifier: Apache-2.0
/*
 * trail.h - a thread's last walk, kept so that the next one only checks that the words it read are unchanged
 *
 * A walk depends on its first state (pc, sp, fp), the rules, and the words it reads from the stack. A walk may
 * reach a state of the last walk. If the words read from there outwards are unchanged, the outer frames are the same. A
 * trail that is given up has n = 0. It serves only a thread's own stack, and no frame that a signal interrupted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/unwind/kp_unwind.h"

enum { KP_TRAIL_WORDS = 4 };

struct kp_trail_word {
    uintptr_t at, value;
};
struct kp_trail_frame {
    uintptr_t pc, sp, fp;
    uint32_t words_end; /* words of this frame and of all around it */
    uint32_t id;        /* of the stack from here outwards */
};
struct kp_trail_fresh {
    struct kp_trail_frame frame;
    struct kp_trail_word words[KP_TRAIL_WORDS]; /* the step outwards read them */
    uint32_t words_n;
};
struct kp_trail {
    uint32_t generation;
    uint32_t n, fresh_n;
    uintptr_t lo, hi;                                             /* the stack that was walked */
    struct kp_trail_frame of[KP_UNWIND_DEPTH];                    /* outermost first: unchanged frames */
    struct kp_trail_fresh fresh[KP_UNWIND_DEPTH];                 /* innermost first: new frames inside them */
    struct kp_trail_word words[KP_UNWIND_DEPTH * KP_TRAIL_WORDS]; /* of the unchanged frames, outermost first */
};

/* false: use kp_unwind_walk instead. After true the caller puts each fresh frame behind the others, outermost first. */
bool kp_unwind_trail_walk(struct kp_trail *trail);

/* Puts a fresh frame behind the others, not yet counted. The caller sets its id, and then counts it. */
struct kp_trail_frame *kp_unwind_trail_put(struct kp_trail *trail, const struct kp_trail_fresh *fresh);
