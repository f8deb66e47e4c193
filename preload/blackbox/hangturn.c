// SPDX-License-Identifier: Apache-2.0
/*
 * hangturn.c - decides whether a program stands, of what was seen of it at two times
 *
 * Called by: hangwatch.c
 * Owns:      nothing: the caller has the state
 * Locks:     none
 *
 * It stands in a file of its own so that its test links no part of the library that a program may not have: the hook of
 * the loader defines a symbol that every program asks for (hook/early.c).
 */
#include "preload/blackbox/hangwatch.h"

#include "collector/base/kp_poison.h"

enum { LATE_MS = 2000, START_TIMES = 3, MOST_SAID = 3, BETWEEN_SAID_MS = 600000, SOME_BYTES = 1 << 20 };

/* Processor time is what is left when that of helper threads is taken off, so it may go back a little. */
static uint64_t grown(uint64_t now, uint64_t before) { return now > before ? now - before : 0; }

static bool goes_on(const struct kp_hangwatch_state *w, const struct kp_hangwatch_sample *now, uint64_t now_ms)
{
    const uint64_t half_ms = (now_ms - w->looked_ms) / 2; /* on a busy machine a program has less of a core */
    const uint64_t waited_ms = grown(now->waited_ms, w->last.waited_ms);
    if (now->done != w->last.done || grown(now->bytes, w->last.bytes) >= SOME_BYTES) return true;
    if (grown(now->child_ms, w->last.child_ms) >= half_ms || waited_ms >= half_ms) return true;
    return grown(now->own_ms, w->last.own_ms) + waited_ms >= half_ms / 5 && now->place != w->last.place;
}

enum kp_hangwatch_finding kp_hangwatch_turn(struct kp_hangwatch_state *w, const struct kp_hangwatch_sample *now,
                                            uint64_t now_ms, uint64_t limit, uint64_t every_ms)
{
    const bool is_late = now_ms - w->looked_ms > 2 * every_ms + LATE_MS;
    const uint64_t wanted_ms = now->has_step ? limit : START_TIMES * limit;
    if (!w->looked_ms || is_late || goes_on(w, now, now_ms)) {
        w->since_ms = now_ms;
        w->own_since_ms = now->own_ms;
        w->is_said = false;
    }
    w->last = *now;
    w->looked_ms = now_ms;
    const uint64_t ms = now_ms - w->since_ms;
    const bool is_too_soon = w->said && now_ms - w->said_ms < BETWEEN_SAID_MS;
    if (ms < wanted_ms || w->is_said || w->said == MOST_SAID || is_too_soon) return KP_HANGWATCH_GOES_ON;
    w->is_said = true;
    w->said_ms = now_ms;
    w->said++;
    return grown(now->own_ms, w->own_since_ms) >= ms / 2 ? KP_HANGWATCH_BUSY : KP_HANGWATCH_STANDS;
}
