// SPDX-License-Identifier: Apache-2.0
/*
 * kp_unwind.h - door of the unwind room: the machine code call stack of the calling thread
 *
 * Called by: sources, inside a hook (hot). Safe in signal handlers and in programs without frame pointers.
 */
#ifndef KP_UNWIND_H
#define KP_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

enum { KP_UNWIND_DEPTH = 128 };

/* Once, from a source's setup, when stacks will be asked for (several sources may): finds what is needed, takes address
 * space. */
void kp_unwind_setup(void);
/* Modules came or went (a source's modules_changed, and its attach). What is known of code that is gone is
 * forgotten. */
void kp_unwind_modules_changed(void);

/* A forked child that records has a spool of its own: what was told the parent's is told again. */
void kp_unwind_begin_in_child(void);

/*
 * The calling thread's return addresses, innermost first, without those of this library: how many, at most `most`. 0:
 * not set up, or this stack cannot be read. No lock, no malloc; a system call when the thread is deeper in its stack
 * than ever before.
 */
int kp_unwind_walk(uintptr_t *frames, int most);

/*
 * The calling thread's stack as one number for a record (collector/format/kp_format.h, struct kp_rec_frame), put into
 * the spool when it is new. 0: none, or no room. Inside a hook.
 */
struct kp_thread;
uint32_t kp_unwind_stack(struct kp_thread *thread);

/* Whether that address is on the calling thread's own stack, and as far as known where that is readable. */
bool kp_unwind_own_stack(uintptr_t at, uintptr_t *lo, uintptr_t *hi);
/* A return address in these `bytes` from `lo` on stands for the one that lies as far from `words` as it from `lo`.
 * Once. */
void kp_unwind_set_returns(uintptr_t lo, uintptr_t bytes, uintptr_t words);

struct kp_unwind_stats {
    uint64_t rules;   /* return addresses whose rule was looked up */
    uint64_t unknown; /* and had none */
    uint64_t cut;     /* stacks deeper than was asked for */
    uint64_t foreign; /* walks on a stack that is not the thread's own (signal stacks, fibers) */
};
void kp_unwind_stats_get(struct kp_unwind_stats *out);

#endif
