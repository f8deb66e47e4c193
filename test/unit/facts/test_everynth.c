// SPDX-License-Identifier: Apache-2.0
/* test_everynth.c - steps that are each Nth one */
#include "test/support/support.h"

#include "export/read/facts/everynth.h"

#define OF(first, last, ...) \
    kp_everynth_of((const long[]){__VA_ARGS__}, sizeof((const long[]){__VA_ARGS__}) / sizeof(long), first, last)

static void steps_of_one_distance_are_each_nth(void **state)
{
    (void)state;
    assert_int_equal(OF(10, 50, 28, 18, 48, 38), 10);
    assert_int_equal(OF(0, 6, 1, 3, 5), 2);
}

static void two_steps_or_each_step_are_no_nth(void **state)
{
    (void)state;
    assert_int_equal(OF(10, 50, 18, 28), 0);
    assert_int_equal(OF(10, 12, 10, 11, 12), 0);
    assert_int_equal(kp_everynth_of(NULL, 0, 0, 9), 0);
}

static void one_may_lack_at_either_end_of_the_window(void **state)
{
    (void)state;
    assert_int_equal(OF(8, 48, 18, 28, 38), 10);
    assert_int_equal(OF(7, 47, 18, 28, 38), 10);
    assert_int_equal(OF(8, 58, 18, 28, 38), 0);
    assert_int_equal(OF(0, 99, 5, 7, 9), 0);
}

static void other_distances_are_none(void **state)
{
    (void)state;
    assert_int_equal(OF(10, 60, 18, 28, 48), 0);
    assert_int_equal(OF(10, 60, 18, 29, 38), 0);
    assert_int_equal(OF(0, 45, 0, 0, 10, 20, 40), 0);
}

static void the_text_has_the_ending_of_its_number(void **state)
{
    char out[40];
    (void)state;
    assert_string_equal(kp_everynth_text(out, sizeof out, 0), "");
    assert_string_equal(kp_everynth_text(out, sizeof out, 2), ", each 2nd step");
    assert_string_equal(kp_everynth_text(out, sizeof out, 10), ", each 10th step");
    assert_string_equal(kp_everynth_text(out, sizeof out, 12), ", each 12th step");
    assert_string_equal(kp_everynth_text(out, sizeof out, 23), ", each 23rd step");
    assert_string_equal(kp_everynth_text(out, sizeof out, 111), ", each 111th step");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_one_distance_are_each_nth),       cmocka_unit_test(two_steps_or_each_step_are_no_nth),
        cmocka_unit_test(one_may_lack_at_either_end_of_the_window), cmocka_unit_test(other_distances_are_none),
        cmocka_unit_test(the_text_has_the_ending_of_its_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
