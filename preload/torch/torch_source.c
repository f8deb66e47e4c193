// SPDX-License-Identifier: Apache-2.0
/*
 * torch_source.c - torch as a source: attaches once, then installs the callbacks that each phase needs
 *
 * Called by: boot.c (attach, one call at a time; set_mode at steps, also from inside our own end callback)
 * Owns:      the callbacks registered with torch: one for ops or steps, one for first activity
 * Locks:     torch's mutex of its callback list, while the host forks (fork_lock.c); torch calls us without holding it
 * On fail:   a torch without the functions needed is left alone, with one line
 *
 * An op in flight keeps the callbacks it started with, so a removed callback may still be called. This library is
 * never unloaded (-z nodelete), and each op has its own slot.
 */
#include "preload/run.h"
#include "preload/source.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "collector/base/kp_config.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/python_bridge.h"
#include "preload/unwind/kp_unwind.h"
#include "preload/torch/entry.h"
#include "preload/torch/execution_trace.h"
#include "preload/torch/exit_watch.h"
#include "preload/torch/poolsize.h"
#include "preload/torch/torch.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

static bool wants_memory, wants_oom, wants_modules, wants_native;
static _Atomic bool attached;
static _Atomic bool is_noted; /* the spool has torch's version */

/* `wanted`: what set_mode asked for last. The thread that holds `applying` brings `installed` up to it. */
enum { WITH_INPUTS = 0x10, FORK_TRIES = 5000, FORK_NAP_NS = 1000000 };
static _Atomic uint32_t wanted, applying;
static uint32_t installed;
static uint64_t handle;

/* Did torch run an op: ever, and since the last question? A callback sets both at the first op and removes itself. */
static _Atomic bool worked, worked_lately;
static _Atomic uint64_t work_handle;
static atomic_flag rearming = ATOMIC_FLAG_INIT; /* held by a helper thread that changes torch's list, and by a fork */

static const struct {
    uint32_t bit;
    const char *what;
} parts[] = {
    {KP_TORCH_NO_SCOPE, "scopes"},         {KP_TORCH_NO_THREAD, "torch's thread ids"},
    {KP_TORCH_NO_SEQ, "sequence numbers"}, {KP_TORCH_NO_FWD, "forward threads"},
    {KP_TORCH_NO_ASYNC, "async marks"},    {KP_TORCH_NO_SCHEMA, "fast names"},
    {KP_TORCH_NO_INPUTS, "inputs"},        {KP_TORCH_NO_TENSORS, "tensor shapes"},
    {KP_TORCH_NO_LISTS, "lists"},          {KP_TORCH_NO_SCALARS, "scalars"},
};

static void say_what_was_dropped(const struct kp_torch_layout *l, const char *text)
{
    char list[256] = "";
    size_t used = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!(l->dropped & parts[i].bit) || used >= sizeof list) continue;
        used += kp_fmt(list + used, sizeof list - used, "%s%s", used ? ", " : "", parts[i].what);
    }
    if (used) kp_log(0, "torch %s: its layout could not be proved, recorded without: %s", text, list);
    else if (!kp_torch_is_known(l->version))
        kp_log(1, "torch %s is newer than any version known here; its layout was found and proved", text);
}

static void work_unhook(void)
{
    uint64_t h = kp_exchange_acq_rel(&work_handle, 0);
    if (h) kp_torch.api.remove(h);
}

KP_TORCH_ENTRY_MAKE(kp_torch_work_start);
KP_TORCH_HIDDEN void **kp_torch_work_start(void **context, const uint8_t *rf)
{
    (void)rf;
    *context = NULL;
    /* Not in a forked child: a thread of the parent may have held torch's mutex. */
    if (!(kp_gate_get() & KP_GATE_ON) || kp_exchange_acq_rel(&worked_lately, true)) return context;
    int saved = errno;
    const bool is_first = !kp_exchange_acq_rel(&worked, true);
    work_unhook();
    if (is_first) kp_run_saw_activity();
    errno = saved;
    return context;
}

static void work_end(const uint8_t *rf, struct kp_torch_slot *slot)
{
    (void)rf;
    (void)slot;
}

static void work_hook(void)
{
    struct kp_torch_callback callback = {
        .start = KP_TORCH_ENTRY(kp_torch_work_start), .end = work_end, .sampling = 1.0};
    memset(callback.scopes, 1, sizeof callback.scopes);
    (void)kp_exchange_acq_rel(&work_handle, kp_torch.api.add(callback));
    if (kp_load_acquire(&worked_lately)) work_unhook(); /* the first op ran before work_handle was stored */
}

static bool had_activity(void) { return kp_load_relaxed(&worked); }

static bool had_activity_since(void)
{
    if (atomic_flag_test_and_set_explicit(&rearming, memory_order_acquire)) return true; /* the host forks: ask again */
    const bool has_worked = kp_exchange_acq_rel(&worked_lately, false);
    if (has_worked) work_hook();
    atomic_flag_clear_explicit(&rearming, memory_order_release);
    return has_worked;
}

static bool rearming_take(void)
{
    for (int i = 0; i < FORK_TRIES; i++) {
        if (!atomic_flag_test_and_set_explicit(&rearming, memory_order_acquire)) return true;
        kp_io_nap(FORK_NAP_NS);
    }
    return false;
}

/* Waits until no helper thread changes torch's list, then takes torch's mutex. So no child inherits the mutex from a
 * thread that it lacks. */
static bool before_fork(void)
{
    if (!rearming_take()) return false;
    if (kp_torch_lock_take()) return true;
    atomic_flag_clear_explicit(&rearming, memory_order_release);
    return false;
}

static void after_fork(bool is_child)
{
    kp_torch_lock_give();
    if (is_child) kp_execution_trace_forget();
    atomic_flag_clear_explicit(&rearming, memory_order_release);
}

/* The callbacks that the parent registered are registered in the child too. A thread that was applying a mode is gone.
 * Activity counts from 0, so that the child sees its own. */
static void forget(void)
{
    kp_store_relaxed(&applying, 0);
    kp_torch_comms_forget();
    kp_torch_poolsize_forget();
    kp_store_relaxed(&worked, false);
    kp_store_relaxed(&worked_lately, false);
    kp_store_relaxed(&is_noted, false);
    if (wants_native) kp_unwind_forget();
    if (kp_load_relaxed(&attached) && !kp_load_relaxed(&work_handle)) work_hook();
}

static bool attach(void)
{
    int saved = errno;
    struct kp_torch_api *api = &kp_torch.api;
    if (kp_load_relaxed(&attached)) return true;
    if (!kp_torch_find(api) || !kp_torch_attach_begin()) {
        errno = saved;
        return false;
    }
    bool usable = api->add && api->remove && api->name;
    if (usable) {
        uint32_t string_bytes = kp_torch_has("_ZN2at11show_configB5cxx11Ev") ? 32 : 8;
        uint32_t version = kp_torch_version(api, string_bytes, kp_torch.version_text, sizeof kp_torch.version_text);
        kp_torch_layout_make(&kp_torch.layout, version, string_bytes);
        kp_torch_selfcheck(api, &kp_torch.layout);
        kp_torch_comms_attach(api, &kp_torch.layout);
        if (wants_modules) kp_torch_modules_attach(api, kp_torch.version_text);
        kp_torch_marks_ops = kp_steps_needs_ops();
        kp_caller_find();
        kp_torch_lock_find(api);
        kp_torch_poolsize_attach();
        say_what_was_dropped(&kp_torch.layout, kp_torch.version_text);
        work_hook();
        if (wants_memory || wants_oom) kp_torch_memory_attach(api, wants_oom);
        if (wants_native) kp_unwind_modules_changed();
        kp_execution_trace_attach(api);
        kp_store_release(&attached, true); /* pairs with: set_mode */
    } else {
        KP_LOG_ONCE(0, "libtorch_cpu lacks RecordFunction callbacks: torch is not profiled");
    }
    kp_torch_attach_end();
    errno = saved;
    return usable;
}

static void install(uint32_t what)
{
    struct kp_torch_callback callback = {.sampling = 1.0};
    if (handle) kp_torch.api.remove(handle);
    handle = 0;
    switch (what & ~(uint32_t)WITH_INPUTS) {
    case KP_SOURCE_FULL:
        callback.start = KP_TORCH_ENTRY(kp_torch_op_start);
        callback.end = kp_torch_op_end;
        memset(callback.scopes, 1, sizeof callback.scopes);
        callback.needs_inputs = (what & WITH_INPUTS) != 0;
        break;
    case KP_SOURCE_STEPS:
        callback.start = KP_TORCH_ENTRY(kp_torch_step_start);
        callback.end = kp_torch_step_end;
        memset(callback.scopes, kp_torch_marks_ops, sizeof callback.scopes);
        callback.scopes[KP_TORCH_USER_SCOPE] = 1;
        callback.scopes[KP_TORCH_SCRIPT_SCOPE] |= kp_steps_wants_modules();
        break;
    default: return;
    }
    handle = kp_torch.api.add(callback);
}

static void set_mode(enum kp_source_mode mode)
{
    uint32_t what = mode;
    if (!kp_load_acquire(&attached)) return; /* pairs with: attach */
    if (mode == KP_SOURCE_FULL && (kp_gate_get() & KP_GATE_SHAPES)) what |= WITH_INPUTS;
    (void)kp_exchange_acq_rel(&wanted, what);
    /* A second caller leaves `wanted` to the first, which reads it again after it released `applying`. `applying` is
     * changed by exchanges alone: the later exchange reads the earlier one and so sees the stores before it. */
    do {
        if (kp_exchange_acq_rel(&applying, 1)) return;
        what = kp_load_acquire(&wanted);
        const bool is_full = (what & ~(uint32_t)WITH_INPUTS) == KP_SOURCE_FULL;
        if (kp_execution_trace_turn(is_full, kp_gate_get()) || installed != what) install(what);
        installed = what;
        (void)kp_exchange_acq_rel(&applying, 0);
    } while (kp_load_acquire(&wanted) != what);
}

static void setup(const struct kp_config *config)
{
    wants_memory = config->profile_memory;
    wants_oom = kp_config_dumps_oom(config);
    wants_modules = config->with_modules;
    wants_native = config->with_stack & KP_STACK_NATIVE;
    kp_execution_trace_setup(config);
    if (wants_native) kp_unwind_setup();
}

static void modules_changed(void)
{
    if (wants_native) kp_unwind_modules_changed();
}

static void record_before(uint64_t begin_ticks)
{
    if (wants_memory && kp_load_acquire(&attached)) kp_torch_memory_window(begin_ticks); /* pairs with: attach */
}

/* The export thread changes torch's list here, so the host must not fork meanwhile. */
static void close_cycle(uint32_t cycle)
{
    (void)cycle;
    if (!kp_load_acquire(&attached) || !kp_execution_trace_is_on() || !rearming_take()) return; /* pairs with: attach */
    kp_execution_trace_close();
    atomic_flag_clear_explicit(&rearming, memory_order_release);
}

static void note(void)
{
    if (!kp_load_acquire(&attached)) return; /* pairs with: attach */
    kp_torch_poolsize_note();
    if (kp_load_relaxed(&is_noted)) return;
    kp_store_relaxed(&is_noted, kp_record_note("torch_version", kp_torch.version_text) == 0);
}

static void step_ended(void)
{
    if (kp_load_acquire(&attached)) kp_torch_poolsize_look(); /* pairs with: attach */
}

static void step_turns(bool begins, uint64_t number)
{
    if (begins) kp_execution_trace_step_begin(number);
    else kp_execution_trace_step_end();
    if (!begins) step_ended();
}

const struct kp_source kp_torch_source = {
    .name = "torch",
    .activities = KP_ACTIVITY_CPU,
    .setup = setup,
    .attach = attach,
    .set_mode = set_mode,
    .record_before = record_before,
    .step_ended = step_ended,
    .step_turns = step_turns,
    .close_cycle = close_cycle,
    .note = note,
    .had_activity = had_activity,
    .had_activity_since = had_activity_since,
    .before_fork = before_fork,
    .after_fork = after_fork,
    .forget = forget,
    .modules_changed = modules_changed,
};
