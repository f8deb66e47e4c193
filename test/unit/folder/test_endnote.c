// SPDX-License-Identifier: Apache-2.0
/* test_endnote.c - which signal ended a program, noted in the spool that it left */
#include "test/support/support.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/format/kp_format.h"
#include "export/read/folder/endnote.h"

enum { PID = 4242, TEXT_BYTES = 200 };
#define SPOOL "host_4242.1.kprof"

/* A head alone, with a line of text, as the program left it a second after the epoch. */
static void spool_make(uint32_t pid, uint32_t closed, const char *text)
{
    struct kp_file_head head = {.chunk_bytes = KP_CHUNK_BYTES, .head_bytes = sizeof head, .pid = pid, .closed = closed};
    const int fd = open(SPOOL, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    memcpy(head.magic, KP_FORMAT_MAGIC, sizeof head.magic);
    head.text_bytes = (uint32_t)strlen(text);
    assert_true(fd >= 0 && ftruncate(fd, KP_CHUNK_BYTES) == 0);
    assert_int_equal(pwrite(fd, &head, sizeof head, 0), sizeof head);
    assert_int_equal(pwrite(fd, text, strlen(text), sizeof head), strlen(text));
    assert_int_equal(futimens(fd, (const struct timespec[]){{.tv_sec = 1}, {.tv_sec = 1}}), 0);
    close(fd);
}

static const char *text_of(void)
{
    static char text[TEXT_BYTES];
    struct kp_file_head head;
    const int fd = open(SPOOL, O_RDONLY | O_CLOEXEC);
    assert_int_equal(pread(fd, &head, sizeof head, 0), sizeof head);
    assert_true(head.text_bytes < sizeof text);
    assert_int_equal(pread(fd, text, head.text_bytes, sizeof head), head.text_bytes);
    text[head.text_bytes] = 0;
    close(fd);
    return text;
}

static int in_folder(void **state)
{
    static char folder[] = "/tmp/kprof-endnote-XXXXXX";
    *state = folder;
    strcpy(strrchr(folder, '-') + 1, "XXXXXX");
    return !mkdtemp(folder) || chdir(folder);
}

static int folder_remove(void **state)
{
    unlink(SPOOL);
    return chdir("/") || rmdir(*state);
}

static void the_signal_is_a_line_more_and_the_files_time_stays(void **state)
{
    struct stat st;
    (void)state;
    spool_make(PID, 0, "a=b\n");
    assert_true(kp_endnote_leave(".", PID, &(struct kp_endnote){.signal = SIGTERM}));
    assert_string_equal(text_of(), "a=b\nended_by=SIGTERM\n");
    assert_int_equal(stat(SPOOL, &st), 0);
    assert_int_equal(st.st_mtim.tv_sec, 1);
    kp_endnote_leave(".", PID, &(struct kp_endnote){SIGKILL, true, 123, 456, 789});
    assert_string_equal(text_of(), "a=b\nended_by=SIGTERM\nended_by=SIGKILL\nended_without_memory=1\n"
                                   "ended_may_have=789\n"
                                   "ended_real_ns=123\nended_peak_kb=456\n");
    kp_endnote_leave(".", PID, &(struct kp_endnote){.signal = SIGRTMIN + 3});
    assert_non_null(strstr(text_of(), "ended_by=signal "));
}

static void spools_of_others_and_closed_ones_stay_as_they_are(void **state)
{
    (void)state;
    spool_make(PID + 1, 0, "a=b\n");
    kp_endnote_leave(".", PID, &(struct kp_endnote){.signal = SIGTERM});
    assert_string_equal(text_of(), "a=b\n");
    spool_make(PID, 1, "a=b\n");
    kp_endnote_leave(".", PID, &(struct kp_endnote){.signal = SIGTERM});
    assert_string_equal(text_of(), "a=b\n");
    kp_endnote_leave("none", PID, &(struct kp_endnote){.signal = SIGTERM});
}

static void a_head_that_is_full_or_lies_stays_as_it_is(void **state)
{
    static const uint32_t sizes[] = {KP_FILE_TEXT_MAX - 4, UINT32_MAX, UINT32_MAX - 8};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint32_t has;
        spool_make(PID, 0, "a=b\n");
        const int fd = open(SPOOL, O_RDWR | O_CLOEXEC);
        pwrite(fd, &sizes[i], sizeof has, offsetof(struct kp_file_head, text_bytes));
        kp_endnote_leave(".", PID, &(struct kp_endnote){.signal = SIGTERM});
        assert_int_equal(pread(fd, &has, sizeof has, offsetof(struct kp_file_head, text_bytes)), sizeof has);
        assert_int_equal(has, sizes[i]);
        close(fd);
    }
}

static void what_the_kernel_killed_is_counted(void **state)
{
    (void)state;
    FILE *const file = fopen(SPOOL, "we");
    assert_non_null(file);
    fputs("pgfault 12\noom_kill 7\nnuma_hit 3\n", file);
    fclose(file);
    assert_int_equal(kp_endnote_oom_kills(SPOOL), 7);
    assert_int_equal(kp_endnote_oom_kills("none"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_signal_is_a_line_more_and_the_files_time_stays, in_folder, folder_remove),
        cmocka_unit_test_setup_teardown(spools_of_others_and_closed_ones_stay_as_they_are, in_folder, folder_remove),
        cmocka_unit_test_setup_teardown(a_head_that_is_full_or_lies_stays_as_it_is, in_folder, folder_remove),
        cmocka_unit_test_setup_teardown(what_the_kernel_killed_is_counted, in_folder, folder_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
