// SPDX-License-Identifier: Apache-2.0
/* test_baresteps.c - the spool says how long steps lasted before a window */
#include "preload/window/baresteps.h"

#include <time.h>

#include "test/unit/window/window_fixture.h"

static void last(struct kp_thread *t, long ms)
{
    const struct timespec nap = {.tv_nsec = ms * 1000000};
    nanosleep(&nap, NULL);
    op(t);
    step(t);
}

/* How many steps before that window, and their median in us; both 0: the spool does not say. */
static void bare_of(uint32_t window, unsigned *steps, unsigned *us)
{
    struct kp_reader *r;
    char why[200], key[32];
    *steps = *us = 0;
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    snprintf(key, sizeof key, "bare.%u", window);
    const char *const text = kp_reader_text(r, key);
    if (text) assert_int_equal(sscanf(text, "%u,%u", steps, us), 2);
    kp_reader_close(r);
}

/* A run that begins: as in a child, nothing of the one before is known. */
static struct kp_thread *run_of(const char *schedule)
{
    setup(schedule);
    kp_window_forget(&plan, sources);
    kp_window_begin_run(false);
    return kp_thread_get();
}

static uint32_t window_taken(void)
{
    struct kp_window w;
    assert_true(kp_window_take_drained(&w, false));
    return w.number;
}

static void the_median_of_steps_before_a_window_is_told(void **state)
{
    unsigned steps, us;
    (void)state;
    struct kp_thread *t = run_of("wait=6,warmup=1,active=2,repeat=1");
    last(t, 60); /* the start */
    for (int i = 0; i < 4; i++) last(t, 5);
    last(t, 80); /* one is long */
    last(t, 40); /* warms up */
    for (int i = 0; i < 3; i++) last(t, 1);
    bare_of(window_taken(), &steps, &us);
    assert_int_equal(steps, 5);
    assert_in_range(us, 5000, 40000);
}

static void steps_that_are_far_longer_are_counted(void **state)
{
    struct kp_reader *r;
    char why[200], key[32];
    unsigned long all, all_us, many, us;
    (void)state;
    struct kp_thread *t = run_of("wait=14,active=2,repeat=1");
    last(t, 60); /* the start */
    for (int i = 0; i < 8; i++) last(t, 5);
    last(t, 150);
    for (int i = 0; i < 6; i++) last(t, 5);
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    snprintf(key, sizeof key, "bare.%u", window_taken());
    const char *const text = kp_reader_text(r, key);
    assert_non_null(text);
    assert_int_equal(sscanf(text, "%*u,%*u,%lu,%lu,%lu,%lu", &all, &all_us, &many, &us), 4);
    kp_reader_close(r);
    assert_int_equal(all, 13);
    assert_in_range(many, 1, 3); /* another program may have had the core in one more */
    assert_in_range(us, 150000, all_us - 20000);
}

static void few_steps_tell_nothing(void **state)
{
    unsigned steps, us;
    (void)state;
    struct kp_thread *t = run_of("wait=3,active=2,repeat=1");
    for (int i = 0; i < 6; i++) last(t, 1);
    bare_of(window_taken(), &steps, &us);
    assert_int_equal(steps, 0);
}

static void steps_right_behind_a_window_do_not_count(void **state)
{
    unsigned steps, us;
    (void)state;
    struct kp_thread *t = run_of("wait=4,active=2,repeat=4");
    for (int i = 0; i < 25; i++) last(t, 1);
    const uint32_t first = window_taken();
    for (uint32_t i = 0; i < 4; i++) {
        bare_of(first + i, &steps, &us);
        assert_int_equal(steps, 3 + i);
    }
}

/* Microseconds on a core in that window; -1: the kernel does not tell. */
static long core_of(uint32_t window)
{
    struct kp_reader *r;
    char why[200], key[32];
    long had = -1;
    assert_int_equal(test_reader_open(&r, kp_record_path(), why, sizeof why), 0);
    snprintf(key, sizeof key, "core.%u", window);
    const char *const text = kp_reader_text(r, key);
    if (text) assert_int_equal(sscanf(text, "%ld", &had), 1);
    kp_reader_close(r);
    return had;
}

static void the_start_of_the_program_is_no_time_of_its_steps(void **state)
{
    (void)state;
    struct kp_thread *t = run_of("active=3,repeat=1");
    struct timespec begin, now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < 200);
    for (int i = 0; i < 3; i++) last(t, 1);
    const long had = core_of(window_taken());
    if (had < 0) KP_SKIP("this kernel does not count waits for a core");
    assert_in_range(had, 0, 100000);
}

static int run_end(void **state)
{
    (void)state;
    (void)kp_record_close(true, 10000);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_median_of_steps_before_a_window_is_told),
        cmocka_unit_test(steps_that_are_far_longer_are_counted),
        cmocka_unit_test(few_steps_tell_nothing),
        cmocka_unit_test(steps_right_behind_a_window_do_not_count),
        cmocka_unit_test(the_start_of_the_program_is_no_time_of_its_steps),
    };
    return cmocka_run_group_tests(tests, NULL, run_end);
}
