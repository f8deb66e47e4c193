// SPDX-License-Identifier: Apache-2.0
/* test_jobends.c - how processes ended, as their launcher and they themselves wrote it */
#include "export/read/folder/jobends.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/format/kp_ends.h"
#include "test/support/support.h"

static char folder[] = "/tmp/test_jobends.XXXXXX", path[128];
static struct kp_jobends ends;
static struct kp_jobend end;

static int setup(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return rmdir(folder);
}

static void write_ends(const char *name, const char *text)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *const file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void read_and_remove(void)
{
    kp_jobends_fini(&ends);
    kp_jobends_read(&ends, folder);
    assert_int_equal(unlink(path), 0);
}

static void what_a_process_says_of_itself_is_joined_with_its_signal(void **state)
{
    (void)state;
    write_ends("node_a_42.ends",
               "43 9 2000\n42 256 1000 3 39\tValueError: bad: 7\ttrain.py:4 fails\tlost_peer\n42 256 1100\n");
    read_and_remove();
    assert_true(kp_jobends_find(&ends, "node_a", 42, 0, &end));
    assert_int_equal(end.rank, 3);
    assert_int_equal(end.step, 39);
    assert_int_equal(end.at_ns, 1100);
    assert_string_equal(end.by, "exit status 1");
    assert_string_equal(end.exception, "ValueError");
    assert_string_equal(end.text, "bad: 7");
    assert_string_equal(end.place, "train.py:4 fails");
    assert_true(end.is_own && end.has_lost_peer && !end.is_pending);
    assert_true(kp_jobends_find(&ends, "node_a", 43, 0, &end));
    assert_string_equal(end.by, "SIGKILL");
    assert_true(!end.is_own && end.rank == -1 && end.step == -1);
}

static void a_process_that_became_another_program_says_which(void **state)
{
    (void)state;
    write_ends("node_a_42.ends", "42 0 1000 -1 4\t\t\t\texec of sh\n");
    read_and_remove();
    assert_true(kp_jobends_find(&ends, "node_a", 42, 0, &end));
    assert_string_equal(end.by, "exec of sh");
    assert_true(end.is_own && !end.is_pending && !end.has_lost_peer && end.step == 4);
}

static void a_word_of_its_own_that_says_more_than_the_signal_stays(void **state)
{
    (void)state;
    static const char own[] = "42 6 1000 0 4\t\t\t\tSIGABRT of NCCL's watchdog\n", told[] = "42 6 2000\n";
    for (int is_first = 0; is_first < 2; is_first++) {
        char text[128];
        snprintf(text, sizeof text, "%s%s", is_first ? own : told, is_first ? told : own);
        write_ends("h_42.ends", text);
        read_and_remove();
        assert_true(kp_jobends_find(&ends, "h", 42, 0, &end));
        assert_string_equal(end.by, "SIGABRT of NCCL's watchdog");
        assert_int_equal(end.at_ns, 2000);
    }
    write_ends("h_42.ends", "42 6 1000 0 4\t\t\t\tSIGABRT of NCCL's watchdog\n42 9 2000\n");
    read_and_remove();
    assert_true(kp_jobends_find(&ends, "h", 42, 0, &end));
    assert_string_equal(end.by, "SIGKILL");
}

static void behind_exec_it_is_another_program_with_lines_of_its_own(void **state)
{
    (void)state;
    write_ends("node_a_42.ends",
               "42 0 5000000000 -1 4\t\t\t\texec of sh\n42 768 9000000000 -1 7\t\t\t\t\n42 9 9000000001\n");
    read_and_remove();
    assert_true(kp_jobends_find(&ends, "node_a", 42, 1000000000, &end));
    assert_string_equal(end.by, "exec of sh");
    assert_int_equal(end.step, 4);
    assert_true(kp_jobends_find(&ends, "node_a", 42, 5000000001, &end)); /* it began within a second of exec */
    assert_string_equal(end.by, "SIGKILL");
    assert_int_equal(end.step, 7);
}

static void a_number_of_another_machine_or_of_before_is_another_process(void **state)
{
    (void)state;
    write_ends("node_a_42.ends", "42 9 1000\n");
    read_and_remove();
    assert_false(kp_jobends_find(&ends, "node_b", 42, 0, &end));
    assert_false(kp_jobends_find(&ends, "node_a", 42, 1000001001, &end));
    assert_true(kp_jobends_find(&ends, NULL, 42, 1000, &end));
    assert_true(kp_jobends_find(&ends, "", 42, 0, &end));
}

static void what_goes_on_is_pending_until_another_line_comes(void **state)
{
    char host[65] = "";
    (void)state;
    gethostname(host, sizeof host - 1);
    kp_jobends_add(folder, 42, KP_ENDS_PENDING, 1000);
    snprintf(path, sizeof path, "%s/%s_42.ends", folder, host);
    kp_jobends_fini(&ends);
    kp_jobends_read(&ends, folder);
    assert_true(kp_jobends_find(&ends, host, 42, 0, &end) && end.is_pending);
    assert_string_equal(end.by, "");
    kp_jobends_add(folder, 42, SIGTERM, 2000);
    read_and_remove();
    assert_true(kp_jobends_find(&ends, host, 42, 0, &end) && !end.is_pending);
    assert_string_equal(end.by, "SIGTERM");
    write_ends("h_42.ends", "42 -1 9000\n42 15 2000\n42 -1 9500\n"); /* what was recovered later is pending, too */
    read_and_remove();
    assert_true(kp_jobends_find(&ends, "h", 42, 0, &end) && !end.is_pending);
    assert_string_equal(end.by, "SIGTERM");
    assert_int_equal(end.at_ns, 2000);
}

static void a_file_with_a_second_name_gets_no_line(void **state)
{
    char host[65] = "", other[200];
    struct stat st;
    (void)state;
    write_ends("victim", "text\n");
    gethostname(host, sizeof host - 1);
    snprintf(other, sizeof other, "%s/%s_42.ends", folder, host);
    assert_int_equal(link(path, other), 0);
    kp_jobends_add(folder, 42, SIGTERM, 2000);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 5);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(unlink(path), 0);
}

static void lines_that_are_torn_are_left_out(void **state)
{
    (void)state;
    write_ends("h_1.ends", "\n42\n-1 9 10\n42 9 \nx y z\n44 0 5 -1 7\tOnly\n");
    read_and_remove();
    assert_int_equal(ends.count, 1);
    assert_true(kp_jobends_find(&ends, "h", 44, 0, &end));
    assert_string_equal(end.exception, "Only");
    assert_string_equal(end.place, "");
    assert_string_equal(end.by, "");
    kp_jobends_fini(&ends);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_process_says_of_itself_is_joined_with_its_signal),
        cmocka_unit_test(a_process_that_became_another_program_says_which),
        cmocka_unit_test(a_word_of_its_own_that_says_more_than_the_signal_stays),
        cmocka_unit_test(behind_exec_it_is_another_program_with_lines_of_its_own),
        cmocka_unit_test(a_number_of_another_machine_or_of_before_is_another_process),
        cmocka_unit_test(what_goes_on_is_pending_until_another_line_comes),
        cmocka_unit_test(a_file_with_a_second_name_gets_no_line),
        cmocka_unit_test(lines_that_are_torn_are_left_out),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
