// SPDX-License-Identifier: Apache-2.0
/* test_filter.c - calls that CUPTI records one by one: each side gets those it chose, also when a call of ours hangs */
#include <string.h>

#include "test/unit/cupti/tee_sessions.h"

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
    before_disable = choose_launches;
    disarm();
    assert_null(before_disable);
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

int main(void)
{
#define C(name) cmocka_unit_test_setup_teardown(name, reset_calls, forget_calls)
    const struct CMUnitTest tests[] = {
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
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
