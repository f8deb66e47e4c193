// SPDX-License-Identifier: Apache-2.0
/* test_io_apart.c - calls on files by a process beside the thread do what the thread's own calls do */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/sys/kp_io.h"
#include "test/support/support.h"

static bool is_apart(void) /* the process has another number: emulators, valgrind and filters have none */
{
    return kp_io_call(SYS_getpid, 0, 0, 0, 0, 0) != getpid();
}

static void calls_do_what_they_did(void **state)
{
    char path[600], renamed[600], text[16] = "";
    (void)state;
    snprintf(path, sizeof path, "%s/deep/er/file", kp_test_tmpdir());
    snprintf(renamed, sizeof renamed, "%s/deep/other", kp_test_tmpdir());
    for (int once = 0; once < 2; once++) {
        kp_io_apart(once);
        *strrchr(path, '/') = 0;
        assert_int_equal(kp_io_mkdirs(path, 0700), 0);
        path[strlen(path)] = '/';
        const int fd = kp_io_open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
        assert_true(fd >= KP_IO_FD_HIGH);
        assert_int_equal(kp_io_open(path, O_RDWR | O_CREAT | O_EXCL, 0600), -EEXIST);
        assert_int_equal(kp_io_write_all(fd, "hello", 5), 5);
        assert_int_equal(kp_io_pwrite_all(fd, "J", 1, 0), 1);
        assert_int_equal(kp_io_pread(fd, text, 5, 0), 5);
        assert_string_equal(text, "Jello");
        assert_int_equal(kp_io_fallocate(fd, 0, 8192), 0);
        assert_int_equal(kp_io_truncate(fd, 3), 0);
        assert_int_equal(kp_io_fsync(fd), 0);
        assert_int_equal(kp_io_rename_new(path, renamed), 0);
        assert_int_equal(kp_io_unlink(path), -ENOENT);
        assert_int_equal(kp_io_unlink(renamed), 0);
        assert_int_equal(kp_io_close(fd), 0);
        assert_int_equal(kp_io_close(fd), -EBADF);
        assert_int_equal(kp_io_pwrite_all(fd, "x", 1, 0), -EBADF);
    }
    kp_io_apart(false);
}

/* /proc/self is that of the process that opens it. */
static void the_program_finds_itself_in_proc(void **state)
{
    char text[64] = "";
    (void)state;
    kp_io_apart(true);
    const int fd = kp_io_open("/proc/self/stat", O_RDONLY, 0);
    assert_true(kp_io_read(fd, text, sizeof text - 1) > 0);
    assert_int_equal(kp_io_close(fd), 0);
    kp_io_apart(false);
    assert_int_equal(atoi(text), getpid());
}

static void the_program_sees_no_child(void **state)
{
    int status;
    (void)state;
    kp_io_apart(true);
    const bool is = is_apart();
    errno = 0;
    assert_int_equal(waitpid(-1, &status, WNOHANG), -1); /* neither a living one nor a zombie */
    assert_int_equal(errno, ECHILD);
    assert_int_equal(waitpid(-1, &status, WNOHANG | __WALL), -1);
    kp_io_apart(false);
    if (!is) KP_SKIP("no process with this one's memory can be had here");
}

static void *write_for_ever(void *arg)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    kp_io_apart(true);
    (void)kp_io_write_all(*(int *)arg, "x", 1); /* to a pipe that is full: waits until the reader is gone */
    return NULL;
}

/* A call that waits does not hold the end of the process. */
static void a_waiting_call_does_not_hold_the_end(void **state)
{
    int ends[2], status;
    (void)state;
    kp_io_apart(true);
    const bool is = is_apart();
    kp_io_apart(false);
    if (!is) KP_SKIP("no process with this one's memory can be had here");
    assert_int_equal(pipe(ends), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        static char much[1 << 20];
        pthread_t t;
        fcntl(ends[1], F_SETFL, O_NONBLOCK);
        while (write(ends[1], much, sizeof much) > 0) continue;
        fcntl(ends[1], F_SETFL, 0);
        if (pthread_create(&t, NULL, write_for_ever, &ends[1]) != 0) _exit(2);
        usleep(100000);
        _exit(7);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid); /* SIGKILL would end the thread's own wait in a pipe as well */
    assert_int_equal(WEXITSTATUS(status), 7);
    close(ends[1]);
    close(ends[0]);
}

static void without_such_a_process_the_thread_calls(void **state)
{
    (void)state;
    kp_fail_set("clone:1+:11");
    kp_io_apart(true);
    assert_false(is_apart());
    kp_io_apart(false);
    kp_fail_set(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_do_what_they_did),
        cmocka_unit_test(the_program_finds_itself_in_proc),
        cmocka_unit_test(the_program_sees_no_child),
        cmocka_unit_test(a_waiting_call_does_not_hold_the_end),
        cmocka_unit_test(without_such_a_process_the_thread_calls),
    };
    return cmocka_run_group_tests_name("io_apart", tests, NULL, NULL);
}
