// SPDX-License-Identifier: Apache-2.0
/* test_gate.c - shut until it is made, open when it is set, shut in every child */
#include "collector/base/kp_gate.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/sys/kp_io.h"
#include "test/support/support.h"

static void it_is_shut_before_it_is_made(void **state)
{
    (void)state;
    assert_int_equal(kp_gate_get(), 0);
    kp_gate_set(kp_gate_make(1, KP_GATE_ON));
    assert_int_equal(kp_gate_get(), 0);
}

static void it_stays_shut_when_the_page_cannot_be_had(void **state)
{
    (void)state;
    kp_fail_set("mmap:1:12");
    assert_int_equal(kp_gate_init(), -ENOMEM);
    kp_fail_set("wipeonfork:1:22");
    assert_int_equal(kp_gate_init(), -EINVAL);
    kp_fail_set("wipeproof:1:95"); /* an emulator that says yes and does not do it */
    assert_int_equal(kp_gate_init(), -EOPNOTSUPP);
    kp_fail_set(NULL);
    kp_gate_set(kp_gate_make(1, KP_GATE_ON));
    assert_int_equal(kp_gate_get(), 0);
}

static void it_shows_what_was_set(void **state)
{
    (void)state;
    if (kp_gate_init() == -EOPNOTSUPP) skip(); /* noticed: an emulator */
    assert_int_equal(kp_gate_get(), 0);
    kp_gate_set(kp_gate_make(7, KP_GATE_ON | KP_GATE_RECORD));
    assert_int_equal(kp_gate_cycle(kp_gate_get()), 7);
    assert_int_equal((uint32_t)kp_gate_get(), KP_GATE_ON | KP_GATE_RECORD);
}

static void a_child_finds_it_shut(void **state)
{
    int status;
    (void)state;
    if (kp_gate_init() == -EOPNOTSUPP) skip();
    for (int raw = 0; raw < 2; raw++) {
        pid_t pid = raw ? (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) : fork();
        if (pid == 0) syscall(SYS_exit_group, kp_gate_get() == 0 ? 0 : 1);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    assert_int_not_equal(kp_gate_get(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_shut_before_it_is_made),
        cmocka_unit_test(it_stays_shut_when_the_page_cannot_be_had),
        cmocka_unit_test(it_shows_what_was_set),
        cmocka_unit_test(a_child_finds_it_shut),
    };
    return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
