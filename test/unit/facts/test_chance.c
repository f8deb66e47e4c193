// SPDX-License-Identifier: Apache-2.0
/* test_chance.c - how likely so many hits are */
#include "test/support/support.h"

#include "export/read/facts/chance.h"

static void all_of_some_is_a_power(void **state)
{
    (void)state;
    assert_float_equal(kp_chance_of(3, 3, 0.5), 0.125, 1e-12);
    assert_float_equal(kp_chance_of(20, 20, 0.25) * 1099511627776.0, 1, 1e-9); /* 4 to the 20th */
}

static void at_least_counts_more_too(void **state)
{
    (void)state;
    assert_float_equal(kp_chance_of(2, 3, 0.5), 0.5, 1e-12);
    assert_float_equal(kp_chance_of(1, 2, 0.1), 0.19, 1e-12);
}

static void none_is_certain_and_a_share_of_nothing_never_hits(void **state)
{
    (void)state;
    assert_float_equal(kp_chance_of(0, 5, 0.1), 1, 0);
    assert_float_equal(kp_chance_of(5, 5, 1), 1, 0);
    assert_float_equal(kp_chance_of(1, 5, 0), 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_some_is_a_power),
        cmocka_unit_test(at_least_counts_more_too),
        cmocka_unit_test(none_is_certain_and_a_share_of_nothing_never_hits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
