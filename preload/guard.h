// SPDX-License-Identifier: Apache-2.0
/*
 * guard.h - entry and exit of a hook
 *
 *     struct kp_guard guard;
 *     if (!KP_HOOK_ENTER(&guard, KP_GATE_WARM | KP_GATE_RECORD)) return;
 *     ... guard.thread, guard.gate ...
 *     KP_HOOK_LEAVE(&guard);
 *
 * Between the two there is no allocation, lock or system call, so errno does not change. Slow paths (a thread's first
 * hook, a new chunk, a new name, a step) save and restore errno. The gate is read twice: once first, so that a shut
 * gate costs one load, and once after `inside` is set. kp_record_quiesce makes every processor see the new gate and
 * then waits for `inside`. So it waits for every hook that read the old gate. A hook that a signal handler left by a
 * jump is detected (collector/record/longjmp.c).
 */
#pragma once

#include <stdbool.h>

#include "collector/base/kp_gate.h"
#include "collector/record/kp_record.h"

struct kp_guard {
    struct kp_thread *thread;
    uint64_t gate;
};

/*
 * Stores the hook's frame in `inside`. Inlined, because the frame must be that of the function that enters and leaves.
 * So a function must not enter twice before it leaves. false: the thread is inside another hook.
 */
static inline __attribute__((always_inline)) bool kp_guard_mark(struct kp_thread *t)
{
    if (__builtin_expect(kp_load_relaxed(&t->inside) != 0, 0)) return kp_inside_reclaim(t, __builtin_frame_address(0));
    kp_store_relaxed(&t->inside, kp_inside_tag(__builtin_frame_address(0)));
    kp_signal_fence();
    return true;
}

/* Enters the hook if the gate has one of `bits` and this thread was not inside. */
static inline __attribute__((always_inline)) bool kp_guard_try(struct kp_guard *g, uint32_t bits)
{
    if (!(kp_gate_get() & bits)) return false;
    g->thread = kp_thread_get();
    if (!g->thread || !kp_guard_mark(g->thread)) return false;
    g->gate = kp_gate_get();
    return true;
}

/* As kp_guard_try. A hook in a signal handler that interrupted another hook is refused, and counted if it records. */
static inline __attribute__((always_inline)) bool kp_guard_enter(struct kp_guard *g, uint32_t bits)
{
    if (__builtin_expect(kp_guard_try(g, bits), 1)) return true;
    if (__builtin_expect((kp_gate_get() & bits & KP_GATE_RECORD) && kp_thread_self, 0))
        kp_inside_refused(kp_thread_self);
    return false;
}

static inline void kp_guard_leave(struct kp_guard *g)
{
    kp_signal_fence();
    kp_store_release(&g->thread->inside, 0); /* pairs with: kp_record_quiesce */
}

#define KP_HOOK_ENTER(guard, bits) __builtin_expect(kp_guard_enter((guard), (bits)), 1)
#define KP_HOOK_LEAVE(guard) kp_guard_leave(guard)
