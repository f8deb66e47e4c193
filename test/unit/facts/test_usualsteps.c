// SPDX-License-Identifier: Apache-2.0
/* test_usualsteps.c - few steps that have half of all time are none of the usual ones */
#include "test/support/support.h"

#include <math.h>

#include "export/read/facts/steps/usualsteps.h"

#define OF(...) kp_usual_steps_of((double[]){__VA_ARGS__}, sizeof((double[]){__VA_ARGS__}) / sizeof(double))

static void a_step_with_half_of_all_time_is_left_out(void **state)
{
    (void)state;
    const struct kp_usual_steps of = OF(10, 90, 10, 10, 10);
    assert_int_equal(of.left_out, 1);
    assert_float_equal(of.left_out_share, 90.0 / 130, 1e-9);
    assert_true(of.most_ns > 10 && of.most_ns < 90);
}

static void long_steps_with_less_than_half_are_usual(void **state)
{
    (void)state;
    const struct kp_usual_steps of = OF(10, 90, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10);
    assert_int_equal(of.left_out, 0);
    assert_float_equal(of.left_out_share, 0, 0);
    assert_true(isinf(of.most_ns));
}

static void where_half_of_the_steps_are_long_all_are_usual(void **state)
{
    (void)state;
    assert_int_equal(OF(10, 90, 10, 90, 90).left_out, 0);
    assert_int_equal(OF(10).left_out, 0);
    assert_int_equal(kp_usual_steps_of(NULL, 0).left_out, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_with_half_of_all_time_is_left_out),
        cmocka_unit_test(long_steps_with_less_than_half_are_usual),
        cmocka_unit_test(where_half_of_the_steps_are_long_all_are_usual),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
