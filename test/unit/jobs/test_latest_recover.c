// SPDX-License-Identifier: Apache-2.0
/* test_latest_recover.c - which spools a command recovers unasked: the caller's own, of programs that were killed */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "export/cli/cli.h"
#include "export/answers/jobs/latest.h"
#include "test/support/spool.h"
#include "test/support/support.h"

#define NAME "h_7.1790857026000000000.kprof"

static char folder[300], spool[400];
static pid_t gone; /* a process id that nobody has */

static int folder_make(void **state)
{
    static int number;
    (void)state;
    snprintf(folder, sizeof folder, "%s/%d", kp_test_tmpdir(), number++);
    snprintf(spool, sizeof spool, "%s/%s", folder, NAME);
    gone = fork();
    if (gone == 0) _exit(0);
    waitpid(gone, NULL, 0);
    return mkdir(folder, 0755);
}

/* Saves it as a spool of the program that is gone, on `host`, or on this machine. */
static void spool_save(struct test_spool *s, bool closed, const char *host)
{
    struct kp_file_head *const head = test_spool_head(s);
    head->pid = (uint32_t)gone;
    head->closed = closed;
    head->start_real_ns = kp_clock_ns(CLOCK_REALTIME);
    if (host) snprintf(head->host, sizeof head->host, "%s", host);
    else gethostname(head->host, sizeof head->host - 1);
    test_spool_save(s, spool, 0);
    test_spool_free(s);
    assert_int_equal(chmod(spool, 0600), 0);
}

static void spool_put(bool closed, const char *host)
{
    struct test_spool s;
    test_spool_training(&s);
    spool_save(&s, closed, host);
}

static int files_now(const char *end)
{
    DIR *const names = opendir(folder);
    const struct dirent *entry;
    int n = 0;
    while ((entry = readdir(names)) != NULL) n += strstr(entry->d_name, end) != NULL;
    closedir(names);
    return n;
}

static unsigned recovered(void) { return kp_latest_recover("report", folder, (const char *const[]){NAME}, 1); }

static void is_left(void)
{
    assert_int_equal(recovered(), 0);
    assert_int_equal(files_now(".pt.trace.json"), 0);
    assert_int_equal(files_now(".kprof"), 1);
}

static void what_a_killed_program_left_becomes_a_trace(void **state)
{
    (void)state;
    spool_put(false, NULL);
    assert_int_equal(recovered(), 1);
    assert_int_equal(files_now(".pt.trace.json"), 1);
    assert_int_equal(files_now(".kprof"), 0);
    assert_int_equal(recovered(), 0);
}

/* By the time of the recovery a run of long ago would be the latest. */
static void its_trace_is_named_by_when_the_program_wrote_last(void **state)
{
    const struct timespec last[2] = {{1790857033, 250000000}, {1790857033, 250000000}};
    (void)state;
    spool_put(false, NULL);
    assert_int_equal(utimensat(AT_FDCWD, spool, last, 0), 0);
    assert_int_equal(recovered(), 1);
    assert_int_equal(files_now(".1790857033250000000.pt.trace.json"), 1);
}

/* Killed while it imported torch, say: its window has no event. */
static void a_spool_without_an_event_is_told_and_goes(void **state)
{
    struct test_spool s;
    char said[700], text[2000] = "", wanted[800];
    (void)state;
    test_spool_init(&s);
    const uint32_t meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 0, 0, "");
    test_spool_clock(&s, meta, 1000, 1000, 1000);
    test_spool_cycle(&s, meta, 1, 1000, 1000000000, 0);
    spool_save(&s, false, NULL);
    snprintf(said, sizeof said, "%s/said", folder);
    const int kept = dup(2), file = open(said, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    assert_true(kept >= 0 && file >= 0 && dup2(file, 2) == 2);
    const unsigned gone_now = recovered();
    dup2(kept, 2);
    close(kept);
    assert_true(pread(file, text, sizeof text - 1, 0) > 0);
    close(file);
    snprintf(wanted, sizeof wanted,
             "kprof report: %s: its program was killed before it did anything to record; removed it", spool);
    assert_non_null(strstr(text, wanted));
    assert_int_equal(gone_now, 1);
    assert_int_equal(files_now(".pt.trace.json"), 0);
    assert_int_equal(files_now(".kprof"), 0);
}

static void a_program_that_ended_by_itself_meant_to_leave_its_spool(void **state)
{
    (void)state;
    spool_put(true, NULL);
    is_left();
}

static void a_spool_of_another_machine_is_left(void **state)
{
    (void)state;
    spool_put(false, "elsewhere");
    is_left();
}

/* As of a job in a container, whose process id is nobody's here. */
static void a_spool_that_any_process_has_mapped_is_left(void **state)
{
    (void)state;
    spool_put(false, NULL);
    const int fd = open(spool, O_RDWR | O_CLOEXEC);
    void *const map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    assert_ptr_not_equal(map, MAP_FAILED);
    is_left();
    munmap(map, 4096);
    assert_int_equal(recovered(), 1);
}

static void a_spool_that_others_may_write_or_that_has_two_names_is_left(void **state)
{
    char second[500];
    (void)state;
    spool_put(false, NULL);
    assert_int_equal(chmod(spool, 0620), 0);
    is_left();
    assert_int_equal(chmod(spool, 0600), 0);
    snprintf(second, sizeof second, "%s/other", folder);
    assert_int_equal(link(spool, second), 0);
    is_left();
    assert_int_equal(unlink(second), 0);
    assert_int_equal(recovered(), 1);
}

static void a_spool_of_another_user_is_left_also_by_root(void **state)
{
    (void)state;
    if (geteuid() != 0) skip();
    spool_put(false, NULL);
    const int rc = chown(spool, 52001, 52001);
    if (rc != 0 && errno == EINVAL) skip(); /* a namespace that has no other user */
    assert_int_equal(rc, 0);
    is_left();
}

static void a_link_and_a_file_that_is_no_spool_are_left(void **state)
{
    char target[500];
    (void)state;
    spool_put(false, NULL);
    snprintf(target, sizeof target, "%s/moved", folder);
    assert_int_equal(rename(spool, target), 0);
    assert_int_equal(symlink(target, spool), 0);
    is_left();
    assert_int_equal(unlink(spool), 0);
    FILE *const file = fopen(spool, "w");
    assert_non_null(file);
    fclose(file);
    is_left();
}

static void one_who_is_recovering_it_goes_on_alone(void **state)
{
    (void)state;
    spool_put(false, NULL);
    const int fd = open(spool, O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    is_left();
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_a_killed_program_left_becomes_a_trace, folder_make),
        cmocka_unit_test_setup(its_trace_is_named_by_when_the_program_wrote_last, folder_make),
        cmocka_unit_test_setup(a_spool_without_an_event_is_told_and_goes, folder_make),
        cmocka_unit_test_setup(a_program_that_ended_by_itself_meant_to_leave_its_spool, folder_make),
        cmocka_unit_test_setup(a_spool_of_another_machine_is_left, folder_make),
        cmocka_unit_test_setup(a_spool_that_any_process_has_mapped_is_left, folder_make),
        cmocka_unit_test_setup(a_spool_that_others_may_write_or_that_has_two_names_is_left, folder_make),
        cmocka_unit_test_setup(a_spool_of_another_user_is_left_also_by_root, folder_make),
        cmocka_unit_test_setup(a_link_and_a_file_that_is_no_spool_are_left, folder_make),
        cmocka_unit_test_setup(one_who_is_recovering_it_goes_on_alone, folder_make),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
