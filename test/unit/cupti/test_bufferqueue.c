// SPDX-License-Identifier: Apache-2.0
/* test_bufferqueue.c - completed buffers, put by several threads and taken by one, each once and in order */
#include <pthread.h>
#include <sched.h>

#include "preload/cupti/cupti_internal.h"
#include "test/support/support.h"

enum { THREADS = 4, EACH = KP_BUFFERS / THREADS, ROUNDS = 200 };
static _Atomic uint32_t out[KP_BUFFERS]; /* how often each was put and not taken */
static _Atomic uint32_t rounds_done;

static void the_oldest_comes_first(void **state)
{
    uint32_t index;
    (void)state;
    assert_true(kp_bufferqueue_is_empty());
    assert_false(kp_bufferqueue_take(&index));
    for (uint32_t i = 0; i < 3; i++) kp_bufferqueue_put(i * 100);
    assert_true(kp_bufferqueue_take(&index) && index == 0);
    kp_bufferqueue_put(511);
    assert_true(kp_bufferqueue_take(&index) && index == 100);
    assert_true(kp_bufferqueue_take(&index) && index == 200);
    assert_false(kp_bufferqueue_is_empty());
    assert_true(kp_bufferqueue_take(&index) && index == 511);
    assert_false(kp_bufferqueue_take(&index));
    assert_true(kp_bufferqueue_is_empty());
}

/* As CUPTI's threads do: a buffer is completed again only after it was handed out again. */
static void *put_all(void *first)
{
    const uint32_t from = (uint32_t)(uintptr_t)first;
    for (int round = 0; round < ROUNDS; round++)
        for (uint32_t i = from; i < from + EACH; i++) {
            while (kp_load_acquire(&out[i])) sched_yield();
            kp_store_release(&out[i], 1);
            kp_bufferqueue_put(i);
        }
    kp_add_acq_rel(&rounds_done, 1);
    return NULL;
}

static void each_is_taken_once_for_each_time_that_it_was_put(void **state)
{
    pthread_t threads[THREADS];
    uint64_t count = 0;
    (void)state;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, put_all, (void *)(i * EACH)), 0);
    for (uint32_t index; kp_load_acquire(&rounds_done) < THREADS || !kp_bufferqueue_is_empty();) {
        if (!kp_bufferqueue_take(&index)) continue;
        assert_int_equal(kp_exchange_acq_rel(&out[index], 0), 1);
        count++;
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    assert_int_equal(count, (uint64_t)THREADS * EACH * ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_oldest_comes_first),
        cmocka_unit_test(each_is_taken_once_for_each_time_that_it_was_put),
    };
    return cmocka_run_group_tests_name("cupti/bufferqueue", tests, NULL, NULL);
}
