// SPDX-License-Identifier: Apache-2.0
/* test_progress.c - unit tests of export/read/files/progress.c: its line on a terminal of 60 columns */
#include "test/support/support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "export/read/files/progress.h"
#include "export/show/terminal.h"

#define DONE ": 12 MB of text read"

/* Writes one line of progress, then another line, to a terminal, and keeps all that it got. */
static void shown(const char *what, char *text, size_t bytes)
{
    const struct winsize size = {.ws_row = 24, .ws_col = 60};
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    ssize_t more;
    size_t used = 0;
    assert_true(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    const int written = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_true(written >= 0 && ioctl(written, TIOCSWINSZ, &size) == 0);
    const pid_t child = fork();
    if (child == 0) {
        struct kp_progress progress;
        dup2(written, STDERR_FILENO);
        kp_terminal_begin();
        kp_progress_begin(&progress, what);
        progress.shown_ns = 0; /* a second went by */
        kp_progress_bytes(&progress, 12000000);
        kp_progress_end(&progress);
        fputs("done\n", stderr);
        kp_terminal_end();
        _exit(0);
    }
    close(written);
    while (used + 1 < bytes && (more = read(terminal, text + used, bytes - used - 1)) > 0) used += (size_t)more;
    text[used] = 0;
    close(terminal);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void a_short_name_is_shown_whole_and_written_over(void **state)
{
    (void)state;
    char text[1024];
    shown("KPROF/a[K.json", text, sizeof text);
    assert_string_equal(text, "\rkprof: KPROF/a[K.json" DONE "\033[K\r\033[Kdone\r\n");
}

static void of_a_long_name_its_end_stays_on_the_row(void **state)
{
    (void)state;
    char text[1024];
    shown("/a/long/path/of/a/folder/vm_18347.1796003372642651330.pt.trace.json.gz", text, sizeof text);
    assert_string_equal(text, "\rkprof: ..3372642651330.pt.trace.json.gz" DONE "\033[K\r\033[Kdone\r\n");
    assert_int_equal(strchr(text, '\033') - text, 60); /* the return, and a column less than the terminal has */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_name_is_shown_whole_and_written_over),
        cmocka_unit_test(of_a_long_name_its_end_stays_on_the_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
