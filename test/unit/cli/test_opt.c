// SPDX-License-Identifier: Apache-2.0
/* test_opt.c - command line words to options */
#include "export/cli/cli.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "export/cli/options/setting_flags.h"
#include "test/support/support.h"

static const struct kp_opt table[] = {{"dir", 'o', KP_OPT_VALUE, "DIR", "folder", 0},
                                      {"keep", 'k', KP_OPT_FLAG, NULL, "keep", 0},
                                      {"gzip", 0, KP_OPT_SWITCH, NULL, "gzip", 0},
                                      {"profile-memory", 0, KP_OPT_SWITCH, NULL, "memory", 0},
                                      {0}};

static struct kp_opt_scan scan_of(int argc, char **argv)
{
    const struct kp_opt_scan scan = {.command = "test", .table = table, .argc = argc, .argv = argv, .at = 0};
    return scan;
}
#define SCAN(...)                                                                      \
    const char *words[] = {__VA_ARGS__};                                               \
    struct kp_opt_scan scan = scan_of(sizeof words / sizeof words[0], (char **)words); \
    const char *value = NULL

static void a_value_comes_by_equals_by_the_next_word_or_glued_to_its_letter(void **state)
{
    SCAN("--dir=a", "--dir", "b", "-o", "c", "-od", "--dir=");
    const char *const want[] = {"a", "b", "c", "d", ""};
    (void)state;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(kp_opt_next(&scan, &value), 0);
        assert_string_equal(value, want[i]);
    }
    assert_int_equal(kp_opt_next(&scan, &value), KP_OPT_END);
}

static void a_flag_may_stand_without_its_value(void **state)
{
    static const struct kp_opt maybe[] = {{"with", 0, KP_OPT_MAYBE, "ops,1", "what", 0}, {0}};
    SCAN("--with", "1", "--with=0", "--with", "--with", "1,ops", "--with", "python", "--with");
    const char *const want[] = {"1", "0", "ops", "1,ops", "ops"};
    (void)state;
    scan.table = maybe;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(kp_opt_next(&scan, &value), 0);
        assert_string_equal(value, want[i]);
    }
    assert_int_equal(kp_opt_next(&scan, &value), KP_OPT_ARGUMENT);
    assert_string_equal(value, "python");
    assert_int_equal(kp_opt_next(&scan, &value), 0);
    assert_string_equal(value, "ops");
}

static void a_word_that_is_no_program_was_meant_as_a_value(void **state)
{
    static const struct kp_opt maybe[] = {{"with", 0, KP_OPT_MAYBE, "ops,1", "what", 0}, {0}};
    static const struct {
        const char *word, *next;
        int answer;
    } rows[] = {{"op", "--", KP_OPT_BAD},   {"op", "x.py", KP_OPT_BAD}, {"opss", "x.py", KP_OPT_BAD},
                {"x.py", "--", KP_OPT_BAD}, {"x.py", "y.py", 0},        {"sh", "--", KP_OPT_BAD}, /* yes, true */
                {"sh", "x.py", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        SCAN("--with", rows[i].word, rows[i].next);
        scan.table = maybe;
        assert_int_equal(kp_opt_next(&scan, &value), rows[i].answer);
    }
}

static void a_word_between_a_flag_and_two_dashes_is_no_program(void **state)
{
    static const struct kp_opt two[] = {
        {"shapes", 0, KP_OPT_SWITCH, NULL, "what", 0}, {"dir", 0, KP_OPT_VALUE, "DIR", "where", 0}, {0}};
    static const struct {
        const char *words[5];
        int answer; /* after the first flag */
    } rows[] = {{{"--shapes", "yes", "--", "x"}, KP_OPT_BAD},
                {{"--shapes", "yes", "--dir", "d", "--"}, KP_OPT_BAD},
                {{"--shapes", "python", "--dir", "d", "x"}, KP_OPT_END}, /* flags of the program's own */
                {{"--shapes", "git", "log", "--", "x"}, KP_OPT_END},
                {{"--shapes=0", "env", "--", "x"}, KP_OPT_END},
                {{"--shapes", "--", "yes", "--"}, KP_OPT_END}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const *w = rows[i].words;
        SCAN(w[0], w[1], w[2], w[3], w[4] ? w[4] : "");
        scan.table = two;
        scan.stop_at_argument = true;
        assert_int_equal(kp_opt_next(&scan, &value), 0);
        assert_int_equal(kp_opt_next(&scan, &value), rows[i].answer);
    }
}

static void where_o_is_taken_both_long_names_are(void **state)
{
    static const struct kp_opt one[] = {{"dir", 'o', KP_OPT_VALUE, "DIR", "where", 0}, {0}};
    static const struct kp_opt none[] = {{"dir", 0, KP_OPT_VALUE, "DIR", "where", 0}, {0}};
    SCAN("--out", "a", "--output=b", "--dir", "c", "--out");
    const char *const want[] = {"a", "b", "c"};
    (void)state;
    scan.table = one;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(kp_opt_next(&scan, &value), 0);
        assert_string_equal(value, want[i]);
    }
    scan.table = none;
    assert_int_equal(kp_opt_next(&scan, &value), KP_OPT_BAD);
}

static void a_switch_is_one_or_zero(void **state)
{
    SCAN("--gzip", "--no-gzip", "--gzip=0");
    const char *const want[] = {"1", "0", "0"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(kp_opt_next(&scan, &value), 2);
        assert_string_equal(value, want[i]);
    }
}

static void arguments_may_stand_anywhere_and_all_follow_two_dashes(void **state)
{
    SCAN("a", "-k", "-", "--", "--dir", "-x");
    const char *const want[] = {"-", "--dir", "-x"};
    (void)state;
    assert_int_equal(kp_opt_next(&scan, &value), KP_OPT_ARGUMENT);
    assert_string_equal(value, "a");
    assert_int_equal(kp_opt_next(&scan, &value), 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(kp_opt_next(&scan, &value), KP_OPT_ARGUMENT);
        assert_string_equal(value, want[i]);
    }
    assert_int_equal(kp_opt_next(&scan, &value), KP_OPT_END);
}

static void a_command_to_run_ends_the_options(void **state)
{
    SCAN("-k", "python", "-o", "x");
    (void)state;
    scan.stop_at_argument = true;
    assert_int_equal(kp_opt_next(&scan, &value), 1);
    assert_int_equal(kp_opt_next(&scan, &value), KP_OPT_END);
    assert_int_equal(scan.at, 1);
}

static void what_is_wrong_is_told(void **state)
{
    const char *const wrong[] = {"--di", "--keep=1", "-x", "--no-dir", "--dir", "-o", "-kx", "--"};
    (void)state;
    for (size_t i = 0; i < 7; i++) {
        SCAN(wrong[i]);
        assert_int_equal(kp_opt_next(&scan, &value), KP_OPT_BAD);
    }
    SCAN("-h");
    assert_int_equal(kp_opt_next(&scan, &value), KP_OPT_HELP);
}

/* What a wrong word says on stderr. */
static const char *told(const char *word)
{
    static char text[400];
    char path[300];
    SCAN(word);
    snprintf(path, sizeof path, "%s/told", kp_test_tmpdir());
    const int kept = dup(2), fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
    assert_true(kept >= 0 && fd >= 0 && dup2(fd, 2) == 2);
    const int rc = kp_opt_next(&scan, &value);
    assert_int_equal(dup2(kept, 2), 2);
    const ssize_t bytes = pread(fd, text, sizeof text - 1, 0);
    text[bytes > 0 ? bytes : 0] = 0;
    close(kept);
    close(fd);
    assert_int_equal(rc, KP_OPT_BAD);
    return text;
}

static void a_misspelt_flag_gets_a_guess(void **state)
{
    (void)state;
    assert_string_equal(told("--gizp=1"),
                        "kprof test: unknown flag --gizp, did you mean --gzip; see `kprof help test`\n");
    assert_non_null(strstr(told("--ke"), "did you mean --keep; see"));
    assert_non_null(strstr(told("--no-gizp"), "did you mean --no-gzip; see"));
    assert_non_null(strstr(told("--memory"), "did you mean --profile-memory; see"));
    assert_non_null(strstr(told("--no-record-memory"), "did you mean --no-profile-memory; see"));
    assert_non_null(strstr(told("--memorys"), "did you mean --profile-memory; see"));
    assert_non_null(strstr(told("--shedule"), "unknown flag --shedule: --schedule is a flag of kprof run"));
    assert_null(strstr(told("--nothing"), "did you mean"));
    assert_null(strstr(told("--x"), "did you mean"));
}

static void a_variable_has_its_flag(void **state)
{
    char name[32];
    (void)state;
    kp_opt_name_of("KPROF_RECORD_SHAPES", name, sizeof name);
    assert_string_equal(name, "record-shapes");
    kp_opt_name_of("KPROF", name, sizeof name);
    assert_string_equal(name, "kprof");
    assert_string_equal(kp_setting_flags()[KP_SET_dir].name, "dir");
    assert_int_equal(kp_setting_flags()[KP_SET_dir].letter, 'o');
    assert_null(kp_setting_flags()[KP_SET_COUNT].name);
}

static void a_flag_is_checked_as_its_variable_is(void **state)
{
    struct kp_config *const config = kp_setting_flags_read();
    (void)state;
    assert_null(kp_setting_flags_set(config, KP_SET_schedule, "wait=1,active=2"));
    assert_non_null(strstr(kp_setting_flags_set(config, KP_SET_schedule, "wait=1"), "active=N"));
    assert_string_equal(kp_setting_flags_set(config, KP_SET_gzip, "2"), "2 is neither 0 nor 1");
    assert_string_equal(kp_setting_flags_set(config, KP_SET_dir, ""), "needs a value");
    assert_non_null(kp_setting_flags_set(config, KP_SET_step, "sometimes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_comes_by_equals_by_the_next_word_or_glued_to_its_letter),
        cmocka_unit_test(a_flag_may_stand_without_its_value),
        cmocka_unit_test(a_word_that_is_no_program_was_meant_as_a_value),
        cmocka_unit_test(where_o_is_taken_both_long_names_are),
        cmocka_unit_test(a_switch_is_one_or_zero),
        cmocka_unit_test(arguments_may_stand_anywhere_and_all_follow_two_dashes),
        cmocka_unit_test(a_command_to_run_ends_the_options),
        cmocka_unit_test(what_is_wrong_is_told),
        cmocka_unit_test(a_misspelt_flag_gets_a_guess),
        cmocka_unit_test(a_word_between_a_flag_and_two_dashes_is_no_program),
        cmocka_unit_test(a_variable_has_its_flag),
        cmocka_unit_test(a_flag_is_checked_as_its_variable_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
