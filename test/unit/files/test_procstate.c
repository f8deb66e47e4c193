// SPDX-License-Identifier: Apache-2.0
/* test_procstate.c - a process that runs, was killed, exits, or is a zombie */
#include "export/read/files/procstate.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/support/support.h"

static void the_state_is_the_one_behind_the_name(void **state)
{
    (void)state;
    assert_int_equal(kp_procstate_of("7 (a) Z) S 1 7 7 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0 0 0 0 0 0 0 0 0"),
                     'S');
    assert_int_equal(kp_procstate_of("7 (python) T 1 7 7"), 'T');
    assert_int_equal(kp_procstate_of("7 (python"), '\0');
    assert_int_equal(kp_procstate_of(""), '\0');
}

/* Its memory may take seconds: the kernel says R meanwhile. */
static void a_process_that_was_killed_or_exits_runs_no_more(void **state)
{
    (void)state;
    assert_int_equal(
        kp_procstate_of("7 (python) R 1 7 7 0 -1 4194308 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0 0 0 0 0 0 0 0 0 0 0"), 'X');
    assert_int_equal(
        kp_procstate_of("7 (python) D 1 7 7 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0 0 0 0 0 0 0 256 0 0 0"), 'X');
    assert_int_equal(
        kp_procstate_of("7 (python) D 1 7 7 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 99 0 0 0 0 0 0 0 0 512 0 0 0"), 'D');
}

static void a_zombie_has_no_start(void **state)
{
    siginfo_t info;
    (void)state;
    const pid_t child = fork();
    if (child == 0) pause();
    assert_true(child > 0);
    assert_true(kp_procstate_start(child) > 0);
    assert_int_equal(kp_procstate_parent(child), getpid());
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(kp_procstate_start(child), 0);
    assert_int_not_equal(kp_procstate(child), 'S');
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(kp_procstate(child), '\0');
    assert_int_equal(kp_procstate_parent(child), 0);
    assert_true(kp_procstate_start(getpid()) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_state_is_the_one_behind_the_name),
        cmocka_unit_test(a_process_that_was_killed_or_exits_runs_no_more),
        cmocka_unit_test(a_zombie_has_no_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
