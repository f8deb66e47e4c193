// SPDX-License-Identifier: Apache-2.0
/*
 * window_sources.c - what windows ask of the sources: their mode, that they settle, drain and report
 *
 * Called by: window.c, finish.c
 * Owns:      the sources' mode, the activities that are off
 * Locks:     window_lock is held around modes and switches, and not around what may wait
 * Safe in:   signal handlers no; after fork: kp_window_sources_forget comes first
 */
#include "preload/window/window_sources.h"

#include <errno.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/procfacts/procfacts.h"
#include "collector/base/kp_poison.h"

static const struct kp_source *const *sources;
static enum kp_source_mode mode; /* set last, for sources that attach later */
static uint32_t wanted;
static _Atomic uint32_t off;           /* by kprof_toggle */
static _Atomic uint32_t noted_source;  /* enum kp_step_source that the spool has */
static enum kp_step_source counted_by; /* when the last recorded step began */
static _Atomic(const char *) noted_model, noted_near;

void kp_window_sources_setup(const struct kp_source *const *list, uint32_t activities)
{
    sources = list;
    wanted = activities;
}

void kp_window_sources_forget(const struct kp_source *const *list)
{
    sources = list;
    mode = KP_SOURCE_OFF;
    kp_store_relaxed(&noted_source, KP_STEP_NONE);
    counted_by = KP_STEP_NONE;
    kp_store_relaxed(&noted_model, NULL);
    kp_store_relaxed(&noted_near, NULL);
    kp_store_relaxed(&off, 0);
}

/* FULL becomes STEPS for a source whose activities were not asked for: it still finds steps. */
static enum kp_source_mode mode_of(const struct kp_source *s)
{
    bool is_asked_for = !s->activities || s->activities & wanted & ~kp_load_relaxed(&off);
    return mode == KP_SOURCE_FULL && !is_asked_for ? KP_SOURCE_STEPS : mode;
}

static void set_mode(const struct kp_source *s)
{
    if (s->set_mode) s->set_mode(mode_of(s));
}

void kp_window_sources_mode(enum kp_source_mode now)
{
    mode = now;
    for (const struct kp_source *const *s = sources; *s; s++) set_mode(*s);
}

void kp_window_sources_again(void) { kp_window_sources_mode(mode); }

int kp_window_sources_switch(uint32_t activities, bool on)
{
    if (!activities || activities & ~wanted) return -EINVAL;
    const uint32_t was = kp_load_relaxed(&off);
    kp_store_relaxed(&off, on ? was & ~activities : was | activities);
    for (const struct kp_source *const *s = sources; *s; s++)
        if ((*s)->activities & activities) set_mode(*s);
    return 0;
}

bool kp_window_sources_are_off(uint32_t activity) { return kp_load_relaxed(&off) & activity; }

void kp_window_sources_switched(uint32_t activities, uint64_t begin, uint32_t timeout_ms)
{
    for (const struct kp_source *const *s = sources; begin && *s; s++)
        if ((*s)->activities & activities && (*s)->wait_ready) (*s)->wait_ready(begin, timeout_ms);
}

void kp_window_sources_step(bool begins, uint64_t number)
{
    if (begins) counted_by = kp_steps_source();
    for (const struct kp_source *const *s = sources; *s; s++)
        if ((*s)->step_turns) (*s)->step_turns(begins, number);
}

void kp_window_sources_step_ended(void)
{
    for (const struct kp_source *const *s = sources; *s; s++)
        if ((*s)->step_ended) (*s)->step_ended();
}

void kp_window_sources_settle(uint64_t begin, uint32_t timeout_ms)
{
    for (const struct kp_source *const *s = sources; !begin && kp_gate_get() & KP_GATE_WARM && *s; s++)
        if ((*s)->warm_up) (*s)->warm_up(timeout_ms);
    for (const struct kp_source *const *s = sources; begin && *s; s++)
        if ((*s)->wait_ready) (*s)->wait_ready(begin, timeout_ms);
    for (const struct kp_source *const *s = sources; begin && *s; s++)
        if ((*s)->record_before) (*s)->record_before(begin);
}

bool kp_window_sources_are_drained(uint64_t end)
{
    bool are_drained = true; /* every source is asked, as the first call tells it that the window is over */
    for (const struct kp_source *const *s = sources; *s; s++)
        if ((*s)->is_drained && !(*s)->is_drained(end)) are_drained = false;
    return are_drained;
}

void kp_window_sources_close(uint32_t number)
{
    for (const struct kp_source *const *s = sources; *s; s++)
        if ((*s)->close_cycle) (*s)->close_cycle(number);
}

/* The thing that counted the steps may change while the program runs. */
static void note_step_source(void)
{
    const enum kp_step_source now = kp_steps_source();
    if (now == kp_load_relaxed(&noted_source)) return;
    if (kp_record_note("step_source", kp_step_source_name(now)) == 0) kp_store_relaxed(&noted_source, now);
}

void kp_window_sources_guessed(uint32_t last, enum kp_step_source now)
{
    char number[24];
    kp_fmt(number, sizeof number, "%u", last);
    if (!last || counted_by == KP_STEP_NONE || kp_record_note("guessed_by", kp_step_source_name(counted_by)) != 0)
        return;
    if (kp_record_note("guessed_until", kp_step_source_name(now)) == 0)
        (void)kp_record_note("guessed_windows", number); /* the last: without it there are none */
}

/* Names that may change while the program goes on: the last is true. */
static void note_name(_Atomic(const char *) *noted, const char *key, const char *name)
{
    if (name == kp_load_relaxed(noted)) return;
    if (kp_record_note(key, name) == 0) kp_store_relaxed(noted, name);
}

void kp_window_sources_note(void)
{
    for (const struct kp_source *const *s = sources; *s; s++)
        if ((*s)->note) (*s)->note();
    note_step_source();
    note_name(&noted_model, "model", kp_steps_model());
    note_name(&noted_near, "step_near", kp_steps_near());
}

void kp_window_sources_report(void)
{
    for (const struct kp_source *const *s = sources; *s; s++)
        if ((*s)->report) (*s)->report();
    kp_procfacts_note_end();
}
