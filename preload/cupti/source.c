// SPDX-License-Identifier: Apache-2.0
/*
 * source.c - CUDA as a source of events: its state, and what boot.c drives
 *
 * Called by: boot.c (attach, one call at a time), cycle.c at steps (set_mode, settle), finish.c on the writer thread (drained,
 *            closed), tee.c inside calls of the program
 * Owns:      the state (cupti.h draws it), the notes about the GPU that wait for a spool
 * Locks:     a flag around the notes, tried for a bounded time
 * On fail:   REFUSED or DEAD, with one line: ops are recorded as ever
 *
 * No GPU, nothing done: without libcuda.so.1 in the process there is no thread, no dlopen, no call, no change of the environment.
 * Whether cuInit succeeded is asked of cuDeviceGetCount, which answers 3 (not initialised) before it and changes nothing:
 * libcupti 13.2 crashes in its first call when there is no driver, so none is made before the driver said that it is up.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "collector/base/kp_clock.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/cupti/room.h"
#include "preload/run.h"
#include "preload/source.h"
#include "collector/base/kp_poison.h"

enum { NOTES = 32, NOTE_BYTES = 1100, CUDA_NOT_INITIALIZED = 3, SETTLE_NAP_NS = 200000, STALLED_SETTLE_MS = 50, CLOCK_TRIES = 250,
       FORK_TRIES = 1000, LONG_CALL_MS = 1000 };

static _Atomic uint32_t state = KP_CUDA_ABSENT;
static _Atomic bool was_used;       /* cuInit succeeded: the program does use a GPU */
static const struct kp_config *config;
static bool is_asked_for;           /* KPROF_ACTIVITIES has cuda */

/* ---- notes ---- */

static struct {
    const char *key;
    char value[NOTE_BYTES];
    bool is_new;
} notes[NOTES] = {{.key = "gpu_source", .value = "none (libcuda.so.1 not loaded)", .is_new = true}};
static _Atomic uint32_t notes_taken;

static bool notes_take(void)
{
    for (int i = 0; i < 1000; i++) {
        if (!kp_exchange_acquire(&notes_taken, 1)) return true;
        sched_yield();
    }
    return false;
}

static void notes_write(void)
{
    if (!kp_record_is_open() || !notes_take()) return;
    for (int i = 0; i < NOTES && notes[i].key; i++)
        if (notes[i].is_new && kp_record_note(notes[i].key, notes[i].value) == 0) notes[i].is_new = false;
    kp_store_release(&notes_taken, 0); /* pairs with: notes_take */
}

void kp_cuda_note(const char *key, const char *value)
{
    if (!notes_take()) return;
    for (int i = 0; i < NOTES; i++) {
        if (notes[i].key && strcmp(notes[i].key, key) != 0) continue;
        if (notes[i].key && strcmp(notes[i].value, value) == 0) break; /* no news: driver calls are asked for hundreds of times */
        notes[i].key = key;
        kp_fmt(notes[i].value, sizeof notes[i].value, "%s", value);
        notes[i].is_new = true;
        break;
    }
    kp_store_release(&notes_taken, 0); /* pairs with: notes_take */
    notes_write();
}

/* ---- the state ---- */

enum kp_cuda_state kp_cuda_state(void)
{
    return (enum kp_cuda_state)kp_load_acquire(&state); /* pairs with: kp_cuda_set_state */
}

/* REFUSED and DEAD are for good, but DEAD overrules; STALLED has an end of its own. */
void kp_cuda_set_state(enum kp_cuda_state now)
{
    uint32_t seen = kp_load_relaxed(&state);
    do {
        if (seen == KP_CUDA_DEAD || ((seen == KP_CUDA_REFUSED || seen == KP_CUDA_STALLED) && now != KP_CUDA_DEAD)) return;
    } while (!kp_cas_acq_rel(&state, &seen, (uint32_t)now)); /* pairs with: kp_cuda_state */
    if (now != KP_CUDA_ARMED) return;
    kp_cuda_note("gpu_source", "cupti");
    kp_run_set_gpu(KP_GPU_CUPTI);
}

bool kp_cuda_stall(void)
{
    uint32_t seen = kp_load_relaxed(&state);
    do {
        if (seen != KP_CUDA_CUINIT_OK && seen != KP_CUDA_CUPTI_FOUND && seen != KP_CUDA_ARMED) return false;
    } while (!kp_cas_acq_rel(&state, &seen, KP_CUDA_STALLED)); /* pairs with: kp_cuda_state */
    return true;
}

void kp_cuda_unstall(void)
{
    uint32_t stalled = KP_CUDA_STALLED;
    (void)kp_cas_acq_rel(&state, &stalled, KP_CUDA_CUPTI_FOUND); /* pairs with: kp_cuda_state */
}

void kp_cuda_count_cut(uint32_t cycle)
{
    static _Atomic uint32_t last, cut;
    char text[24];
    uint32_t seen = kp_load_relaxed(&last);
    do {
        if (seen >= cycle) return;
    } while (!kp_cas_acq_rel(&last, &seen, cycle)); /* pairs with: itself */
    kp_fmt(text, sizeof text, "%u", (unsigned)kp_add_relaxed(&cut, 1) + 1);
    kp_cuda_note("gpu_windows_cut", text);
}

static bool refuse(const char *how, const char *why)
{
    char text[NOTE_BYTES];
    if (!kp_helper_may_call() || kp_cuda_state() == KP_CUDA_REFUSED) return false; /* STALLED: the next window finds out again */
    kp_cuda_set_state(KP_CUDA_REFUSED);
    kp_fmt(text, sizeof text, "%s: %s", how, why);
    kp_cuda_note("gpu_cupti", text);
    return true;
}

void kp_cuda_refuse(const char *why)
{
    if (!refuse("refused", why)) return;
    kp_cuda_note("gpu_source", "none (no CUPTI)");
    kp_log(0, "no GPU records from CUPTI: %s", why);
    kp_run_set_gpu(KP_GPU_HOOKS);
}

void kp_cuda_leave(const char *why)
{
    if (!refuse("refused", why)) return;
    kp_cuda_note("gpu_source", "none (another tool has CUPTI)");
    kp_log(0, "no GPU records: %s", why);
    kp_run_set_gpu(KP_GPU_OFF);
}

void kp_cuda_end(const char *why)
{
    if (refuse("ended", why)) kp_log(0, "GPU work is not recorded any more: %s", why);
}

bool kp_cuda_wants_waits(void)
{
    return config && config->cuda_sync;
}

bool kp_cuda_has_schedule(void)
{
    return config && config->schedule;
}

static void say_none(const char *why)
{
    char text[96];
    kp_fmt(text, sizeof text, "none (%s)", why);
    kp_cuda_note("gpu_source", text);
}

bool kp_cuda_see_driver(void)
{
    static bool is_stub_said;
    uint32_t absent = KP_CUDA_ABSENT;
    if (kp_cuda_state() != KP_CUDA_ABSENT) return true;
    switch (kp_driver_find()) {
    case KP_FOUND_STUB:
        if (!is_stub_said) say_none("libcuda.so.1 is the toolkit's stub");
        is_stub_said = true;
        return false;
    case KP_FOUND_DRIVER:
        break;
    default:
        return false;
    }
    if (kp_cas_acq_rel(&state, &absent, KP_CUDA_DRIVER_LOADED)) say_none("cuInit was not called"); /* pairs with: kp_cuda_state */
    return true;
}

bool kp_cuda_see_cuinit(void)
{
    uint32_t loaded = KP_CUDA_DRIVER_LOADED;
    int count = 0;
    char why[48];
    if (kp_cuda_state() != KP_CUDA_DRIVER_LOADED) return kp_cuda_state() > KP_CUDA_DRIVER_LOADED;
    int code = kp_driver.device_count ? kp_driver.device_count(&count) : CUDA_NOT_INITIALIZED;
    if (code == CUDA_NOT_INITIALIZED) return false;
    if (code != 0 || count == 0) {
        kp_fmt(why, sizeof why, code ? "cuInit=%d" : "device count %d", code);
        say_none(why);
        return false;
    }
    kp_store_relaxed(&was_used, true);
    (void)kp_cas_acq_rel(&state, &loaded, KP_CUDA_CUINIT_OK); /* pairs with: kp_cuda_state */
    return true;
}

/* ---- what boot.c drives ---- */

static void setup(const struct kp_config *settings)
{
    config = settings;
    is_asked_for = config->activities & KP_ACTIVITY_CUDA;
    if (!is_asked_for) {
        kp_cuda_note("gpu_source", "off (KPROF_ACTIVITIES)");
        kp_run_set_gpu(KP_GPU_OFF);
        return;
    }
}

int kp_cuda_tee_start(void)
{
    enum { NOT_YET, STARTING, STARTED };
    static _Atomic uint32_t stage;
    uint32_t seen = NOT_YET;
    if (!config) return 0;
    if (!kp_cas_acq_rel(&stage, &seen, STARTING)) return seen == STARTED ? 0 : -EBUSY; /* pairs with: itself */
    int err = kp_tee_start(config->cupti);
    kp_store_release(&stage, err == -EBUSY ? NOT_YET : STARTED); /* pairs with: itself */
    return err == -EBUSY ? err : 0;
}

/* Calls nothing of CUPTI: the program's own calls are seen from its first one on, also when nothing records yet. libcupti may
 * come long after libcuda. Where it is busy the next look, or arming, does it. */
static void see_cupti(void)
{
    int saved = errno;
    if (is_asked_for && !(config->cupti & KP_CUPTI_OFF)) {
        kp_graphs_attach();
        if (kp_cupti_find(false) == 0) (void)kp_cuda_tee_start();
        if (kp_rules_want_touch()) kp_helper_wake();
    }
    errno = saved;
}

static bool attach(void)
{
    int saved = errno;
    bool is_there = false;
    see_cupti();
    if (is_asked_for) is_there = kp_cuda_see_driver();
    if (is_there && kp_rules_want_touch()) kp_helper_wake();
    if (is_there && config->cupti & KP_CUPTI_OFF) {
        kp_cuda_set_state(KP_CUDA_REFUSED);
        kp_cuda_note("gpu_cupti", "off (KPROF_CUPTI)");
        kp_cuda_note("gpu_source", "none (no CUPTI)");
        kp_run_set_gpu(KP_GPU_HOOKS);
    }
    errno = saved;
    return is_there;
}

/* REFUSED is not told: whoever records instead is. */
static void set_mode(enum kp_source_mode mode)
{
    if (!is_asked_for) return;
    if (mode == KP_SOURCE_FULL) {
        kp_lane_collect(kp_gate_cycle(kp_gate_get()));
        notes_write();
    }
    kp_helper_want(mode == KP_SOURCE_FULL);
}

static bool saw_work(void)
{
    return kp_load_relaxed(&was_used) || (kp_cuda_state() == KP_CUDA_DRIVER_LOADED && kp_cuda_see_cuinit());
}

static bool may_arm_soon(void)
{
    enum kp_cuda_state now = kp_cuda_state();
    return kp_helper_is_wanted() && (now == KP_CUDA_CUINIT_OK || now == KP_CUDA_CUPTI_FOUND);
}

/* A call that is under way for long will hardly return now; one that was may take long again. */
static uint32_t patience_ms(uint32_t timeout_ms)
{
    const uint32_t most = kp_helper_call_ms() > timeout_ms ? 1 : kp_helper_has_stalled() ? STALLED_SETTLE_MS : timeout_ms;
    return timeout_ms < most ? timeout_ms : most;
}

static void settle(uint64_t begin_ticks, uint32_t timeout_ms)
{
    static _Atomic uint64_t given_up; /* the window that was not waited for to the end: not again at each of its steps */
    if (kp_load_relaxed(&given_up) == begin_ticks) return;
    if (kp_cuda_state() == KP_CUDA_DRIVER_LOADED && kp_helper_is_wanted() && kp_cuda_see_cuinit()) kp_helper_wake();
    timeout_ms = patience_ms(timeout_ms);
    uint64_t end = kp_clock_ns(CLOCK_MONOTONIC) + (uint64_t)timeout_ms * 1000000u;
    while (may_arm_soon() && !kp_helper_check() && kp_clock_ns(CLOCK_MONOTONIC) < end) kp_io_nap(SETTLE_NAP_NS);
    if (!timeout_ms || !may_arm_soon()) return;
    kp_store_relaxed(&given_up, begin_ticks);
    kp_cuda_count_cut(kp_gate_cycle(kp_gate_get()));
    KP_LOG_ONCE(0, "CUPTI is not ready after %u ms: what the GPU does before it is will be missing", timeout_ms);
}

/* The thread kprof-cuda calls into the loader and into CUPTI, whose locks a child would find taken. */
static bool before_fork(void)
{
    const int tries = kp_helper_call_ms() > LONG_CALL_MS ? 1 : FORK_TRIES; /* slow: a fork does not find it STALLED, nor waits */
    for (int i = 0; i < tries && kp_cuda_state() != KP_CUDA_DEAD && kp_cuda_state() != KP_CUDA_STALLED; i++) {
        if (kp_helper_take_control()) return true;
        kp_io_nap(SETTLE_NAP_NS);
    }
    return false;
}

/* A child makes no calls into CUPTI: there control is never given back. */
static void after_fork(bool is_child)
{
    if (!is_child) kp_helper_give_control();
}

/* While a call is STALLED a window is closed as it is. */
static void close_cycle(uint32_t cycle)
{
    if (kp_cuda_state() == KP_CUDA_STALLED) kp_cuda_count_cut(cycle);
    kp_lane_close(cycle);
}

static void tell(void)
{
    kp_buffer_write_notes();
}

const struct kp_source kp_cuda_source = {
    .name = "cuda",
    .attach = attach,
    .modules_changed = see_cupti,
    .set_mode = set_mode,
    .saw_work = saw_work,
    .activities = KP_ACTIVITY_CUDA,
    .setup = setup,
    .settle = settle,
    .is_drained = kp_helper_is_drained,
    .close_cycle = close_cycle,
    .tell = tell,
    .before_fork = before_fork,
    .after_fork = after_fork,
};

/* ---- what tee.c tells ---- */

/* Whoever has control has it for moments, or for the length of a flush. */
static void sample_now(void)
{
    if (kp_cuda_state() != KP_CUDA_ARMED) return;
    for (int i = 0; i < CLOCK_TRIES; i++) {
        if (kp_helper_take_control()) {
            kp_domain_sample();
            kp_helper_give_control();
            return;
        }
        kp_io_nap(SETTLE_NAP_NS);
    }
    kp_helper_wake();
}

/* The old clock's last sample. */
void kp_cuda_clock_changing(void)
{
    sample_now();
}

/* Stamps of the new clock may arrive at once: it must be known by then. */
void kp_cuda_clock_changed(void)
{
    kp_domain_next();
    sample_now();
}

/* Nothing is enabled any more; the next window, or the helper's next turn, arms from the beginning. */
void kp_cuda_finalized(void)
{
    uint32_t armed = KP_CUDA_ARMED;
    kp_control_forget();
    kp_rules_finalized();
    bool was_armed = kp_cas_acq_rel(&state, &armed, KP_CUDA_CUPTI_FOUND); /* pairs with: kp_cuda_state */
    if (was_armed || armed == KP_CUDA_SHARED) kp_helper_rest(true);
}
