// SPDX-License-Identifier: Apache-2.0
/*
 * cupti_source.c - CUDA as a source of events: the functions that preload/run calls
 *
 * Called by: boot.c (attach, one call at a time), window.c at steps (set_mode, wait_ready), finish.c on the ticker
 *            thread (drained, closed)
 * Owns:      nothing but the settings
 * Locks:     none
 * On fail:   REFUSED or DEAD, with a log line; ops are still recorded
 *
 * If the process has no libcuda.so.1 there is no thread, no dlopen, no CUDA call and no change of the environment.
 * cuDeviceGetCount tells whether cuInit has succeeded. Before that it returns 3 (not initialised) and changes nothing.
 * There is no CUPTI call until cuInit has succeeded, since libcupti 13.2 crashes in its first call without a driver.
 */
#include <errno.h>
#include <time.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/cupti/cupti_internal.h"
#include "preload/run.h"
#include "preload/source.h"
#include "collector/base/kp_poison.h"

enum { SETTLE_NAP_NS = 200000, STALLED_SETTLE_MS = 50, STEP_MS = 100, FORK_TRIES = 1000, LONG_CALL_MS = 1000 };

static const struct kp_config *config;
static bool is_asked_for; /* KPROF_ACTIVITIES has cuda */

/* ---- called by preload/run ---- */

static void setup(const struct kp_config *settings)
{
    config = settings;
    kp_cupti_set_config(settings);
    kp_cupti_helper_set_turns(&kp_turns);
    is_asked_for = config->activities & KP_ACTIVITY_CUDA;
    if (!is_asked_for) {
        kp_cupti_note("gpu_source", "off (KPROF_ACTIVITIES)");
        kp_run_set_gpu_backend(KP_GPU_OFF);
        return;
    }
}

/* Installs the taps once libcupti is mapped, so that they see the program's first call. Makes no CUPTI call. libcupti
 * may come long after libcuda. After -EBUSY the next look, or the arming, does it. */
static void see_cupti(void)
{
    int saved = errno;
    if (is_asked_for && !(config->cupti & KP_CUPTI_OFF)) {
        kp_graphs_attach();
        if (kp_cupti_find(false) == 0) (void)kp_tee_start_once(config->cupti);
        if (kp_rules_want_touch()) kp_cupti_helper_wake();
    }
    errno = saved;
}

static bool attach(void)
{
    int saved = errno;
    bool is_there = false;
    see_cupti();
    if (is_asked_for) is_there = kp_cupti_see_driver();
    if (is_there && kp_rules_want_touch()) kp_cupti_helper_wake();
    if (is_there && config->cupti & KP_CUPTI_OFF) {
        kp_cupti_set_state(KP_CUPTI_STATE_REFUSED);
        kp_cupti_note("gpu_cupti", "off (KPROF_CUPTI)");
        kp_cupti_note("gpu_source", "none (no CUPTI)");
        kp_run_set_gpu_backend(KP_GPU_INTERCEPT);
    }
    errno = saved;
    return is_there;
}

/* Passes the mode to the thread kprof-cuda, whatever the state. */
static void set_mode(enum kp_source_mode mode)
{
    if (!is_asked_for) return;
    if (mode == KP_SOURCE_FULL) {
        kp_lane_collect(kp_gate_cycle(kp_gate_get()));
        kp_cupti_notes_write();
    } else if (kp_gate_get() & KP_GATE_RECORD) kp_cupti_helper_cut(); /* kprof_toggle: the window goes on without it */
    kp_cupti_helper_want(mode == KP_SOURCE_FULL);
}

static bool had_activity(void)
{
    return kp_cupti_was_used() || (kp_cupti_state() == KP_CUPTI_STATE_DRIVER_LOADED && kp_cupti_see_cuinit());
}

static bool may_arm_soon(void)
{
    enum kp_cupti_state now = kp_cupti_state();
    return kp_cupti_helper_is_wanted() && (now == KP_CUPTI_STATE_CUINIT_OK || now == KP_CUPTI_STATE_FOUND);
}

/* Waits less if a CUPTI call is under way for long, or if one has stalled before. */
static uint32_t patience_ms(uint32_t timeout_ms)
{
    const uint32_t most = kp_watchdog_call_ms() > timeout_ms ? 1
                          : kp_cupti_helper_has_stalled()    ? STALLED_SETTLE_MS
                                                             : timeout_ms;
    return timeout_ms < most ? timeout_ms : most;
}

/* Waits until CUPTI does what kprof_toggle asked for. */
static void wait_toggled(uint32_t timeout_ms)
{
    const uint64_t end = kp_clock_ms() + timeout_ms;
    while (kp_cupti_helper_is_turning() && !kp_cupti_helper_check() && kp_clock_ms() < end) kp_io_nap(SETTLE_NAP_NS);
}

static void wait_ready(uint64_t begin_ticks, uint32_t timeout_ms)
{
    wait_toggled(patience_ms(timeout_ms));
    static _Atomic uint64_t given_up; /* begin of the window whose wait timed out: its later steps do not wait */
    if (kp_load_relaxed(&given_up) == begin_ticks) return;
    if (kp_cupti_state() == KP_CUPTI_STATE_DRIVER_LOADED && kp_cupti_helper_is_wanted() && kp_cupti_see_cuinit())
        kp_cupti_helper_wake();
    timeout_ms = patience_ms(timeout_ms);
    uint64_t end = kp_clock_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * 1000000u;
    while (may_arm_soon() && !kp_cupti_helper_check() && kp_clock_ns(CLOCK_MONOTONIC) < end) kp_io_nap(SETTLE_NAP_NS);
    if (!timeout_ms || !may_arm_soon()) return;
    kp_store_relaxed(&given_up, begin_ticks);
    kp_cupti_count_cut(kp_gate_cycle(kp_gate_get()));
    KP_LOG_ONCE(0, "CUPTI is not ready after %u ms: what the GPU does before it is will be missing", timeout_ms);
}

/* Outside of CUDA's calls: lets kprof-cuda disable what it has to disable. */
static void step_ended(void)
{
    if (!kp_load_acquire(&kp_cupti_helper.off_due_ms)) return; /* pairs with: cuda_thread.c:may_disable */
    const uint64_t end = kp_clock_ms() + patience_ms(STEP_MS);
    kp_add_acq_rel(&kp_cupti_helper.at_step, 1); /* pairs with: cuda_thread.c:may_disable */
    kp_cupti_helper_wake();
    while (kp_load_acquire(&kp_cupti_helper.off_due_ms) && kp_cupti_state() == KP_CUPTI_STATE_ARMED &&
           !kp_cupti_helper_check() && kp_clock_ms() < end)
        kp_io_nap(SETTLE_NAP_NS);
    kp_add_acq_rel(&kp_cupti_helper.at_step, UINT32_MAX);
}

/* Waits until kprof-cuda is in no loader or CUPTI call, whose locks would stay taken in the child. */
static bool before_fork(void)
{
    const int tries = kp_watchdog_call_ms() > LONG_CALL_MS ? 1 : FORK_TRIES; /* a fork does not wait for a slow call */
    for (int i = 0; i < tries && kp_cupti_state() != KP_CUPTI_STATE_DEAD && kp_cupti_state() != KP_CUPTI_STATE_STALLED;
         i++) {
        if (kp_watchdog_take_control()) return true;
        kp_io_nap(SETTLE_NAP_NS);
    }
    return false;
}

/* In a child control stays taken, so that it makes no CUPTI call. */
static void after_fork(bool is_child)
{
    if (!is_child) kp_watchdog_give_control();
}

/* A window that ends while a call is stalled counts as cut. */
static void close_cycle(uint32_t cycle)
{
    if (kp_cupti_state() == KP_CUPTI_STATE_STALLED) kp_cupti_count_cut(cycle);
    kp_lane_close(cycle);
}

static void report(void) { kp_buffer_write_notes(); }

const struct kp_source kp_cupti_source = {
    .name = "cuda",
    .attach = attach,
    .modules_changed = see_cupti,
    .set_mode = set_mode,
    .had_activity = had_activity,
    .activities = KP_ACTIVITY_CUDA,
    .setup = setup,
    .wait_ready = wait_ready,
    .step_ended = step_ended,
    .is_drained = kp_cupti_helper_is_drained,
    .close_cycle = close_cycle,
    .report = report,
    .before_fork = before_fork,
    .after_fork = after_fork,
};
