// SPDX-License-Identifier: Apache-2.0
/* test_nesting.c - events of a thread whose clock goes in steps of 10 ns end apart from each other */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "collector/read/crossing.h"

static struct kp_nesting nesting;

static void fits(uint64_t start, uint64_t end, uint64_t fit_start, uint64_t fit_end)
{
    kp_nesting_fit(&nesting, &start, &end);
    assert_int_equal(start, fit_start);
    assert_int_equal(end, fit_end);
}

static int begin(void **state)
{
    (void)state;
    nesting = (struct kp_nesting){0};
    return 0;
}

static void events_that_lie_apart_stay_as_they_are(void **state)
{
    (void)state;
    fits(10, 100, 10, 100);
    fits(10, 40, 10, 40); /* begins with the outer one */
    fits(50, 60, 50, 60);
    fits(110, 120, 110, 120);
}

static void an_inner_event_ends_before_the_outer_one(void **state)
{
    (void)state;
    fits(10, 100, 10, 100);
    fits(20, 100, 20, 99);
    fits(30, 100, 30, 98);
    fits(40, 98, 40, 97); /* a finer clock */
}

static void the_next_event_begins_behind_the_one_before(void **state)
{
    (void)state;
    fits(10, 20, 10, 20);
    fits(20, 30, 21, 30);
    fits(20, 30, 21, 29); /* inside the second, that was moved */
    fits(30, 30, 29, 29); /* without duration: inside it, too */
}

static void events_that_overlap_stay_so(void **state)
{
    (void)state;
    fits(10, 100, 10, 100);
    fits(50, 150, 50, 150);
}

static void very_deep_events_are_left_alone(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < KP_NESTING_MAX; i++) fits(i, 1000 - i, i, 1000 - i);
    fits(100, 800, 100, 800);
    fits(200, 800, 200, 800);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(events_that_lie_apart_stay_as_they_are, begin),
        cmocka_unit_test_setup(an_inner_event_ends_before_the_outer_one, begin),
        cmocka_unit_test_setup(the_next_event_begins_behind_the_one_before, begin),
        cmocka_unit_test_setup(events_that_overlap_stay_so, begin),
        cmocka_unit_test_setup(very_deep_events_are_left_alone, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
