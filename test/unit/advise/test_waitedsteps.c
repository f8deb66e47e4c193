// SPDX-License-Identifier: Apache-2.0
/* test_waitedsteps.c - a step that merely had no core is a note, and no slow step of the program */
#include "test/unit/advise/advised.h"

enum { STEPS = 30, STEP_US = 20000, LONG = 17 };

/* Steps of one op, of which number LONG lasts longer. `waits`: of the trace's head. */
static struct kp_advice advice_of(struct little *t, int more_us, const char *waits)
{
    snprintf(t->head, sizeof t->head, "\"with_stack\":1,\"profile_memory\":1,\"kprof\":{\"python_gc\":\"1\"%s%s%s},",
             *waits ? ",\"core_steps\":\"" : "", waits, *waits ? "\"" : "");
    for (int i = 0, at = 0; i < STEPS; i++) {
        const int us = STEP_US + (i == LONG ? more_us : 0);
        numbered_step(t, i, at, us);
        op(t, "aten::mm", at, STEP_US - 10);
        at += us;
    }
    return advise(t);
}

static void a_step_that_had_a_core_is_slow(void **state)
{
    const struct kp_advice a = advice_of(*state, 60000, "");
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "slow-steps");
    assert_string_equal(a.findings[0].what, "step 17 lasts 60.0 ms longer than the median: the extra time of "
                                            "this step is outside operators, most of it before aten::mm");
    assert_float_equal(a.findings[0].length_ns, 80e6, 1);
    assert_float_equal(a.findings[0].no_core_ns, 0, 1);
    assert_int_equal(a.waited_count, 0);
}

#define SLOW_BY(ms) "step 17 was slow because it waited " ms " ms for a CPU core"

static void a_step_that_had_none_is_told_so(void **state)
{
    const struct kp_advice a = advice_of(*state, 60000, "3:1200,17:59900");
    assert_int_equal(a.count, 0);
    assert_int_equal(a.waited_count, 1);
    assert_string_equal(a.waited[0].what, SLOW_BY("59.9"));
    assert_true(a.waited_ns > 0);
}

static void of_many_the_longest_are_named(void **state)
{
    struct little *t = *state;
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"core_steps\":\"4:50000,9:60000,13:70000,17:80000,22:40000\"},");
    for (int i = 0, at = 0; i < STEPS; i++) {
        const int us = STEP_US + (i == 4    ? 50000
                                  : i == 9  ? 60000
                                  : i == 13 ? 70000
                                  : i == 17 ? 80000
                                  : i == 22 ? 40000
                                            : 0);
        numbered_step(t, i, at, us);
        op(t, "aten::mm", at, STEP_US - 10);
        at += us;
    }
    const struct kp_advice a = advise(t);
    assert_string_equal(
        a.waited[0].what,
        "steps 17, 13, 9, longest first, and 2 more were slow because they waited for a CPU core, step 17 for 80.0 ms");
    assert_true(a.waited[0].count == 5 && a.waited[0].longest == 17);
    assert_float_equal(a.waited[0].some.least_ns, 40e6, 1e3);
    assert_float_equal(a.waited[0].some.all_ns, 300e6, 1e3);
}

static void what_is_longer_beside_its_wait_is_the_programs(void **state)
{
    const struct kp_advice a = advice_of(*state, 160000, "17:60000");
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "slow-steps");
    assert_non_null(
        strstr(a.findings[0].what, "step 17 lasts 100.0 ms longer than the median, without waits for a CPU core: "));
    assert_float_equal(a.findings[0].length_ns, 180e6, 1);
    assert_float_equal(a.findings[0].no_core_ns, 60e6, 1e3);
    assert_float_equal(a.findings[0].once_ns, 100e6, 1e3);
    assert_null(a.findings[0].share_of); /* they are 2 of 25.3 ms a step */
}

/* Without its wait it is long as well, but that is little of all time. */
static void a_step_that_waited_most_is_told_whatever_else_it_has(void **state)
{
    const struct kp_advice a = advice_of(*state, 75000, "17:60000");
    assert_int_equal(a.waited_count, 1);
    assert_string_equal(a.waited[0].what, SLOW_BY("60.0"));
}

static void a_step_that_waited_as_long_as_all_is_not_slow_by_that(void **state)
{
    struct little *t = *state;
    int used = snprintf(t->head, sizeof t->head, "\"kprof\":{\"core_steps\":\"0:60000");
    for (int i = 1; i < STEPS; i++) used += snprintf(t->head + used, sizeof t->head - (size_t)used, ",%d:60000", i);
    snprintf(t->head + used, sizeof t->head - (size_t)used, "\"},");
    for (int i = 0, at = 0; i < STEPS; i++) {
        const int us = STEP_US + 60000 + (i == 17 ? 100000 : 0);
        numbered_step(t, i, at, us);
        op(t, "aten::mm", at, us - 10);
        at += us;
    }
    const struct kp_advice a = advise(t);
    assert_int_equal(a.waited_count, 0);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "slow-steps");
}

/* Then its share is of what steps are without them. */
static void a_slow_step_beside_many_waits_is_told_without_them(void **state)
{
    const struct kp_advice a = advice_of(*state, 360000, "5:10000,6:10000,7:10000,8:10000,17:160000");
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "slow-steps");
    assert_float_equal(a.findings[0].step_ns, 200e6 / STEPS, 1e3);
    assert_float_equal(a.findings[0].share, 200.0 / (STEPS * 20 + 360 - 200), 1e-6);
    assert_float_equal(a.findings[0].of.core_ns, 25.3e6, 0.1e6);
}

static void a_wait_of_other_steps_explains_nothing(void **state)
{
    const struct kp_advice a = advice_of(*state, 60000, "5:9000");
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "slow-steps");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_step_that_had_a_core_is_slow, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(a_step_that_had_none_is_told_so, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(of_many_the_longest_are_named, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(what_is_longer_beside_its_wait_is_the_programs, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(a_step_that_waited_most_is_told_whatever_else_it_has, little_setup,
                                        little_teardown),
        cmocka_unit_test_setup_teardown(a_step_that_waited_as_long_as_all_is_not_slow_by_that, little_setup,
                                        little_teardown),
        cmocka_unit_test_setup_teardown(a_slow_step_beside_many_waits_is_told_without_them, little_setup,
                                        little_teardown),
        cmocka_unit_test_setup_teardown(a_wait_of_other_steps_explains_nothing, little_setup, little_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
