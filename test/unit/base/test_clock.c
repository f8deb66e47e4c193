// SPDX-License-Identifier: Apache-2.0
/* test_clock.c - ticks advance, and samples tie them to time */
#include "collector/base/sys/kp_clock.h"

#include <stdio.h>
#include <string.h>

#include "collector/base/sys/kp_io.h"
#include "test/support/support.h"

static void ticks_never_go_back_on_a_thread(void **state)
{
    (void)state;
    for (int tsc = 0; tsc < 2; tsc++) {
        if (tsc) kp_clock_init();
        uint64_t last = 0;
        for (int i = 0; i < 200000; i++) {
            uint64_t now = kp_ticks();
            assert_true(now >= last);
            last = now;
        }
    }
}

static void the_tsc_is_used_only_when_the_kernel_uses_it(void **state)
{
    char text[32] = "";
    FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");
    (void)state;
    if (f) {
        if (!fgets(text, sizeof text, f)) text[0] = '\0';
        fclose(f);
    }
    kp_clock_init();
    if (strcmp(text, "tsc\n") != 0) assert_false(kp_load_relaxed(&kp_clock_is_tsc));
    kp_fail_set("open:1"); /* a sandbox without /sys */
    kp_clock_init();
    assert_false(kp_load_relaxed(&kp_clock_is_tsc));
    kp_fail_set("read:1");
    kp_clock_init();
    assert_false(kp_load_relaxed(&kp_clock_is_tsc));
    kp_fail_set(NULL);
    kp_clock_init();
}

static void two_samples_give_a_steady_rate(void **state)
{
    struct kp_clock_pair a, b, c;
    struct timespec pause = {0, 30000000};
    (void)state;
    kp_clock_init();
    kp_clock_sample(&a);
    nanosleep(&pause, NULL);
    kp_clock_sample(&b);
    nanosleep(&pause, NULL);
    kp_clock_sample(&c);
    double ab = (double)(b.mono_ns - a.mono_ns) / (double)(b.ticks - a.ticks);
    double bc = (double)(c.mono_ns - b.mono_ns) / (double)(c.ticks - b.ticks);
    assert_true(ab > 0 && bc / ab > 0.999 && bc / ab < 1.001);
    uint64_t real = kp_clock_ns(CLOCK_REALTIME);
    assert_true(c.real_ns <= real && real - c.real_ns < 5000000000u);
}

static void that_the_kernel_leaves_the_tsc_is_said_once(void **state)
{
    (void)state;
    kp_store_relaxed(&kp_clock_is_tsc, false);
    kp_fail_set("clocksource:1+");
    assert_false(kp_clock_was_left(1));
    kp_store_relaxed(&kp_clock_is_tsc, true);
    kp_fail_set("open:1+"); /* what cannot be read has not changed */
    assert_false(kp_clock_was_left(1000));
    assert_false(kp_clock_was_left(60000));
    assert_false(kp_clock_was_left(200000));
    kp_fail_set("clocksource:1+");
#if defined(__x86_64__)
    assert_true(kp_clock_was_left(200001));
#endif
    assert_false(kp_clock_was_left(900000));
    kp_fail_set(NULL);
    kp_store_relaxed(&kp_clock_is_tsc, false); /* as it is on other processors */
    kp_clock_init();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_never_go_back_on_a_thread),
        cmocka_unit_test(that_the_kernel_leaves_the_tsc_is_said_once),
        cmocka_unit_test(the_tsc_is_used_only_when_the_kernel_uses_it),
        cmocka_unit_test(two_samples_give_a_steady_rate),
    };
    return cmocka_run_group_tests_name("clock", tests, NULL, NULL);
}
