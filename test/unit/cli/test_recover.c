// SPDX-License-Identifier: Apache-2.0
/* test_recover.c - spools become traces when their process is gone, and only then; what is no spool is told and kept */
#include <dirent.h>
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
#include "export/read/folder/spool_export.h"
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
    if (host) snprintf(test_spool_head(&s)->host, sizeof test_spool_head(&s)->host, "%s", host);
    else gethostname(test_spool_head(&s)->host, sizeof test_spool_head(&s)->host - 1);
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
    fclose(fopen(in_folder(".host_r3_7.456.pt.trace.json.gz.part"), "w"));
    fclose(fopen(in_folder(".host_77.456.pt.trace.json.gz.part"), "w")); /* another's */
    fclose(fopen(in_folder(".host_r3_77.456.pt.trace.json.gz.part"), "w"));
    fclose(fopen(in_folder(".host_rx_7.456.pt.trace.json.gz.part"), "w"));
    assert_int_equal(run(kp_cmd_recover, folder, NULL, NULL), KP_EXIT_DONE);
    assert_int_equal(count_files(".gz"), 1);
    assert_int_equal(count_files(".part"), 3);
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

/* ---- files of others ---- */

static char other_folder[300];

static const char *in_other(const char *name)
{
    static char path[2][400];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", other_folder, name);
    return path[turn];
}

/* A second folder, with a spool of its owner's; `folder` is the one in hand afterwards. */
static void other_make(const char *spool)
{
    char mine[sizeof folder];
    strcpy(mine, folder);
    folder_make(NULL);
    strcpy(other_folder, folder);
    spool_put(spool, gone_pid(), NULL, 0);
    strcpy(folder, mine);
}

static void what_a_listing_gave_as_a_link_is_left_alone(void **state)
{
    (void)state;
    other_make("secret.kprof");
    assert_int_equal(symlink(in_other("secret.kprof"), in_folder("a.kprof")), 0);
    assert_int_equal(symlink(other_folder, in_folder("children")), 0);
    assert_int_equal(run(kp_cmd_recover, folder, NULL, NULL), KP_EXIT_DONE);
    assert_int_equal(count_files(".gz"), 0);
    assert_int_equal(access(in_other("secret.kprof"), F_OK), 0);
    strcpy(folder, other_folder);
    assert_int_equal(count_files(".gz"), 0);
}

static void a_link_that_somebody_named_is_followed(void **state)
{
    (void)state;
    other_make("mine.kprof");
    assert_int_equal(symlink(in_other("mine.kprof"), in_folder("a.kprof")), 0);
    assert_int_equal(run(kp_cmd_recover, in_folder("a.kprof"), NULL, NULL), KP_EXIT_DONE);
    assert_int_equal(count_files(".gz"), 1);
}

static void a_spool_with_another_name_is_left_alone_unless_named(void **state)
{
    (void)state;
    other_make("secret.kprof");
    assert_int_equal(link(in_other("secret.kprof"), in_folder("a.kprof")), 0);
    assert_int_equal(run(kp_cmd_recover, folder, NULL, NULL), KP_EXIT_DONE);
    assert_int_equal(count_files(".gz"), 0);
    assert_int_equal(count_files(".kprof"), 1);
    assert_int_equal(run(kp_cmd_recover, in_folder("a.kprof"), NULL, NULL), KP_EXIT_DONE);
    assert_int_equal(count_files(".gz"), 1);
}

/* The one file that ends so: whose, and its mode. */
static struct stat made(const char *end)
{
    DIR *const dir = opendir(folder);
    const struct dirent *entry;
    struct stat st = {.st_uid = 99};
    while ((entry = readdir(dir)) != NULL) {
        const size_t length = strlen(entry->d_name), tail = strlen(end);
        if (length > tail && strcmp(entry->d_name + length - tail, end) == 0)
            assert_int_equal(fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW), 0);
    }
    closedir(dir);
    return st;
}

static void spool_of_put(const char *name, uid_t owner, mode_t mode)
{
    spool_put(name, gone_pid(), NULL, 0);
    assert_int_equal(chmod(in_folder(name), mode), 0);
    if (owner) assert_int_equal(chown(in_folder(name), owner, owner), 0);
}

static void of_the_callers_own_spool_traces_are_as_his_umask_says(void **state)
{
    (void)state;
    spool_of_put("a.kprof", 0, 0600);
    const mode_t before = umask(0); /* and not everybody's to write, whatever it says */
    assert_int_equal(run(kp_cmd_recover, folder, NULL, NULL), KP_EXIT_DONE);
    umask(before);
    assert_int_equal(made(".gz").st_mode & 07777, 0664);
    assert_int_equal(made(".gz").st_uid, geteuid());
}

enum { THEM = 4242, OTHERS = 4243 };

static void of_another_users_spool_all_is_his_and_as_secret(void **state)
{
    (void)state;
    KP_NEEDS_OTHER_USERS();
    spool_of_put("a.kprof", THEM, 0600);
    assert_int_equal(chown(folder, THEM, THEM), 0);
    assert_int_equal(run(kp_cmd_recover, folder, NULL, NULL), KP_EXIT_DONE);
    assert_int_equal(count_files(".kprof"), 0);
    const struct stat trace = made(".gz");
    assert_int_equal(trace.st_uid, THEM);
    assert_int_equal(trace.st_gid, THEM);
    assert_int_equal(trace.st_mode & 07777, 0600);
}

static void a_mode_that_was_given_to_a_spool_is_that_of_its_trace(void **state)
{
    (void)state;
    KP_NEEDS_OTHER_USERS();
    spool_of_put("a.kprof", THEM, 0646);
    assert_int_equal(run(kp_cmd_recover, in_folder("a.kprof"), NULL, NULL), KP_EXIT_DONE);
    assert_int_equal(made(".gz").st_mode & 07777, 0644);
    assert_int_equal(made(".gz").st_uid, THEM);
}

static void a_spool_of_neither_the_folders_owner_nor_the_caller_is_left_alone_unless_named(void **state)
{
    (void)state;
    KP_NEEDS_OTHER_USERS();
    spool_of_put("a.kprof", OTHERS, 0600);
    assert_int_equal(chown(folder, THEM, THEM), 0);
    assert_int_equal(run(kp_cmd_recover, folder, NULL, NULL), KP_EXIT_DONE);
    assert_int_equal(count_files(".gz"), 0);
    assert_int_equal(count_files(".kprof"), 1);
    assert_int_equal(run(kp_cmd_recover, in_folder("a.kprof"), NULL, NULL), KP_EXIT_DONE);
    assert_int_equal(made(".gz").st_uid, OTHERS);
    assert_int_equal(made(".gz").st_mode & 07777, 0600);
}

/* It may have been moved there by who wants to read it. */
static void the_callers_own_spool_in_a_folder_of_somebody_elses_stays_secret(void **state)
{
    (void)state;
    KP_NEEDS_OTHER_USERS();
    spool_of_put("a.kprof", 0, 0600);
    assert_int_equal(chown(folder, THEM, THEM), 0);
    assert_int_equal(run(kp_cmd_recover, folder, NULL, NULL), KP_EXIT_DONE);
    assert_int_equal(made(".gz").st_uid, 0);
    assert_int_equal(made(".gz").st_mode & 07777, 0600);
}

static void a_user_leaves_the_spools_of_others_alone(void **state)
{
    (void)state;
    KP_NEEDS_OTHER_USERS();
    spool_of_put("a.kprof", OTHERS, 0600);
    spool_of_put("b.kprof", THEM, 0600);
    assert_int_equal(chmod(folder, 01777), 0);
    assert_int_equal(chmod(kp_test_tmpdir(), 0711), 0);
    assert_int_equal(seteuid(THEM), 0);
    const int rc = run(kp_cmd_recover, folder, NULL, NULL);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(rc, KP_EXIT_DONE);
    assert_int_equal(count_files(".gz"), 1);
    assert_int_equal(made(".gz").st_uid, THEM);
    assert_int_equal(access(in_folder("a.kprof"), F_OK), 0);
}

static void of_another_users_spool_export_is_as_careful(void **state)
{
    (void)state;
    KP_NEEDS_OTHER_USERS();
    spool_of_put("a.kprof", THEM, 0600);
    assert_int_equal(run(kp_cmd_export, in_folder("a.kprof"), NULL, NULL), KP_EXIT_DONE);
    assert_int_equal(made(".gz").st_uid, THEM);
    assert_int_equal(made(".gz").st_mode & 07777, 0600);
}

/* ---- two at once, and what was done before ---- */

static void who_recovers_a_spool_has_it_alone(void **state)
{
    (void)state;
    spool_put("a.kprof", gone_pid(), NULL, 0);
    const int fd = open(in_folder("a.kprof"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(run(kp_cmd_recover, folder, NULL, NULL), KP_EXIT_DONE);
    assert_int_equal(count_files(".gz"), 0);
    assert_int_equal(count_files(".kprof"), 1);
    close(fd);
    assert_int_equal(run(kp_cmd_recover, folder, NULL, NULL), KP_EXIT_DONE);
    assert_int_equal(count_files(".gz"), 1);
}

static void of_many_at_once_each_spool_gets_one_trace(void **state)
{
    enum { SPOOLS = 20, AT_ONCE = 4 };
    pid_t child[AT_ONCE];
    char name[32];
    (void)state;
    for (int i = 0; i < SPOOLS; i++) {
        snprintf(name, sizeof name, "s%d.kprof", i);
        spool_put(name, gone_pid(), NULL, 0);
    }
    for (int i = 0; i < AT_ONCE; i++)
        if ((child[i] = fork()) == 0) _exit(run(kp_cmd_recover, folder, NULL, NULL));
    for (int i = 0; i < AT_ONCE; i++) {
        int status = -1;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    assert_int_equal(count_files(".gz"), SPOOLS);
    assert_int_equal(count_files(".kprof"), 0);
}

static void a_window_of_which_there_is_a_trace_gets_no_second_one(void **state)
{
    struct test_spool s;
    struct kp_rec_cycle again = {
        .head = {.kind = KP_KIND_CYCLE, .flags = KP_CYCLE_SAVED | KP_CYCLE_EXPORTED, .size = sizeof again}};
    (void)state;
    test_spool_training(&s);
    test_spool_head(&s)->pid = gone_pid();
    test_spool_head(&s)->closed = 0;
    gethostname(test_spool_head(&s)->host, sizeof test_spool_head(&s)->host - 1);
    again.cycle = 1, again.begin = 1, again.end = 2;
    const uint32_t chunk = test_spool_chunk(&s, KP_CHUNK_META, 0, 0, 0, "");
    assert_true(test_spool_put(&s, chunk, &again, sizeof again));
    test_spool_save(&s, in_folder("a.kprof"), 0);
    test_spool_free(&s);
    assert_int_equal(run(kp_cmd_recover, folder, NULL, NULL), KP_EXIT_DONE);
    assert_int_equal(count_files(".gz"), 0);
    assert_int_equal(count_files(".kprof"), 0);
}

/* ---- one that ends its reader ---- */

static pid_t child_of(pid_t parent)
{
    char path[64];
    int child = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    FILE *const f = fopen(path, "r");
    if (!f) return -1;
    if (fscanf(f, "%d", &child) != 1) child = 0;
    fclose(f);
    return child;
}

static void big_spool_put(const char *name)
{
    struct test_spool s;
    test_spool_init(&s);
    test_spool_head(&s)->pid = gone_pid();
    gethostname(test_spool_head(&s)->host, sizeof test_spool_head(&s)->host - 1);
    const uint32_t meta = test_spool_chunk(&s, KP_CHUNK_META, 0, 0, 0, "");
    test_spool_clock(&s, meta, 1000, 1000, 1000);
    test_spool_cycle(&s, meta, 1, 1000, UINT64_C(1) << 40, 0);
    const uint32_t op = test_spool_name(&s, "aten::mul", 9);
    uint64_t at = 2000;
    for (int i = 0; i < 500; i++) {
        const uint32_t chunk = test_spool_chunk(&s, KP_CHUNK_DATA, 1, 7, 1, "main");
        while (test_spool_op(&s, chunk, &(struct test_op){.name = op, .start = at, .ticks = 5, .seq = -1})) at += 10;
    }
    test_spool_save(&s, in_folder(name), 0);
    test_spool_free(&s);
}

static void a_spool_that_ends_its_reader_does_not_end_it_for_the_others(void **state)
{
    int status = -1;
    (void)state;
    if (child_of(getpid()) < 0) KP_SKIP("this kernel does not list the children of a process");
    big_spool_put("a.kprof");
    spool_put("b.kprof", gone_pid(), NULL, 0);
    const pid_t command = fork();
    if (command == 0) _exit(run(kp_cmd_recover, folder, NULL, NULL));
    for (int i = 0; i < 10000 && count_files(".part") == 0; i++) usleep(1000); /* it is at it */
    const pid_t reader = child_of(command);
    assert_true(reader > 0);
    assert_int_equal(kill(reader, SIGKILL), 0);
    assert_int_equal(waitpid(command, &status, 0), command);
    assert_int_equal(status, KP_EXIT_BAD_INPUT << 8);
    assert_int_equal(access(in_folder("a.kprof"), F_OK), 0);
    assert_int_equal(access(in_folder("b.kprof"), F_OK), -1);
    assert_int_equal(count_files(".gz"), 1);
    assert_int_equal(count_files(".part"), 0);
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
        cmocka_unit_test_setup(what_a_listing_gave_as_a_link_is_left_alone, folder_make),
        cmocka_unit_test_setup(a_link_that_somebody_named_is_followed, folder_make),
        cmocka_unit_test_setup(a_spool_with_another_name_is_left_alone_unless_named, folder_make),
        cmocka_unit_test_setup(of_the_callers_own_spool_traces_are_as_his_umask_says, folder_make),
        cmocka_unit_test_setup(of_another_users_spool_all_is_his_and_as_secret, folder_make),
        cmocka_unit_test_setup(a_mode_that_was_given_to_a_spool_is_that_of_its_trace, folder_make),
        cmocka_unit_test_setup(a_spool_of_neither_the_folders_owner_nor_the_caller_is_left_alone_unless_named,
                               folder_make),
        cmocka_unit_test_setup(the_callers_own_spool_in_a_folder_of_somebody_elses_stays_secret, folder_make),
        cmocka_unit_test_setup(a_user_leaves_the_spools_of_others_alone, folder_make),
        cmocka_unit_test_setup(of_another_users_spool_export_is_as_careful, folder_make),
        cmocka_unit_test_setup(who_recovers_a_spool_has_it_alone, folder_make),
        cmocka_unit_test_setup(of_many_at_once_each_spool_gets_one_trace, folder_make),
        cmocka_unit_test_setup(a_window_of_which_there_is_a_trace_gets_no_second_one, folder_make),
        cmocka_unit_test_setup(a_spool_that_ends_its_reader_does_not_end_it_for_the_others, folder_make),
        cmocka_unit_test_setup(bad_words_are_usage_and_bad_files_are_bad_input, folder_make),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
