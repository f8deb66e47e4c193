// SPDX-License-Identifier: Apache-2.0
/* test_window.c - steps open and close windows, and the spool says which steps and ops lie in which */
#include "preload/window/window.h"

#include <errno.h>
#include <setjmp.h>

#include "test/unit/window/window_fixture.h"

static sigjmp_buf away;

static void leave_by_jump(int signal)
{
    (void)signal;
    if (!lock_is_held) siglongjmp(away, 1);
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

/* torch.profiler marks none without a schedule. Whoever names a step wants it. */
static void without_a_schedule_the_steps_of_a_named_rule_are_marked(void **state)
{
    const struct kp_step_rule named = rule;
    (void)state;
    for (int is_named = 0; is_named < 2; is_named++) {
        struct kp_window w;
        rule = is_named ? named : (struct kp_step_rule){.kind = KP_RULE_AUTO};
        setup(NULL);
        struct kp_thread *t = kp_thread_get();
        assert_int_equal(kp_window_start(), 0);
        for (int i = 0; i < 3; i++) {
            op(t);
            step(t);
        }
        assert_int_equal(kp_window_stop(), 0);
        assert_true(kp_window_take_drained(&w, false));
        const struct seen s = read_cycle(w.number);
        assert_int_equal(s.n_ops, 3);
        assert_int_equal(s.n_steps, is_named ? 3 : 0); /* from the first step's end on */
        assert_int_equal(w.steps, s.n_steps);
    }
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
    (void)kp_record_close(true, 10000);
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
        cmocka_unit_test(without_a_schedule_the_steps_of_a_named_rule_are_marked),
        cmocka_unit_test(what_is_open_at_exit_is_closed_there_and_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
