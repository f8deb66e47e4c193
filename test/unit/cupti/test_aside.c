// SPDX-License-Identifier: Apache-2.0
/* test_aside.c - with yield, we leave CUPTI to a program that uses it, and come back */
#include "test/unit/cupti/tee_sessions.h"

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

int main(void)
{
#define T(name) cmocka_unit_test_setup(name, reset)
    const struct CMUnitTest tests[] = {
        T(with_yield_we_stand_aside_and_come_back),
        T(with_yield_a_session_without_new_callbacks_is_stood_aside_for_too),
        T(with_yield_nothing_of_ours_is_enabled_when_a_clock_is_changed),
        T(a_clock_that_is_there_already_is_not_registered_again),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
