// SPDX-License-Identifier: Apache-2.0
/* test_filecheck.c - a file is looked at by its descriptor: only what nobody else can change is own, only a plain file
 * is opened */
#include "collector/base/sys/kp_filecheck.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/base/sys/kp_io.h"
#include "test/support/support.h"

static const char *in_tmp(const char *name)
{
    static char path[2][512];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", kp_test_tmpdir(), name);
    return path[turn];
}

static void put(const char *name, mode_t mode)
{
    int fd = open(in_tmp(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "hello", 5), 5);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

/* 0, or what opening it as ours said. */
static int own(const char *name)
{
    int dir = open(kp_test_tmpdir(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(dir >= 0);
    int fd = kp_filecheck_open_own(dir, name, O_RDONLY);
    if (fd >= 0) assert_int_equal(kp_io_close(fd), 0);
    close(dir);
    return fd < 0 ? fd : 0;
}

static void a_file_of_ours_that_lets_nobody_in_is_own(void **state)
{
    (void)state;
    put("own", 0600);
    assert_int_equal(own("own"), 0);
    assert_int_equal(own("none"), -ENOENT);
    for (mode_t bit = 01; bit <= 040; bit <<= 1) {
        put("wide", 0600 | bit);
        assert_int_equal(own("wide"), -EPERM);
    }
}

static void a_link_a_pipe_and_a_folder_are_not_own(void **state)
{
    char target[600];
    (void)state;
    put("target", 0600);
    snprintf(target, sizeof target, "%s", in_tmp("target"));
    assert_int_equal(symlink(target, in_tmp("symbolic")), 0);
    assert_int_equal(own("symbolic"), -ELOOP);
    assert_int_equal(link(target, in_tmp("hard")), 0);
    assert_int_equal(own("hard"), -EPERM);
    assert_int_equal(own("target"), -EPERM); /* either of its names */
    assert_int_equal(mkfifo(in_tmp("pipe"), 0600), 0);
    assert_int_equal(own("pipe"), -EPERM);
    assert_int_equal(mkdir(in_tmp("folder"), 0700), 0);
    assert_int_equal(own("folder"), -EPERM);
}

static void what_belongs_to_another_user_is_not_own(void **state)
{
    (void)state;
    KP_NEEDS_OTHER_USERS();
    put("theirs", 0600);
    assert_int_equal(chown(in_tmp("theirs"), 4242, 4242), 0);
    assert_int_equal(own("theirs"), -EPERM);
}

static int folder(const char *name)
{
    int fd = kp_filecheck_open_folder(in_tmp(name));
    if (fd >= 0) kp_io_close(fd);
    return fd < 0 ? fd : 0;
}

static void a_folder_is_safe_when_others_cannot_exchange_what_is_in_it(void **state)
{
    char target[600];
    (void)state;
    assert_int_equal(mkdir(in_tmp("safe"), 0755), 0);
    assert_int_equal(folder("safe"), 0);
    assert_int_equal(chmod(in_tmp("safe"), 0775), 0); /* what a umask of 002 gives */
    assert_int_equal(folder("safe"), 0);
    assert_int_equal(chmod(in_tmp("safe"), 0777), 0);
    assert_int_equal(folder("safe"), -EPERM);
    assert_int_equal(chmod(in_tmp("safe"), 01777), 0);
    assert_int_equal(folder("safe"), 0);
    snprintf(target, sizeof target, "%s", in_tmp("safe"));
    assert_int_equal(symlink(target, in_tmp("led")), 0);
    assert_true(folder("led") < 0);
    assert_int_equal(folder("nowhere"), -ENOENT);
    KP_NEEDS_OTHER_USERS();
    assert_int_equal(chown(in_tmp("safe"), 4242, 4242), 0);
    assert_int_equal(chmod(in_tmp("safe"), 0755), 0);
    assert_int_equal(folder("safe"), -EPERM);
}

/* Whether anybody opened the file meanwhile. */
static bool was_opened(int watch)
{
    char event[4096];
    return read(watch, event, sizeof event) > 0;
}

static void only_a_plain_file_is_opened_and_a_pipe_is_not_touched(void **state)
{
    (void)state;
    char text[8] = "";
    const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    put("plain", 0644);
    assert_true(inotify_add_watch(watch, in_tmp("plain"), IN_OPEN) >= 0);
    int fd = kp_filecheck_open_plain(in_tmp("plain"));
    assert_true(fd >= 0);
    assert_true(was_opened(watch));
    assert_int_equal(kp_io_read(fd, text, sizeof text), 5);
    assert_int_equal(kp_io_close(fd), 0);
    assert_int_equal(mkfifo(in_tmp("fifo"), 0600), 0);
    assert_true(inotify_add_watch(watch, in_tmp("fifo"), IN_OPEN) >= 0);
    assert_int_equal(kp_filecheck_open_plain(in_tmp("fifo")), -EINVAL);
    assert_false(was_opened(watch));
    assert_int_equal(kp_filecheck_open_plain("/dev/null"), -EINVAL);
    assert_int_equal(kp_filecheck_open_plain(kp_test_tmpdir()), -EINVAL);
    assert_int_equal(kp_filecheck_open_plain(in_tmp("nothing")), -ENOENT);
    close(watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_of_ours_that_lets_nobody_in_is_own),
        cmocka_unit_test(a_link_a_pipe_and_a_folder_are_not_own),
        cmocka_unit_test(what_belongs_to_another_user_is_not_own),
        cmocka_unit_test(a_folder_is_safe_when_others_cannot_exchange_what_is_in_it),
        cmocka_unit_test(only_a_plain_file_is_opened_and_a_pipe_is_not_touched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
