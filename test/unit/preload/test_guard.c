// SPDX-License-Identifier: Apache-2.0
/* test_guard.c - a hook is entered once at a time, only with an open gate, and does not touch errno */
#include "preload/guard.h"

#include <errno.h>

#include "test/support/support.h"

static struct kp_thread thread;
static bool birth_fails;
_Thread_local struct kp_thread *kp_thread_self __attribute__((tls_model("initial-exec")));
struct kp_thread *kp_thread_birth(void)
{
    return birth_fails ? NULL : (kp_thread_self = &thread);
}

static int reset(void **state)
{
    (void)state;
    if (kp_gate_init() != 0) return -1;
    kp_gate_set(kp_gate_make(3, KP_GATE_ON | KP_GATE_RECORD));
    thread = (struct kp_thread){0};
    kp_thread_self = NULL;
    birth_fails = false;
    return 0;
}

static void an_open_gate_lets_one_in(void **state)
{
    struct kp_guard g = {0}, again = {0};
    (void)state;
    errno = EXDEV;
    assert_true(KP_HOOK_ENTER(&g, KP_GATE_RECORD));
    assert_int_equal(kp_gate_cycle(g.gate), 3);
    assert_int_equal(thread.inside, 1);
    assert_false(KP_HOOK_ENTER(&again, KP_GATE_RECORD));
    KP_HOOK_LEAVE(&g);
    assert_int_equal(errno, EXDEV);
    assert_int_equal(thread.inside, 0);
    assert_true(KP_HOOK_ENTER(&again, KP_GATE_RECORD));
    KP_HOOK_LEAVE(&again);
}

static void a_shut_gate_lets_nobody_in_and_makes_no_thread(void **state)
{
    struct kp_guard g = {0};
    (void)state;
    assert_false(KP_HOOK_ENTER(&g, KP_GATE_WARM));
    kp_gate_set(0);
    assert_false(KP_HOOK_ENTER(&g, KP_GATE_RECORD));
    assert_null(kp_thread_self);
}

static void a_dying_thread_and_one_that_cannot_be_had_pass_through(void **state)
{
    struct kp_guard g = {0};
    (void)state;
    errno = EXDEV;
    birth_fails = true;
    assert_false(KP_HOOK_ENTER(&g, KP_GATE_RECORD));
    assert_int_equal(errno, EXDEV);
    birth_fails = false;
    thread.dying = true;
    assert_false(KP_HOOK_ENTER(&g, KP_GATE_RECORD));
    assert_int_equal(thread.inside, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_open_gate_lets_one_in, reset),
        cmocka_unit_test_setup(a_shut_gate_lets_nobody_in_and_makes_no_thread, reset),
        cmocka_unit_test_setup(a_dying_thread_and_one_that_cannot_be_had_pass_through, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
