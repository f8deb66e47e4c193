// SPDX-License-Identifier: Apache-2.0
/* test_tee.c - beside a program that uses CUPTI itself, each side gets its own records, all of them and no others */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/unit/cupti/tee_sessions.h"

static void a_client_alone_gets_what_it_would_without_us(void **unused)
{
    (void)unused;
    launch(3); /* nothing is enabled */
    client_start();
    launch(5);
    client_stop();
    must_be(&theirs, 4, 8);
    assert_int_equal(theirs.count, 10);
}

static void a_session_in_our_window_is_the_clients_and_all_is_ours(void **unused)
{
    (void)unused;
    arm();
    launch(10);
    client_start();
    assert_int_equal(queries_told, 1); /* what we keep CUPTI from telling, it gets */
    launch(20);
    fake_sync();
    client_stop();
    assert_true(fake.kinds >> KERNEL & 1); /* its Disable did not take away what we want */
    launch(5);
    disarm();
    must_be(&theirs, 11, 30);
    assert_int_equal(theirs.count, 40);
    assert_int_equal(count_of(&ours, KERNEL), 35);
    assert_int_equal(count_of(&ours, RUNTIME), 35);
    assert_int_equal(count_of(&ours, SYNC), 1);
    assert_int_equal(fake.kinds, 0);
}

static void records_left_in_a_buffer_from_before_are_not_the_clients(void **unused)
{
    (void)unused;
    arm();
    launch(4);
    fake_launch(true); /* in flight: the buffer with these five does not come at a flush */
    fake.finish_at_flush = 3;
    client_start();
    launch(6);
    client_stop();
    disarm();
    must_be(&theirs, 6, 11);
    must_be(&ours, 1, 11);
}

static void work_in_flight_at_a_forced_flush_comes_complete_to_both(void **unused)
{
    (void)unused;
    arm();
    client_start();
    launch(2);
    fake_launch(true);
    fake.finish_at_flush = 4;
    client_stop();
    disarm();
    must_be(&theirs, 1, 3);
    must_be(&ours, 1, 3);
    for (uint32_t i = 0; i < ours.count; i++) assert_int_not_equal(ours.end[i], 0);
    for (uint32_t i = 0; i < theirs.count; i++) assert_int_not_equal(theirs.end[i], 0);
}

static void work_that_never_ends_holds_a_flush_only_so_long(void **unused)
{
    (void)unused;
    arm();
    client_start();
    fake_launch(true);
    int before = fake.flushes;
    client_stop();
    assert_in_range(fake.flushes - before, 2, 60);
    must_be(&theirs, 1, 1);
}

static void our_window_inside_a_session_takes_nothing_from_it(void **unused)
{
    (void)unused;
    client_start();
    launch(10);
    arm(); /* a buffer of the client's is with CUPTI, and comes back with kinds of ours in it */
    launch(1);
    fake_sync();
    cupti_flush(0);
    launch(9);
    fake_sync();
    disarm();
    assert_true(fake.kinds >> KERNEL & 1); /* the client still wants it */
    assert_false(fake.kinds >> SYNC & 1);
    launch(10);
    client_stop();
    assert_int_equal(count_of(&theirs, SYNC) + count_of(&theirs, EVENT), 0);
    assert_int_equal(count_of(&theirs, KERNEL), 30);
    assert_int_equal(count_of(&theirs, RUNTIME), 30);
    assert_int_equal(fake.kinds, 0);
}

static void a_session_across_the_end_of_our_window_is_whole(void **unused)
{
    (void)unused;
    arm();
    launch(3);
    client_start();
    launch(4);
    fake_launch(true);
    fake.finish_at_flush = 6;
    disarm(); /* a buffer of ours stays outside with the kernel in flight */
    launch(5);
    for (int i = 0; i < 6; i++) client_flush(0);
    client_stop();
    must_be(&theirs, 4, 13);
}

static void many_sessions_get_each_its_own(void **unused)
{
    (void)unused;
    uint32_t id = 0;
    arm();
    for (int round = 0; round < 20; round++) {
        launch(round % 3);
        id += (uint32_t)(round % 3);
        memset(&theirs, 0, sizeof theirs);
        client_start();
        launch(7);
        client_stop();
        must_be(&theirs, id + 1, id + 7);
        id += 7;
    }
    disarm();
    must_be(&ours, 1, id);
}

static void small_buffers_are_filled_one_after_another(void **unused)
{
    (void)unused;
    client_bytes = 1000; /* four launches each */
    arm();
    client_start();
    launch(90);
    client_flush(0);
    launch(10);
    client_stop();
    must_be(&theirs, 1, 100);
}

static void flushes_of_ours_do_not_cost_the_client_buffers(void **unused)
{
    (void)unused;
    int back_so_far = 0;
    arm();
    client_start();
    for (int i = 0; i < 30; i++) {
        launch(1);
        cupti_flush(0); /* the helper's, once a second */
    }
    for (int i = 0; i < CLIENTS; i++) back_so_far += client_state[i] == 2;
    assert_int_equal(back_so_far, 0);
    client_stop();
    must_be(&theirs, 1, 30);
}

static void a_client_without_buffers_reads_of_drops_and_we_lose_nothing(void **unused)
{
    size_t n = 0;
    (void)unused;
    arm();
    client_refuses = 1;
    client_start();
    launch(5);
    cupti_flush(0);
    assert_int_equal(CALL("cuptiActivityGetNumDroppedRecords", int (*)(void *, uint32_t, size_t *))(NULL, 0, &n), 0);
    assert_int_equal(n, 10);
    client_refuses = 0;
    disarm();
    must_be(&ours, 1, 5);
}

static void drops_are_told_to_each_side_once(void **unused)
{
    size_t n = 0;
    int (*read_it)(void *, uint32_t, size_t *) =
        CALL("cuptiActivityGetNumDroppedRecords", int (*)(void *, uint32_t, size_t *));
    (void)unused;
    our_dropped = 100; /* before the client came */
    client_start();
    fake.dropped = 7;
    assert_int_equal(read_it(NULL, 0, &n), 0);
    assert_int_equal(n, 7);
    assert_int_equal(our_dropped, 107);
    our_dropped += 3; /* control.c read the counter: it is 0 now */
    read_it(NULL, 0, &n);
    assert_int_equal(n, 3);
    read_it(NULL, 0, &n);
    assert_int_equal(n, 0);
}

static void another_clock_is_told_once_and_old_stamps_are_not_the_clients(void **unused)
{
    (void)unused;
    int (*set_clock)(uint64_t(*)(void)) = CALL("cuptiActivityRegisterTimestampCallback", int (*)(uint64_t(*)(void)));
    fake.now = 1000000;
    arm();
    launch(4);
    fake_launch(true); /* stays in CUPTI over the change, with stamps of the old clock around it */
    fake.finish_at_flush = 5;
    set_clock(other_clock);
    client_start();
    fake.now += 1000;
    launch(6);
    client_stop();
    must_be(&theirs, 6, 11);
    assert_int_equal(clock_told, 1);
    set_clock(other_clock);
    assert_int_equal(clock_told, 1);
    set_clock(NULL);
    assert_int_equal(clock_told, 2);
}

static void finalize_ends_both_and_both_may_begin_again(void **unused)
{
    (void)unused;
    arm();
    client_start();
    launch(3);
    CALL("cuptiActivityDisable", int (*)(int))(KERNEL);
    CALL("cuptiActivityDisable", int (*)(int))(RUNTIME);
    client_flush(1);
    must_be(&theirs, 1, 3);
    assert_int_equal(CALL("cuptiFinalize", int (*)(void))(), 0);
    assert_int_equal(finalized_told, 1);
    assert_int_equal(fake.finalized_alone, 1); /* no call of ours under way */
    assert_false(is_control_taken);
    assert_false(kp_client_is_there());
    arm();
    launch(2);
    memset(&theirs, 0, sizeof theirs);
    client_start();
    launch(2);
    client_stop();
    must_be(&theirs, 6, 7);
    disarm();
    must_be(&ours, 1, 7);
}

static void attributes_of_buffers_are_ours_while_we_are_armed(void **unused)
{
    uint8_t value = 0;
    size_t n = 1;
    int (*set)(int, size_t *, void *) = CALL("cuptiActivitySetAttribute", int (*)(int, size_t *, void *));
    (void)unused;
    assert_int_equal(set(9, &n, &value), 77);
    arm();
    assert_int_equal(set(9, &n, &value), 0);
    assert_int_equal(set(1, &n, &value), 77);
    disarm();
    assert_int_equal(set(9, &n, &value), 77);
}

static void calls_of_our_own_threads_are_not_shown(void **unused)
{
    static uint8_t buffer[80];
    (void)unused;
    kp_client_hide_this_thread();
    kp_client_register(client_request, client_complete);
    kp_client_enable(RUNTIME, 1);
    for (int i = 0; i < 2; i++)
        put32(buffer, (size_t)i * 40, RUNTIME), put64(buffer, (size_t)i * 40 + 8, 100),
            put32(buffer, (size_t)i * 40 + 32, (uint32_t)i + 1);
    put32(buffer, 28, (uint32_t)(uintptr_t)pthread_self());
    put32(buffer, 40 + 28, 12345);
    kp_client_copy(buffer, sizeof buffer, 0);
    kp_client_disable(RUNTIME, 0);
    kp_client_hand_over();
    assert_int_equal(theirs.count, 1);
    assert_int_equal(theirs.correlation[0], 2);
}

static size_t bytes_back;
static void count_bytes(void *c, uint32_t s, uint8_t *buffer, size_t bytes, size_t valid)
{
    (void)c, (void)s, (void)buffer, (void)bytes;
    bytes_back = valid;
}

static void what_nobody_can_read_stays_in_the_clients_own_buffer(void **unused)
{
    static uint8_t buffer[512], before[512];
    (void)unused;
    client_start();
    kp_client_register(client_request, count_bytes);
    put32(buffer, 0, SYNC); /* not the client's */
    put32(buffer, 56, KERNEL);
    put32(buffer, 56 + 208, 63); /* a kind nobody knows */
    put32(buffer, 56 + 208 + 4, 0xabcd);
    memcpy(before, buffer, sizeof buffer);
    kp_client_complete(NULL, 0, buffer, sizeof buffer, 56 + 208 + 24, true);
    assert_int_equal(bytes_back, 208 + 24);
    assert_memory_equal(buffer, before + 56, bytes_back);
}

static void a_kind_enabled_while_we_disarm_stays_enabled(void **unused)
{
    (void)unused;
    arm();
    client_start();
    CALL("cuptiActivityDisable", int (*)(int))(KERNEL);
    after_enable = disarm;
    CALL("cuptiActivityEnable", int (*)(int))(KERNEL);
    assert_null(after_enable);
    assert_true(fake.kinds >> KERNEL & 1);
    client_stop();
    assert_false(fake.kinds >> KERNEL & 1);
}

/* CUPTI was not made for forked processes: what a child does of its own will is passed on, and nothing besides. */
static void a_forked_childs_calls_are_passed_on_and_nothing_else_is_called(void **unused)
{
    (void)unused;
    arm();
    client_start();
    client_stop();
    pid_t child = fork();
    if (child == 0) {
        int flushes = fake.flushes, registered = fake.registered;
        CALL("cuptiActivityRegisterCallbacks", int (*)(kp_cupti_request_fn, kp_cupti_complete_fn))
        (client_request, count_bytes);
        CALL("cuptiActivityEnable", int (*)(int))(KERNEL);
        CALL("cuptiActivityDisable", int (*)(int))(KERNEL);
        bool is_plain = fake.flushes == flushes && fake.registered == registered + 1 && fake.request == client_request;
        _exit(is_plain && !(fake.kinds >> KERNEL & 1) ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void a_kind_enabled_before_callbacks_begins_with_them(void **unused)
{
    (void)unused;
    arm();
    assert_int_equal(CALL("cuptiActivityEnable", int (*)(int))(KERNEL), 0); /* Kineto does, to load CUPTI */
    launch(3);
    client_start();
    launch(2);
    client_stop();
    must_be(&theirs, 4, 5);
}

/* Several of CUPTI's threads bring buffers while the client flushes. */
enum { COPIERS = 4, ROUNDS = 2000, PER_ROUND = 50 };
static _Atomic uint64_t records_back;
static _Atomic int copiers_done;
static void big_request(uint8_t **buffer, size_t *bytes, size_t *most)
{
    *bytes = 40 * 333, *most = 0;
    *buffer = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
static void big_complete(void *c, uint32_t s, uint8_t *buffer, size_t bytes, size_t valid)
{
    (void)c, (void)s;
    __atomic_add_fetch(&records_back, valid / 40, __ATOMIC_SEQ_CST);
    munmap(buffer, bytes);
}
static void *copier(void *unused)
{
    static _Thread_local uint8_t buffer[PER_ROUND * 40];
    (void)unused;
    for (int i = 0; i < PER_ROUND; i++)
        put32(buffer, (size_t)i * 40, RUNTIME), put64(buffer, (size_t)i * 40 + 8, 1u << 30);
    for (int i = 0; i < ROUNDS; i++) kp_client_copy(buffer, sizeof buffer, 0);
    __atomic_add_fetch(&copiers_done, 1, __ATOMIC_SEQ_CST);
    return NULL;
}
static void threads_that_copy_at_once_lose_and_double_nothing(void **unused)
{
    pthread_t threads[COPIERS];
    (void)unused;
    kp_client_register(big_request, big_complete);
    kp_client_enable(RUNTIME, 1);
    for (int i = 0; i < COPIERS; i++) assert_int_equal(pthread_create(&threads[i], NULL, copier, NULL), 0);
    while (__atomic_load_n(&copiers_done, __ATOMIC_SEQ_CST) < COPIERS) kp_client_hand_over();
    for (int i = 0; i < COPIERS; i++) pthread_join(threads[i], NULL);
    kp_client_disable(RUNTIME, 0);
    kp_client_hand_over();
    assert_int_equal(kp_client_take_dropped(), 0);
    assert_int_equal(records_back, (uint64_t)COPIERS * ROUNDS * PER_ROUND);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, reset)
    const struct CMUnitTest tests[] = {
        T(a_client_alone_gets_what_it_would_without_us),
        T(a_session_in_our_window_is_the_clients_and_all_is_ours),
        T(records_left_in_a_buffer_from_before_are_not_the_clients),
        T(work_in_flight_at_a_forced_flush_comes_complete_to_both),
        T(work_that_never_ends_holds_a_flush_only_so_long),
        T(our_window_inside_a_session_takes_nothing_from_it),
        T(a_session_across_the_end_of_our_window_is_whole),
        T(many_sessions_get_each_its_own),
        T(small_buffers_are_filled_one_after_another),
        T(flushes_of_ours_do_not_cost_the_client_buffers),
        T(a_client_without_buffers_reads_of_drops_and_we_lose_nothing),
        T(drops_are_told_to_each_side_once),
        T(another_clock_is_told_once_and_old_stamps_are_not_the_clients),
        T(finalize_ends_both_and_both_may_begin_again),
        T(attributes_of_buffers_are_ours_while_we_are_armed),
        T(calls_of_our_own_threads_are_not_shown),
        T(what_nobody_can_read_stays_in_the_clients_own_buffer),
        T(a_kind_enabled_before_callbacks_begins_with_them),
        T(threads_that_copy_at_once_lose_and_double_nothing),
        T(a_kind_enabled_while_we_disarm_stays_enabled),
        T(a_forked_childs_calls_are_passed_on_and_nothing_else_is_called),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
