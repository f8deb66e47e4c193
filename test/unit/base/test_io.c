// SPDX-License-Identifier: Apache-2.0
/* test_io.c - calls return -errno, fds sit high and close on exec, failures come where they were ordered */
#include "collector/base/sys/kp_io.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/text/kp_digits.h"
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
        if (slow) kp_fail_set("fallocate:1:95"); /* EOPNOTSUPP: the zeroes are written */
        assert_int_equal(kp_io_fallocate(fd, 0, 100000), 0);
        kp_fail_set(NULL);
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
    kp_fail_set("mmap:2:12,open:1:24,write:3+");
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
    kp_fail_set(NULL);
}

static void a_nap_that_is_refused_lasts_as_long(void **state)
{
    const uint64_t before = kp_clock_ns(CLOCK_MONOTONIC);
    (void)state;
    kp_fail_set("nap:1+");
    kp_io_nap(20000000);
    kp_fail_set(NULL);
    assert_true(kp_clock_ns(CLOCK_MONOTONIC) - before >= 20000000);
}

static void a_malformed_order_fails_nothing(void **state)
{
    const char *bad[] = {"", "open", "open:", "open:x", ":1", "open:1:", "averyveryveryverylongname:1", ",", "open:1;"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kp_fail_set(bad[i]);
        assert_int_equal(kp_fail_point("open"), 0);
    }
    kp_fail_set(NULL);
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
    kp_fail_set("thread:1:11");
    assert_int_equal(kp_io_thread(look, &nice_here, "x"), -EAGAIN);
    kp_fail_set(NULL);
    assert_int_equal(kp_io_thread(look, &nice_here, "kprof-test-long-name"), 0);
    while (!atomic_load(&done)) sched_yield();
    assert_string_equal(saw.name, "kprof-test-long");
    assert_true(saw.nice_diff > 0 || nice_here >= 15);
    assert_int_equal(sigismember(&saw.mask, SIGINT), 1);
    assert_int_equal(sigismember(&saw.mask, SIGPROF), 1);
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    assert_int_equal(sigismember(&now, SIGINT), 0);
}

static _Atomic uint64_t own_ns; /* processor time of the thread below */

static void *run_and_wait(void *stop)
{
    while (kp_clock_ns(CLOCK_THREAD_CPUTIME_ID) < 12345678) {}
    atomic_store(&own_ns, kp_clock_ns(CLOCK_THREAD_CPUTIME_ID));
    while (!atomic_load((_Atomic int *)stop)) kp_io_nap(1000000);
    return NULL;
}

static void the_time_of_helper_threads_is_finer_than_ticks_and_stays(void **state)
{
    static _Atomic int stop;
    (void)state;
    while (kp_io_helpers()) sched_yield(); /* of the tests before */
    kp_io_helpers_settle();
    const uint64_t before = kp_io_helpers_cpu_us();
    assert_int_equal(kp_io_thread(run_and_wait, &stop, "kprof-test"), 0);
    while (!atomic_load(&own_ns)) sched_yield();
    const uint64_t with = kp_io_helpers_cpu_us();
    assert_true(with - before >= atomic_load(&own_ns) / 1000);
    kp_fail_set("threadclock:1+");
    assert_int_equal((kp_io_helpers_cpu_us() - before) % 10000, 0);
    kp_fail_set(NULL);
    atomic_store(&stop, 1);
    while (kp_io_helpers()) sched_yield();
    kp_io_helpers_settle();
    assert_true(kp_io_helpers_cpu_us() >= with);
}

static void peeks_are_answered(void)
{
    const uint64_t here = 0x1234567890;
    uint64_t seen = 0;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t long_one[3 * 4096 + 5], copy[sizeof long_one] = {0};
    assert_int_equal(kp_io_peek(&here, &seen, sizeof seen), 0);
    assert_true(seen == here);
    assert_int_equal(kp_io_peek(NULL, &seen, sizeof seen), -EFAULT);
    uint8_t *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED && munmap(pages + page, page) == 0);
    assert_int_equal(kp_io_peek(pages + page - 4, &seen, sizeof seen), -EFAULT); /* half of it */
    assert_int_equal(kp_io_peek(pages + page - 8, &seen, sizeof seen), 0);
    assert_int_equal(kp_io_peek_pages(pages, page), 0);
    assert_int_equal(kp_io_peek_pages(pages, page + 1), -EFAULT);
    munmap(pages, page);
    for (size_t i = 0; i < sizeof long_one; i++) long_one[i] = (uint8_t)(i * 7);
    assert_int_equal(kp_io_peek(long_one, copy, sizeof copy), 0);
    assert_memory_equal(long_one, copy, sizeof copy);
}

/* The process goes on without the thread that it is named after. */
static void *peeks_alone(void *unused)
{
    uint64_t here = 0x1234567890, seen = 0, poked = 0;
    char stat[256] = {0};
    (void)unused;
    for (int tries = 0; !strstr(stat, ") Z "); tries++) { /* the main thread's; an emulator never says so */
        if (tries == 2000) _exit(4);
        kp_io_nap(1000000);
        const int fd = open("/proc/self/stat", O_RDONLY);
        if (fd < 0 || read(fd, stat, sizeof stat - 1) <= 0) _exit(3);
        close(fd);
    }
    if (kp_io_peek(&here, &seen, sizeof seen) != 0 || seen != here) _exit(1);
    if (kp_io_poke(&poked, &here, sizeof here) != 0 || poked != here) _exit(2);
    _exit(0);
}

static void peeks_are_answered_when_the_main_thread_has_ended(void **state)
{
    int status = 0;
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        pthread_t t;
        if (pthread_create(&t, NULL, peeks_alone, NULL) != 0) _exit(4);
        syscall(SYS_exit, 0); /* this thread alone */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void memory_is_written_where_it_may_be(void **state)
{
    const uint64_t here = 0x1234567890;
    static const char *const ways[] = {NULL, "vm_writev:1+:1", "vm_writev:1+:38"}; /* as it is, a sandbox, qemu */
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    (void)state;
    uint64_t *fixed = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t i = 0; i < 3; i++) {
        uint64_t poked = 0;
        kp_fail_set(ways[i]);
        assert_int_equal(kp_io_poke(&poked, &here, sizeof here), 0);
        assert_true(poked == here);
        assert_int_equal(kp_io_poke(fixed, &here, sizeof here), -EFAULT);
        assert_int_equal(kp_io_poke((void *)8, &here, sizeof here), -EFAULT);
    }
    kp_fail_set(NULL);
    munmap(fixed, page);
}

static void memory_that_is_not_there_is_no_fault(void **state)
{
    uint64_t here = 0, seen = 0;
    (void)state;
    peeks_are_answered();
    const int fd = dup(2), next = dup(2); /* who runs us may have left descriptors open: not the one above */
    close(next);
    kp_fail_set("vm_readv:1+:1");
    peeks_are_answered(); /* a sandbox that forbids it */
    kp_fail_set("vm_readv:1+:38");
    peeks_are_answered(); /* an emulator that does not know it */
    kp_fail_set("vm_readv:1+:14");
    assert_int_equal(kp_io_peek(&here, &seen, sizeof seen), -EFAULT);
    kp_fail_set(NULL);
    assert_int_equal(dup(2), next); /* no descriptor was left */
    close(next), close(fd);
    kp_fail_set("peek:1:1");
    assert_int_equal(kp_io_peek(&here, &seen, sizeof seen), -EPERM);
    kp_fail_set(NULL);
}

static void name_note(void *context, const char *name)
{
    unsigned *seen = context, number;
    if (sscanf(name, "file_with_a_long_name_%u", &number) == 1 && number < 200) seen[number]++;
    else seen[200]++;
}

static void names_of_a_folder_come_once(void **state)
{
    char dir[500], path[600];
    unsigned seen[201] = {0}; /* more than one read of the kernel's */
    (void)state;
    snprintf(dir, sizeof dir, "%s/names", kp_test_tmpdir());
    assert_int_equal(kp_io_mkdirs(dir, 0700), 0);
    for (unsigned i = 0; i < 200; i++) {
        snprintf(path, sizeof path, "%s/%sfile_with_a_long_name_%u", dir, i == 7 ? "." : "", i);
        close(open(path, O_CREAT | O_WRONLY, 0600));
    }
    assert_int_equal(kp_io_each_name(dir, name_note, seen), 0);
    for (unsigned i = 0; i < 200; i++) assert_int_equal(seen[i], i != 7);
    assert_int_equal(seen[200], 0); /* nor the folder itself */
    kp_fail_set("list:1:5");
    assert_int_equal(kp_io_each_name(dir, name_note, seen), -EIO);
    kp_fail_set(NULL);
    assert_int_equal(seen[0], 1);
    for (unsigned i = 0; i < 200; i++) {
        snprintf(path, sizeof path, "%s/%sfile_with_a_long_name_%u", dir, i == 7 ? "." : "", i);
        unlink(path);
    }
    rmdir(dir);
    assert_int_equal(kp_io_each_name(dir, name_note, seen), -ENOENT);
}

static void a_process_is_told_by_its_start(void **state)
{
    (void)state;
    assert_true(kp_io_process_start(0) > 1);
    assert_int_equal(kp_io_process_start(0), kp_io_process_start(getpid()));
    assert_int_not_equal(kp_io_process_start(0), kp_io_process_start(1));
    assert_int_equal(kp_io_process_start(INT32_MAX), 0);
}

/* The host closes a number of ours before it is moved, and its next pipe takes it. */
static int closes, ends[2];
int fcntl(int fd, int cmd, ...)
{
    va_list list;
    va_start(list, cmd);
    const long word = va_arg(list, long);
    va_end(list);
    if (cmd == F_DUPFD_CLOEXEC && closes > 0 && closes--) {
        close(fd);
        errno = EBADF;
        return -1;
    }
    return (int)syscall(SYS_fcntl, fd, cmd, word);
}

/* bash closes the ends of a pipe twice. */
static void a_host_that_closes_our_number_keeps_what_takes_it(void **state)
{
    (void)state;
    closes = 1;
    const int fd = kp_io_open(path_in_tmp("closed"), O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 100);
    assert_int_equal(kp_io_write_all(fd, "a", 1), 1);
    kp_io_close(fd);
    closes = 9;
    assert_int_equal(kp_io_open(path_in_tmp("closed"), O_RDONLY, 0), -EBADF);
    closes = 0;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[0], F_GETFD, 0L), 0);
    close(ends[0]);
    close(ends[1]);
}

static void the_host_s_name_can_be_part_of_a_file_s_name(void **state)
{
    char name[KP_IO_HOST_BYTES] = "before";
    int status = 1;
    (void)state;
    kp_fail_set("uname:1");
    kp_io_host_name(name);
    kp_fail_set(NULL);
    assert_string_equal(name, "");
    const pid_t child = fork();
    if (child == 0) {
        static const char odd[] = "a/b\"c d\\e";
        const bool is_set = unshare(CLONE_NEWUSER | CLONE_NEWUTS) == 0 && sethostname(odd, sizeof odd - 1) == 0;
        kp_io_host_name(name);
        _exit(is_set && strcmp(name, "a-b-c-d-e") != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void fields_of_a_stat_are_counted_behind_the_name(void **state)
{
    const char stat[] = "77 (a) S 1 2 (b) R 1 77 1 0 -1 4194304 5 0 1 0 250 13 7 2 20 0 3 0 1234 5678 90\n";
    const char *hex = "0x7f3a-", *maps = "7f00aB";
    (void)state;
    assert_int_equal(*kp_digits_stat(stat, 3), 'R');
    assert_int_equal(kp_digits(kp_digits_stat(stat, 9)), 4194304);
    assert_int_equal(kp_digits_stat_ticks(stat, KP_STAT_TIMES), 263);
    assert_int_equal(kp_digits_stat_ticks(stat, KP_STAT_CHILD_TIMES), 9);
    assert_string_equal(kp_digits_stat(stat, 99), "");
    assert_string_equal(kp_digits_stat("77 (cut", 3), "");
    assert_int_equal(kp_digits_hex(&hex), 0x7f3a);
    assert_string_equal(hex, "-");
    assert_int_equal(kp_digits_hex(&maps), 0x7f00a);
    assert_string_equal(maps, "B");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_fd_is_high_and_closes_on_exec),
        cmocka_unit_test(a_low_fd_limit_still_gives_an_fd),
        cmocka_unit_test(a_host_that_closes_our_number_keeps_what_takes_it),
        cmocka_unit_test(folders_are_made_on_the_way),
        cmocka_unit_test(fallocate_makes_the_blocks_exist),
        cmocka_unit_test(a_nap_that_is_refused_lasts_as_long),
        cmocka_unit_test(a_failure_comes_at_its_number),
        cmocka_unit_test(a_malformed_order_fails_nothing),
        cmocka_unit_test(a_helper_thread_is_named_nice_and_deaf),
        cmocka_unit_test(the_time_of_helper_threads_is_finer_than_ticks_and_stays),
        cmocka_unit_test(memory_is_written_where_it_may_be),
        cmocka_unit_test(memory_that_is_not_there_is_no_fault),
        cmocka_unit_test(names_of_a_folder_come_once),
        cmocka_unit_test(a_process_is_told_by_its_start),
        cmocka_unit_test(the_host_s_name_can_be_part_of_a_file_s_name),
        cmocka_unit_test(fields_of_a_stat_are_counted_behind_the_name),
        cmocka_unit_test(peeks_are_answered_when_the_main_thread_has_ended),
    };
    return cmocka_run_group_tests_name("io", tests, NULL, NULL);
}
