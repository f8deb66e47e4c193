// SPDX-License-Identifier: Apache-2.0
/* test_recover.c - spools become traces when their process is gone, and only then; what is no spool is told and kept */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/base/kp_clock.h"
#include "export/cli/cli.h"
#include "export/cli/spool.h"
#include "test/support/spool.h"
#include "test/support/support.h"

static char folder[300];

/* A fresh folder for each test. */
static int folder_make(void **state)
{
    static int number;
    (void)state;
    snprintf(folder, sizeof folder, "%s/%d", kp_test_tmpdir(), number++);
    return mkdir(folder, 0777);
}

static const char *in_folder(const char *name)
{
    static char path[4][400];
    static int turn;
    char *const to = path[turn++ % 4];
    snprintf(to, sizeof path[0], "%s/%s", folder, name);
    return to;
}

static void spool_put(const char *name, uint32_t pid, const char *host, size_t bytes)
{
    struct test_spool s;
    test_spool_training(&s);
    test_spool_head(&s)->pid = pid;
    test_spool_head(&s)->closed = 0;
    test_spool_head(&s)->start_real_ns = kp_clock_ns(CLOCK_REALTIME);
    if (host)
        snprintf(test_spool_head(&s)->host, sizeof test_spool_head(&s)->host, "%s", host);
    else
        gethostname(test_spool_head(&s)->host, sizeof test_spool_head(&s)->host - 1);
    test_spool_save(&s, in_folder(name), bytes);
    test_spool_free(&s);
}

/* A process id that nobody has now. */
static uint32_t gone_pid(void)
{
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
    return (uint32_t)child;
}

static int count_files(const char *end)
{
    DIR *const dir = opendir(folder);
    const struct dirent *entry;
    int n = 0;
    while ((entry = readdir(dir)) != NULL) {
        const size_t length = strlen(entry->d_name), tail = strlen(end);
        n += length > tail && strcmp(entry->d_name + length - tail, end) == 0;
    }
    closedir(dir);
    return n;
}

static int run(int (*command)(int, char **), const char *a, const char *b, const char *c)
{
    const char *words[] = {"x", a, b, c, NULL};
    int argc = 1;
    while (words[argc]) argc++;
    return command(argc, (char **)words);
}

static void a_folder_of_dead_spools_becomes_traces_and_the_spools_go(void **state)
{
    (void)state;
    spool_put("a.kprof", gone_pid(), NULL, 0);
    assert_int_equal(run(kp_cmd_recover, folder, NULL, NULL), KP_EXIT_DONE);
    assert_int_equal(count_files(".pt.trace.json.gz"), 1);
    assert_int_equal(count_files(".kprof"), 0);
}

static void keep_leaves_the_spool(void **state)
{
    (void)state;
    spool_put("a.kprof", gone_pid(), NULL, 0);
    assert_int_equal(run(kp_cmd_recover, "--keep", in_folder("a.kprof"), NULL), KP_EXIT_DONE);
    assert_int_equal(count_files(".pt.trace.json.gz"), 1);
    assert_int_equal(count_files(".kprof"), 1);
}

static void a_running_process_keeps_its_spool(void **state)
{
    (void)state;
    spool_put("a.kprof", (uint32_t)getpid(), NULL, 0);
    const int fd = open(in_folder("a.kprof"), O_RDONLY | O_CLOEXEC);
    void *const map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    assert_int_equal(run(kp_cmd_recover, folder, NULL, NULL), KP_EXIT_DONE);
    assert_int_equal(count_files(".gz"), 0);
    assert_int_equal(count_files(".kprof"), 1);
    munmap(map, 4096);
    close(fd);
}

/* The process is there and as old as ever, but the program that wrote the spool is gone from it. */
static void a_process_that_executed_another_program_gives_its_spool_up(void **state)
{
    const pid_t child = fork();
    (void)state;
    if (child == 0) {
        pause();
        _exit(0);
    }
    spool_put("a.kprof", (uint32_t)child, NULL, 0);
    assert_int_equal(run(kp_cmd_recover, folder, NULL, NULL), KP_EXIT_DONE);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    assert_int_equal(count_files(".gz"), 1);
    assert_int_equal(count_files(".kprof"), 0);
}

static void what_a_killed_process_was_writing_goes_with_its_spool(void **state)
{
    (void)state;
    spool_put("host_7.123.kprof", gone_pid(), NULL, 0);
    fclose(fopen(in_folder(".host_7.456.pt.trace.json.gz.part"), "w"));
    fclose(fopen(in_folder(".host_77.456.pt.trace.json.gz.part"), "w")); /* another's */
    assert_int_equal(run(kp_cmd_recover, folder, NULL, NULL), KP_EXIT_DONE);
    assert_int_equal(count_files(".gz"), 1);
    assert_int_equal(count_files(".part"), 1);
}

static void a_spool_of_another_machine_is_left_alone_unless_forced(void **state)
{
    (void)state;
    spool_put("a.kprof", 1, "some-other-machine", 0);
    assert_int_equal(run(kp_cmd_recover, folder, NULL, NULL), KP_EXIT_DONE);
    assert_int_equal(count_files(".kprof"), 1);
    assert_int_equal(run(kp_cmd_recover, "--force", folder, NULL), KP_EXIT_DONE);
    assert_int_equal(count_files(".kprof"), 0);
    assert_int_equal(count_files(".gz"), 1);
}

static void a_reused_pid_does_not_hide_a_dead_spool(void **state)
{
    struct kp_file_head head = {.pid = (uint32_t)getpid()};
    (void)state;
    gethostname(head.host, sizeof head.host - 1);
    head.start_real_ns = kp_clock_ns(CLOCK_REALTIME);
    assert_int_equal(kp_spool_state(&head, in_folder("no.kprof")), KP_SPOOL_RUNNING);
    head.start_real_ns -= UINT64_C(3600000000000) * 24 * 365; /* opened a year before this process began */
    assert_int_equal(kp_spool_state(&head, in_folder("no.kprof")), KP_SPOOL_GONE);
    head.start_real_ns = kp_clock_ns(CLOCK_REALTIME);
    head.pid = gone_pid();
    assert_int_equal(kp_spool_state(&head, in_folder("no.kprof")), KP_SPOOL_GONE);
    head.pid = (uint32_t)getpid();
    head.closed = 1;
    assert_int_equal(kp_spool_state(&head, in_folder("no.kprof")), KP_SPOOL_GONE);
}

static void what_is_no_spool_is_told_kept_and_does_not_stop_the_others(void **state)
{
    FILE *file;
    (void)state;
    spool_put("b.kprof", gone_pid(), NULL, 0);
    spool_put("c.kprof", gone_pid(), NULL, 1000);
    file = fopen(in_folder("a.kprof"), "w");
    fputs("this is no spool at all", file);
    fclose(file);
    assert_int_equal(run(kp_cmd_recover, folder, NULL, NULL), KP_EXIT_BAD_INPUT);
    assert_int_equal(count_files(".gz"), 1);
    assert_int_equal(count_files(".kprof"), 2);
    assert_int_equal(access(in_folder("a.kprof"), F_OK), 0);
    assert_int_equal(access(in_folder("c.kprof"), F_OK), 0);
}

static void export_writes_where_it_is_told_and_keeps_the_spool(void **state)
{
    char where[400];
    (void)state;
    spool_put("a.kprof", gone_pid(), NULL, 0);
    snprintf(where, sizeof where, "--dir=%s/deep/er", folder);
    assert_int_equal(run(kp_cmd_export, in_folder("a.kprof"), where, "--no-gzip"), KP_EXIT_DONE);
    assert_int_equal(count_files(".kprof"), 1);
    snprintf(folder + strlen(folder), sizeof folder - strlen(folder), "/deep/er");
    assert_int_equal(count_files(".pt.trace.json"), 1);
}

static void bad_words_are_usage_and_bad_files_are_bad_input(void **state)
{
    (void)state;
    assert_int_equal(run(kp_cmd_recover, NULL, NULL, NULL), KP_EXIT_USAGE);
    assert_int_equal(run(kp_cmd_export, NULL, NULL, NULL), KP_EXIT_USAGE);
    assert_int_equal(run(kp_cmd_export, "--what", NULL, NULL), KP_EXIT_USAGE);
    assert_int_equal(run(kp_cmd_recover, "/no/such/place", NULL, NULL), KP_EXIT_BAD_INPUT);
    assert_int_equal(run(kp_cmd_export, "/no/such/place", NULL, NULL), KP_EXIT_BAD_INPUT);
    assert_int_equal(run(kp_cmd_recover, folder, NULL, NULL), KP_EXIT_DONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_folder_of_dead_spools_becomes_traces_and_the_spools_go, folder_make),
        cmocka_unit_test_setup(keep_leaves_the_spool, folder_make),
        cmocka_unit_test_setup(a_running_process_keeps_its_spool, folder_make),
        cmocka_unit_test_setup(what_a_killed_process_was_writing_goes_with_its_spool, folder_make),
        cmocka_unit_test_setup(a_process_that_executed_another_program_gives_its_spool_up, folder_make),
        cmocka_unit_test_setup(a_spool_of_another_machine_is_left_alone_unless_forced, folder_make),
        cmocka_unit_test_setup(a_reused_pid_does_not_hide_a_dead_spool, folder_make),
        cmocka_unit_test_setup(what_is_no_spool_is_told_kept_and_does_not_stop_the_others, folder_make),
        cmocka_unit_test_setup(export_writes_where_it_is_told_and_keeps_the_spool, folder_make),
        cmocka_unit_test_setup(bad_words_are_usage_and_bad_files_are_bad_input, folder_make),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
