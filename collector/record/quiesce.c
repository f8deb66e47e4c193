// SPDX-License-Identifier: Apache-2.0
/*
 * quiesce.c - waits until no thread can still write to a cycle that is over
 *
 * Called by: the writer or exporter thread, after it changed the gate
 * Locks:     none; the wait is bounded
 *
 * A hook stores `inside` and then loads the gate, both with plain instructions. The caller stores the gate. Then a
 * barrier runs on every CPU that executes this process, and then this file loads `inside`. So this file
 * sees the hook's `inside`, or the hook loads the gate after the barrier: the new gate. It is enough to see
 * each thread outside once.
 */
#include "collector/record/record_internal.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_poison.h"

#define KP_QUIESCE_PAUSE_NS 50000
#define KP_QUIESCE_DRAIN_NS 10000000 /* the wait instead of membarrier(2): longer than any store takes to be seen */

static bool has_membarrier;
/* The last cycle with a wait that ran out of time. A hook of it or of an earlier cycle may still run. */
static _Atomic uint32_t pending_cycle;

static void pause_ns(long ns) { kp_io_nap((uint64_t)ns); }

void kp_quiesce_open(void) { has_membarrier = kp_io_barrier_register() == 0; }

static void barrier_everywhere(void)
{
    if (has_membarrier && kp_io_barrier() == 0) return;
    pause_ns(KP_QUIESCE_DRAIN_NS);
}

static bool is_quiet(struct kp_thread *t)
{
    /* pairs with: the guard's store of 0 on leaving a hook */
    if (kp_load_acquire(&t->inside) == 0 || t == kp_thread_self) return true;
    if (!kp_inside_is_abandoned(t)) return false;
    barrier_everywhere(); /* the stack word that showed it is no release: make the hook's writes visible */
    return true;
}

int kp_record_quiesce(uint32_t cycle, uint32_t timeout_ms)
{
    uint64_t end_ns = kp_clock_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * 1000000u;
    int rc = 0;
    if (kp_spool.pid != getpid()) return 0; /* a forked child: the threads are the parent's */
    barrier_everywhere();
    for (struct kp_thread *t = kp_thread_first(); t && rc == 0; t = t->next)
        while (!is_quiet(t)) {
            if (kp_clock_ns(CLOCK_MONOTONIC) >= end_ns) {
                if (kp_thread_is_gone(t)) break; /* it ended inside a hook (cancelled): it will not write */
                rc = -ETIMEDOUT;
                break;
            }
            pause_ns(KP_QUIESCE_PAUSE_NS);
        }
    uint32_t pending = kp_load_relaxed(&pending_cycle);
    if (rc < 0 && cycle > pending) kp_store_relaxed(&pending_cycle, cycle);
    if (rc == 0 && cycle >= pending) kp_store_relaxed(&pending_cycle, 0);
    const uint64_t gate = kp_gate_get();
    const bool goes_on = gate & KP_GATE_RECORD && kp_gate_cycle(gate) <= cycle;
    if (rc == 0 && !goes_on && kp_spool_is_ours()) kp_chunk_settle(cycle);
    return rc;
}

bool kp_quiesce_is_pending(uint32_t cycle) { return kp_load_relaxed(&pending_cycle) >= cycle; }
