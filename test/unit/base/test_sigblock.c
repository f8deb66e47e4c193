// SPDX-License-Identifier: Apache-2.0
/* test_sigblock.c - a write of ours that raises a signal does not reach the host */
#include "collector/base/sys/kp_sigblock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "test/support/support.h"

/* Runs `body` in a child, where signals have their default effect, and gives its wait status. */
static int in_a_child(int (*body)(void))
{
    int status = -1;
    pid_t p = fork();
    if (p == 0) _exit(body());
    waitpid(p, &status, 0);
    return status;
}

static int write_to_a_closed_pipe(void)
{
    int ends[2];
    if (pipe(ends)) return 9;
    close(ends[0]);
    if (kp_io_write_all(ends[1], "x", 1) != -EPIPE) return 8;
    dup2(ends[1], 2);
    errno = EXDEV;
    kp_log(0, "nobody reads this");
    return errno == EXDEV ? 0 : 7;
}

static int write_over_the_limit(void)
{
    struct rlimit none = {0, 0};
    char path[] = "/tmp/kprof-quiet-XXXXXX";
    int fd = mkstemp(path);
    unlink(path);
    setrlimit(RLIMIT_FSIZE, &none);
    if (kp_io_write_all(fd, "x", 1) != -EFBIG) return 8;
    if (kp_io_fallocate(fd, 0, 65536) >= 0) return 7;
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGXFSZ) ? 6 : 0;
}

static int a_pending_one_of_the_hosts(void)
{
    struct kp_sigblock_write q;
    sigset_t pipe_signal, pending;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigprocmask(SIG_BLOCK, &pipe_signal, NULL);
    raise(SIGPIPE);
    kp_sigblock_write_begin(&q);
    kp_sigblock_write_end(&q);
    sigpending(&pending);
    return sigismember(&pending, SIGPIPE) ? 0 : 5;
}

static void a_reader_that_left_does_not_end_the_host(void **state)
{
    (void)state;
    assert_int_equal(in_a_child(write_to_a_closed_pipe), 0);
}

static void a_file_size_limit_does_not_end_the_host(void **state)
{
    (void)state;
    assert_int_equal(in_a_child(write_over_the_limit), 0);
}

static void a_signal_that_was_pending_before_stays_so(void **state)
{
    (void)state;
    assert_int_equal(in_a_child(a_pending_one_of_the_hosts), 0);
}

static void the_mask_is_what_it_was(void **state)
{
    struct kp_sigblock_write q;
    sigset_t before, after;
    (void)state;
    sigprocmask(SIG_BLOCK, NULL, &before);
    kp_sigblock_write_begin(&q);
    kp_sigblock_write_end(&q);
    sigprocmask(SIG_BLOCK, NULL, &after);
    for (int s = 1; s < 65; s++) assert_int_equal(sigismember(&before, s), sigismember(&after, s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_that_left_does_not_end_the_host),
        cmocka_unit_test(a_file_size_limit_does_not_end_the_host),
        cmocka_unit_test(a_signal_that_was_pending_before_stays_so),
        cmocka_unit_test(the_mask_is_what_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
