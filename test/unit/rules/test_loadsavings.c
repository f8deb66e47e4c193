// SPDX-License-Identifier: Apache-2.0
/* test_loadsavings.c - what workers save at most of a step that loads its batch itself */
#include "export/answers/advise/rules/load/loadsavings.h"
#include "test/unit/tree/little_trace.h"

#define MS 1e6

static const struct kp_loading computing = {
    .load_ns = 40 * MS, .step_ns = 50 * MS, .waits = 0, .waits_known = true, .cores = 2};

static void items_that_compute_share_the_cores_with_the_training(void **state)
{
    struct kp_loading l = computing;
    (void)state;
    assert_float_equal(kp_loading_saves_ns(&l, 0), 25 * MS, 1); /* 50 ms of work on two cores */
    assert_int_equal(kp_loading_workers(&l), 2);
    l.cores = 1;
    assert_float_equal(kp_loading_saves_ns(&l, 0), 0, 1);
    l.cores = 16;
    assert_float_equal(kp_loading_saves_ns(&l, 0), 40 * MS, 1); /* the rest of the step stays */
    l.has_gpu = true;
    l.cores = 1;
    assert_float_equal(kp_loading_saves_ns(&l, 0), 10 * MS, 1); /* a GPU computes the rest meanwhile */
}

static void items_that_wait_leave_the_cores_to_others(void **state)
{
    struct kp_loading l = computing;
    (void)state;
    l.waits = 1;
    l.cores = 1;
    assert_float_equal(kp_loading_saves_ns(&l, 0), 40 * MS, 1);
    assert_int_equal(kp_loading_workers(&l), 4);
    assert_float_equal(kp_loading_saves_ns(&l, 4), 40 * MS, 1);
    l.waits_known = false; /* all of it may wait */
    assert_float_equal(kp_loading_saves_ns(&l, 0), 40 * MS, 1);
    assert_int_equal(kp_loading_workers(&l), 0);
}

/* Measured: items that sleep 57 ms a step, on two cores. 16 workers gained nothing in 50 steps, four 24 ms. */
static void items_that_wait_get_two_workers_a_core_at_most(void **state)
{
    struct kp_loading l = {.load_ns = 56.5 * MS, .step_ns = 59.1 * MS, .waits = 1, .waits_known = true, .cores = 2};
    (void)state;
    assert_int_equal(kp_loading_workers(&l), 4);
    assert_float_equal(kp_loading_saves_ns(&l, 4), (59.1 - 56.5 / 4) * MS, 1); /* each loads one batch at a time */
    assert_float_equal(kp_loading_saves_ns(&l, 0), 56.5 * MS, 1);
    l.cores = 1;
    assert_int_equal(kp_loading_workers(&l), 4);
    l.cores = 6;
    assert_int_equal(kp_loading_workers(&l), 12);
    l.cores = 64;
    assert_int_equal(kp_loading_workers(&l), 16);
}

/* Measured: 3 ms of computing in steps of 10 ms, with one or two workers steps of 9.5 to 11.3 ms. */
static void loading_as_long_as_a_hand_over_is_short_and_a_little_more_may_be_either(void **state)
{
    struct kp_loading l = {.load_ns = 2.9 * MS, .step_ns = 10 * MS, .waits_known = true, .cores = 2};
    (void)state;
    assert_int_equal(kp_loading_size_of(&l), KP_LOADING_SHORT);
    l.load_ns = 3.1 * MS;
    assert_int_equal(kp_loading_size_of(&l), KP_LOADING_MIDDLE);
    l.load_ns = 6 * MS;
    assert_int_equal(kp_loading_size_of(&l), KP_LOADING_LONG);
    l.core_waited = 0.55; /* on a core of its own it loads for 2.7 ms */
    assert_int_equal(kp_loading_size_of(&l), KP_LOADING_SHORT);
    l.waits = 0.9; /* sleep of 3 ms: 4.2 ms a step, with two workers 2.2 */
    l.load_ns = 3 * MS;
    assert_int_equal(kp_loading_size_of(&l), KP_LOADING_LONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_that_compute_share_the_cores_with_the_training),
        cmocka_unit_test(items_that_wait_leave_the_cores_to_others),
        cmocka_unit_test(items_that_wait_get_two_workers_a_core_at_most),
        cmocka_unit_test(loading_as_long_as_a_hand_over_is_short_and_a_little_more_may_be_either),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
