// SPDX-License-Identifier: Apache-2.0
/*
 * exit_watch.c - keeps helper threads from calling torch once exit() destroys torch's objects
 *
 * Called by: torch_source.c, around attaching
 * Owns:      when the exit handler was registered
 * Locks:     the turn (run.h), while the tick attaches
 * Memory:    none; libc may allocate for the handler, once for many
 * On fail:   no handler could be registered: the tick never attaches, a dl call of the host does
 * Safe in:   signal handlers no
 *
 * exit() runs the last registered handler first. So one that is registered after torch's constructors ran comes before
 * torch's destructors. But the tick may find torch when exit() has begun already. Our handler is then called as soon as
 * the destructor under way has returned. So the tick registers the handler, and attaches WAIT_MS later if it was not
 * called. A thread of the host attaches at once: it is inside a dl function, and not in exit().
 */
#include "preload/torch/exit_watch.h"

#include "collector/base/sys/kp_clock.h"
#include "preload/run.h"
#include "collector/base/kp_poison.h"

enum { WAIT_MS = 100 };
static bool is_watched; /* begin.c lets one thread attach */
static uint64_t waits_since_ms;

/* The tick reads the clock; a thread of the host may have forbidden itself the processor's (PR_SET_TSC). */
static bool has_waited(void)
{
    const uint64_t now_ms = kp_clock_ms();
    if (!waits_since_ms) waits_since_ms = now_ms;
    return now_ms >= waits_since_ms + WAIT_MS;
}

bool kp_torch_attach_begin(void)
{
    if (!is_watched) is_watched = kp_run_turn_watch();
    if (!kp_run_is_ticking()) return true;
    if (is_watched && has_waited() && kp_run_turn_begin()) return true;
    kp_run_look_again();
    return false;
}

void kp_torch_attach_end(void)
{
    if (kp_run_is_ticking()) kp_run_turn_end();
}
