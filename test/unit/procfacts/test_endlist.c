// SPDX-License-Identifier: Apache-2.0
/* test_endlist.c - how child processes ended, as a launcher is told */
#include "preload/procfacts/endlist.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/support/support.h"

static char text[KP_ENDLIST_MAX * KP_ENDLIST_LINE];

static int status_of(int signal, int code)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        if (signal) raise(signal);
        _exit(code);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_signal_and_an_exit_status_are_bad_ends(void **state)
{
    const int killed = status_of(SIGKILL, 0), failed = status_of(0, 3), good = status_of(0, 0);
    (void)state;
    assert_true(kp_endlist_is_bad(1, &killed));
    assert_true(kp_endlist_is_bad(1, &failed));
    assert_false(kp_endlist_is_bad(1, &good));
    assert_false(kp_endlist_is_bad(0, &killed)); /* WNOHANG: none has ended */
    assert_false(kp_endlist_is_bad(-1, &killed));
    assert_false(kp_endlist_is_bad(1, NULL)); /* the program did not ask how */
}

static void each_end_has_a_line_until_it_is_forgotten(void **state)
{
    (void)state;
    assert_false(kp_endlist_has_any());
    kp_endlist_add(42, 9, 1795948368706413018);
    kp_endlist_add(43, 256, 7);
    assert_true(kp_endlist_has_any());
    const size_t bytes = kp_endlist_text(text, sizeof text);
    assert_int_equal(bytes, strlen(text));
    assert_string_equal(text, "42 9 1795948368706413018\n43 256 7\n");
    kp_endlist_forget();
    assert_false(kp_endlist_has_any());
    assert_int_equal(kp_endlist_text(text, sizeof text), 0);
}

/* A program that failed asks for them: one that it ended by itself is no cause. */
static void of_crashes_those_since_a_time_are_told(void **state)
{
    (void)state;
    kp_endlist_add(42, SIGKILL, 100);
    kp_endlist_add(43, SIGTERM, 200);
    kp_endlist_add(44, 256, 200);
    kp_endlist_add(45, SIGSEGV | 0x80, 200);
    kp_endlist_add(46, SIGHUP, 200);
    text[kp_endlist_crashes(text, sizeof text, 0)] = '\0';
    assert_string_equal(text, "42 9 100\n45 139 200\n");
    text[kp_endlist_crashes(text, sizeof text, 101)] = '\0';
    assert_string_equal(text, "45 139 200\n");
    kp_endlist_forget();
}

static void *add_many(void *first)
{
    for (int i = 0; i < KP_ENDLIST_MAX; i++) kp_endlist_add(*(int *)first + i, 9, UINT64_MAX);
    return NULL;
}

static void of_many_from_two_threads_so_many_as_there_is_room_for_stay(void **state)
{
    pthread_t threads[2];
    int firsts[2] = {2000000000, 2100000000}, lines = 0;
    (void)state;
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, add_many, &firsts[i]), 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    const size_t bytes = kp_endlist_text(text, sizeof text);
    assert_true(bytes < sizeof text);
    for (size_t i = 0; i < bytes; i++) lines += text[i] == '\n';
    assert_int_equal(lines, KP_ENDLIST_MAX);
    kp_endlist_forget();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_and_an_exit_status_are_bad_ends),
        cmocka_unit_test(each_end_has_a_line_until_it_is_forgotten),
        cmocka_unit_test(of_crashes_those_since_a_time_are_told),
        cmocka_unit_test(of_many_from_two_threads_so_many_as_there_is_room_for_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
