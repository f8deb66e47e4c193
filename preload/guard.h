// SPDX-License-Identifier: Apache-2.0
/*
 * guard.h - the way into and out of a hook
 *
 *     struct kp_guard guard;
 *     if (!KP_HOOK_ENTER(&guard, KP_GATE_WARM | KP_GATE_RECORD)) return;
 *     ... guard.thread, guard.gate ...
 *     KP_HOOK_LEAVE(&guard);
 *
 * Between the two: no allocation, no lock, no system call, so errno is not touched; what is slow and may touch it (a thread's
 * birth, a new chunk, a new name, a step) keeps it there. The gate is read twice:
 * once before anything else, so that a shut gate costs one load, and once after `inside` is set. kp_record_quiesce
 * waits for `inside`, after it has made every processor see the new gate: a hook that read the old gate is waited for.
 */
#ifndef KP_GUARD_H
#define KP_GUARD_H

#include <stdbool.h>

#include "collector/base/kp_gate.h"
#include "collector/record/kp_record.h"

struct kp_guard {
    struct kp_thread *thread;
    uint64_t gate;
};

/* true: the gate has one of `bits` and this thread was not inside. A re-entered hook passes through. */
static inline bool kp_guard_enter(struct kp_guard *g, uint32_t bits)
{
    if (!(kp_gate_get() & bits)) return false;
    g->thread = kp_thread_get();
    if (!g->thread || g->thread->dying || kp_load_relaxed(&g->thread->inside)) return false;
    kp_store_relaxed(&g->thread->inside, 1);
    kp_signal_fence();
    g->gate = kp_gate_get();
    return true;
}

static inline void kp_guard_leave(struct kp_guard *g)
{
    kp_signal_fence();
    kp_store_release(&g->thread->inside, 0); /* pairs with: kp_record_quiesce */
}

#define KP_HOOK_ENTER(guard, bits) __builtin_expect(kp_guard_enter((guard), (bits)), 1)
#define KP_HOOK_LEAVE(guard) kp_guard_leave(guard)

#endif
