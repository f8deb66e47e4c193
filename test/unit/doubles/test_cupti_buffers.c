// SPDX-License-Identifier: Apache-2.0
/* test_cupti_buffers.c - the buffers of the simulated libcupti: who asks for them, when they come back, what can go
 * wrong */
#include "test/unit/doubles/cupti_test.h"

static void unfinished_records_hold_their_buffer_back(void)
{
    work_lasts_ns = 10000000000;
    arm("5 10");
    struct simgpu_work *work = launch();
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
    CHECK_IS(client.completions, 0);
    finish(work);
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
    CHECK_IS(client.completions, 1);
    CHECK(pthread_equal(client.completer, pthread_self()));
    CHECK(u64(nth_of(10, 0), 24) != 0);
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
    CHECK_IS(client.completions, 1);
}

static void a_forced_flush_tells_them_once_without_an_end(void)
{
    client.is_keeping = true;
    work_lasts_ns = 10000000000;
    arm("10");
    struct simgpu_work *work = launch();
    CHECK_IS(CUPTI(ActivityFlushAll, 1), 0);
    CHECK_IS(count_of(10), 1);
    CHECK_IS(u64(nth_of(10, 0), 24), 0);
    finish(work);
    CHECK_IS(u64(client.kept, 24), 0); /* the memory is the client's again */
    CHECK_IS(CUPTI(ActivityFlushAll, 1), 0);
    CHECK_IS(count_of(10), 1);
}

static _Atomic int is_about_to;
static void *finish_soon(void *work)
{
    is_about_to = 1;
    wait_ms(20); /* libcupti's stand-in waits for five times that */
    finish(work);
    return NULL;
}
static void what_ended_before_a_flush_is_in_it(void)
{
    arm("10");
    struct simgpu_work *work = launch();
    wait_ms(1);
    pthread_t thread;
    pthread_create(&thread, NULL, finish_soon, work);
    while (!is_about_to) wait_ms(1);
    CHECK_IS(CUPTI(ActivityFlushAll, 1), 0);
    CHECK(u64(nth_of(10, 0), 24) != 0);
    pthread_join(thread, NULL);
}

static void test_flush(void **state)
{
    (void)state;
    in_child(what_ended_before_a_flush_is_in_it, "13", "");
    in_child(unfinished_records_hold_their_buffer_back, "13", "");
    in_child(a_forced_flush_tells_them_once_without_an_end, "12", "");
}

static void full_buffers_come_back_by_a_thread_of_cupti(void)
{
    client.size = 1000; /* 25 records of 40 bytes */
    arm("5");
    for (int i = 0; i < 60; i++) finish(launch());
    for (int i = 0; i < 12000 && __atomic_load_n(&client.completions, __ATOMIC_ACQUIRE) < 2; i++) wait_ms(5);
    CHECK_IS(client.completions, 2);
    CHECK(!pthread_equal(client.completer, pthread_self()));
    CHECK_IS(client.requests, 3);
    CHECK_IS(client.count, 50);
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
    CHECK_IS(client.count, 60);
    for (int i = 0; i < 60; i++) CHECK_IS(u32(client.records[i], 32), i + 1);
}

static void test_worker(void **state)
{
    (void)state;
    in_child(full_buffers_come_back_by_a_thread_of_cupti, "13", "");
}

static void *launch_there(void *unused)
{
    finish(launch());
    return unused;
}
static int want_buffers;
static void threads_share_a_buffer_or_not(void)
{
    uint8_t per_thread = 0;
    size_t size = 1;
    CHECK_IS(CUPTI(ActivityGetAttribute, 9, &size, &per_thread), 0);
    CHECK_IS(per_thread, want_buffers == 3);
    arm("5");
    finish(launch());
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, launch_there, NULL);
        pthread_join(thread, NULL);
    }
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
    CHECK_IS(client.requests, want_buffers);
    CHECK_IS(count_of(5), 3);
}

static void test_per_thread(void **state)
{
    (void)state;
    want_buffers = 3;
    in_child(threads_share_a_buffer_or_not, "13", "SIMCUPTI_VERSION=130001");
    want_buffers = 1;
    in_child(threads_share_a_buffer_or_not, "12", "SIMCUPTI_VERSION=27");
}

static int completions_of_another;
static void complete_another(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    completions_of_another++;
    on_complete(context, stream, buffer, size, valid);
}
static void the_second_who_registers_takes_over(void)
{
    arm("5");
    CHECK_IS(CUPTI(ActivityRegisterCallbacks, on_request, complete_another), 0);
    finish(launch());
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
    CHECK_IS(completions_of_another, 1);
}

static int want_of_first, want_of_second;
static void buffers_of_the_first_go_where_told(void)
{
    arm("5");
    finish(launch());
    CHECK_IS(CUPTI(ActivityRegisterCallbacks, on_request, complete_another), 0);
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
    CHECK_IS(client.completions - completions_of_another, want_of_first);
    CHECK_IS(completions_of_another, want_of_second);
    finish(launch());
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
    CHECK_IS(completions_of_another, want_of_second + 1);
}

static int flush_answer;
static void flush_inside(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    flush_answer = CUPTI(ActivityFlushAll, 0);
    on_complete(context, stream, buffer, size, valid);
}
static void a_flush_inside_a_callback_is_refused(void)
{
    arm("5");
    CHECK_IS(CUPTI(ActivityRegisterCallbacks, on_request, flush_inside), 0);
    finish(launch());
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
    CHECK_IS(flush_answer, 7);
    CHECK_IS(client.count, 1);
}

static void test_register(void **state)
{
    (void)state;
    in_child(a_flush_inside_a_callback_is_refused, "13", "");
    want_of_second = 1;
    in_child(buffers_of_the_first_go_where_told, "13", "");
    want_of_second = 0;
    in_child(buffers_of_the_first_go_where_told, "13", "SIMCUPTI_REPLACED=lost");
    want_of_first = 1;
    in_child(buffers_of_the_first_go_where_told, "13", "SIMCUPTI_REPLACED=own");
    in_child(the_second_who_registers_takes_over, "13", "");
}

static void without_buffers_records_are_counted(void)
{
    client.size = 0;
    arm("5");
    for (int i = 0; i < 7; i++) finish(launch());
    size_t dropped = 0;
    CHECK_IS(CUPTI(ActivityGetNumDroppedRecords, NULL, 0, &dropped), 0);
    CHECK_IS(dropped, 7);
    CHECK_IS(CUPTI(ActivityGetNumDroppedRecords, NULL, 0, &dropped), 0);
    CHECK_IS(dropped, 0);
    client.size = 16; /* too small for any */
    finish(launch());
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
    CHECK_IS(CUPTI(ActivityGetNumDroppedRecords, NULL, 0, &dropped), 0);
    CHECK_IS(dropped, 1);
    CHECK_IS(client.completions, 1);
    CHECK_IS(client.count, 0);
}

static void test_null(void **state)
{
    (void)state;
    in_child(without_buffers_records_are_counted, "13", "SIMCUPTI_CRASH_NULL=1");
    in_child(without_buffers_records_are_counted, "12", "SIMCUPTI_VERSION=26");
    int status =
        run_child(without_buffers_records_are_counted, "12", "SIMCUPTI_VERSION=26 SIMCUPTI_CRASH_NULL=1", true);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static void launch_ten(void)
{
    client.size = 65536;
    arm("5 10");
    for (int i = 0; i < 10; i++) finish(launch());
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
}

static void records_come_late(void)
{
    client.size = 65536;
    arm("5 10");
    uint64_t before = now_ns();
    finish(launch());
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
    CHECK_IS(client.completions, 0);
    while (!client.completions) {
        wait_ms(5);
        CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
    }
    CHECK(now_ns() - before >= 100000000);
    CHECK(u64(nth_of(10, 0), 24) > u64(nth_of(10, 0), 16));
}

static void there_are_holes(void)
{
    launch_ten();
    CHECK_IS(client.end, 21);
    CHECK(client.count < 20);
}

static void the_tail_is_cut(void)
{
    launch_ten();
    CHECK_IS(client.end, 12);
    CHECK_IS(client.count, 19);
}

static void some_are_dropped(void)
{
    launch_ten();
    CHECK_IS(client.count, 16); /* every fifth of 20 */
    size_t dropped = 0;
    CHECK_IS(CUPTI(ActivityGetNumDroppedRecords, NULL, 0, &dropped), 0);
    CHECK_IS(dropped, 4);
}

static void some_kernels_have_no_time(void)
{
    launch_ten();
    for (int i = 0; i < 10; i++) CHECK_IS(u64(nth_of(10, i), 16) == 0, i % 3 == 2);
    for (int i = 0; i < 10; i++) CHECK_IS(u64(nth_of(10, i), 24) == 0, i % 3 == 2);
}

static void buffers_come_in_another_order(void)
{
    client.size = 400;
    arm("5");
    for (int i = 0; i < 40; i++) finish(launch());
    for (int i = 0; i < 12000 && __atomic_load_n(&client.completions, __ATOMIC_ACQUIRE) < 3; i++)
        wait_ms(5); /* the fourth is not full yet */
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
    CHECK_IS(client.count, 40);
    CHECK(u32(client.records[0], 32) > 10);
}

static void test_faults(void **state)
{
    (void)state;
    in_child(records_come_late, "13", "SIMCUPTI_LATE_MS=100");
    in_child(there_are_holes, "13", "SIMCUPTI_HOLES=7");
    in_child(the_tail_is_cut, "13", "SIMCUPTI_TRUNCATE=1");
    in_child(some_are_dropped, "13", "SIMCUPTI_DROP=5");
    in_child(some_kernels_have_no_time, "13", "SIMCUPTI_ZERO_EVERY=3");
    in_child(buffers_come_in_another_order, "13", "SIMCUPTI_SHUFFLE=1");
}

static void finalize_forgets_everything(void)
{
    arm("5 10 39");
    struct simgpu_work *work = launch();
    CHECK_IS(CUPTI(ActivityPushExternalCorrelationId, 3, (uint64_t)1), 0);
    CHECK_IS(CUPTI(Finalize, NULL), 0);
    finish(work);
    finish(launch());
    CHECK_IS(CUPTI(ActivityFlushAll, 1), 0);
    CHECK_IS(client.completions, 0);
    CHECK_IS(CUPTI(ActivityPopExternalCorrelationId, 3, NULL), 18);
    arm("5");
    finish(launch());
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
    CHECK_IS(client.count, 1);
}

static void test_finalize(void **state)
{
    (void)state;
    in_child(finalize_forgets_everything, "13", "");
}

/* Many threads launch, buffers go round, one flushes: each record arrives once. */
enum { THREADS = 4, LAUNCHES = 100 };
static void *launch_many(void *unused)
{
    for (int i = 0; i < LAUNCHES; i++) {
        static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
        pthread_mutex_lock(&one);
        struct simgpu_work *work = launch();
        pthread_mutex_unlock(&one);
        finish(work);
    }
    return unused;
}
static void every_record_arrives_once(void)
{
    client.size = 2048;
    arm("5 10");
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, launch_many, NULL);
    for (int i = 0; i < 10; i++) CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    CHECK_IS(CUPTI(ActivityFlushAll, 0), 0);
    CHECK_IS(count_of(5), THREADS * LAUNCHES);
    CHECK_IS(count_of(10), THREADS * LAUNCHES);
    static int seen[THREADS * LAUNCHES + 1];
    for (int i = 0; i < client.count; i++)
        if (u32(client.records[i], 0) == 10) CHECK_IS(++seen[u32(client.records[i], 92)], 1);
}

static void test_threads(void **state)
{
    (void)state;
    in_child(every_record_arrives_once, "13", "");
    in_child(every_record_arrives_once, "12", "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flush),    cmocka_unit_test(test_worker),  cmocka_unit_test(test_per_thread),
        cmocka_unit_test(test_register), cmocka_unit_test(test_null),    cmocka_unit_test(test_faults),
        cmocka_unit_test(test_finalize), cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
