// SPDX-License-Identifier: Apache-2.0
/* test_limit.c - when CUPTI is off again before its window ends */
#include "preload/cupti/limit.h"

#include "collector/base/elf/kp_cuptirule.h"
#include "test/support/support.h"

enum { SOUND = 0, MINUTE = 60000, HOUR = 60 * MINUTE };
#define MILLION UINT64_C(1000000)

static enum kp_limit without(struct kp_limit_seen seen, uint32_t rules) { return kp_limit_of(&seen, rules, false); }

static enum kp_limit with(struct kp_limit_seen seen, uint32_t rules) { return kp_limit_of(&seen, rules, true); }

static void without_a_schedule_there_are_limits(void **state)
{
    (void)state;
    assert_int_equal(without((struct kp_limit_seen){0}, SOUND), KP_LIMIT_NONE);
    assert_int_equal(without((struct kp_limit_seen){.ms = 4 * HOUR - 1, .records = 100 * MILLION - 1}, SOUND),
                     KP_LIMIT_NONE);
    assert_int_equal(without((struct kp_limit_seen){.ms = 4 * HOUR}, SOUND), KP_LIMIT_MINUTES);
    assert_int_equal(without((struct kp_limit_seen){.records = 100 * MILLION}, SOUND), KP_LIMIT_RECORDS);
}

static void with_a_schedule_there_are_none_of_these(void **state)
{
    (void)state;
    const struct kp_limit_seen much = {.ms = 100 * (uint64_t)HOUR, .records = 100000 * MILLION};
    assert_int_equal(with(much, KP_CUPTI_SHORT | KP_CUPTI_FEW), KP_LIMIT_NONE);
}

static void a_cupti_that_suffers_from_long_recordings_gets_shorter_ones(void **state)
{
    (void)state;
    assert_int_equal(without((struct kp_limit_seen){.ms = HOUR - 1}, KP_CUPTI_SHORT), KP_LIMIT_NONE);
    assert_int_equal(without((struct kp_limit_seen){.ms = HOUR}, KP_CUPTI_SHORT), KP_LIMIT_MINUTES);
    assert_int_equal(without((struct kp_limit_seen){.ms = HOUR}, KP_CUPTI_FEW), KP_LIMIT_NONE);
    const struct kp_limit_seen many = {.records = 20 * MILLION}; /* with 25 million it harms */
    assert_int_equal(without(many, KP_CUPTI_FEW), KP_LIMIT_RECORDS);
    assert_int_equal(without(many, KP_CUPTI_SHORT), KP_LIMIT_NONE);
    assert_int_equal(kp_limit_minutes(KP_CUPTI_SHORT), 60);
    assert_int_equal(kp_limit_millions(KP_CUPTI_FEW), 20);
}

static void a_burst_of_kernels_without_times_ends_any_window(void **state)
{
    (void)state;
    /* cut off by a forced flush */
    assert_int_equal(with((struct kp_limit_seen){.kernels = 255, .timeless = 255}, SOUND), KP_LIMIT_NONE);
    assert_int_equal(with((struct kp_limit_seen){.kernels = 512, .timeless = 256}, SOUND), KP_LIMIT_TIMES);
    /* every fifth: the others are worth having */
    assert_int_equal(with((struct kp_limit_seen){.kernels = 10000, .timeless = 2000}, SOUND), KP_LIMIT_NONE);
    assert_int_equal(without((struct kp_limit_seen){.kernels = 512, .timeless = 500}, SOUND), KP_LIMIT_TIMES);
}

static void a_spool_without_room_ends_any_window(void **state)
{
    (void)state;
    assert_int_equal(with((struct kp_limit_seen){.full_ms = 999}, SOUND), KP_LIMIT_NONE); /* the writer was busy */
    assert_int_equal(with((struct kp_limit_seen){.full_ms = 1000}, SOUND), KP_LIMIT_SPOOL);
    assert_int_equal(without((struct kp_limit_seen){.full_ms = 1000}, SOUND), KP_LIMIT_SPOOL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_schedule_there_are_limits),
        cmocka_unit_test(with_a_schedule_there_are_none_of_these),
        cmocka_unit_test(a_cupti_that_suffers_from_long_recordings_gets_shorter_ones),
        cmocka_unit_test(a_burst_of_kernels_without_times_ends_any_window),
        cmocka_unit_test(a_spool_without_room_ends_any_window),
    };
    return cmocka_run_group_tests_name("cupti/limit", tests, NULL, NULL);
}
