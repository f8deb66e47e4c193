// SPDX-License-Identifier: Apache-2.0
/*
 * stepreturn.c - counts a step where a call of a Python function has ended
 *
 * Called by: stephook.c and stepgens.c, with the GIL
 * Safe in:   after fork yes: the gate is shut
 */
#include <errno.h>

#include "collector/base/sys/kp_clock.h"
#include "preload/guard.h"
#include "preload/python/steps/stepcalls.h"
#include "preload/run.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

/* `module`: 0 for a call of a function. */
static void add(uintptr_t module)
{
    const int kept = errno;
    struct kp_guard guard;
    if (!(kp_gate_get() & KP_GATE_STEPS) || kp_python_is_over()) return; /* at the end CPython frees what never ended */
    if (!KP_HOOK_ENTER(&guard, KP_GATE_STEPS)) return;
    if (module ? kp_steps_module_end(module) : kp_steps_call_end()) kp_run_step(guard.thread, kp_ticks());
    KP_HOOK_LEAVE(&guard);
    errno = kept;
}

void kp_stepcount_add(void) { add(0); }

void kp_stepcount_module(uintptr_t module) { add(module); }
