// SPDX-License-Identifier: Apache-2.0
/* test_everynth.c - steps that are each Nth one */
#include "test/support/support.h"

#include "export/read/facts/steps/everynth.h"

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

enum { STEPS = 60 };

/* Of 60 steps: each tenth from the fifth on, and `odd` others. Returns how many are marked then. */
static size_t marked_of(bool *marks, int odd, bool lacks_one)
{
    long numbers[STEPS];
    size_t count = 0;
    for (size_t i = 0; i < STEPS; i++) {
        numbers[i] = 100 + (long)i;
        marks[i] = (i % 10 == 5 && !(lacks_one && i == 25)) || (int)(i * i * 31 % 59) < odd;
    }
    if (!kp_everynth_mark(numbers, marks, STEPS)) return 0;
    for (size_t i = 0; i < STEPS; i++) count += marks[i];
    return count;
}

static void steps_beside_each_nth_are_unmarked(void **state)
{
    bool marks[STEPS];
    (void)state;
    assert_int_equal(marked_of(marks, 0, false), 6);
    assert_int_equal(marked_of(marks, 4, false), 6);
    assert_true(marks[5] && marks[55] && !marks[1]);
}

static void one_of_them_that_is_not_marked_is(void **state)
{
    bool marks[STEPS];
    (void)state;
    assert_int_equal(marked_of(marks, 0, true), 6);
    assert_true(marks[25]);
}

static void where_a_third_is_marked_each_nth_is_chance(void **state)
{
    bool marks[STEPS] = {false};
    long numbers[STEPS];
    (void)state;
    assert_int_equal(marked_of(marks, 18, true), 0);
    for (size_t i = 0; i < STEPS; i++) numbers[i] = (long)i, marks[i] = i % 10 == 0 && i < 40;
    assert_false(kp_everynth_mark(numbers, marks, STEPS)); /* four are too few */
    assert_false(kp_everynth_mark(numbers, marks, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_one_distance_are_each_nth),
        cmocka_unit_test(two_steps_or_each_step_are_no_nth),
        cmocka_unit_test(one_may_lack_at_either_end_of_the_window),
        cmocka_unit_test(other_distances_are_none),
        cmocka_unit_test(the_text_has_the_ending_of_its_number),
        cmocka_unit_test(steps_beside_each_nth_are_unmarked),
        cmocka_unit_test(one_of_them_that_is_not_marked_is),
        cmocka_unit_test(where_a_third_is_marked_each_nth_is_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
