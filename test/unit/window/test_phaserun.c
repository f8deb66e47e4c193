// SPDX-License-Identifier: Apache-2.0
/* test_phaserun.c - each phase has windows of its own, and the spool says of which run of it they are */
#include "preload/window/phaserun.h"

#include "test/unit/window/window_fixture.h"

static void phases_setup(const char *schedule, const char *text)
{
    static struct kp_phases phases;
    char why[128];
    memset(&phases, 0, sizeof phases);
    assert_int_equal(kp_phases_parse(text, &phases, why, sizeof why), 0);
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

static void nap(long ms) { nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL); }

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
}

static void steps_before_the_first_phase_are_noted_with_their_time(void **state)
{
    struct kp_window w;
    struct kp_reader *r;
    char why[200], key[32];
    unsigned long steps, us;
    (void)state;
    phases_setup("none", "validate=active=100");
    kp_window_forget(&plan, sources);
    kp_window_begin_run(false);
    struct kp_thread *t = kp_thread_get();
    work(t, 1); /* it has the program's start in it */
    for (int i = 0; i < 3; i++) {
        nap(5);
        work(t, 1);
    }
    nap(5);
    for (int i = 0; i < 2; i++) {
        enter(t, "validate");
        work(t, 1);
        enter(t, "");
        work(t, 4);
    }
    while (kp_window_take_drained(&w, false)) continue;
    snprintf(key, sizeof key, "phase_before.%u", w.number);
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    assert_int_equal(sscanf(kp_reader_text(r, key), "%lu,%lu", &steps, &us), 2);
    assert_int_equal(steps, 3);
    assert_true(us >= 15000);
    kp_reader_close(r);
}

static void a_phase_that_is_open_at_the_programs_end_is_noted_as_such(void **state)
{
    struct kp_window w;
    struct kp_reader *r;
    char why[200], key[32];
    (void)state;
    phases_setup("none", "train=active=100");
    kp_window_forget(&plan, sources);
    kp_window_begin_run(false);
    struct kp_thread *t = kp_thread_get();
    enter(t, "train");
    work(t, 2);
    assert_true(kp_window_end_run());
    assert_true(kp_window_take_drained(&w, true));
    snprintf(key, sizeof key, "phase_run.%u", w.number);
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    assert_string_equal(kp_reader_text(r, key), "1,1,1,0,1");
    kp_reader_close(r);
}

/* Each test goes on where the one before left off. */
static int run_begin(void **state)
{
    (void)state;
    setup("none");
    kp_window_begin_run(false);
    return 0;
}

static int run_end(void **state)
{
    (void)state;
    (void)kp_record_close(true, 10000);
    return 0;
}

static void the_steps_that_were_recorded_are_told_by_phase(void **state)
{
    char told[128];
    (void)state;
    phases_setup("none", "train=active=3,repeat=1;validate=active=2,repeat=1;test=active=1");
    struct kp_thread *t = kp_thread_get();
    kp_phaserun_forget();
    kp_phaserun_steps(told, sizeof told, 0);
    assert_string_equal(told, "0 steps in phases");
    enter(t, "train");
    work(t, 5);
    enter(t, "validate");
    work(t, 1);
    enter(t, "train");
    kp_phaserun_steps(told, sizeof told, 4);
    assert_string_equal(told, "3 steps in train, 1 in validate");
    kp_phaserun_steps(told, sizeof told, 6);
    assert_string_equal(told, "3 steps in train, 1 in validate, 2 in no phase");
    kp_phaserun_steps(told, 20, 4);
    assert_string_equal(told, "4 steps in phases");
}

/* Milliseconds of a phase in "US;train:RUNS:US;...", and how often it began. */
static long time_of(const char *text, const char *phase, long *runs)
{
    const char *const at = strstr(text, phase);
    long us;
    assert_non_null(at);
    assert_int_equal(sscanf(at + strlen(phase), ":%ld:%ld", runs, &us), 2);
    return us / 1000;
}

static void each_phase_has_its_time_recorded_or_not(void **state)
{
    struct kp_window w = {.number = 0};
    struct kp_reader *r;
    char why[200], key[32];
    long runs;
    (void)state;
    phases_setup("none", "train=wait=2,active=1,repeat=1;validate=skip_first=1000,active=1;test=active=1");
    kp_window_forget(&plan, sources);
    kp_window_begin_run(false);
    struct kp_thread *t = kp_thread_get();
    work(t, 1);
    nap(30); /* before the first phase */
    for (int i = 0; i < 3; i++) {
        enter(t, "train");
        work(t, 1);
        if (i == 2) break;
        enter(t, "validate");
        nap(20);
    }
    while (kp_window_take_drained(&w, false)) continue; /* the last one is that of train */
    snprintf(key, sizeof key, "phase_times.%u", w.number);
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    const char *const text = kp_reader_text(r, key);
    assert_non_null(text);
    assert_null(strstr(text, "test"));
    assert_true(time_of(text, "validate", &runs) >= 40);
    assert_int_equal(runs, 2);
    assert_true(time_of(text, "train", &runs) < 20);
    assert_int_equal(runs, 3);
    kp_reader_close(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_phase_has_windows_of_its_own),
        cmocka_unit_test(a_phase_that_ends_just_after_a_step_leaves_no_trace_of_the_next),
        cmocka_unit_test(a_phase_without_a_step_is_recorded_when_its_schedule_says_so),
        cmocka_unit_test(a_window_says_of_which_run_of_its_phase_it_is),
        cmocka_unit_test(a_window_that_was_started_by_hand_outlives_its_phase),
        cmocka_unit_test(the_steps_that_were_recorded_are_told_by_phase),
        cmocka_unit_test(each_phase_has_its_time_recorded_or_not),
        cmocka_unit_test(steps_before_the_first_phase_are_noted_with_their_time),
        cmocka_unit_test(a_phase_that_is_open_at_the_programs_end_is_noted_as_such),
    };
    return cmocka_run_group_tests(tests, run_begin, run_end);
}
