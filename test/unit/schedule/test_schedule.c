// SPDX-License-Identifier: Apache-2.0
/* test_schedule.c - the schedule against a model that walks phase by phase, and its parser */
#include "schedule/kp_schedule.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "test/support/support.h"

enum { STEPS = 120 };

/* The plan written out in full: what a student would do with paper. */
static void write_out(const struct kp_schedule *s, enum kp_action plan[STEPS])
{
    size_t n = 0;
    for (uint64_t i = 0; i < s->skip_first && n < STEPS; i++) plan[n++] = KP_ACTION_NONE;
    for (uint64_t cycle = 0; (s->repeat == 0 || cycle < s->repeat) && n < STEPS; cycle++) {
        if (cycle > 0 || !s->skip_first_wait)
            for (uint64_t i = 0; i < s->wait && n < STEPS; i++) plan[n++] = KP_ACTION_NONE;
        for (uint64_t i = 0; i < s->warmup && n < STEPS; i++) plan[n++] = KP_ACTION_WARMUP;
        for (uint64_t i = 0; i < s->active && n < STEPS; i++)
            plan[n++] = i + 1 == s->active ? KP_ACTION_RECORD_AND_SAVE : KP_ACTION_RECORD;
    }
    while (n < STEPS) plan[n++] = KP_ACTION_NONE;
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

static void every_step_of_random_tuples_is_as_written_out(void **state)
{
    uint32_t seed = 20261121;
    enum kp_action plan[STEPS];
    (void)state;
    for (int i = 0; i < 20000; i++) {
        const struct kp_schedule s = {true,
                                      next_random(&seed) % 9,
                                      next_random(&seed) % 9,
                                      next_random(&seed) % 5,
                                      1 + next_random(&seed) % 6,
                                      next_random(&seed) % 5,
                                      next_random(&seed) % 3};
        write_out(&s, plan);
        for (uint64_t step = 0; step < STEPS; step++) assert_int_equal(kp_schedule_action(&s, step), plan[step]);
    }
}

static void steps_needed_is_the_first_save_plus_one(void **state)
{
    uint32_t seed = 7;
    enum kp_action plan[STEPS];
    (void)state;
    for (int i = 0; i < 2000; i++) {
        const struct kp_schedule s = {true,
                                      next_random(&seed) % 9,
                                      next_random(&seed) % 9,
                                      next_random(&seed) % 5,
                                      1 + next_random(&seed) % 6,
                                      next_random(&seed) % 5,
                                      next_random(&seed) % 3};
        uint64_t first = 0;
        write_out(&s, plan);
        while (plan[first] != KP_ACTION_RECORD_AND_SAVE) first++;
        assert_int_equal(kp_schedule_steps_needed(&s), first + 1);
    }
}

/* Over from the step behind the last save on, in a plan that ends; never where repeat is 0. */
static void a_schedule_is_over_behind_its_last_save(void **state)
{
    uint32_t seed = 13;
    enum kp_action plan[STEPS];
    (void)state;
    for (int i = 0; i < 2000; i++) {
        struct kp_schedule s = {.set = true,
                                .skip_first = next_random(&seed) % 9,
                                .wait = next_random(&seed) % 4,
                                .warmup = next_random(&seed) % 3,
                                .active = 1 + next_random(&seed) % 3,
                                .repeat = 1 + next_random(&seed) % 4,
                                .skip_first_wait = next_random(&seed) % 2};
        uint64_t last = 0;
        write_out(&s, plan);
        for (uint64_t step = 0; step < STEPS; step++)
            if (plan[step] == KP_ACTION_RECORD_AND_SAVE) last = step;
        for (uint64_t step = 0; step < STEPS; step++) assert_int_equal(kp_schedule_is_over(&s, step), step > last);
        s.repeat = 0;
        assert_false(kp_schedule_is_over(&s, 1000000));
    }
}

static void without_a_schedule_every_step_records(void **state)
{
    const struct kp_schedule s = {0};
    (void)state;
    assert_int_equal(kp_schedule_action(&s, 0), KP_ACTION_RECORD);
    assert_int_equal(kp_schedule_action(&s, 1000000), KP_ACTION_RECORD);
    assert_true(kp_schedule_steps_needed(&s) == UINT64_MAX);
}

static void a_full_text_sets_every_field(void **state)
{
    struct kp_schedule s;
    char why[200];
    (void)state;
    assert_int_equal(
        kp_schedule_parse("repeat=5,active=4,warmup=3,wait=2,skip_first=1,skip_first_wait=6", &s, why, sizeof why), 0);
    assert_true(s.set);
    assert_int_equal(s.skip_first, 1);
    assert_int_equal(s.wait, 2);
    assert_int_equal(s.warmup, 3);
    assert_int_equal(s.active, 4);
    assert_int_equal(s.repeat, 5);
    assert_int_equal(s.skip_first_wait, 6);
}

static void steps_are_recorded_once_after_a_step_of_warm_up(void **state)
{
    static const struct {
        const char *text;
        uint64_t skip_first, warmup, active;
    } cases[] = {{"10-12", 9, 1, 3}, {"1-1", 0, 1, 1}, {"0-4", 0, 0, 5}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kp_schedule s;
        char why[200];
        assert_int_equal(kp_schedule_parse(cases[i].text, &s, why, sizeof why), 0);
        assert_int_equal(s.skip_first, cases[i].skip_first);
        assert_int_equal(s.warmup, cases[i].warmup);
        assert_int_equal(s.active, cases[i].active);
        assert_int_equal(s.repeat, 1);
    }
}

#define COMMA "needs a comma behind the number in "
#define WRITTEN "10-12 or wait=1,warmup=1,active=3,repeat=1"

static void a_bad_text_is_refused_with_a_phrase_and_leaves_the_output_alone(void **state)
{
    const char *const bad[][2] = {
        {"wait=1", "active=N"},
        {"active=0", "active=N"},
        {"", "active=N"},
        {"active=1,activ=2", "has an unknown part 'activ=2' (written " WRITTEN "; did you mean active?)"},
        {"10-12,warmpu=1", "has more than steps, which must be alone: '10-12' (written"},
        {"12-10", "has a last step before the first: '12-10'"},
        {"warmpu=1,active=2", "'warmpu=1' (written " WRITTEN "; did you mean warmup?)"},
        {"100", "needs the last step as well (10-10 is step 10 alone): '100' (written"},
        {"x=1", "has an unknown part 'x=1' (written " WRITTEN ")"},
        {"10-", "unknown part"},
        {"active=1,active=2", "says twice"},
        {"active=x", "whole number"},
        {"active=-1", "whole number"},
        {"active=1 ", COMMA "'active=1 '"},
        {"wait=1;active=3", COMMA "'wait=1;active=3' (written " WRITTEN},
        {"active=1,", "comma"},
        {"active", "whole number"},
        {"active=", "whole number"},
        {"active=1000000000000000", "below 10^15"},
        {"active=99999999999999999999999", "below 10^15"},
        {",active=1", "unknown"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct kp_schedule s = {.wait = 77};
        char why[200] = "";
        assert_int_equal(kp_schedule_parse(bad[i][0], &s, why, sizeof why), -EINVAL);
        if (!strstr(why, bad[i][1])) fail_msg("'%s' gives '%s'", bad[i][0], why);
        assert_int_equal(s.wait, 77);
    }
}

static void huge_numbers_do_not_wrap(void **state)
{
    struct kp_schedule s;
    char why[200];
    (void)state;
    assert_int_equal(
        kp_schedule_parse("wait=999999999999999,warmup=999999999999999,active=999999999999999,skip_first_wait=1", &s,
                          why, sizeof why),
        0);
    assert_int_equal(kp_schedule_action(&s, 0), KP_ACTION_WARMUP);
    assert_int_equal(kp_schedule_action(&s, 999999999999999), KP_ACTION_RECORD);
    assert_int_equal(kp_schedule_action(&s, 2 * UINT64_C(999999999999999) - 1), KP_ACTION_RECORD_AND_SAVE);
}

static void the_schedule_none_records_no_step(void **state)
{
    struct kp_schedule s;
    char why[200];
    (void)state;
    assert_int_equal(kp_schedule_parse("none", &s, why, sizeof why), 0);
    assert_true(s.set);
    for (uint64_t step = 0; step < 100; step++) assert_int_equal(kp_schedule_action(&s, step), KP_ACTION_NONE);
    assert_true(kp_schedule_steps_needed(&s) == UINT64_MAX);
    assert_false(kp_schedule_is_over(&s, 1000));
    assert_int_equal(kp_schedule_parse("none,active=1", &s, why, sizeof why), -EINVAL);
    assert_int_equal(kp_schedule_parse("wait=1,none", &s, why, sizeof why), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_schedule_none_records_no_step),
        cmocka_unit_test(every_step_of_random_tuples_is_as_written_out),
        cmocka_unit_test(steps_needed_is_the_first_save_plus_one),
        cmocka_unit_test(a_schedule_is_over_behind_its_last_save),
        cmocka_unit_test(without_a_schedule_every_step_records),
        cmocka_unit_test(a_full_text_sets_every_field),
        cmocka_unit_test(steps_are_recorded_once_after_a_step_of_warm_up),
        cmocka_unit_test(a_bad_text_is_refused_with_a_phrase_and_leaves_the_output_alone),
        cmocka_unit_test(huge_numbers_do_not_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
