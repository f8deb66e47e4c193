// SPDX-License-Identifier: Apache-2.0
/* test_helper_threads.c - threads that go away for a moment, and come again */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_helper_threads.h"

static _Atomic uint32_t starts, woken, stop;

static void *sleeper(void *arg)
{
    kp_add_relaxed(&starts, 1);
    while (!kp_helpers_pause_wanted() && !kp_load_acquire(&stop)) kp_helpers_sleep(10000000000u);
    return arg;
}

static void *poller(void *arg)
{
    kp_add_relaxed(&starts, 1);
    while (!kp_helpers_pause_wanted() && !kp_load_acquire(&stop)) kp_io_nap(1000000);
    return arg;
}

static void wake(void) { kp_add_relaxed(&woken, 1); }

static unsigned long
    alone; /* threads at the start: an emulator has one of its own, and a sanitizer from the first on that is made */

static void *tid_tell(void *arg)
{
    *(uint32_t *)arg = kp_io_tid();
    return arg;
}

static unsigned long threads(void)
{
    struct stat st;
    assert_int_equal(stat("/proc/self/task", &st), 0);
    return (unsigned long)st.st_nlink - 2;
}

static void await(_Atomic uint32_t *word, uint32_t value)
{
    for (int i = 0; i < 20000 && kp_load_acquire(word) != value; i++) kp_io_nap(1000000);
    assert_int_equal(kp_load_acquire(word), value);
}

static void there_is_no_rest_where_no_thread_is(void **state)
{
    (void)state;
    pthread_t one;
    uint32_t tid;
    assert_int_equal(pthread_create(&one, NULL, tid_tell, &tid), 0);
    assert_int_equal(pthread_join(one, NULL), 0);
    while (!kp_io_is_thread_gone(tid)) kp_io_nap(1000000); /* joined is not yet gone: an emulator takes a while */
    alone = threads();
    assert_false(kp_helpers_pause(20000));
}

static void threads_are_gone_while_a_rest_lasts_and_come_again(void **state)
{
    (void)state;
    assert_int_equal(kp_helpers_start(sleeper, "sleeper", 0, NULL), 0);
    assert_int_equal(kp_helpers_start(poller, "poller", 0, wake), 0);
    await(&starts, 2);
    for (uint32_t i = 1; i <= 3; i++) {
        assert_true(kp_helpers_pause(20000));
        assert_int_equal(threads(), alone);
        assert_int_equal(kp_io_helpers(), 0);
        assert_int_equal(kp_load_acquire(&woken), i);
        kp_helpers_resume();
        await(&starts, 2 + 2 * i);
    }
}

static void one_that_ended_by_itself_stays_away(void **state)
{
    (void)state;
    kp_store_release(&stop, 1);
    assert_true(kp_helpers_pause(20000)); /* wakes them */
    kp_helpers_resume();
    await(&starts, 10); /* called again: they end at once */
    for (int i = 0; i < 20000 && threads() > alone; i++) kp_io_nap(1000000);
    assert_false(kp_helpers_pause(20000));
    assert_int_equal(kp_load_acquire(&starts), 10);
}

static _Atomic uint32_t late_starts, late_saw, late_may_go;

static void *goes_late(void *arg)
{
    kp_add_relaxed(&late_starts, 1);
    while (!kp_helpers_pause_wanted() && !kp_load_acquire(&late_may_go)) kp_io_nap(1000000);
    kp_store_release(&late_saw, 1);
    while (!kp_load_acquire(&late_may_go)) kp_io_nap(1000000);
    return arg;
}

static void one_that_goes_when_the_rest_is_over_comes_again(void **state)
{
    (void)state;
    assert_int_equal(kp_helpers_start(goes_late, "late", 0, NULL), 0);
    await(&late_starts, 1);
    assert_true(kp_helpers_pause(20)); /* it is waited for in vain */
    await(&late_saw, 1);
    kp_helpers_resume();
    kp_store_release(&late_may_go, 1);
    await(&late_starts, 2);
    for (int i = 0; i < 20000 && threads() > alone; i++) kp_io_nap(1000000); /* it ended by itself then */
    assert_int_equal(threads(), alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_no_rest_where_no_thread_is),
        cmocka_unit_test(threads_are_gone_while_a_rest_lasts_and_come_again),
        cmocka_unit_test(one_that_ended_by_itself_stays_away),
        cmocka_unit_test(one_that_goes_when_the_rest_is_over_comes_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
