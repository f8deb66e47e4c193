// SPDX-License-Identifier: Apache-2.0
/* window_fixture.h - a run with one source, for tests of windows: its ops and steps, and what the spool says of them */
#pragma once

#include "preload/window/window.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/read/kp_read.h"
#include "collector/record/kp_record.h"
#include "preload/run.h"
#include "test/support/reader_open.h"
#include "test/support/support.h"

static struct kp_config *config;
static struct kp_schedule plan;
static struct kp_step_rule rule = {.kind = KP_RULE_API};
static enum kp_source_mode mode;

static bool signals_under_lock;
static volatile sig_atomic_t lock_is_held;

static void mode_note(enum kp_source_mode wanted)
{
    mode = wanted;
    if (!signals_under_lock) return;
    lock_is_held = 1;
    pthread_kill(pthread_self(), SIGUSR1);
    lock_is_held = 0;
}

static uint64_t settled_begin;
static uint32_t settled_timeout_ms;
static bool puts_at_settle;

/* What a source knows of before the window: it begins when the window does. */
static void settle_note(uint64_t begin_ticks, uint32_t timeout_ms)
{
    assert_in_range(timeout_ms, 0, 1000);
    settled_timeout_ms = timeout_ms;
    settled_begin = begin_ticks;
    if (!puts_at_settle) return;
    struct kp_thread *t = kp_thread_get();
    struct kp_rec_op *rec = kp_put_reserve(t, kp_gate_get(), sizeof *rec, KP_KIND_OP);
    assert_non_null(rec);
    *rec = (struct kp_rec_op){.head = {.kind = KP_KIND_OP, .size = sizeof *rec}, .start = begin_ticks, .ticks = 1};
    kp_put_commit(t, sizeof *rec);
}

static const struct kp_source fake = {.name = "fake", .set_mode = mode_note, .wait_ready = settle_note};
static const struct kp_source *const sources[] = {&fake, NULL};

static int open_spool(void)
{
    static char dir[300];
    snprintf(dir, sizeof dir, "%s", kp_test_tmpdir());
    return kp_record_is_open()
               ? 0
               : kp_record_open(&(struct kp_record_options){.dir = dir, .max_bytes = 256 << 20, .text = ""});
}

static void setup(const char *schedule)
{
    char why[128];
    if (!config) {
        char *no_variables[] = {NULL};
        config = kp_map_alloc(sizeof *config);
        kp_config_read_as(config, no_variables, false);
        kp_clock_init();
        assert_int_equal(kp_gate_init(), 0);
    }
    memset(&plan, 0, sizeof plan);
    if (schedule) assert_int_equal(kp_schedule_parse(schedule, &plan, why, sizeof why), 0);
    assert_int_equal(kp_steps_init(&plan, &rule), 0);
    kp_run_set_calls(&(struct kp_run_calls){.open_spool = open_spool});
    kp_window_setup(config, &plan, sources);
}

/* What a source does for one op. */
__attribute__((unused)) static void op(struct kp_thread *t)
{
    uint64_t gate = kp_gate_get();
    if (!(gate & KP_GATE_RECORD)) return;
    struct kp_rec_op *rec = kp_put_reserve(t, gate, sizeof *rec, KP_KIND_OP);
    assert_non_null(rec);
    *rec = (struct kp_rec_op){.head = {.kind = KP_KIND_OP, .size = sizeof *rec}, .start = kp_ticks()};
    kp_put_commit(t, sizeof *rec);
    kp_store_release(&rec->ticks, kp_ticks() - rec->start + 1);
}

__attribute__((unused)) static void step(struct kp_thread *t)
{
    kp_steps_api();
    kp_window_step(t, kp_ticks());
}

struct seen {
    uint64_t steps[64], n_steps, n_ops, n_open, n_startup, n_cut;
};

static int see(void *context, const struct kp_event *e)
{
    struct seen *s = context;
    if (e->kind == KP_KIND_STEP) s->steps[s->n_steps++ % 64] = e->step;
    else s->n_ops++;
    s->n_startup += e->kind == KP_KIND_STEP && e->flags & KP_STEP_STARTUP;
    s->n_cut += e->kind == KP_KIND_STEP && e->flags & KP_STEP_CUT;
    s->n_open += (e->flags & KP_OP_UNFINISHED) != 0;
    return 0;
}

__attribute__((unused)) static struct seen read_cycle(uint32_t number)
{
    struct kp_reader *r;
    struct seen s = {.n_ops = 0};
    char why[200];
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    assert_int_equal(kp_reader_events(r, number, see, &s), 0);
    kp_reader_close(r);
    return s;
}

__attribute__((unused)) static struct kp_window_state look(void)
{
    struct kp_window_state now;
    kp_window_look(&now);
    return now;
}

static uint64_t asked_begin;
__attribute__((unused)) static int ask_for(uint64_t id, int when, uint64_t at, uint64_t steps)
{
    const struct kp_window_wish wish = {.when = when, .at = at, .steps = steps, .id = id};
    return kp_window_ask(&wish, &asked_begin);
}
__attribute__((unused)) static int ask(int when, uint64_t at, uint64_t steps) { return ask_for(0, when, at, steps); }
