// SPDX-License-Identifier: Apache-2.0
/* test_ctl_peers.c - of the ranks of a machine one looks at the shared folder, and the others hear of it */
#include "preload/control/ctl.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "test/support/support.h"

enum { WAIT_MS = 20000 };

static bool must_look(void) { return kp_ctl_peers_must_look(kp_clock_ms()); }

/* Hears what comes within WAIT_MS. True: this rank was woken. */
static bool hear(void)
{
    struct pollfd one = kp_ctl_peers_poll();
    assert_int_equal(poll(&one, 1, WAIT_MS), 1);
    return kp_ctl_peers_hear();
}

/* In a process of its own, a rank that looks: tells so, and wakes the others when it is told to. */
static pid_t looker_start(int *tell, int *told)
{
    int to[2], from[2];
    char word = '!';
    assert_int_equal(pipe(to) | pipe(from), 0);
    const pid_t child = fork();
    if (child == 0) {
        if (!must_look() || write(from[1], &word, 1) != 1) _exit(1);
        if (kp_ctl_peers_poll().fd < 0 || hear()) _exit(2); /* the other rank comes */
        if (write(from[1], &word, 1) != 1 || read(to[0], &word, 1) != 1) _exit(3);
        kp_ctl_peers_wake();
        for (;;) pause();
    }
    close(to[0]);
    close(from[1]);
    *tell = to[1];
    *told = from[0];
    assert_int_equal(read(*told, &word, 1), 1);
    return child;
}

static void without_a_folder_each_rank_looks_by_itself(void **state)
{
    (void)state;
    assert_true(must_look());
    kp_ctl_peers_begin("/no/such/folder");
    assert_true(must_look());
    assert_true(kp_ctl_peers_poll().fd < 0);
}

static void one_looks_and_wakes_the_other_which_takes_its_place_when_it_is_killed(void **state)
{
    int tell, told;
    char word = '!';
    (void)state;
    kp_ctl_peers_begin(kp_test_tmpdir());
    const pid_t child = looker_start(&tell, &told);
    assert_false(must_look());
    assert_false(must_look());
    assert_int_equal(read(told, &word, 1), 1);
    assert_int_equal(write(tell, &word, 1), 1);
    assert_true(hear());
    assert_false(must_look());
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(hear()); /* its end is news, too */
    usleep(1100000);     /* it asks for the place once a second */
    assert_true(must_look());
    assert_true(kp_ctl_peers_poll().fd >= 0);
    kp_ctl_peers_end();
    close(tell);
    close(told);
}

static void a_closed_descriptor_is_noticed(void **state)
{
    (void)state;
    kp_ctl_peers_begin(kp_test_tmpdir());
    usleep(1100000);
    assert_true(must_look());
    const int door = kp_ctl_peers_poll().fd;
    assert_true(door >= 0);
    close(door);
    usleep(1100000);
    assert_true(must_look());
    assert_true(kp_ctl_peers_poll().fd >= 0); /* asked for again */
    kp_ctl_peers_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_folder_each_rank_looks_by_itself),
        cmocka_unit_test(one_looks_and_wakes_the_other_which_takes_its_place_when_it_is_killed),
        cmocka_unit_test(a_closed_descriptor_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
