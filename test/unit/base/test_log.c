// SPDX-License-Identifier: Apache-2.0
/* test_log.c - one line a call, with our name in front, and an end to all lines */
#include "collector/base/kp_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "test/support/support.h"

static char text[65536];
static int ends[2], stderr_kept;

static void capture_begin(void)
{
    assert_int_equal(pipe(ends), 0);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    stderr_kept = dup(2);
    dup2(ends[1], 2);
}

static const char *capture_end(void)
{
    dup2(stderr_kept, 2);
    close(stderr_kept);
    ssize_t n = read(ends[0], text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    close(ends[0]);
    close(ends[1]);
    return text;
}

static void a_line_has_our_name_and_errno_is_kept(void **state)
{
    (void)state;
    capture_begin();
    errno = E2BIG;
    kp_log(0, "wrote %s (%d steps)", "f", 3);
    int after = errno;
    assert_string_equal(capture_end(), "kprof: wrote f (3 steps)\n");
    assert_int_equal(after, E2BIG);
}

static void it_stays_one_line_whatever_is_in_it(void **state)
{
    char big[2000];
    (void)state;
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    capture_begin();
    kp_log(0, "a\nb");
    kp_log(0, "%s", big);
    const char *s = capture_end();
    assert_memory_equal(s, "kprof: a b\nkprof: xxx", 21);
    assert_int_equal(strlen(s), 11 + 512 - 1);
    assert_string_equal(s + strlen(s) - 5, "x...\n");
}

static void a_level_above_the_asked_one_is_silent(void **state)
{
    (void)state;
    capture_begin();
    kp_log(1, "no");
    kp_log_set_level(1);
    kp_log(1, "yes");
    kp_log(2, "no");
    kp_log_set_level(0);
    assert_string_equal(capture_end(), "kprof: yes\n");
}

static void once_is_once(void **state)
{
    (void)state;
    capture_begin();
    for (int i = 0; i < 3; i++) KP_LOG_ONCE(0, "only %d", i);
    assert_string_equal(capture_end(), "kprof: only 0\n");
}

static void a_fault_that_repeats_does_not_fill_stderr(void **state)
{
    unsigned lines = 0;
    (void)state;
    capture_begin();
    for (int i = 0; i < 1000; i++) kp_log(0, "again");
    for (const char *p = capture_end(); (p = strchr(p, '\n')); p++) lines++;
    assert_in_range(lines, 10, 65);
    assert_non_null(strstr(text, "kprof: further lines like this are not shown\n"));
}

static void a_closed_stderr_does_no_harm(void **state)
{
    (void)state;
    int kept = dup(2);
    close(2);
    kp_log_set_level(1);
    errno = 0;
    kp_log(1, "lost");
    int after = errno;
    dup2(kept, 2);
    close(kept);
    assert_int_equal(after, 0);
}

/* The host's 2 as a pipe of ours that it later makes a file of its own. */
static void a_stderr_that_was_kept_still_gets_the_lines(void **state)
{
    bool was_open[10]; /* who runs us may have left some open */
    (void)state;
    for (int i = 0; i < 10; i++) was_open[i] = fcntl(100 + i, F_GETFD) != -1;
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    capture_begin();
    kp_log_set_level(2);
    kp_log_hold_stderr();
    kp_log_keep_stderr();
    dup2(file, 2); /* not writable: a line sent there would be lost */
    kp_log(2, "redirected");
    kp_log_follow_stderr();
    kp_log(2, "still there");
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, 2);
    kp_log_follow_stderr(); /* a reader of the pipe may wait for its end */
    kp_log(2, "lost");
    close(null);
    close(file);
    assert_string_equal(capture_end(), "kprof: redirected\nkprof: still there\n");
    for (int i = 0; i < 10; i++) assert_int_equal(fcntl(100 + i, F_GETFD) != -1, was_open[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_our_name_and_errno_is_kept),
        cmocka_unit_test(it_stays_one_line_whatever_is_in_it),
        cmocka_unit_test(a_level_above_the_asked_one_is_silent),
        cmocka_unit_test(once_is_once),
        cmocka_unit_test(a_fault_that_repeats_does_not_fill_stderr),
        cmocka_unit_test(a_closed_stderr_does_no_harm),
        cmocka_unit_test(a_stderr_that_was_kept_still_gets_the_lines),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
