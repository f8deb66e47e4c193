// SPDX-License-Identifier: Apache-2.0
/* test_percentiles.c - the percentiles of steps and of calls */
#include "export/read/facts/steps/percentiles.h"

#include "test/unit/tree/little_trace.h"

enum { STEPS = 101 };

/* They last 100 to 200 us, the longest in the middle; an op `answer` in each is 10 us shorter. */
static void steps_put(struct little *t)
{
    for (int i = 0, at = 0; i < STEPS; i++) {
        const int us = 100 + (i < STEPS / 2 ? 2 * i + 1 : 2 * (STEPS - 1 - i));
        numbered_step(t, i, at, us);
        op(t, "answer", at, us - 10);
        at += us;
    }
}

static void steps_and_calls_have_theirs(void **state)
{
    struct little *t = *state;
    steps_put(t);
    assert_int_equal(choose(t, &everything), 0);
    const struct kp_percentiles steps = kp_percentiles_of_steps(&t->chosen);
    assert_int_equal(steps.count, STEPS);
    assert_float_equal(steps.p50_ns, 150e3, 1);
    assert_float_equal(steps.p90_ns, 190e3, 1);
    assert_float_equal(steps.p99_ns, 199e3, 1);
    assert_int_equal(kp_percentiles_of_calls(&t->chosen).count, 0);
}

static void calls_have_theirs(void **state)
{
    struct little *t = *state;
    steps_put(t);
    assert_int_equal(choose(t, &(struct kp_choice){.first_step = -1, .last_step = -1, .within = "answer"}), 0);
    const struct kp_percentiles calls = kp_percentiles_of_calls(&t->chosen);
    assert_int_equal(calls.count, STEPS);
    assert_float_equal(calls.p50_ns, 140e3, 1);
    assert_float_equal(calls.p99_ns, 189e3, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(steps_and_calls_have_theirs, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(calls_have_theirs, little_setup, little_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
