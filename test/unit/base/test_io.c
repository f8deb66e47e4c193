// SPDX-License-Identifier: Apache-2.0
/* test_io.c - calls return -errno, fds sit high and close on exec, failures come where they were ordered */
#include "collector/base/kp_io.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/support/support.h"

static const char *path_in_tmp(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", kp_test_tmpdir(), name);
    return path;
}

static void an_fd_is_high_and_closes_on_exec(void **state)
{
    (void)state;
    int fd = kp_io_open(path_in_tmp("a"), O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 100);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(kp_io_write_all(fd, "hello", 5), 5);
    char b[8] = "";
    assert_int_equal(kp_io_pread(fd, b, 8, 1), 4);
    assert_string_equal(b, "ello");
    assert_int_equal(kp_io_fsync(fd), 0);
    assert_int_equal(kp_io_close(fd), 0);
    assert_int_equal(kp_io_close(fd), -EBADF);
    assert_int_equal(kp_io_open(path_in_tmp("a"), O_RDWR | O_CREAT | O_EXCL, 0600), -EEXIST);
}

static void a_low_fd_limit_still_gives_an_fd(void **state)
{
    struct rlimit old, low;
    (void)state;
    getrlimit(RLIMIT_NOFILE, &old);
    low = old;
    low.rlim_cur = 50;
    setrlimit(RLIMIT_NOFILE, &low);
    int fd = kp_io_open("/dev/null", O_RDONLY, 0);
    setrlimit(RLIMIT_NOFILE, &old);
    assert_in_range(fd, 0, 49);
    kp_io_close(fd);
}

static void folders_are_made_on_the_way(void **state)
{
    char b[600];
    struct stat st;
    (void)state;
    snprintf(b, sizeof b, "%s//x/y/z/", kp_test_tmpdir());
    assert_int_equal(kp_io_mkdirs(b, 0700), 0);
    assert_int_equal(kp_io_mkdirs(b, 0700), 0);
    assert_int_equal(stat(b, &st), 0);
    snprintf(b, sizeof b, "%s/plain", kp_test_tmpdir());
    kp_io_close(kp_io_open(b, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(kp_io_mkdirs(b, 0700), -ENOTDIR);
    strcat(b, "/below");
    assert_int_equal(kp_io_mkdirs(b, 0700), -ENOTDIR);
    assert_int_equal(kp_io_mkdirs("", 0700), -ENOENT);
}

static void fallocate_makes_the_blocks_exist(void **state)
{
    struct stat st;
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        int fd = kp_io_open(path_in_tmp("blocks"), O_RDWR | O_CREAT | O_TRUNC, 0600);
        if (slow) kp_io_set_failures("fallocate:1:95"); /* EOPNOTSUPP: the zeroes are written */
        assert_int_equal(kp_io_fallocate(fd, 0, 100000), 0);
        kp_io_set_failures(NULL);
        assert_int_equal(fstat(fd, &st), 0);
        assert_int_equal(st.st_size, 100000);
        assert_true(st.st_blocks * 512 >= 100000);
        kp_io_close(fd);
        kp_io_unlink(path_in_tmp("blocks"));
    }
}

static void a_failure_comes_at_its_number(void **state)
{
    void *p;
    (void)state;
    kp_io_set_failures("mmap:2:12,open:1:24,write:3+");
    assert_int_equal(kp_io_mmap(&p, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 0);
    assert_int_equal(kp_io_munmap(p, 4096), 0);
    assert_int_equal(kp_io_mmap(&p, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), -ENOMEM);
    assert_int_equal(kp_io_mmap(&p, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 0);
    kp_io_munmap(p, 4096);
    assert_int_equal(kp_io_open("/dev/null", O_WRONLY, 0), -EMFILE);
    int fd = kp_io_open("/dev/null", O_WRONLY, 0);
    assert_true(fd >= 0);
    for (int i = 0; i < 5; i++) assert_int_equal(kp_io_write_all(fd, "x", 1), i < 2 ? 1 : -ENOSPC);
    kp_io_close(fd);
    kp_io_set_failures(NULL);
}

static void a_malformed_order_fails_nothing(void **state)
{
    const char *bad[] = {"", "open", "open:", "open:x", ":1", "open:1:", "averyveryveryverylongname:1", ",", "open:1;"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kp_io_set_failures(bad[i]);
        assert_int_equal(kp_io_fail_point("open"), 0);
    }
    kp_io_set_failures(NULL);
}

static atomic_int done;
static struct {
    char name[16];
    sigset_t mask;
    int nice_diff;
} saw;

static void *look(void *arg)
{
    FILE *f = fopen("/proc/thread-self/comm", "r");
    if (f && fscanf(f, "%15s", saw.name) != 1) saw.name[0] = '\0';
    if (f) fclose(f);
    pthread_sigmask(SIG_SETMASK, NULL, &saw.mask);
    saw.nice_diff = getpriority(PRIO_PROCESS, 0) - *(int *)arg;
    atomic_store(&done, 1);
    return NULL;
}

static void a_helper_thread_is_named_nice_and_deaf(void **state)
{
    int nice_here = getpriority(PRIO_PROCESS, 0);
    sigset_t now;
    (void)state;
    kp_io_set_failures("thread:1:11");
    assert_int_equal(kp_io_thread(look, &nice_here, "x"), -EAGAIN);
    kp_io_set_failures(NULL);
    assert_int_equal(kp_io_thread(look, &nice_here, "kprof-test-long-name"), 0);
    while (!atomic_load(&done)) sched_yield();
    assert_string_equal(saw.name, "kprof-test-long");
    assert_true(saw.nice_diff > 0 || nice_here >= 15);
    assert_int_equal(sigismember(&saw.mask, SIGINT), 1);
    assert_int_equal(sigismember(&saw.mask, SIGPROF), 1);
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    assert_int_equal(sigismember(&now, SIGINT), 0);
}

static void memory_that_is_not_there_is_no_fault(void **state)
{
    const uint64_t here = 0x1234567890;
    uint64_t seen = 0;
    (void)state;
    assert_int_equal(kp_io_peek(&here, &seen, sizeof seen), 0);
    assert_true(seen == here);
    assert_int_equal(kp_io_peek(NULL, &seen, sizeof seen), -EFAULT);
    uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED && munmap(pages + 4096, 4096) == 0);
    assert_int_equal(kp_io_peek(pages + 4096 - 4, &seen, sizeof seen), -EFAULT); /* half of it */
    assert_int_equal(kp_io_peek(pages + 4096 - 8, &seen, sizeof seen), 0);
    munmap(pages, 4096);
    kp_io_set_failures("peek:1:1");
    assert_int_equal(kp_io_peek(&here, &seen, sizeof seen), -EPERM);
    kp_io_set_failures(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_fd_is_high_and_closes_on_exec), cmocka_unit_test(a_low_fd_limit_still_gives_an_fd),
        cmocka_unit_test(folders_are_made_on_the_way),      cmocka_unit_test(fallocate_makes_the_blocks_exist),
        cmocka_unit_test(a_failure_comes_at_its_number),    cmocka_unit_test(a_malformed_order_fails_nothing),
        cmocka_unit_test(a_helper_thread_is_named_nice_and_deaf), cmocka_unit_test(memory_that_is_not_there_is_no_fault),
    };
    return cmocka_run_group_tests_name("io", tests, NULL, NULL);
}
