// SPDX-License-Identifier: Apache-2.0
/* test_tee.c - beside a program that uses CUPTI itself, each side gets its own records, all of them and no others */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/unit/cupti/tee_sides.h"

static void launch(int n)
{
    while (n-- > 0) fake_launch(false);
}

static uint32_t count_of(const struct seen *s, uint32_t kind)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->count; i++) n += s->kind[i] == kind;
    return n;
}

/* Exactly the launches from..to (correlation ids), each with its call and its kernel. */
static void must_be(const struct seen *s, uint32_t from, uint32_t to)
{
    for (uint32_t kind = KERNEL;; kind = RUNTIME) {
        uint32_t expect = from;
        for (uint32_t i = 0; i < s->count; i++)
            if (s->kind[i] == kind) assert_int_equal(s->correlation[i], expect++);
        assert_int_equal(expect, to + 1);
        if (kind == RUNTIME) return;
    }
}

static int reset(void **unused)
{
    (void)unused;
    if (state == KP_CUPTI_STATE_ARMED) disarm();
    for (uint32_t kind = 1; kind < 64; kind++) kp_client_disable(kind, 0);
    kp_client_hand_over();
    kp_client_forget();
    (void)kp_client_take_dropped();
    fake = (struct fake){.now = 1000};
    memset(&ours, 0, sizeof ours);
    memset(&theirs, 0, sizeof theirs);
    memset(pool_out, 0, sizeof pool_out);
    memset(client_state, 0, sizeof client_state);
    client_bytes = 1 << 14;
    client_refuses = 0;
    our_kinds = our_dropped = 0;
    our_noise = -1;
    has_our_calls = has_counter = false;
    quiet_anew = 0;
    finalized_told = clock_told = aside = back = flushed_back = queries_told = 0;
    state = KP_CUPTI_STATE_FOUND;
    return 0;
}

/* ---- tests ---- */

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

enum { MALLOC = 20, CU_LAUNCH = 307, CU_GET = 12 };
#define ENABLE(kind) assert_int_equal(CALL("cuptiActivityEnable", int (*)(int))(kind), 0)
#define DISABLE(kind) assert_int_equal(CALL("cuptiActivityDisable", int (*)(int))(kind), 0)
#define SINGLY(domain, cbid, on) \
    assert_int_equal(CALL("cuptiActivityEnable" domain "Api", int (*)(uint32_t, uint8_t))(cbid, on), 0)

/* cudaGetDevice is noise to us; of the driver we keep cuLaunchKernel and not cuDeviceGet. */
static int reset_calls(void **state_of_test)
{
    our_noise = GET_DEVICE;
    kp_calls[0][GET_DEVICE] = (struct kp_cupti_call){.name = "cudaGetDevice", .what = KP_CALL_NOISE};
    kp_calls[0][MALLOC] = (struct kp_cupti_call){.name = "cudaMalloc"};
    kp_calls[1][CU_LAUNCH] = (struct kp_cupti_call){.name = "cuLaunchKernel"};
    kp_calls[1][CU_GET] = (struct kp_cupti_call){.name = "cuDeviceGet", .what = KP_CALL_NOISE};
    int failed = reset(state_of_test);
    our_noise = GET_DEVICE;
    return failed;
}

static int forget_calls(void **unused)
{
    (void)unused;
    memset(kp_calls, 0, sizeof kp_calls);
    our_noise = -1;
    return 0;
}

static int calls_on(void)
{
    int n = 0;
    for (int i = 0; i < 1024; i++) n += fake.runtime_on[i] + fake.driver_on[i];
    return n;
}

/* 2000 times what torch does between its launches. */
static void call_on(void)
{
    for (int i = 0; i < 2000; i++) {
        fake_call(RUNTIME, GET_DEVICE, ++fake.correlation);
        fake_call(RUNTIME, MALLOC, ++fake.correlation);
        fake_call(DRIVER, CU_LAUNCH, ++fake.correlation);
    }
}

static void nothing_is_recorded_after_our_window(void **unused)
{
    (void)unused;
    arm();
    assert_int_equal(fake.runtime_on[GET_DEVICE] + fake.driver_on[CU_GET], 0);
    assert_int_equal(fake.runtime_on[MALLOC] + fake.driver_on[CU_LAUNCH], 2);
    disarm();
    int requests = fake.requests;
    call_on();
    assert_int_equal(fake.requests - requests, 0);
    assert_int_equal(calls_on(), 0);
}

static void nothing_is_recorded_after_a_session_outside_our_window(void **unused)
{
    (void)unused;
    arm();
    disarm();
    client_start();
    ENABLE(DRIVER);
    launch(3);
    DISABLE(DRIVER);
    client_stop();
    int requests = fake.requests;
    call_on();
    assert_int_equal(fake.requests - requests, 0);
    assert_int_equal(calls_on(), 0);
    assert_int_equal(quiet_anew, 1);
}

static void a_session_in_our_window_leaves_the_calls_that_we_want(void **unused)
{
    (void)unused;
    arm();
    client_start();
    ENABLE(DRIVER);
    assert_int_equal(fake.runtime_on[GET_DEVICE] + fake.driver_on[CU_GET], 2);
    DISABLE(DRIVER); /* CUPTI's rule: what we set call by call goes with it */
    assert_int_equal(fake.driver_on[CU_LAUNCH], 1);
    assert_int_equal(fake.driver_on[CU_GET], 0);
    client_stop();
    assert_int_equal(fake.runtime_on[MALLOC], 1);
    assert_int_equal(fake.runtime_on[GET_DEVICE], 0);
    disarm();
    assert_int_equal(calls_on(), 0);
}

static void calls_the_program_chose_singly_outlive_our_window(void **unused)
{
    (void)unused;
    SINGLY("Runtime", GET_DEVICE, 1);
    SINGLY("Driver", CU_LAUNCH, 1);
    arm();
    assert_int_equal(fake.runtime_on[GET_DEVICE], 1);
    disarm();
    assert_int_equal(calls_on(), 2);
    assert_int_equal(fake.runtime_on[GET_DEVICE] + fake.driver_on[CU_LAUNCH], 2);
    arm();
    SINGLY("Runtime", GET_DEVICE, 0);
    SINGLY("Driver", CU_LAUNCH, 0);
    assert_int_equal(fake.runtime_on[GET_DEVICE], 0);
    assert_int_equal(fake.driver_on[CU_LAUNCH], 1); /* ours */
    disarm();
    assert_int_equal(calls_on(), 0);
}

static void calls_the_program_left_out_stay_out_after_our_window(void **unused)
{
    (void)unused;
    ENABLE(RUNTIME);
    SINGLY("Runtime", MALLOC, 0);
    assert_false(kp_client_has_call(false, MALLOC));
    arm();
    assert_int_equal(fake.runtime_on[MALLOC], 1);
    disarm();
    assert_int_equal(fake.runtime_on[MALLOC], 0);
    assert_int_equal(fake.runtime_on[GET_DEVICE], 1);
    ENABLE(RUNTIME); /* overrides */
    assert_true(kp_client_has_call(false, MALLOC));
    DISABLE(RUNTIME);
    assert_int_equal(calls_on(), 0);
}

static void choose_launches(void) { SINGLY("Driver", CU_LAUNCH, 1); }
static void a_call_enabled_while_we_disarm_stays_enabled(void **unused)
{
    (void)unused;
    arm();
    before_single = choose_launches;
    disarm();
    assert_null(before_single);
    assert_int_equal(fake.driver_on[CU_LAUNCH], 1);
    SINGLY("Driver", CU_LAUNCH, 0);
    assert_int_equal(calls_on(), 0);
    before_single = arm;
    SINGLY("Driver", CU_LAUNCH, 0);
    assert_int_equal(fake.driver_on[CU_LAUNCH], 1); /* ours by now */
    disarm();
}

static void calls_that_one_side_filters_are_seen_by_the_other(void **unused)
{
    (void)unused;
    arm();
    client_start(); /* wants every call of the runtime */
    fake_call(RUNTIME, GET_DEVICE, ++fake.correlation);
    client_stop();
    assert_int_equal(count_of(&theirs, RUNTIME), 1);
    fake_call(RUNTIME, GET_DEVICE, ++fake.correlation);
    cupti_flush(0);
    assert_int_equal(count_of(&ours, RUNTIME), 1);
    client_start(); /* now the client filters and we do not */
    SINGLY("Runtime", MALLOC, 0);
    fake_call(RUNTIME, MALLOC, ++fake.correlation);
    client_stop();
    assert_int_equal(count_of(&theirs, RUNTIME), 1);
    disarm();
    assert_int_equal(count_of(&ours, RUNTIME), 2);
}

static void driver_calls_we_left_off_are_on_in_a_session(void **unused)
{
    (void)unused;
    arm();
    disarm();
    ENABLE(DRIVER);
    assert_int_equal(fake.driver_on[CU_LAUNCH] + fake.driver_on[CU_GET], 2);
    DISABLE(DRIVER);
    assert_int_equal(calls_on(), 0);
    SINGLY("Driver", CU_LAUNCH, 1); /* it alone, without the kind */
    assert_int_equal(calls_on(), 1);
    assert_true(kp_client_wants_any());
    SINGLY("Driver", CU_LAUNCH, 0);
    assert_false(kp_client_wants_any());
}

/* A call of ours into CUPTI does not return: what is enabled for us we cannot disable, and buffers of ours are
 * outside. */
static void a_session_goes_as_alone(enum kp_cupti_state then)
{
    arm();
    launch(3);
    state = then;
    checks = 0;
    launch(2);
    client_start();
    ENABLE(DRIVER);
    SINGLY("Driver", CU_GET, 0);
    assert_int_equal(fake.driver_on[CU_GET], 0);
    launch(4);
    DISABLE(DRIVER);
    client_stop();
    assert_int_equal(checks, 3);                       /* at each Disable: it may be overdue just now */
    assert_int_equal(fake.kinds, UINT64_C(1) << SYNC); /* its own are off, though we had two of them on as well */
    assert_int_equal(calls_on(), 0);
    must_be(&theirs, 6, 9);
    call_on();
    assert_null(fake.buffer);
}

static void while_a_call_of_ours_does_not_return_nothing_is_kept_from_cupti(void **unused)
{
    (void)unused;
    a_session_goes_as_alone(KP_CUPTI_STATE_STALLED);
    state = KP_CUPTI_STATE_ARMED; /* recovered: for disarm() */
    disarm();
    assert_int_equal(fake.kinds, 0);
}

static void when_we_are_dead_nothing_is_kept_from_cupti(void **unused)
{
    (void)unused;
    a_session_goes_as_alone(KP_CUPTI_STATE_DEAD);
}

/* CUPTI was told that buffers are zeroed, and it cannot be told otherwise now. */
static void the_programs_own_buffers_are_zeroed_when_ours_cannot_be_had(void **unused)
{
    (void)unused;
    arm();
    client_start();
    cupti_flush(1);
    state = KP_CUPTI_STATE_STALLED;
    memset(client_memory, 0xab, sizeof client_memory);
    launch(1);
    assert_false(kp_buffer_is_ours(fake.buffer));
    for (size_t i = fake.used; i < fake.bytes; i++) assert_int_equal(fake.buffer[i], 0);
    client_stop();
    must_be(&theirs, 1, 1);
    state = KP_CUPTI_STATE_ARMED;
    disarm();
}

static uint64_t other_clock(void) { return 5 + fake.now / 100; }
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

static void with_yield_we_stand_aside_and_come_back(void **unused)
{
    (void)unused;
    kp_tee_start(KP_CUPTI_YIELD);
    arm();
    launch(3);
    client_start();
    assert_int_equal(aside, 2); /* at its callbacks, and for its session */
    assert_true(is_session_aside);
    assert_int_equal(state, KP_CUPTI_STATE_SHARED);
    launch(4);
    assert_int_equal(back, 0);
    client_stop();
    assert_int_equal(back, 1);
    assert_int_equal(flushed_back, 1); /* it has its records */
    must_be(&theirs, 4, 7);
    must_be(&ours, 1, 3);
    kp_tee_start(KP_CUPTI_TEE);
}

static void with_yield_a_session_without_new_callbacks_is_stood_aside_for_too(void **unused)
{
    (void)unused;
    kp_tee_start(KP_CUPTI_YIELD);
    client_start();
    client_stop();
    arm();
    aside = 0;
    assert_int_equal(CALL("cuptiActivityEnable", int (*)(int))(KERNEL), 0);
    assert_int_equal(aside, 1);
    assert_true(is_session_aside);
    assert_int_equal(state, KP_CUPTI_STATE_SHARED);
    assert_int_equal(CALL("cuptiActivityDisable", int (*)(int))(KERNEL), 0);
    assert_int_equal(back, 2);
    kp_tee_start(KP_CUPTI_TEE);
}

static void with_yield_nothing_of_ours_is_enabled_when_a_clock_is_changed(void **unused)
{
    (void)unused;
    kp_tee_start(KP_CUPTI_YIELD);
    arm();
    CALL("cuptiActivityRegisterTimestampCallback", int (*)(uint64_t(*)(void)))(other_clock);
    assert_int_equal(aside, 1);
    assert_int_equal(fake.clock_kinds, 0);
    CALL("cuptiActivityRegisterTimestampCallback", int (*)(uint64_t(*)(void)))(NULL);
    kp_tee_start(KP_CUPTI_TEE);
}

static void a_clock_that_is_there_already_is_not_registered_again(void **unused)
{
    (void)unused;
    int (*set_clock)(uint64_t(*)(void)) = CALL("cuptiActivityRegisterTimestampCallback", int (*)(uint64_t(*)(void)));
    arm();
    has_counter = true;
    assert_int_equal(set_clock(counter), 0);
    assert_int_equal(fake.clocks, 0);
    assert_int_equal(clock_told, 0);
    has_counter = false;
    set_clock(other_clock);
    set_clock(other_clock); /* Kineto's next session */
    assert_int_equal(fake.clocks, 1);
    disarm();
    set_clock(other_clock); /* nothing of ours is enabled: as without us */
    assert_int_equal(fake.clocks, 2);
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

static int set_up(void **unused)
{
    (void)unused;
    kp_cupti.get_timestamp = cupti_get_timestamp;
    kp_cupti.register_callbacks = cupti_register;
    kp_cupti.enable = cupti_enable;
    kp_cupti.disable = cupti_disable;
    kp_cupti.flush_all = cupti_flush;
    kp_cupti.get_num_dropped = cupti_dropped;
    kp_cupti.enable_runtime_api = cupti_runtime_api;
    kp_cupti.enable_driver_api = cupti_driver_api;
    kp_cupti.set_attribute = cupti_attribute;
    kp_cupti.register_timestamp_callback = cupti_clock;
    kp_cupti.finalize = cupti_finalize;
    kp_tee_start(KP_CUPTI_TEE);
    return program_count == 10 ? 0 : -1;
}

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, reset)
#define C(name) cmocka_unit_test_setup_teardown(name, reset_calls, forget_calls)
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
        C(calls_that_one_side_filters_are_seen_by_the_other),
        C(driver_calls_we_left_off_are_on_in_a_session),
        C(nothing_is_recorded_after_our_window),
        C(nothing_is_recorded_after_a_session_outside_our_window),
        C(a_session_in_our_window_leaves_the_calls_that_we_want),
        C(calls_the_program_chose_singly_outlive_our_window),
        C(a_call_enabled_while_we_disarm_stays_enabled),
        C(while_a_call_of_ours_does_not_return_nothing_is_kept_from_cupti),
        C(when_we_are_dead_nothing_is_kept_from_cupti),
        C(the_programs_own_buffers_are_zeroed_when_ours_cannot_be_had),
        C(calls_the_program_left_out_stay_out_after_our_window),
        T(another_clock_is_told_once_and_old_stamps_are_not_the_clients),
        T(finalize_ends_both_and_both_may_begin_again),
        T(attributes_of_buffers_are_ours_while_we_are_armed),
        T(calls_of_our_own_threads_are_not_shown),
        T(what_nobody_can_read_stays_in_the_clients_own_buffer),
        T(a_kind_enabled_before_callbacks_begins_with_them),
        T(threads_that_copy_at_once_lose_and_double_nothing),
        T(a_kind_enabled_while_we_disarm_stays_enabled),
        T(with_yield_we_stand_aside_and_come_back),
        T(with_yield_a_session_without_new_callbacks_is_stood_aside_for_too),
        T(with_yield_nothing_of_ours_is_enabled_when_a_clock_is_changed),
        T(a_clock_that_is_there_already_is_not_registered_again),
        T(a_forked_childs_calls_are_passed_on_and_nothing_else_is_called),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
