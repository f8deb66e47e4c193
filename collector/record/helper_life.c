// SPDX-License-Identifier: Apache-2.0
/*
 * helper_life.c - begins and ends a helper thread of this room: the writer, the ticker, kprof-disk
 *
 * Called by: writer.c, ticker.c, disk.c (the thread itself; the thread that opens or closes the spool)
 * Owns:      nothing; each thread has a struct kp_life
 * Locks:     none. Closing naps for at most KP_LIFE_STOP_MS
 * Safe in:   signal handlers no; after fork: kp_life_none
 */
#include "collector/record/record_internal.h"

#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_poison.h"

#define KP_LIFE_STOP_MS 1000
#define KP_LIFE_ROUNDS 8u /* rounds between two checks whether host threads are left */

enum { NOT_RUNNING, RUNNING, STOPPING, STOPPED };

void kp_life_begin(struct kp_life *life) { kp_store_release(&life->stage, RUNNING); /* pairs with: kp_life_goes_on */ }

void kp_life_none(struct kp_life *life)
{
    kp_store_release(&life->stage, NOT_RUNNING); /* pairs with: kp_life_close */
    kp_store_relaxed(&life->tid, 0);
}

void kp_life_enter(struct kp_life *life) { kp_store_relaxed(&life->tid, kp_io_tid()); }

bool kp_life_is_wanted(const struct kp_life *life)
{
    return kp_load_acquire(&life->stage) == RUNNING; /* pairs with: kp_life_close */
}

/* All host threads have ended: no more records come, and the process waits for this thread. */
static bool is_left_alone(struct kp_life *life)
{
    return ++life->rounds % KP_LIFE_ROUNDS == 0 && kp_io_helpers_alone();
}

bool kp_life_goes_on(struct kp_life *life) { return kp_life_is_wanted(life) && !is_left_alone(life); }

void kp_life_end(struct kp_life *life) { kp_store_release(&life->stage, STOPPED); /* pairs with: kp_life_close */ }

void kp_life_ask(struct kp_life *life, void (*wake)(void))
{
    if (!kp_life_is_wanted(life)) return;
    kp_store_release(&life->stage, STOPPING); /* pairs with: kp_life_goes_on */
    wake();
}

void kp_life_close(struct kp_life *life, void (*wake)(void))
{
    if (kp_load_acquire(&life->stage) == NOT_RUNNING) return; /* pairs with: kp_life_none */
    kp_life_ask(life, wake);
    if (kp_load_relaxed(&life->tid) == kp_io_tid()) return; /* the tick itself closes */
    for (int i = 0; i < KP_LIFE_STOP_MS && kp_load_acquire(&life->stage) != STOPPED; i++) {
        if (kp_io_is_thread_gone(kp_load_relaxed(&life->tid))) return; /* it was paused and not started again */
        kp_io_nap(1000000);
    }
}
