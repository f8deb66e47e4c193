// SPDX-License-Identifier: Apache-2.0
/*
 * groups.c - reads the process groups of torch.distributed for the execution trace of each window
 *
 * Called by: boot.c through source.h; CPython's main thread; execution_trace.c, which takes the text at a step
 * Owns:      the last text, a Python string that is never dropped
 * Locks:     the GIL. The thread that steps takes it at a window's begin alone, as garbage.c does
 * On fail:   the execution trace lacks the node `## process_group:init ##`
 * Safe in:   after fork yes: the child has the parent's text and writes no execution trace
 *
 * torch.profiler's observer asks `_world.pg_config_info` when it begins to write. Torch's C++ does not know the
 * backend of each device, so Python is asked here, too: while the window warms up, on Python's main thread.
 */
#include "preload/python_bridge.h"

#include <string.h>

#include "collector/base/kp_config.h"
#include "preload/guard.h"
#include "preload/python/pycalls.h"
#include "preload/source.h"
#include "collector/base/kp_poison.h"

static bool wants;
static _Atomic bool attached;
static _Atomic uint32_t asked_cycle, read_cycle;
static const char *_Atomic groups; /* NULL: no groups */

const char *kp_caller_groups(void) { return kp_load_acquire(&groups); } /* pairs with: text_keep */

/* ---- all with the GIL ---- */

static bool is_initialized(void)
{
    void *const function = kp_pymodule_member("torch.distributed.distributed_c10d", "is_initialized");
    void *const answer = function ? kp_python_api.call_with(function, NULL) : NULL;
    const bool is = answer && kp_python_api.int_value(answer) == 1;
    KP_PYTHON_DROP(function, answer);
    return is;
}

/* json.dumps(torch.distributed.distributed_c10d._world.pg_config_info) */
static void *text_make(void)
{
    void *const world = kp_pymodule_member("torch.distributed.distributed_c10d", "_world");
    void *const list = kp_pyobject_member(world, "pg_config_info");
    void *const dumps = list ? kp_pymodule_member("json", "dumps") : NULL;
    void *const text = dumps ? kp_python_api.call_with(dumps, list, NULL) : NULL;
    KP_PYTHON_DROP(world, list, dumps);
    return text;
}

/* Another thread may read the text that was there: so each stays. Groups change a few times in a program. */
static void text_keep(void *object)
{
    const char *const text = object ? kp_python_api.text_of(object) : NULL, *const old = kp_load_relaxed(&groups);
    const bool is_same = text && old && strcmp(text, old) == 0;
    if (!is_same) kp_store_release(&groups, text); /* pairs with: kp_caller_groups */
    if (object && (is_same || !text)) kp_python_api.drop(object);
}

static void groups_read(void)
{
    struct kp_pyaside aside;
    kp_store_relaxed(&read_cycle, kp_gate_cycle(kp_gate_get()));
    if (kp_python_is_over()) return;
    kp_pyaside_begin(&aside, kp_thread_self);
    text_keep(is_initialized() ? text_make() : NULL);
    kp_pyaside_end(&aside);
}

/* ---- the source ---- */

/* While a window warms up there is time for Python's main thread to answer. */
static void set_mode(enum kp_source_mode mode)
{
    const uint32_t cycle = kp_gate_cycle(kp_gate_get());
    if (mode != KP_SOURCE_FULL || !kp_load_acquire(&attached) || kp_load_relaxed(&asked_cycle) == cycle) return;
    kp_store_relaxed(&asked_cycle, cycle);
    (void)kp_python_later(groups_read);
}

static void wait_ready(uint64_t begin_ticks, uint32_t timeout_ms)
{
    (void)begin_ticks;
    if (!kp_load_acquire(&attached) || kp_load_relaxed(&read_cycle) == kp_gate_cycle(kp_gate_get())) return;
    (void)kp_python_with_gil(groups_read, timeout_ms > 0);
}

static bool attach(void)
{
    if (kp_load_relaxed(&attached)) return true;
    if (!wants || !kp_python_api_find()) return false;
    kp_store_release(&attached, true); /* pairs with: set_mode, wait_ready */
    return true;
}

static void setup(const struct kp_config *config) { wants = config->execution_trace; }

const struct kp_source kp_groups_source = {
    .name = "groups",
    .setup = setup,
    .attach = attach,
    .set_mode = set_mode,
    .wait_ready = wait_ready,
};
