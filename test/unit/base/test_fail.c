// SPDX-License-Identifier: Apache-2.0
/* test_fail.c - failures come where they were ordered, also of all calls together, and are counted across processes */
#include "collector/base/sys/kp_fail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_io.h"
#include "test/support/support.h"

static void any_is_a_call_of_whatever_name(void **state)
{
    (void)state;
    kp_fail_set("any:3");
    assert_int_equal(kp_fail_point("open"), 0);
    assert_int_equal(kp_fail_point("layout"), 0); /* no call: not counted */
    assert_int_equal(kp_fail_point("mmap"), 0);
    assert_int_equal(kp_fail_point("read"), -EIO); /* as it fails in life */
    assert_int_equal(kp_fail_point("read"), 0);
    kp_fail_set("any:2+:38");
    assert_int_equal(kp_fail_point("open"), 0);
    assert_int_equal(kp_fail_point("thread"), -38);
    assert_int_equal(kp_fail_point("mmap"), -38);
    assert_int_equal(kp_fail_point("layout"), 0);
    kp_fail_set(NULL);
    assert_int_equal(kp_fail_point("open"), 0);
}

static void an_allocation_fails_where_it_was_ordered(void **state)
{
    (void)state;
    kp_fail_set("arena:2");
    assert_non_null(kp_arena_alloc(16));
    assert_null(kp_arena_alloc(16));
    assert_non_null(kp_arena_alloc(16));
    kp_fail_set(NULL);
}

static void a_file_counts_for_all_processes(void **state)
{
    char path[512], spec[600];
    uint64_t head[4];
    (void)state;
    snprintf(path, sizeof path, "%s/tally", kp_test_tmpdir());
    snprintf(spec, sizeof spec, "in:%s,any:3", path);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), status = 0;
    assert_int_equal(ftruncate(fd, 4096), 0);
    pid_t child = fork();
    if (child == 0) {
        kp_fail_set(spec);
        _exit(kp_fail_point("open") == 0 && kp_fail_point("wait") == 0 ? 0 : 1);
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    kp_fail_set(spec);
    assert_int_equal(kp_fail_point("fsync"), -EIO); /* the third of all */
    assert_int_equal(kp_fail_point("fsync"), 0);
    assert_int_equal(pread(fd, head, sizeof head, 0), sizeof head);
    assert_int_equal(head[0], 4);
    assert_int_equal(head[1], 3);
    char row[24];
    assert_int_equal(pread(fd, row, sizeof row, (off_t)(32 + 32 * head[2])), sizeof row);
    assert_string_equal(row, "fsync");
    kp_fail_set(NULL);
    close(fd);
}

static void a_file_that_is_too_short_fails_nothing(void **state)
{
    char path[512], spec[600];
    (void)state;
    snprintf(path, sizeof path, "%s/short", kp_test_tmpdir());
    snprintf(spec, sizeof spec, "in:%s", path);
    close(open(path, O_RDWR | O_CREAT | O_TRUNC, 0600));
    kp_fail_set(spec);
    for (int i = 0; i < 10; i++) assert_int_equal(kp_fail_point("open"), 0);
    kp_fail_set("in:/nowhere/at/all,open:1:13");
    assert_int_equal(kp_fail_point("open"), -13);
    kp_fail_set(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_is_a_call_of_whatever_name), cmocka_unit_test(an_allocation_fails_where_it_was_ordered),
        cmocka_unit_test(a_file_that_is_too_short_fails_nothing),
        cmocka_unit_test(a_file_counts_for_all_processes), /* last: the file stays the place of counts */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
