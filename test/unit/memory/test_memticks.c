// SPDX-License-Identifier: Apache-2.0
/* test_memticks.c - ticks of the memory drawings are round, and few enough to be read */
#include "export/report/memory/memticks.h"

#include <stdio.h>

#include "test/support/support.h"

static const char *texts(const struct kp_ticks_axis *axis)
{
    static char all[512];
    char one[48];
    size_t used = 0;
    for (int i = 0; i < axis->count; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", i ? " " : "",
                                 kp_ticks_text(one, sizeof one, axis, i));
    return all;
}

static void ticks_of_bytes_are_round_and_reach_the_peak(void **state)
{
    (void)state;
    struct kp_ticks_axis axis = kp_ticks_bytes(INT64_C(50900000), 5); /* 48.54 MB */
    assert_string_equal(texts(&axis), "0 MB 10 MB 20 MB 30 MB 40 MB 50 MB");
    axis = kp_ticks_bytes(3, 5);
    assert_string_equal(texts(&axis), "0 B 1 B 2 B 3 B");
    axis = kp_ticks_bytes(INT64_C(1288490188), 5); /* 1.2 GB */
    assert_string_equal(texts(&axis), "0.0 GB 0.5 GB 1.0 GB 1.5 GB");
    axis = kp_ticks_bytes(0, 5);
    assert_true(axis.count > 1); /* something to divide by */
    axis = kp_ticks_bytes(INT64_MAX, 5);
    assert_true(axis.count > 1 && axis.count < 8);
}

static void ticks_of_time_lie_within_the_window(void **state)
{
    (void)state;
    struct kp_ticks_axis axis = kp_ticks_time(0, 554712000, 8);
    assert_string_equal(texts(&axis), "0 ms 100 ms 200 ms 300 ms 400 ms 500 ms");
    axis = kp_ticks_time(130000000, 260000000, 8);
    assert_string_equal(texts(&axis), "140 ms 160 ms 180 ms 200 ms 220 ms 240 ms 260 ms");
    axis = kp_ticks_time(0, INT64_C(61000000000), 8);
    assert_string_equal(texts(&axis), "0 s 10 s 20 s 30 s 40 s 50 s 60 s");
    axis = kp_ticks_time(5, 5, 8);
    assert_true(axis.count >= 0 && axis.count < 10);
}

static void numbers_of_steps_are_thinned_out(void **state)
{
    (void)state;
    assert_int_equal(kp_ticks_every(12, 12), 1);
    assert_int_equal(kp_ticks_every(13, 12), 2);
    assert_int_equal(kp_ticks_every(40, 12), 5);
    assert_int_equal(kp_ticks_every(100, 12), 10);
    assert_int_equal(kp_ticks_every(0, 12), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_of_bytes_are_round_and_reach_the_peak),
        cmocka_unit_test(ticks_of_time_lie_within_the_window),
        cmocka_unit_test(numbers_of_steps_are_thinned_out),
    };
    return cmocka_run_group_tests_name("ticks", tests, NULL, NULL);
}
