// SPDX-License-Identifier: Apache-2.0
/* test_slowest.c - what the slowest hundredth of calls or steps has more than the others */
#include "export/answers/top/toprows.h"

#include "test/unit/tree/little_trace.h"

enum { CALLS = 100, EACH = 1000 };

static bool is_long(int i) { return i == 50 || i == CALLS + 50; }

/* Each step is one call of `answer`, of 100 us; one takes 500 us: 390 more in aten::mm, 10 more in no op of it. */
static void calls_put(struct little *t, int count)
{
    for (int i = 0; i < count; i++) {
        const int more = is_long(i) ? 400 : 0;
        numbered_step(t, i, i * EACH, EACH);
        op(t, "answer", i * EACH, 100 + more);
        op(t, "aten::mm", i * EACH + 10, 60 + (more ? 390 : 0));
        op(t, "aten::add", i * EACH + 500, 20);
    }
}

static const struct kp_choice within = {.first_step = -1, .last_step = -1, .within = "answer"};

static void the_slowest_calls_have_their_place(void **state)
{
    struct little *t = *state;
    struct kp_slowest found;
    char text[KP_SLOWEST_BYTES];
    calls_put(t, CALLS);
    assert_int_equal(choose(t, &within), 0);
    kp_slowest_find(&found, &t->tree, &t->chosen);
    assert_int_equal(found.count, 1);
    assert_string_equal(kp_kineto_text(t->trace, found.name), "aten::mm");
    assert_float_equal(found.place_ns, 390e3, 1);
    assert_string_equal(kp_slowest_text(text, sizeof text, &found, t->trace, "call"),
                        "1 of 100 calls takes 500 us or longer, 400 us more than the others; 390 us of that is "
                        "aten::mm");
}

static void few_calls_have_none(void **state)
{
    struct little *t = *state;
    struct kp_slowest found;
    char text[KP_SLOWEST_BYTES] = "x";
    calls_put(t, CALLS - 1);
    assert_int_equal(choose(t, &within), 0);
    kp_slowest_find(&found, &t->tree, &t->chosen);
    assert_int_equal(found.count, 0);
    assert_string_equal(kp_slowest_text(text, sizeof text, &found, t->trace, "call"), "");
}

static void steps_that_last_as_long_have_none(void **state)
{
    struct little *t = *state;
    struct kp_slowest found;
    calls_put(t, CALLS);
    assert_int_equal(choose(t, &everything), 0);
    kp_slowest_find(&found, &t->tree, &t->chosen);
    assert_int_equal(found.count, 0);
}

/* Two steps end later, while no op runs. */
static void time_in_which_nothing_runs_is_a_place(void **state)
{
    struct little *t = *state;
    struct kp_slowest found;
    char text[KP_SLOWEST_BYTES];
    for (int i = 0, at = 0; i < 2 * CALLS; i++) {
        const int us = is_long(i) ? 900 : 300;
        numbered_step(t, i, at, us);
        op(t, "aten::mm", at + 10, 200);
        at += us;
    }
    assert_int_equal(choose(t, &everything), 0);
    kp_slowest_find(&found, &t->tree, &t->chosen);
    assert_int_equal(found.count, 2);
    assert_string_equal(kp_slowest_text(text, sizeof text, &found, t->trace, "step"),
                        "2 of 200 steps take 900 us or longer, 600 us more than the others; 600 us of that is time "
                        "without an operator");
}

/* Two threads answer at once. One call waits for 900 us, while the other thread runs an op. */
static void calls_of_two_threads_have_rows_of_their_own_thread(void **state)
{
    struct little *t = *state;
    struct kp_slowest found;
    for (int i = 0; i < CALLS; i++) {
        const int us = i == 50 ? 900 : 0;
        event(t, "cpu_op", "answer", 1, i * EACH, 300, "");
        event(t, "cpu_op", "answer", 2, i * EACH + 50, 50 + us, "");
        event(t, "cpu_op", "aten::mm", 1, i * EACH + 10, 280, "");
        event(t, "cpu_op", "lock", 2, i * EACH + 60, 10 + us, "");
    }
    assert_int_equal(choose(t, &within), 0);
    assert_int_equal(t->chosen.within_calls, 2 * CALLS);
    kp_slowest_find(&found, &t->tree, &t->chosen);
    assert_int_equal(found.count, 2);
    assert_string_equal(kp_kineto_text(t->trace, found.name), "lock");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_slowest_calls_have_their_place, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(calls_of_two_threads_have_rows_of_their_own_thread, little_setup,
                                        little_teardown),
        cmocka_unit_test_setup_teardown(few_calls_have_none, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(steps_that_last_as_long_have_none, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(time_in_which_nothing_runs_is_a_place, little_setup, little_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
