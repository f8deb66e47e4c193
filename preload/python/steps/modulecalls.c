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
 * Once another source counts, the pointer is CPython's own again. A DataLoader without workers prepares its items in
 * the program's thread, and transforms are modules, too: what a batch calls is no model.
 */
#include "preload/python/steps/stepcalls.h"

#include <string.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_config.h"
#include "collector/record/kp_record.h"
#include "preload/guard.h"
#include "preload/run.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

enum { LOOKS_MOST = 16 };
/* The model's thread: that of the first call, until one class is called twice in turn. A generation calls its encoder
 * once, and its decoder for each token. */
static const void *model_class; /* only compared */
static unsigned model_looks;
static bool is_model_known;
static _Thread_local uint32_t depth __attribute__((tls_model("initial-exec")));

/* The function that the class has as forward: its module and qualified name. A local one has no name by which it is
 * found. */
static void forward_note(uintptr_t self)
{
    struct kp_pyaside aside;
    kp_pyaside_begin(&aside, NULL);
    void *forward = kp_pyobject_member((void *)kp_python_at((void *)self, 8), "forward");
    const bool is_function = forward && kp_stephook_is_function(forward);
    void *module = is_function ? kp_pyobject_member(forward, "__module__") : NULL;
    void *name = is_function ? kp_pyobject_member(forward, "__qualname__") : NULL;
    const char *module_text = kp_pyobject_text(module), *name_text = kp_pyobject_text(name);
    if (module_text && name_text && !strchr(name_text, '<')) kp_steps_model_set(module_text, name_text);
    KP_PYTHON_DROP(module, name, forward);
    kp_pyaside_end(&aside);
}

static void model_look(uintptr_t self)
{
    const void *const class = kp_python_at((void *)self, 8);
    const bool is_first = !model_looks++, is_again = class == model_class;
    model_class = class;
    is_model_known = is_again || model_looks == LOOKS_MOST;
    if (is_first || is_again) forward_note(self);
}

/* Until they count as steps, calls have ranges: there may be too few of them. NULL: nothing records. */
static struct kp_rec_op *range_begin(uint32_t *cycle)
{
    struct kp_guard guard;
    struct kp_rec_op *rec = NULL;
    if (kp_steps_source() >= KP_STEP_MODULE || !KP_HOOK_ENTER(&guard, KP_GATE_RECORD)) return NULL;
    *cycle = kp_gate_cycle(guard.gate);
    const uint32_t name = kp_name_intern(guard.thread, KP_MODEL_RANGE, sizeof KP_MODEL_RANGE - 1);
    if (guard.gate & KP_GATE_RECORD) rec = kp_put_range(guard.thread, guard.gate, name, KP_SCOPE_USER, 0);
    KP_HOOK_LEAVE(&guard);
    return rec;
}

static void range_end(struct kp_rec_op *rec, uint32_t cycle)
{
    const uint64_t now = kp_ticks();
    struct kp_guard guard;
    if (!rec || !KP_HOOK_ENTER(&guard, KP_GATE_RECORD)) return;
    const bool is_same = guard.gate & KP_GATE_RECORD && kp_gate_cycle(guard.gate) == cycle;
    if (is_same) kp_put_end(&rec->ticks, rec->start, now);
    KP_HOOK_LEAVE(&guard);
}

static void *call_module(void *callable, void *const *args, size_t count, void *keywords)
{
    const bool has_self = (count & ~(SIZE_MAX / 2 + 1)) > 0; /* the top bit is a flag of CPython's */
    const uintptr_t self = has_self ? (uintptr_t)args[0] : 0;
    const bool is_alone = depth++ == 0, is_outermost = is_alone && !kp_stephook_is_inside();
    if (is_alone && !is_model_known && self && kp_run_is_active()) model_look(self);
    uint32_t cycle = 0;
    struct kp_rec_op *const rec = is_outermost && self && kp_steps_wants_modules() ? range_begin(&cycle) : NULL;
    void *result = kp_stephook_call(callable, args, count, keywords);
    range_end(rec, cycle);
    depth--;
    if (!is_outermost || !self) return result;
    if (kp_run_is_active() && kp_steps_wants_modules()) kp_stepcount_module(self);
    else if (is_model_known || !kp_run_is_active()) kp_stephook_drop(callable);
    return result;
}

/* The next batch of a DataLoader. */
static void *call_batch(void *callable, void *const *args, size_t count, void *keywords)
{
    depth++;
    void *result = kp_stephook_call(callable, args, count, keywords);
    depth--;
    if (!kp_run_is_active() || !kp_steps_wants_modules()) kp_stephook_drop(callable);
    return result;
}

static const struct kp_phasecall rows[] = {
    {"torch.nn.modules.module:Module.__call__", call_module, false},
    {"torch.utils.data.dataloader:_BaseDataLoaderIter.__next__", call_batch, false},
};

unsigned kp_modulecalls_rows(void) { return kp_steps_wants_modules() ? sizeof rows / sizeof *rows : 0; }

const struct kp_phasecall *kp_modulecalls_row(unsigned at) { return &rows[at]; }
