// SPDX-License-Identifier: Apache-2.0
/* test_nocore.c - what a trace says of waits for a core goes to the steps that they made longer */
#include "export/read/facts/steps/nocore.h"

#include "export/answers/top/timeshares.h"
#include "test/unit/tree/little_trace.h"

enum { STEPS = 8, STEP_US = 1000, LONG = 4, LONG_US = 61000 };

static double waits[STEPS];

static void steps_put(struct little *t, const char *core_steps)
{
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"core_steps\":\"%s\"},", core_steps);
    for (int i = 0, at = 0; i < STEPS; i++) {
        const int us = i == LONG ? LONG_US : STEP_US;
        numbered_step(t, i + 10, at, us);
        op(t, "aten::mm", at, us - 10);
        at += us;
    }
}

static bool read_as(struct little *t, const char *core_steps, const struct kp_choice *choice)
{
    steps_put(t, core_steps);
    assert_int_equal(choose(t, choice), 0);
    return kp_nocore_of_some(waits, &t->tree, t->chosen.steps, t->chosen.step_count);
}

static void a_step_has_its_wait(void **state)
{
    assert_true(read_as(*state, "11:200,14:60000,17:300", &everything));
    assert_float_equal(waits[0], 0, 1);
    assert_float_equal(waits[1], 200e3, 1);
    assert_float_equal(waits[LONG], 60e6, 1);
    assert_float_equal(waits[7], 300e3, 1);
}

static void the_long_one_of_several_has_what_they_waited_together(void **state)
{
    assert_true(read_as(*state, "10-14:60000", &everything));
    assert_float_equal(waits[LONG], 60e6, 1);
    assert_float_equal(waits[0], 0, 1);
}

static void a_step_that_is_asked_for_has_its_part(void **state)
{
    const struct kp_choice one = {.first_step = 14, .last_step = 14};
    assert_true(read_as(*state, "12-15:60000", &one));
    assert_float_equal(waits[0], 60e6, 1);
}

static void no_step_waits_longer_than_it_lasts(void **state)
{
    assert_true(read_as(*state, "10:5000", &everything));
    assert_float_equal(waits[0], 1e6, 1);
}

static void what_makes_no_sense_is_nothing(void **state)
{
    static const char *const texts[] = {"", "x", "14", "14:", "14-12:60000", "14:-7", "20:60000", "16-19:60000"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct little *t = *state;
        assert_false(read_as(t, texts[i], &everything));
        assert_float_equal(waits[LONG], 0, 1);
        little_teardown(state);
        little_setup(state);
    }
}

/* The window waited 90.5 ms: the list has 0.5, and 50 and a fiftieth of its step may be no wait of a step. */
static void steps_behind_the_end_of_a_list_share_what_the_window_waited_beside_it(void **state)
{
    assert_true(read_as(*state, "10:500\",\"core_waited_us\":\"90520", &everything));
    assert_float_equal(waits[0], 500e3, 1);
    assert_float_equal(waits[1], 40e6 / 67, 10);
    assert_float_equal(waits[LONG], 40e6 / 67 * 61, 100);
}

/* Later steps did not wait: what the sum has more are waits of each step that are as short as none. */
static void a_whole_list_leaves_nothing_for_later_steps(void **state)
{
    assert_true(read_as(*state, "11:200,14:60000\",\"core_waited_us\":\"61600", &everything));
    assert_float_equal(waits[LONG], 60e6, 1);
    assert_float_equal(waits[7], 0, 1);
}

static void the_head_has_the_slowest(void **state)
{
    struct little *t = *state;
    struct kp_summary s;
    assert_true(read_as(t, "11:200,14:60000", &everything));
    kp_summary_make(&s, &t->tree, &t->chosen);
    assert_int_equal(s.slowest_step, 14);
    assert_int_equal(s.slowest_no_core_ns, 60000000);
    assert_int_equal(s.no_core_ns, 60200000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_step_has_its_wait, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(the_long_one_of_several_has_what_they_waited_together, little_setup,
                                        little_teardown),
        cmocka_unit_test_setup_teardown(a_step_that_is_asked_for_has_its_part, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(no_step_waits_longer_than_it_lasts, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(what_makes_no_sense_is_nothing, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(steps_behind_the_end_of_a_list_share_what_the_window_waited_beside_it,
                                        little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(a_whole_list_leaves_nothing_for_later_steps, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(the_head_has_the_slowest, little_setup, little_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
