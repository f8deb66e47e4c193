// SPDX-License-Identifier: Apache-2.0
/* test_window.c - steps open and close windows, and the spool says which steps and ops lie in which */
#include "preload/run/window.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "collector/base/kp_arena.h"
#include "collector/base/kp_clock.h"
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
static sigjmp_buf away;

static void mode_note(enum kp_source_mode wanted)
{
    mode = wanted;
    if (!signals_under_lock) return;
    lock_is_held = 1;
    pthread_kill(pthread_self(), SIGUSR1);
    lock_is_held = 0;
}

static void leave_by_jump(int signal)
{
    (void)signal;
    if (!lock_is_held) siglongjmp(away, 1);
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
static void op(struct kp_thread *t)
{
    uint64_t gate = kp_gate_get();
    if (!(gate & KP_GATE_RECORD)) return;
    struct kp_rec_op *rec = kp_put_reserve(t, gate, sizeof *rec, KP_KIND_OP);
    assert_non_null(rec);
    *rec = (struct kp_rec_op){.head = {.kind = KP_KIND_OP, .size = sizeof *rec}, .start = kp_ticks()};
    kp_put_commit(t, sizeof *rec);
    kp_store_release(&rec->ticks, kp_ticks() - rec->start + 1);
}

static void step(struct kp_thread *t)
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

static struct seen read_cycle(uint32_t number)
{
    struct kp_reader *r;
    struct seen s = {.n_ops = 0};
    char why[200];
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    assert_int_equal(kp_reader_events(r, number, see, &s), 0);
    kp_reader_close(r);
    return s;
}

/* One process has one run: each test goes on where the one before left off. */
static void windows_hold_the_steps_that_torchs_schedule_names(void **state)
{
    struct kp_window w;
    (void)state;
    setup("skip_first=1,wait=1,warmup=1,active=2,repeat=2");
    assert_int_equal(kp_window_stop(), -EALREADY);
    kp_window_begin_run(false);
    struct kp_thread *t = kp_thread_get();
    assert_non_null(t);
    for (int i = 0; i < 12; i++) {
        enum kp_action now = kp_schedule_action(&plan, (uint64_t)i);
        assert_int_equal(mode, now == KP_ACTION_NONE ? KP_SOURCE_STEPS : KP_SOURCE_FULL);
        assert_int_equal((kp_gate_get() & KP_GATE_RECORD) != 0, now >= KP_ACTION_RECORD);
        assert_int_equal((kp_gate_get() & KP_GATE_WARM) != 0, now == KP_ACTION_WARMUP);
        for (int k = 0; k < 10; k++) op(t);
        for (int k = 0; k <= i; k++) kp_loss_count(KP_KIND_OP, KP_LOSS_NO_CHUNK); /* i + 1 in step i */
        errno = EXDEV;
        step(t);
        assert_int_equal(errno, EXDEV);
    }
    for (uint32_t number = 1; number <= 2; number++) {
        assert_false(kp_window_schedule_is_over()); /* a window waits to be closed */
        assert_true(kp_window_take_drained(&w, false));
        assert_int_equal(w.number, number);
        assert_int_equal(w.steps, 2);
        assert_int_equal(w.lost,
                         2 * w.first_step + 3); /* of its own steps, not of warming up or of those before and after */
        assert_false(w.cut);
        assert_int_equal(w.first_step, number == 1 ? 3 : 7);
        struct seen s = read_cycle(number);
        assert_int_equal(s.n_ops, 20);
        assert_int_equal(s.n_steps, 2);
        assert_int_equal(s.steps[0], w.first_step);
        assert_int_equal(s.steps[1], w.first_step + 1);
        assert_int_equal(s.n_open, 0);
    }
    assert_false(kp_window_take_drained(&w, false));
    assert_true(kp_window_schedule_is_over());
}

/* A window opened by hand goes on through the schedule's warmup; its save ends both. */
static void a_window_begun_by_hand_is_not_cut_by_the_schedules_warmup(void **state)
{
    struct kp_window w;
    (void)state;
    setup("wait=2,warmup=2,active=2,repeat=1");
    struct kp_thread *t = kp_thread_get();
    assert_int_equal(kp_window_stop(), -EALREADY);
    assert_int_equal(kp_window_start(), 0);
    assert_int_equal(kp_window_start(), -EALREADY);
    for (int i = 0; i < 6; i++) {
        assert_true(kp_gate_get() & KP_GATE_RECORD);
        assert_int_equal(mode, KP_SOURCE_FULL);
        op(t);
        step(t);
    }
    assert_true(kp_window_take_drained(&w, false));
    assert_false(w.cut);
    assert_int_equal(read_cycle(w.number).n_ops, 6);
    assert_int_equal(mode, KP_SOURCE_STEPS);
    assert_int_equal(kp_window_stop(), -EALREADY);
}

static void after_a_stop_the_schedule_goes_on_with_its_next_cycle(void **state)
{
    struct kp_window w;
    (void)state;
    setup("wait=1,active=3,repeat=0");
    struct kp_thread *t = kp_thread_get();
    step(t); /* NONE -> RECORD */
    op(t);
    assert_int_equal(kp_window_stop(), 0);
    assert_int_equal(mode, KP_SOURCE_STEPS);
    assert_true(kp_window_take_drained(&w, false));
    assert_false(w.cut);
    step(t);
    step(t);
    assert_false(kp_gate_get() & KP_GATE_RECORD); /* the rest of the cycle that was stopped */
    step(t);                                      /* its save */
    step(t);                                      /* the wait of the next */
    assert_true(kp_gate_get() & KP_GATE_RECORD);
    for (int i = 0; i < 3; i++) {
        op(t);
        step(t);
    }
    assert_true(kp_window_take_drained(&w, false));
    assert_int_equal(w.steps, 3);
    assert_int_equal(read_cycle(w.number).n_ops, 3);
}

static void a_source_that_attaches_late_is_told_what_to_do(void **state)
{
    (void)state;
    assert_int_equal(kp_window_start(), 0);
    mode = KP_SOURCE_OFF;
    kp_window_begin_run(false);
    assert_int_equal(mode, KP_SOURCE_FULL);
    const uint64_t begin = settled_begin;
    settled_begin = 0;
    kp_window_begin_run(false);
    assert_true(begin && settled_begin == begin); /* the same window */
    assert_int_equal(settled_timeout_ms, 0);      /* somebody may wait for who loads a library */
    kp_window_begin_run(true);
    assert_true(settled_timeout_ms > 0);
    assert_int_equal(kp_window_stop(), 0);
}

static void a_handler_that_leaves_a_step_leaves_no_lock_and_cancels_as_before(void **state)
{
    (void)state;
    const struct sigaction jumps = {.sa_handler = leave_by_jump}, as_before = {.sa_handler = SIG_DFL};
    volatile bool has_left = false;
    int cancel = -1;
    assert_int_equal(sigaction(SIGUSR1, &jumps, NULL), 0);
    signals_under_lock = true;
    if (sigsetjmp(away, 1)) has_left = true;
    else (void)kp_window_start();
    signals_under_lock = false;
    assert_int_equal(sigaction(SIGUSR1, &as_before, NULL), 0);
    assert_true(has_left);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &cancel);
    assert_int_equal(cancel, PTHREAD_CANCEL_ENABLE);
    assert_true(kp_window_before_fork()); /* nobody holds the lock */
    kp_window_after_fork();
    assert_int_equal(kp_window_stop(), 0);
}

static int first_kinds(void *context, const struct kp_event *e)
{
    uint32_t *kinds = context;
    *kinds = *kinds << 8 | (uint32_t)e->kind;
    return 0;
}

static void what_a_source_puts_as_it_settles_comes_before_the_step(void **state)
{
    struct kp_window w;
    struct kp_reader *r;
    char why[200];
    uint32_t kinds = 0;
    struct kp_thread *t = kp_thread_get();
    (void)state;
    while (kp_window_take_drained(&w, false)) {}
    setup("wait=1,active=1,repeat=9");
    settled_begin = 0;
    puts_at_settle = true;
    while (!settled_begin) step(t);
    puts_at_settle = false;
    op(t);
    step(t);
    assert_true(kp_window_take_drained(&w, false));
    assert_true(w.begin == settled_begin);
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    assert_int_equal(kp_reader_events(r, w.number, first_kinds, &kinds), 0);
    kp_reader_close(r);
    assert_int_equal(kinds, KP_KIND_OP << 16 | KP_KIND_STEP << 8 | KP_KIND_OP);
}

static uint64_t step_stamp;

static int stamps_rise(void *context, const struct kp_event *e)
{
    (void)context;
    if (e->kind != KP_KIND_STEP) return 0;
    assert_true(e->start_ns > step_stamp);
    assert_true(e->end_ns > e->start_ns);
    step_stamp = e->end_ns;
    return 0;
}

/* A viewer that rounds each stamp to a nanosecond would see ranges that touch reach past each other. */
static void steps_do_not_touch(void **state)
{
    struct kp_window w;
    struct kp_reader *r;
    char why[200];
    struct kp_thread *t = kp_thread_get();
    (void)state;
    while (kp_window_take_drained(&w, false)) {}
    setup("wait=1,active=8,repeat=1");
    uint64_t last = 0;
    for (int i = 0; i < 9; i++) {
        kp_steps_api();
        kp_window_step(t, last = kp_ticks());
    }
    assert_true(kp_window_take_drained(&w, false));
    assert_int_equal(w.steps, 8);
    assert_true(w.end >= last + 8); /* the op that ended at `last` ends before its step, and both before the window */
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    step_stamp = 0;
    assert_int_equal(kp_reader_events(r, w.number, stamps_rise, NULL), 0);
    kp_reader_close(r);
    assert_true(step_stamp != 0);
}

static void seconds_give_way_to_the_first_real_step(void **state)
{
    const uint64_t second = 1000000000;
    struct kp_window w;
    struct kp_thread *t = kp_thread_get();
    (void)state;
    while (kp_window_take_drained(&w, false)) {}
    const struct kp_step_rule was = rule;
    rule.kind = KP_RULE_AUTO;
    setup("wait=1,active=20,repeat=1");
    for (uint64_t i = 100; i < 135; i++)
        if (kp_steps_time(i * second, true)) kp_window_step(t, kp_ticks());
    assert_int_equal(kp_steps_source(), KP_STEP_TIME);
    assert_false(kp_window_take_drained(&w, false)); /* its window is open */
    for (int i = 0; i < 21; i++)
        if (kp_steps_api()) kp_window_step(t, kp_ticks());
    assert_true(kp_window_take_drained(&w, false)); /* of seconds */
    assert_true(w.steps < 20 && w.steps > 0);
    assert_true(kp_window_take_drained(&w, false)); /* of steps, all of them */
    assert_int_equal(w.first_step, 1);
    assert_int_equal(w.steps, 20);
    assert_false(kp_window_take_drained(&w, false));
    rule = was;
}

static void a_drop_counts_for_one_window_only(void **state)
{
    struct kp_window w;
    uint64_t lost = 0;
    (void)state;
    while (kp_window_take_drained(&w, false)) {}
    for (int i = 0; i < 3; i++) {
        assert_int_equal(kp_window_start(), 0);
        kp_loss_count(KP_KIND_OP, KP_LOSS_NO_SLOT);
        assert_int_equal(kp_window_stop(), 0);
        kp_loss_count(KP_KIND_OP, KP_LOSS_NO_SLOT); /* after its end */
    }
    while (kp_window_take_drained(&w, false)) lost += w.lost;
    assert_int_equal(lost, 3);
}

static struct kp_window_state look(void)
{
    struct kp_window_state now;
    kp_window_look(&now);
    return now;
}

static uint64_t asked_begin;
static int ask_for(uint64_t id, int when, uint64_t at, uint64_t steps)
{
    const struct kp_window_wish wish = {.when = when, .at = at, .steps = steps, .id = id};
    return kp_window_ask(&wish, &asked_begin);
}
static int ask(int when, uint64_t at, uint64_t steps) { return ask_for(0, when, at, steps); }

static void a_window_that_is_asked_for_holds_whole_steps(void **state)
{
    struct kp_window w;
    (void)state;
    setup("none");
    struct kp_thread *t = kp_thread_get();
    step(t);
    const uint64_t now = look().step;
    assert_string_equal(look().state, "waiting");
    assert_int_equal(ask(KP_WISH_AT, now, 1), -ERANGE);
    assert_int_equal(ask(KP_WISH_AT, now + 3, 2), 0);
    assert_int_equal(ask(KP_WISH_NEXT, 0, 2), -EBUSY);
    step(t);
    assert_string_equal(look().state, "asked for");
    assert_false(kp_gate_get() & KP_GATE_WARM);
    step(t);
    assert_string_equal(look().state, "warming up");
    assert_true(kp_gate_get() & KP_GATE_WARM);
    step(t);
    assert_string_equal(look().state, "recording");
    assert_int_equal(ask(KP_WISH_NEXT, 0, 2), -EALREADY);
    step(t);
    assert_string_equal(look().state, "recording");
    step(t);
    assert_string_equal(look().state, "waiting");
    assert_true(kp_window_take_drained(&w, false));
    assert_int_equal(w.first_step, now + 3);
    assert_int_equal(w.steps, 2);
    assert_int_equal(read_cycle(w.number).n_steps, 2);
    assert_int_equal(mode, KP_SOURCE_STEPS);
}

static void a_stop_takes_back_what_was_asked_for(void **state)
{
    struct kp_window w;
    (void)state;
    setup("none");
    struct kp_thread *t = kp_thread_get();
    step(t);
    assert_int_equal(ask(KP_WISH_AT, look().step + 2, 2), 0);
    step(t); /* warms up */
    assert_int_equal(kp_window_stop(), 0);
    assert_string_equal(look().state, "waiting");
    assert_false(kp_gate_get() & (KP_GATE_WARM | KP_GATE_RECORD));
    step(t);
    step(t);
    assert_int_equal(kp_window_stop(), -EALREADY);
    assert_false(kp_window_take_drained(&w, false));
    assert_int_equal(ask(KP_WISH_NEXT, 0, 0), 0); /* until it is stopped */
    for (int i = 0; i < 4; i++) step(t);
    assert_int_equal(kp_window_stop(), 0);
    assert_true(kp_window_take_drained(&w, false));
    assert_int_equal(w.steps, 4);
    assert_int_equal(w.first_step, asked_begin);
}

/* What all ranks of a job were asked for makes a trace when it is settled that all do. */
static void a_window_with_an_id_waits_for_a_decision(void **state)
{
    enum { BEFORE, MEANWHILE, AFTER };
    struct kp_window w;
    (void)state;
    for (int at = BEFORE; at <= AFTER; at++)
        for (int is_kept = 0; is_kept < 2; is_kept++) {
            setup("none");
            struct kp_thread *t = kp_thread_get();
            step(t);
            assert_int_equal(ask_for(5, KP_WISH_AT, look().step + 2, 2), 0);
            step(t); /* warms up */
            if (at == BEFORE) kp_window_decide(5, is_kept);
            step(t);
            op(t);
            step(t);
            if (at == MEANWHILE) kp_window_decide(5, is_kept);
            step(t);
            step(t);
            if (at == AFTER) assert_false(kp_window_take_drained(&w, false));
            kp_window_decide(6, false); /* another one's */
            if (at == AFTER) assert_false(kp_window_take_drained(&w, false));
            if (at == AFTER) kp_window_decide(5, is_kept);
            assert_string_equal(look().state, "waiting");
            assert_int_equal(kp_window_take_drained(&w, false), at != BEFORE || is_kept);
            if (at == BEFORE && !is_kept) continue;
            assert_int_equal(w.is_void, !is_kept);
            assert_int_equal(w.steps, is_kept ? 2 : 0);
            assert_int_equal(mode, KP_SOURCE_STEPS);
        }
}

static void an_undecided_window_is_kept_at_exit_and_a_scheduled_step_refused(void **state)
{
    struct kp_window w;
    (void)state;
    setup("none");
    struct kp_thread *t = kp_thread_get();
    assert_int_equal(ask_for(5, KP_WISH_NOW, 0, 0), 0);
    assert_int_equal(ask_for(6, KP_WISH_NOW, 0, 0), -EALREADY);
    step(t);
    assert_int_equal(kp_window_stop(), 0);
    assert_false(kp_window_take_drained(&w, false));
    assert_true(kp_window_take_drained(&w, true));
    assert_false(w.is_void);
    kp_window_decide(5, true);
    setup("skip_first=1000000,active=1,repeat=1");
    assert_int_equal(ask_for(7, KP_WISH_AT, 1000000, 2), -EALREADY);
    assert_int_equal(ask_for(7, KP_WISH_AT, 999999, 2), 0);
    assert_int_equal(ask_for(8, KP_WISH_NOW, 0, 2), -EBUSY);
    assert_int_equal(kp_window_stop(), 0);
}

static void phases_setup(const char *schedule, const char *text)
{
    static struct kp_phases phases;
    char why[128];
    memset(&phases, 0, sizeof phases);
    if (text) assert_int_equal(kp_phases_parse(text, &phases, why, sizeof why), 0);
    kp_phases_init(&phases);
    setup(schedule);
}

static void enter(struct kp_thread *t, const char *name) { kp_window_phase_set(t, kp_phases_find(name)); }

static void work(struct kp_thread *t, int steps)
{
    for (int i = 0; i < steps; i++) {
        op(t);
        step(t);
    }
}

static char run[64]; /* what the last window says of its run */

static void expect_window(uint64_t first_step, uint64_t steps, uint64_t ops, const char *phase)
{
    struct kp_window w;
    struct kp_reader *r;
    char why[200], key[32];
    assert_true(kp_window_take_drained(&w, false));
    assert_false(w.is_void);
    assert_int_equal(w.first_step, first_step);
    assert_int_equal(w.steps, steps);
    const struct seen s = read_cycle(w.number);
    assert_int_equal(s.n_steps, steps);
    assert_int_equal(s.n_ops, ops);
    for (uint64_t i = 0; i < steps; i++) assert_int_equal(s.steps[i], first_step + i);
    snprintf(key, sizeof key, "phase.%u", w.number);
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    assert_string_equal(kp_reader_text(r, key) ? kp_reader_text(r, key) : "", phase);
    snprintf(key, sizeof key, "phase_run.%u", w.number);
    snprintf(run, sizeof run, "%s", kp_reader_text(r, key) ? kp_reader_text(r, key) : "");
    kp_reader_close(r);
}

static void each_phase_has_windows_of_its_own(void **state)
{
    struct kp_window w;
    (void)state;
    phases_setup("none", "train=wait=1,warmup=1,active=4,repeat=1;validate=active=2,repeat=1");
    struct kp_thread *t = kp_thread_get();
    work(t, 2); /* outside: step 2 begins */
    enter(t, "train");
    assert_string_equal(look().phase, "train");
    work(t, 4); /* 0 to 3, of which 2 and 3 are recorded */
    op(t);      /* of step 4, which goes on later */
    enter(t, "validate");
    expect_window(2, 2, 3, "train");
    work(t, 1);
    enter(t, "train");
    work(t, 1); /* 4 */
    expect_window(0, 1, 1, "validate");
    enter(t, "validate"); /* step 5 of train has but begun: no window */
    expect_window(4, 1, 1, "train");
    work(t, 1);
    expect_window(1, 1, 1, "validate");
    work(t, 3);
    enter(t, "train");
    work(t, 1);
    expect_window(5, 1, 1, "train");
    enter(t, "");
    work(t, 3);
    assert_string_equal(look().phase, "");
    assert_false(kp_window_take_drained(&w, false));
    assert_int_equal(kp_steps_seen(), 5); /* outside */
}

static void a_phase_that_ends_just_after_a_step_leaves_no_trace_of_the_next(void **state)
{
    struct kp_window w;
    (void)state;
    phases_setup("none", "train=wait=2,active=2");
    struct kp_thread *t = kp_thread_get();
    enter(t, "train");
    work(t, 2); /* a window opens for step 2 */
    enter(t, "validate");
    assert_true(kp_window_take_drained(&w, false));
    assert_true(w.is_void);
    assert_int_equal(w.steps, 0);
    assert_int_equal(read_cycle(w.number).n_steps, 0);
    enter(t, "train");
    work(t, 2);
    expect_window(2, 2, 2, "train");
    enter(t, "");
}

static void a_phase_without_a_step_is_recorded_when_its_schedule_says_so(void **state)
{
    (void)state;
    phases_setup("none", "load=active=1");
    struct kp_thread *t = kp_thread_get();
    enter(t, "load");
    op(t);
    enter(t, "");
    expect_window(0, 1, 1, "load");
}

static void a_window_says_of_which_run_of_its_phase_it_is(void **state)
{
    uint32_t train, validate;
    (void)state;
    phases_setup("none", "train=active=3;validate=wait=1,active=100");
    kp_window_forget(&plan, sources); /* counts runs from the first on */
    kp_window_begin_run(false);
    struct kp_thread *t = kp_thread_get();
    kp_window_phase_begin(t, kp_phases_find("train"), &train);
    work(t, 4); /* a window of three steps, and another right behind it */
    op(t);
    kp_window_phase_begin(t, kp_phases_find("validate"), &validate);
    expect_window(0, 3, 3, "train");
    assert_string_equal(run, "1,1,1,0"); /* run 1, part 1, from its begin on, and it goes on */
    expect_window(3, 1, 2, "train");
    assert_string_equal(run, "1,1,1,1"); /* here the part ends */
    work(t, 2);
    kp_window_phase_end(t, validate);
    expect_window(1, 1, 1, "validate");
    assert_string_equal(run, "1,1,0,2"); /* not from its begin on; here the run ends */
    op(t);
    kp_window_phase_end(t, train);
    expect_window(4, 0, 1, "train"); /* no step ended in it */
    assert_string_equal(run, "1,2,1,2");
    kp_window_phase_begin(t, kp_phases_find("train"), &train);
    work(t, 1);
    kp_window_phase_end(t, train);
    expect_window(4, 1, 1, "train");
    assert_string_equal(run, "2,1,1,2");
}

static void a_window_that_was_started_by_hand_outlives_its_phase(void **state)
{
    struct kp_window w;
    (void)state;
    phases_setup("none", "train=skip_first=100,active=1;validate=active=1,repeat=1");
    struct kp_thread *t = kp_thread_get();
    enter(t, "train");
    assert_int_equal(kp_window_start(), 0);
    work(t, 2);
    enter(t, "validate");
    work(t, 1);
    assert_true(kp_window_take_drained(&w, false)); /* the schedule's save ended it */
    const struct seen s = read_cycle(w.number);
    assert_int_equal(s.n_ops, 3);
    assert_int_equal(s.n_steps, 3);
    assert_int_equal(s.steps[0], 1); /* of train */
    assert_int_equal(s.steps[1], 2);
    assert_int_equal(s.steps[2], 0); /* of validate */
    enter(t, "train");
    assert_int_equal(ask(KP_WISH_AT, 4, 2), 0);
    enter(t, "test");
    work(t, 6); /* steps of another phase */
    assert_string_equal(look().state, "asked for");
    enter(t, "train");
    work(t, 1);
    assert_string_equal(look().state, "warming up");
    enter(t, "test");
    work(t, 1);
    enter(t, "train");
    work(t, 3);
    expect_window(4, 2, 2, "train");
    phases_setup(NULL, NULL);
}

static void what_is_open_at_exit_is_closed_there_and_says_so(void **state)
{
    struct kp_window w;
    (void)state;
    struct kp_thread *t = kp_thread_get();
    setup("wait=1,active=9,repeat=1");
    step(t);
    op(t);
    mode = KP_SOURCE_OFF;
    step(t);
    op(t);
    assert_true(kp_window_end_run());
    assert_int_equal(mode, KP_SOURCE_OFF); /* nobody was called */
    assert_true(kp_window_take_drained(&w, false));
    assert_true(w.cut && w.has_part);
    assert_int_equal(w.steps, 1); /* the one in progress has no end of its own */
    const struct seen s = read_cycle(w.number);
    assert_int_equal(s.n_ops, 2);
    assert_int_equal(s.n_steps, 2);
    assert_int_equal(s.n_cut, 1);
    assert_int_equal(s.n_startup, 0);
    assert_false(kp_gate_get() & (KP_GATE_RECORD | KP_GATE_WARM));
    assert_int_equal(kp_window_start(), -ESHUTDOWN);
    step(t);
    assert_false(kp_window_take_drained(&w, false));
    kp_record_close(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_hold_the_steps_that_torchs_schedule_names),
        cmocka_unit_test(a_window_begun_by_hand_is_not_cut_by_the_schedules_warmup),
        cmocka_unit_test(after_a_stop_the_schedule_goes_on_with_its_next_cycle),
        cmocka_unit_test(a_source_that_attaches_late_is_told_what_to_do),
        cmocka_unit_test(a_handler_that_leaves_a_step_leaves_no_lock_and_cancels_as_before),
        cmocka_unit_test(what_a_source_puts_as_it_settles_comes_before_the_step),
        cmocka_unit_test(steps_do_not_touch),
        cmocka_unit_test(seconds_give_way_to_the_first_real_step),
        cmocka_unit_test(a_drop_counts_for_one_window_only),
        cmocka_unit_test(a_window_that_is_asked_for_holds_whole_steps),
        cmocka_unit_test(a_stop_takes_back_what_was_asked_for),
        cmocka_unit_test(a_window_with_an_id_waits_for_a_decision),
        cmocka_unit_test(an_undecided_window_is_kept_at_exit_and_a_scheduled_step_refused),
        cmocka_unit_test(each_phase_has_windows_of_its_own),
        cmocka_unit_test(a_phase_that_ends_just_after_a_step_leaves_no_trace_of_the_next),
        cmocka_unit_test(a_phase_without_a_step_is_recorded_when_its_schedule_says_so),
        cmocka_unit_test(a_window_says_of_which_run_of_its_phase_it_is),
        cmocka_unit_test(a_window_that_was_started_by_hand_outlives_its_phase),
        cmocka_unit_test(what_is_open_at_exit_is_closed_there_and_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
