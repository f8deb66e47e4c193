// SPDX-License-Identifier: Apache-2.0
/*
 * watchdog.c - encloses each of our CUPTI calls: may it be made, and since when is it under way
 *
 * Called by: each file of the room that calls CUPTI; helper.c, which decides when a call takes too long
 * Owns:      when the call under way began; the flag control
 * Locks:     control: a flag, tried; the thread that has it may make our CUPTI calls
 * On fail:   the call is not made
 */

#include "collector/base/sys/kp_clock.h"
#include "preload/cupti/cupti_internal.h"
#include "collector/base/kp_poison.h"

struct kp_watchdog kp_watchdog;
static _Atomic uint32_t control;

bool kp_watchdog_call_begins(void)
{
    if (kp_cupti_state() == KP_CUPTI_STATE_DEAD) return false;
    if (kp_cupti_state() == KP_CUPTI_STATE_STALLED && !kp_watchdog.is_recovering) return false;
    const bool is_exiting = kp_load_acquire(&kp_cupti_exit_asked); /* pairs with: helper.c:at_exit */
    if (is_exiting && kp_clock_ms() >= kp_watchdog.exit_calls_until_ms) return false;
    kp_store_release(&kp_watchdog.call_since_ms, kp_clock_ms()); /* pairs with: helper.c:kp_cupti_helper_check */
    return true;
}

void kp_watchdog_call_ends(void)
{
    if (!kp_watchdog.is_recovering)
        kp_watchdog.stalled_ms = kp_clock_ms() - kp_load_relaxed(&kp_watchdog.call_since_ms);
    kp_store_release(&kp_watchdog.call_since_ms, 0); /* pairs with: helper.c:kp_cupti_helper_check */
}

uint64_t kp_watchdog_call_ms(void)
{
    uint64_t since = kp_load_acquire(&kp_watchdog.call_since_ms),
             now = kp_clock_ms(); /* pairs with: kp_watchdog_call_begins */
    return since && since < now ? now - since : 0;
}

/* The thread kprof-cuda has control in each turn. Host threads take it for a clock sample, cuptiFinalize, a fork and
 * exit(). Tries once. */
bool kp_watchdog_take_control(void) { return !kp_exchange_acquire(&control, 1); }

void kp_watchdog_give_control(void) { kp_store_release(&control, 0); /* pairs with: kp_watchdog_take_control */ }
