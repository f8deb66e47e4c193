// SPDX-License-Identifier: Apache-2.0
/*
 * modulecalls.c - counts the outermost calls of an nn.Module, where nothing else counts steps
 *
 * Called by: CPython, in place of its own call of torch.nn.Module.__call__ (hot); stepfind.c
 * Owns:      per thread, how deep it is in calls of modules
 * Locks:     the GIL, which CPython holds
 * On fail:   calls of modules count no steps
 * Safe in:   after fork yes: calls are passed on
 *
 * CPython calls a class's __call__ from C, so the function's pointer (stephook.c) sees each call, in each release.
 * Once another source counts, the pointer is CPython's own again.
 */
#include "preload/python/stepcalls.h"
#include "preload/run.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

static _Thread_local uint32_t depth __attribute__((tls_model("initial-exec")));

static void *call_module(void *callable, void *const *args, size_t count, void *keywords)
{
    const bool has_self = (count & ~(SIZE_MAX / 2 + 1)) > 0; /* the top bit is a flag of CPython's */
    const uintptr_t self = has_self ? (uintptr_t)args[0] : 0;
    const bool is_outermost = depth++ == 0 && !kp_stephook_is_inside();
    void *result = kp_stephook_call(callable, args, count, keywords);
    depth--;
    if (!is_outermost || !self) return result;
    if (kp_run_is_active() && kp_steps_wants_modules()) kp_stepcount_module(self);
    else kp_stephook_drop(callable);
    return result;
}

const struct kp_phasecall *kp_modulecalls_row(void)
{
    static const struct kp_phasecall row = {"torch.nn.modules.module:Module.__call__", call_module, false};
    return kp_steps_wants_modules() ? &row : NULL;
}
