// SPDX-License-Identifier: Apache-2.0
/* test_log.c - one line a call, with our name in front, and an end to all lines */
#include "collector/base/kp_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

static const char *path_of(const char *name)
{
    static char path[4][600];
    static int turn;
    snprintf(path[++turn % 4], sizeof path[0], "%s/%s", kp_test_tmpdir(), name);
    return path[turn % 4];
}

static const char *content_of(const char *path)
{
    static char content[1 << 20];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(content, 1, sizeof content - 1, f) : 0;
    if (f) fclose(f);
    content[n] = '\0';
    return content;
}

/* One line, sent there; gives what came out on stderr. */
static const char *sent_to(const char *target, const char *line)
{
    capture_begin();
    kp_log_set_target(target);
    kp_log_keep();
    kp_log(0, "%s", line);
    kp_log_release();
    kp_log_set_target("stderr");
    return capture_end();
}

static void nothing_is_said_when_none_is_asked_for(void **state)
{
    (void)state;
    assert_string_equal(sent_to("none", "quiet"), "");
    assert_string_equal(sent_to("stderr", "heard"), "kprof: heard\n");
}

static void a_file_gets_the_lines_with_their_process(void **state)
{
    struct stat s;
    char expected[100];
    (void)state;
    const char *path = path_of("new/folder/of.log");
    assert_string_equal(sent_to(path, "one"), "");
    assert_string_equal(sent_to(path, "two"), "");
    snprintf(expected, sizeof expected, "kprof[%d]: one\nkprof[%d]: two\n", (int)getpid(), (int)getpid());
    assert_string_equal(content_of(path), expected);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0600);
}

static void what_is_no_file_of_ours_is_refused_and_stays_as_it_is(void **state)
{
    (void)state;
    const char *own = path_of("own");
    close(open(own, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(symlink(own, path_of("link")), 0);
    assert_int_equal(link(own, path_of("second")), 0);
    assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
    const struct {
        const char *path, *why;
    } cases[] = {
        {path_of("link"), "is no regular file, using stderr\nkprof: a line\n"},
        {path_of("second"), "also has other names (links), using stderr\nkprof: a line\n"},
        {path_of("fifo"), "is no regular file, using stderr\nkprof: a line\n"},
        {"/dev/null", "is no regular file, using stderr\nkprof: a line\n"},
        {"/", "is no regular file, using stderr\nkprof: a line\n"},
        {"/proc/none/x", "cannot be opened (No such file or directory), using stderr\nkprof: a line\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char begin[700];
        snprintf(begin, sizeof begin, "kprof: KPROF_LOG=%s %s", cases[i].path, cases[i].why);
        assert_string_equal(sent_to(cases[i].path, "a line"), begin);
    }
    assert_string_equal(content_of(own), "");
}

static void another_users_file_is_refused(void **state)
{
    (void)state;
    KP_NEEDS_OTHER_USERS();
    const char *path = path_of("theirs");
    close(open(path, O_CREAT | O_WRONLY, 0666));
    assert_int_equal(chown(path, 65534, 65534), 0);
    assert_non_null(strstr(sent_to(path, "a line"), "is another user's file, using stderr\n"));
    assert_string_equal(content_of(path), "");
}

/* As a host that closes what it does not know, and opens files of its own in these places. */
static void a_number_the_host_took_is_not_written_to(void **state)
{
    struct stat ours, s;
    (void)state;
    const char *log = path_of("kept.log"), *theirs = path_of("theirs.txt");
    capture_begin();
    kp_log_set_target(log);
    kp_log_keep();
    assert_int_equal(stat(log, &ours), 0);
    int taken = -1, file = open(theirs, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    for (int fd = 100; fd < 140; fd++)
        if (fstat(fd, &s) == 0 && s.st_ino == ours.st_ino && s.st_dev == ours.st_dev) dup2(file, taken = fd);
    kp_log(0, "after that");
    kp_log_release();
    kp_log_set_target("stderr");
    assert_string_equal(capture_end(), "");
    assert_true(taken >= 100);
    assert_string_equal(content_of(theirs), "");
    assert_non_null(strstr(content_of(log), "after that\n"));
    assert_int_equal(fcntl(taken, F_GETFD), 0); /* the host's: not closed */
    close(taken);
    close(file);
}

static void no_low_number_is_kept(void **state)
{
    struct rlimit old, low;
    (void)state;
    getrlimit(RLIMIT_NOFILE, &old);
    low = old;
    low.rlim_cur = 50;
    const char *path = path_of("low.log");
    capture_begin();
    kp_log_set_target(path);
    setrlimit(RLIMIT_NOFILE, &low);
    int in_use = dup(0), after;
    close(in_use);
    kp_log_keep();
    kp_log(0, "all the same");
    after = dup(0);
    close(after);
    setrlimit(RLIMIT_NOFILE, &old);
    kp_log_set_target("stderr");
    assert_string_equal(capture_end(), "");
    assert_int_equal(after, in_use);
    assert_non_null(strstr(content_of(path), "all the same\n"));
}

static void lines_of_many_processes_stay_whole(void **state)
{
    enum { PROCESSES = 8, LINES = 400 };
    char big[300];
    unsigned lines = 0;
    (void)state;
    const char *path = path_of("many.log");
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    kp_log_set_target(path);
    kp_log_set_level(2);
    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0) {
            for (int k = 0; k < LINES; k++) kp_log(2, "%d %s end", k, k % 2 ? big : "");
            _exit(0);
        }
    for (int i = 0; i < PROCESSES; i++) wait(NULL);
    kp_log_set_level(0);
    kp_log_set_target("stderr");
    for (const char *p = content_of(path), *end; (end = strchr(p, '\n')); p = end + 1, lines++) {
        assert_memory_equal(p, "kprof[", 6);
        assert_memory_equal(end - 4, " end", 4);
        assert_true(end - p < 340);
    }
    assert_int_equal(lines, PROCESSES * LINES);
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
    kp_log_keep();
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

/* Every text is libc's own. */
static void errors_have_libcs_words(void **state)
{
    int known = 0;
    (void)state;
    for (int err = 1; err < 134; err++) {
        const char *said = kp_log_error_text(-err);
        if (strcmp(said, "unknown error") == 0) continue;
        known++;
        assert_string_equal(said, strerror(err));
        assert_string_equal(said, kp_log_error_text(err));
    }
    assert_true(known >= 30);
    assert_string_equal(kp_log_error_text(ENOTDIR), "Not a directory");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_have_libcs_words),
        cmocka_unit_test(a_line_has_our_name_and_errno_is_kept),
        cmocka_unit_test(it_stays_one_line_whatever_is_in_it),
        cmocka_unit_test(a_level_above_the_asked_one_is_silent),
        cmocka_unit_test(once_is_once),
        cmocka_unit_test(nothing_is_said_when_none_is_asked_for),
        cmocka_unit_test(a_file_gets_the_lines_with_their_process),
        cmocka_unit_test(what_is_no_file_of_ours_is_refused_and_stays_as_it_is),
        cmocka_unit_test(another_users_file_is_refused),
        cmocka_unit_test(a_number_the_host_took_is_not_written_to),
        cmocka_unit_test(no_low_number_is_kept),
        cmocka_unit_test(lines_of_many_processes_stay_whole),
        cmocka_unit_test(a_fault_that_repeats_does_not_fill_stderr),
        cmocka_unit_test(a_closed_stderr_does_no_harm),
        cmocka_unit_test(a_stderr_that_was_kept_still_gets_the_lines),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
