// SPDX-License-Identifier: Apache-2.0
/*
 * kp_unwind.h - door of the unwind room: the native call stack of the calling thread
 *
 * Called by: sources, inside a hook (hot). Safe in signal handlers and in programs without frame pointers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* DEPTH: frames of the deepest stack that is kept whole; of a deeper one the innermost CUT frames are kept. */
enum { KP_UNWIND_DEPTH = 512, KP_UNWIND_CUT = 128 };

/* Called in the setup of each source that wants stacks: finds the loader's functions and reserves address space. */
void kp_unwind_setup(void);
/* Called when modules came or went (a source's modules_changed and attach): drops kept facts about unloaded code. */
void kp_unwind_modules_changed(void);

/* In a forked child that records: its spool is new, so frames are written to it again. */
void kp_unwind_forget(void);

/*
 * Stores the calling thread's return addresses, innermost first, without those of this library, at most `most`. Returns
 * how many; 0: not set up, or the stack cannot be read. No lock, no malloc; a system call when the thread is deeper in
 * its stack than ever before.
 */
int kp_unwind_walk(uintptr_t *frames, int most);
bool kp_unwind_walk_met_signal(void); /* a signal interrupted a frame of the calling thread's last walk */

/*
 * The calling thread's stack as an id for a record (collector/format/kp_format.h, struct kp_rec_frame). Writes new
 * frames to the spool. 0: no stack, or no room. Inside a hook.
 */
struct kp_thread;
uint32_t kp_unwind_stack(struct kp_thread *thread);
/* `native` together with the Python stack `python`, as one id. `native` when there is no room. Inside a hook. */
uint32_t kp_unwind_stack_with(struct kp_thread *thread, uint32_t native, uint32_t python);
/* Did a signal interrupt a frame of the stack that kp_unwind_stack gave last? */
bool kp_unwind_was_interrupted(const struct kp_thread *thread);

/* Is the address on the calling thread's own stack? lo, hi: the part of the stack that is known to be readable. */
bool kp_unwind_own_stack(uintptr_t at, uintptr_t *lo, uintptr_t *hi);
/* For KPROF_SYMBOLS, called once. A return address lo + x, with x below `bytes`, is an exit stub: the true return
 * address is stored at words + x. */
void kp_unwind_set_returns(uintptr_t lo, uintptr_t bytes, uintptr_t words);
