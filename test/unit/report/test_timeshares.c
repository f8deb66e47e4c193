// SPDX-License-Identifier: Apache-2.0
/* test_timeshares.c - how many threads the cores hold */
#include "export/report/timeshares.h"

#include "test/unit/report/little_trace.h"

static void too_many_threads_are_those_that_the_cores_do_not_hold(void **state)
{
    (void)state;
    assert_int_equal(kp_summary_threads_wanted(2, 4, 0, 0, false), 2);
    assert_int_equal(kp_summary_threads_wanted(2, 3, 0, 0, false), 0); /* one of them may have hardly run */
    assert_int_equal(kp_summary_threads_wanted(2, 2, 0, 0, false), 0);
    assert_int_equal(kp_summary_threads_wanted(2, 2, 16, 0, false), 2); /* a short run: few of them ran long enough */
    assert_int_equal(kp_summary_threads_wanted(2, 16, 1, 0, false), 2); /* torch.set_num_threads(16) */
    assert_true(kp_summary_threads_are_set(2, 1, 0) && !kp_summary_threads_are_set(2, 16, 0));
    assert_int_equal(kp_summary_threads_wanted(2, 16, 1, 2, false), 1);
    assert_int_equal(kp_summary_threads_wanted(2, 3, 1, 2, false), 0); /* set already: the others are no pool's */
    assert_int_equal(kp_summary_threads_wanted(8, 8, 0, 4, false), 2);
    assert_int_equal(kp_summary_threads_wanted(2, 4, 0, 4, false), 1);
    assert_int_equal(kp_summary_threads_wanted(8, 10, 0, 1, true), 0); /* threads of the GPU's libraries */
    assert_int_equal(kp_summary_threads_wanted(0, 16, 16, 1, false), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_many_threads_are_those_that_the_cores_do_not_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
