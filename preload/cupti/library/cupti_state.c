// SPDX-License-Identifier: Apache-2.0
/*
 * cupti_state.c - the state of CUDA in this process, and the notes about it
 *
 * Called by: every file of the room, any thread
 * Owns:      the state (drawn in cupti.h), and notes that wait for a spool
 * Locks:     a flag for the notes, tried for a bounded time
 * On fail:   REFUSED or DEAD, with a log line; ops are still recorded
 */
#include <sched.h>
#include <string.h>

#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/cupti/cupti_internal.h"
#include "preload/run.h"
#include "collector/base/kp_poison.h"

enum { NOTES = 32, NOTE_BYTES = 1100, CUDA_NOT_INITIALIZED = 3 };

static _Atomic uint32_t state = KP_CUPTI_STATE_ABSENT;
static _Atomic bool was_used; /* cuInit has succeeded */
static const struct kp_config *config;
_Atomic uint32_t kp_cupti_exit_asked;

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

void kp_cupti_notes_write(void)
{
    if (!kp_record_is_open() || !notes_take()) return;
    for (int i = 0; i < NOTES && notes[i].key; i++)
        if (notes[i].is_new && kp_record_note(notes[i].key, notes[i].value) == 0) notes[i].is_new = false;
    kp_store_release(&notes_taken, 0); /* pairs with: notes_take */
}

void kp_cupti_note(const char *key, const char *value)
{
    if (!notes_take()) return;
    for (int i = 0; i < NOTES; i++) {
        if (notes[i].key && strcmp(notes[i].key, key) != 0) continue;
        if (notes[i].key && strcmp(notes[i].value, value) == 0) break; /* unchanged */
        notes[i].key = key;
        kp_fmt(notes[i].value, sizeof notes[i].value, "%s", value);
        notes[i].is_new = true;
        break;
    }
    kp_store_release(&notes_taken, 0); /* pairs with: notes_take */
    kp_cupti_notes_write();
}

/* ---- the state ---- */

enum kp_cupti_state kp_cupti_state(void)
{
    return (enum kp_cupti_state)kp_load_acquire(&state); /* pairs with: kp_cupti_set_state */
}

/* DEAD is final, REFUSED and STALLED change to DEAD only; kp_cupti_unstall ends STALLED. */
void kp_cupti_set_state(enum kp_cupti_state now)
{
    uint32_t seen = kp_load_relaxed(&state);
    do {
        if (seen == KP_CUPTI_STATE_DEAD ||
            ((seen == KP_CUPTI_STATE_REFUSED || seen == KP_CUPTI_STATE_STALLED) && now != KP_CUPTI_STATE_DEAD))
            return;
    } while (!kp_cas_acq_rel(&state, &seen, (uint32_t)now)); /* pairs with: kp_cupti_state */
    if (now != KP_CUPTI_STATE_ARMED) return;
    kp_cupti_note("gpu_source", "cupti");
    kp_run_set_gpu_backend(KP_GPU_CUPTI);
}

bool kp_cupti_stall(void)
{
    uint32_t seen = kp_load_relaxed(&state);
    do {
        if (seen != KP_CUPTI_STATE_CUINIT_OK && seen != KP_CUPTI_STATE_FOUND && seen != KP_CUPTI_STATE_ARMED)
            return false;
    } while (!kp_cas_acq_rel(&state, &seen, KP_CUPTI_STATE_STALLED)); /* pairs with: kp_cupti_state */
    return true;
}

void kp_cupti_unstall(void)
{
    uint32_t stalled = KP_CUPTI_STATE_STALLED;
    (void)kp_cas_acq_rel(&state, &stalled, KP_CUPTI_STATE_FOUND); /* pairs with: kp_cupti_state */
}

bool kp_cupti_disarm_finalized(void)
{
    uint32_t armed = KP_CUPTI_STATE_ARMED;
    bool was_armed = kp_cas_acq_rel(&state, &armed, KP_CUPTI_STATE_FOUND); /* pairs with: kp_cupti_state */
    return was_armed || armed == KP_CUPTI_STATE_SHARED;
}

void kp_cupti_count_cut(uint32_t cycle)
{
    static _Atomic uint32_t last, cut;
    char text[24];
    uint32_t seen = kp_load_relaxed(&last);
    do {
        if (seen >= cycle) return;
    } while (!kp_cas_acq_rel(&last, &seen, cycle)); /* pairs with: itself */
    kp_fmt(text, sizeof text, "%u", (unsigned)kp_add_relaxed(&cut, 1) + 1);
    kp_cupti_note("gpu_windows_cut", text);
}

bool kp_cupti_may_call(void)
{
    return kp_cupti_state() != KP_CUPTI_STATE_DEAD && kp_cupti_state() != KP_CUPTI_STATE_STALLED &&
           !kp_load_acquire(&kp_cupti_exit_asked); /* pairs with: helper.c:at_exit */
}

static bool refuse(const char *how, const char *why)
{
    char text[NOTE_BYTES];
    /* In STALLED it does nothing: the next window tries again. */
    if (!kp_cupti_may_call() || kp_cupti_state() == KP_CUPTI_STATE_REFUSED) return false;
    kp_cupti_set_state(KP_CUPTI_STATE_REFUSED);
    kp_fmt(text, sizeof text, "%s: %s", how, why);
    kp_cupti_note("gpu_cupti", text);
    return true;
}

void kp_cupti_refuse(const char *why)
{
    if (!refuse("refused", why)) return;
    kp_cupti_note("gpu_source", "none (no CUPTI)");
    kp_log(0, "no GPU records from CUPTI: %s", why);
    kp_run_set_gpu_backend(KP_GPU_INTERCEPT);
}

void kp_cupti_leave(const char *why)
{
    if (!refuse("refused", why)) return;
    kp_cupti_note("gpu_source", "none (another tool has CUPTI)");
    kp_log(0, "no GPU records: %s", why);
    kp_run_set_gpu_backend(KP_GPU_OFF);
}

void kp_cupti_end(const char *why)
{
    if (refuse("ended", why)) kp_log(0, "GPU work is not recorded any more: %s", why);
}

void kp_cupti_set_config(const struct kp_config *settings) { config = settings; }

const struct kp_config *kp_cupti_config(void) { return config; }

bool kp_cupti_wants_waits(void) { return config && config->cuda_sync; }

bool kp_cupti_has_schedule(void) { return config && config->schedule; }

static void say_none(const char *why)
{
    char text[96];
    kp_fmt(text, sizeof text, "none (%s)", why);
    kp_cupti_note("gpu_source", text);
}

bool kp_cupti_see_driver(void)
{
    static bool is_stub_said;
    uint32_t absent = KP_CUPTI_STATE_ABSENT;
    if (kp_cupti_state() != KP_CUPTI_STATE_ABSENT) return true;
    switch (kp_driver_find()) {
    case KP_FOUND_STUB:
        if (!is_stub_said) say_none("libcuda.so.1 is the toolkit's stub");
        is_stub_said = true;
        return false;
    case KP_FOUND_DRIVER: break;
    default: return false;
    }
    if (kp_cas_acq_rel(&state, &absent, KP_CUPTI_STATE_DRIVER_LOADED))
        say_none("cuInit was not called"); /* pairs with: kp_cupti_state */
    return true;
}

bool kp_cupti_see_cuinit(void)
{
    uint32_t loaded = KP_CUPTI_STATE_DRIVER_LOADED;
    int count = 0;
    char why[48];
    if (kp_cupti_state() != KP_CUPTI_STATE_DRIVER_LOADED) return kp_cupti_state() > KP_CUPTI_STATE_DRIVER_LOADED;
    int code = kp_driver.device_count ? kp_driver.device_count(&count) : CUDA_NOT_INITIALIZED;
    if (code == CUDA_NOT_INITIALIZED) return false;
    if (code != 0 || count == 0) {
        kp_fmt(why, sizeof why, code ? "cuInit=%d" : "device count %d", code);
        say_none(why);
        return false;
    }
    kp_store_relaxed(&was_used, true);
    (void)kp_cas_acq_rel(&state, &loaded, KP_CUPTI_STATE_CUINIT_OK); /* pairs with: kp_cupti_state */
    return true;
}

bool kp_cupti_was_used(void) { return kp_load_relaxed(&was_used); }
