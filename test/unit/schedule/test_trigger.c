// SPDX-License-Identifier: Apache-2.0
/* test_trigger.c - which step is long enough to be looked into */
#include "schedule/trigger.h"

#include "test/support/support.h"

#define MS UINT64_C(1000000)
#define MINUTES(n) ((n)*UINT64_C(60000000000))

static struct kp_trigger t;
static uint64_t median_ns, period, at_ns, step;

static void ready(const char *text)
{
    char why[100];
    assert_int_equal(kp_trigger_parse(text, &t, why, sizeof why), 0);
    at_ns = step = 0;
}

static enum kp_trigger_verdict next(uint64_t ms)
{
    at_ns += ms * MS;
    return kp_trigger_step(&t, step++, ms * MS, at_ns, &median_ns, &period);
}

/* Steps of 95 to 105 ms. */
static void settle(void)
{
    for (int i = 0; i < 32; i++) assert_int_equal(next(95 + (uint64_t)i % 11), KP_TRIGGER_NO);
}

static void rules_are_read(void **state)
{
    char why[100];
    (void)state;
    ready("step>1.5x");
    assert_int_equal(t.times_milli, 1500);
    ready("step>2s");
    assert_int_equal(t.over_ns, 2000 * MS);
    ready("step>0.5s");
    assert_int_equal(t.over_ns, 500 * MS);
    ready("step>250ms");
    assert_int_equal(t.over_ns, 250 * MS);
    static const char *const bad[] = {"",         "step", "step>", "step>x", "step>1x", "step>0s",    "step>2",
                                      "step>2sx", "2s",   "oo",    "oom,",   ",oom",    "step>2s;oom"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(kp_trigger_parse(bad[i], &t, why, sizeof why), -22);
}

static void out_of_memory_fires_once_in_ten_minutes(void **state)
{
    (void)state;
    ready("step>2s");
    assert_false(kp_trigger_oom(&t, 1));
    ready("oom");
    assert_false(kp_trigger_is_of_steps(&t));
    assert_true(kp_trigger_oom(&t, 1));
    assert_false(kp_trigger_oom(&t, MINUTES(10)));
    assert_true(kp_trigger_oom(&t, MINUTES(10) + 1));
    ready("oom,step>2s");
    assert_int_equal(t.over_ns, 2000 * MS);
    assert_true(kp_trigger_oom(&t, 1));
}

static void a_step_beyond_factor_and_spread_is_long(void **state)
{
    (void)state;
    ready("step>1.5x");
    assert_int_equal(next(900), KP_TRIGGER_NO); /* the first steps are known to nobody */
    ready("step>1.5x");
    settle();
    assert_int_equal(next(140), KP_TRIGGER_NO); /* far outside of the spread, and not beyond the factor */
    assert_int_equal(next(160), KP_TRIGGER_LONG);
    assert_in_range(median_ns, 98 * MS, 102 * MS);
    assert_int_equal(next(160), KP_TRIGGER_AGAIN); /* ten minutes */
    at_ns += MINUTES(10);
    assert_int_equal(next(200), KP_TRIGGER_LONG);
}

/* Steps that differ by themselves: a factor alone would find one in four. */
static void where_steps_spread_the_spread_counts(void **state)
{
    (void)state;
    ready("step>1.5x");
    for (uint64_t i = 0; i < 200; i++) assert_int_equal(next(50 + i * 37 % 101), KP_TRIGGER_NO);
    assert_int_equal(next(1000), KP_TRIGGER_LONG);
}

static void steps_that_stay_longer_are_the_new_usual(void **state)
{
    (void)state;
    ready("step>1.5x");
    settle();
    assert_int_equal(next(300), KP_TRIGGER_LONG);
    for (int i = 0; i < 32; i++) (void)next(300);
    at_ns += MINUTES(20);
    assert_int_equal(next(300), KP_TRIGGER_NO);
}

/* A checkpoint each 50th step is told once, and recorded no more than three times. */
static void what_comes_each_nth_step_is_said_once(void **state)
{
    unsigned found[4] = {0};
    (void)state;
    ready("step>1.5x");
    settle();
    for (unsigned i = 1; i <= 1000; i++) {
        at_ns += MINUTES(11);
        found[next(i % 50 == 0 ? 500 : 100)]++;
        if (i % 50 == 0 && found[KP_TRIGGER_PERIODIC]) assert_int_equal(period, 50);
    }
    assert_int_equal(found[KP_TRIGGER_LONG], 3);
    assert_int_equal(found[KP_TRIGGER_PERIODIC], 1);
    assert_int_equal(found[KP_TRIGGER_AGAIN], 16);
}

static bool behind(uint64_t own, uint64_t *others, size_t count, uint64_t now_ns)
{
    return kp_trigger_behind(&t, own, others, count, now_ns, &median_ns);
}

static void a_rank_is_behind_where_the_others_wait_a_fifth_of_a_step_longer(void **state)
{
    uint64_t others[4] = {900, 250, 300, 10};
    (void)state;
    ready("oom");
    assert_false(behind(0, others, 4, 1) || behind(0, others, 4, 1));
    ready("step>2s,behind");
    assert_int_equal(t.over_ns, 2000 * MS);
    assert_false(behind(0, others, 0, 1) || behind(0, others, 0, 1)); /* alone */
    assert_false(behind(51, others, 4, 1) || behind(51, others, 4, 1));
    assert_int_equal(median_ns, 250); /* the lower one of the middle */
    assert_false(behind(50, others, 4, 1));
    assert_false(behind(51, others, 4, 1));
    assert_false(behind(50, others, 4, 1));
    assert_true(behind(50, others, 4, 1)); /* in two looks, one after the other */
    assert_false(behind(50, others, 4, MINUTES(10)));
    assert_true(behind(50, others, 4, MINUTES(10) + 1));
}

static void a_time_needs_no_other_steps(void **state)
{
    (void)state;
    ready("step>250ms");
    assert_int_equal(next(249), KP_TRIGGER_NO);
    assert_int_equal(next(251), KP_TRIGGER_LONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_read),
        cmocka_unit_test(out_of_memory_fires_once_in_ten_minutes),
        cmocka_unit_test(a_step_beyond_factor_and_spread_is_long),
        cmocka_unit_test(where_steps_spread_the_spread_counts),
        cmocka_unit_test(steps_that_stay_longer_are_the_new_usual),
        cmocka_unit_test(what_comes_each_nth_step_is_said_once),
        cmocka_unit_test(a_time_needs_no_other_steps),
        cmocka_unit_test(a_rank_is_behind_where_the_others_wait_a_fifth_of_a_step_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
