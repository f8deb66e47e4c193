// SPDX-License-Identifier: Apache-2.0
/*
 * garbage.c - records the collections of Python's garbage collector (KPROF_PYTHON_GC)
 *
 * Called by: boot.c through source.h; CPython, when a collection starts and stops, on the thread that collects
 * Owns:      while a window records: one function in gc.callbacks
 * Locks:     the GIL, as python_source.c takes it
 * On fail:   collections are not recorded
 * Safe in:   after fork yes: the gate is shut, and nothing is recorded
 *
 * torch.profiler does the same with record_python_gc_info: gc.callbacks is the one place where CPython tells.
 */
#include <errno.h>
#include <string.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_config.h"
#include "collector/base/kp_log.h"
#include "preload/guard.h"
#include "preload/python/pycalls.h"
#include "preload/source.h"
#include "collector/base/kp_poison.h"

#define NAME "Python GC"
enum { TAKES_TUPLE = 0x1 /* METH_VARARGS */ };

static bool wants, is_refused;
static _Atomic bool attached;
static _Atomic uint32_t installed_cycle; /* 0: our function is not in the list */
static void *callback, *list;            /* list: gc.callbacks */

/* The collection in progress. An interpreter has one at a time. */
static struct {
    bool is_on;
    struct kp_rec_pycall *rec; /* NULL: not recorded */
    uint32_t cycle, thread_no;
} now;

/* ---- collections ---- */

static void collection_begin(void)
{
    struct kp_guard guard;
    now.is_on = true;
    now.rec = NULL;
    if (!KP_HOOK_ENTER(&guard, KP_GATE_RECORD)) return;
    struct kp_thread *t = guard.thread;
    const uint32_t name = kp_name_intern(t, NAME, sizeof NAME - 1);
    if (guard.gate & KP_GATE_RECORD) now.rec = kp_pycall_put(t, guard.gate, name, KP_PY_GARBAGE);
    now.cycle = kp_gate_cycle(guard.gate);
    now.thread_no = t->thread_no;
    KP_HOOK_LEAVE(&guard);
}

static void collection_end(void)
{
    const uint64_t ticks = kp_ticks();
    struct kp_guard guard;
    now.is_on = false;
    if (!now.rec || !KP_HOOK_ENTER(&guard, KP_GATE_RECORD)) return;
    const bool is_same = now.cycle == kp_gate_cycle(guard.gate) && now.thread_no == guard.thread->thread_no;
    if (is_same && (guard.gate & KP_GATE_RECORD)) kp_put_end(&now.rec->ticks, now.rec->start, ticks);
    now.rec = NULL;
    KP_HOOK_LEAVE(&guard);
}

/* CPython passes "start" or "stop", and what it found. */
static void *on_collection(void *self, void *arguments, void *unused)
{
    const int kept = errno;
    const char *const text = kp_pyobject_text(kp_python_api.tuple_item(arguments, 0));
    (void)self, (void)unused;
    if (text && strcmp(text, "start") == 0) collection_begin();
    else if (text) collection_end();
    kp_python_api.hold(kp_python_api.none);
    errno = kept;
    return kp_python_api.none;
}

/* ---- gc.callbacks. All with the GIL. ---- */

/* The program may have removed our function, or put others around it. */
static void list_leave(void)
{
    for (intptr_t i = kp_python_api.list_count(list); i-- > 0;)
        if (kp_python_api.list_item(list, i) == callback && kp_python_api.item_remove(list, i) != 0)
            kp_python_api.forget_error();
}

/* Puts our function into the list, or takes it out, as the current window needs it. */
static void list_follow(void)
{
    const uint64_t gate = kp_gate_get();
    const uint32_t cycle = gate & KP_GATE_RECORD ? kp_gate_cycle(gate) : 0;
    if (kp_python_is_over() || kp_load_relaxed(&installed_cycle) == cycle) return;
    if (now.is_on && !cycle) { /* CPython walks through the list */
        (void)kp_python_later(list_follow);
        return;
    }
    struct kp_pyaside aside;
    const bool was_in = kp_exchange_acq_rel(&installed_cycle, cycle) != 0;
    kp_pyaside_begin(&aside, NULL);
    if (was_in && !cycle) list_leave();
    if (!was_in && kp_python_api.list_add(list, callback) != 0) kp_python_api.forget_error();
    kp_pyaside_end(&aside);
}

static void wait_ready(uint64_t begin_ticks, uint32_t timeout_ms)
{
    (void)begin_ticks;
    if (!kp_load_acquire(&attached) || kp_load_relaxed(&installed_cycle) == kp_gate_cycle(kp_gate_get())) return;
    (void)kp_python_with_gil(list_follow, timeout_ms > 0);
}

/* After a window Python's main thread takes our function out. Until then it records nothing. */
static void set_mode(enum kp_source_mode mode)
{
    (void)mode;
    if (!kp_load_acquire(&attached) || !kp_load_relaxed(&installed_cycle) || kp_gate_get() & KP_GATE_RECORD) return;
    (void)kp_python_later(list_follow);
}

/* ---- finding them ---- */

/* The module is built in, and torch's import imports it, too. */
static bool list_find(void)
{
    void *gc = kp_python_api.import("gc");
    list = kp_pyobject_member(gc, "callbacks"); /* the references are never dropped */
    return list && kp_python_at(list, 8) == kp_python_api.list_type;
}

/* With the GIL. */
static bool install(void)
{
    static struct kp_python_method method = {"kprof_collection", on_collection, TAKES_TUPLE, NULL};
    struct kp_pyaside aside;
    kp_pyaside_begin(&aside, NULL);
    if (list_find()) callback = kp_python_api.function_make(&method, NULL, NULL);
    kp_pyaside_end(&aside);
    is_refused = !callback;
    if (is_refused) kp_log(0, "KPROF_PYTHON_GC: this Python has no gc.callbacks that can be used: nothing is recorded");
    return !is_refused;
}

static bool attach(void)
{
    if (kp_load_relaxed(&attached)) return true;
    if (!wants || is_refused || !kp_python_api_find() || kp_python_is_over()) return false;
    if (!kp_python_api.has_gil()) kp_python_attach_later();
    else if (install()) kp_store_release(&attached, true); /* pairs with: wait_ready, set_mode */
    return kp_load_relaxed(&attached);
}

static void setup(const struct kp_config *config) { wants = config->python_gc && config->activities & KP_ACTIVITY_CPU; }

/* The list was copied, too: the child's windows put nothing into it again. */
static void forget(void)
{
    now.is_on = false;
    now.rec = NULL;
}

const struct kp_source kp_garbage_source = {
    .name = "garbage",
    .setup = setup,
    .attach = attach,
    .set_mode = set_mode,
    .wait_ready = wait_ready,
    .forget = forget,
};
