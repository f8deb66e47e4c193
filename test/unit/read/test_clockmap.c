// SPDX-License-Identifier: Apache-2.0
/* test_clockmap.c - ticks become times: monotone, the same tick always the same time */
#include "collector/read/clockmap.h"

#include <string.h>

#include "test/support/support.h"

#define WALL 1790857026000000000u

static struct kp_clockmap map_of(const struct kp_clock_pair *pairs, int n, uint32_t kind)
{
    struct kp_clockmap m = {0};
    for (int i = 0; i < n; i++) assert_int_equal(kp_clockmap_add(&m, &pairs[i], 0, 0), 0);
    kp_clockmap_finish(&m, kind, WALL);
    return m;
}

static void samples_are_met_exactly_and_lines_join_them(void **state)
{
    const struct kp_clock_pair p[] = {{3000, WALL, 100}, {6000, WALL + 1000, 1100}, {12000, WALL + 2000, 2100}};
    struct kp_clockmap m = map_of(p, 3, KP_CLOCK_TSC);
    (void)state;
    assert_int_equal(kp_clockmap_ns(&m, 3000), WALL);
    assert_int_equal(kp_clockmap_ns(&m, 6000), WALL + 1000);
    assert_int_equal(kp_clockmap_ns(&m, 12000), WALL + 2000);
    assert_in_range(kp_clockmap_ns(&m, 4500), WALL + 499, WALL + 500);
    assert_in_range(kp_clockmap_ns(&m, 9000), WALL + 1499, WALL + 1500);
    kp_clockmap_fini(&m);
}

static void beyond_the_edges_the_whole_slope_counts(void **state)
{
    const struct kp_clock_pair p[] = {{1000000, WALL, 9100}, {31000000, WALL + 10000000, 10009100}};
    struct kp_clockmap m = map_of(p, 2, KP_CLOCK_TSC);
    (void)state;
    assert_in_range(kp_clockmap_ns(&m, 1000000 - 3000), WALL - 1000, WALL - 999);
    assert_in_range(kp_clockmap_ns(&m, 31000000 + 3000000), WALL + 10999999, WALL + 11000000);
    m.lines[1].slope *= 3; /* one ns a tick: beyond what a time can hold */
    assert_int_equal(kp_clockmap_ns(&m, UINT64_MAX), INT64_MAX);
    kp_clockmap_fini(&m);
}

static void a_wall_clock_that_is_set_bends_nothing(void **state)
{
    const struct kp_clock_pair p[] = {
        {1000, WALL, 1000}, {2000, WALL - 3600000000000u, 2000}, {3000, WALL + 9000000000000u, 3000}};
    struct kp_clockmap m = map_of(p, 3, KP_CLOCK_TSC);
    (void)state;
    assert_int_equal(kp_clockmap_ns(&m, 2000), WALL + 1000);
    assert_int_equal(kp_clockmap_ns(&m, 3000), WALL + 2000);
    kp_clockmap_fini(&m);
}

static void busy_is(struct kp_clockmap *m, uint64_t from, uint64_t to, struct kp_busy wanted)
{
    const struct kp_busy busy = kp_clockmap_busy(m, from, to);
    assert_int_equal(busy.ns, wanted.ns);
    assert_int_equal(busy.waited_ns, wanted.waited_ns);
    assert_int_equal(busy.of_ns, wanted.of_ns);
    assert_int_equal(busy.is_wait_known, wanted.is_wait_known);
}

static void worker_play(struct kp_clockmap *m, uint64_t wait) /* ns a second that it waits */
{
    enum { S = 1000000000 };
    *m = (struct kp_clockmap){0};
    for (uint64_t i = 1; i <= 5; i++) { /* none at the first, then 0.2 s each second */
        const struct kp_clock_pair at = {i * S, WALL + i * S, i * S};
        assert_int_equal(kp_clockmap_add(m, &at, (i - 1) * S / 5, i * wait), 0);
    }
    kp_clockmap_finish(m, KP_CLOCK_MONO, WALL);
}

static void a_worker_is_busy_between_the_samples_of_its_window(void **state)
{
    const uint64_t s = 1000000000, ms = 1000000;
    struct kp_clockmap m;
    (void)state;
    worker_play(&m, 0);
    busy_is(&m, 0, 9 * s, (struct kp_busy){.ns = 3 * s / 5, .of_ns = 3 * s});
    busy_is(&m, 3 * s + 5 * ms, 4 * s - 5 * ms, (struct kp_busy){.ns = s / 5, .of_ns = s});
    busy_is(&m, 3 * s + 50 * ms, 4 * s, (struct kp_busy){0}); /* one sample alone */
    kp_clockmap_fini(&m);
    worker_play(&m, 50 * ms);
    busy_is(&m, 0, 9 * s,
            (struct kp_busy){.ns = 3 * s / 5, .waited_ns = 150 * ms, .of_ns = 3 * s, .is_wait_known = true});
    kp_clockmap_fini(&m);
}

static void samples_without_sense_are_rejected(void **state)
{
    const struct kp_clock_pair p[] = {
        {1000, WALL, 1000}, {900, WALL, 2000}, {2000, WALL, 900}, {2001, WALL, UINT64_MAX}, {3000, WALL + 2000, 3000}};
    struct kp_clockmap m = map_of(p, 5, KP_CLOCK_TSC);
    (void)state;
    assert_int_equal(m.rejected, 3);
    assert_int_equal(m.n, 2);
    assert_int_equal(kp_clockmap_ns(&m, 2000), WALL + 1000);
    kp_clockmap_fini(&m);
}

/* The machine slept for an hour: its ticks went on, CLOCK_MONOTONIC did not. What follows has its own line at once. */
static void sleep_between_two_samples_is_a_gap(void **state)
{
    const uint64_t hour = 3600000000000u;
    const struct kp_clock_pair p[] = {{1000, WALL, 1000},
                                      {1000 + 2000000000, WALL + 1000000000, 1000001000},
                                      {hour, WALL + hour, 2000001000},
                                      {hour + 2000000000, WALL + hour + 1000000000, 3000001000}};
    struct kp_clockmap m = map_of(p, 4, KP_CLOCK_TSC);
    (void)state;
    assert_int_equal(m.rejected, 0);
    assert_int_equal(kp_clockmap_ns(&m, hour), WALL + 2000000000);
    assert_int_equal(kp_clockmap_ns(&m, hour + 1000000000), WALL + 2500000000);
    assert_int_equal(kp_clockmap_ns(&m, 1000 + 2000000000 + 1000), WALL + 1000000500);
    assert_int_equal(kp_clockmap_ns(&m, hour - 1), WALL + 2000000000); /* never past the next line's begin */
    kp_clockmap_fini(&m);
}

/* Killed right after the start: the two samples of the opening lie so close that their own errors are a tenth of it. */
static void samples_that_lie_too_close_do_not_make_the_slope(void **state)
{
    struct kp_clock_pair a, b, c;
    (void)state;
    kp_clock_init();
    if (!kp_load_relaxed(&kp_clock_is_tsc)) KP_SKIP("no steady TSC here");
    kp_clock_sample(&a);
    for (uint64_t end = kp_clock_ns(CLOCK_MONOTONIC) + 20000000; kp_clock_ns(CLOCK_MONOTONIC) < end;) {}
    kp_clock_sample(&c);
    b = a;
    b.ticks += (c.ticks - a.ticks) / 10000;      /* 2 us later ... */
    b.mono_ns += (c.mono_ns - a.mono_ns) / 9500; /* ... and read 5 % wrong */
    struct kp_clockmap m = map_of((struct kp_clock_pair[]){a, b}, 2, KP_CLOCK_TSC);
    uint64_t ns = kp_clockmap_ns(&m, c.ticks) - kp_clockmap_ns(&m, a.ticks), want = c.mono_ns - a.mono_ns;
    assert_in_range(ns, want - want / 500, want + want / 500);
    kp_clockmap_fini(&m);
}

static void the_monotonic_clock_is_shifted_only(void **state)
{
    const struct kp_clock_pair p[] = {{1003, WALL, 1000}, {2009, WALL + 1000, 2000}};
    struct kp_clockmap m = map_of(p, 2, KP_CLOCK_MONO);
    (void)state;
    for (uint64_t t = 0; t < 5000; t += 7) assert_int_equal(kp_clockmap_ns(&m, t), WALL - 1000 + t);
    kp_clockmap_fini(&m);
}

static void one_sample_or_none_still_rises(void **state)
{
    const struct kp_clock_pair p[] = {{1000, WALL, 1000}};
    struct kp_clockmap one = map_of(p, 1, KP_CLOCK_TSC), none = map_of(p, 0, KP_CLOCK_TSC);
    (void)state;
    assert_int_equal(kp_clockmap_ns(&one, 1000), WALL);
    assert_true(kp_clockmap_ns(&one, 100000) > WALL);
    assert_true(kp_clockmap_ns(&none, 100000) > kp_clockmap_ns(&none, 1000));
    kp_clockmap_fini(&one);
    kp_clockmap_fini(&none);
}

static uint64_t x = 88172645463325252u;
static uint64_t any(uint64_t below)
{
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return x % below;
}

/* Random clocks with jitter: a later tick is never earlier, and the order of asking changes nothing. */
static void order_is_kept_for_random_clocks(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        struct kp_clock_pair p[40];
        uint64_t t = any(1u << 30), ns = any(1u << 30), rate = 1 + any(60), ticks[300], times[300];
        struct kp_clockmap m;
        for (int i = 0; i < 40; i++) {
            t += 1 + any(i % 5 ? 3000000000u : 300), ns += 1 + any(1000000000u) * (any(8) ? 1 : 0) + t / (rate * 1000);
            p[i] = (struct kp_clock_pair){t, WALL + ns, ns};
        }
        m = map_of(p, 40, KP_CLOCK_TSC);
        ticks[0] = p[0].ticks > 5000000000u ? p[0].ticks - 5000000000u : 0;
        for (int i = 1; i < 300; i++) ticks[i] = any(3) ? ticks[i - 1] + any(500000000) : p[any(40)].ticks - any(2);
        for (int i = 0; i < 300; i++) times[i] = kp_clockmap_ns(&m, ticks[i]);
        for (int i = 0; i < 300; i++) {
            int k = (int)any(300);
            if (ticks[i] < ticks[k]) assert_true(times[i] <= times[k]);
            if (ticks[i] == ticks[k]) assert_int_equal(times[i], times[k]);
            assert_int_equal(kp_clockmap_ns(&m, ticks[k]), times[k]);
        }
        kp_clockmap_fini(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_met_exactly_and_lines_join_them),
        cmocka_unit_test(beyond_the_edges_the_whole_slope_counts),
        cmocka_unit_test(a_wall_clock_that_is_set_bends_nothing),
        cmocka_unit_test(a_worker_is_busy_between_the_samples_of_its_window),
        cmocka_unit_test(samples_without_sense_are_rejected),
        cmocka_unit_test(sleep_between_two_samples_is_a_gap),
        cmocka_unit_test(samples_that_lie_too_close_do_not_make_the_slope),
        cmocka_unit_test(the_monotonic_clock_is_shifted_only),
        cmocka_unit_test(one_sample_or_none_still_rises),
        cmocka_unit_test(order_is_kept_for_random_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
