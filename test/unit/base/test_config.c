// SPDX-License-Identifier: Apache-2.0
/* test_config.c - every setting: its default, its values, what is refused and how that is said */
#include "collector/base/kp_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/support.h"

static struct kp_config c;

/* One good value that is not the default, and one bad one (NULL: any text is good), for every row of config.def. */
#define CONTROL "has a control character in it"
static const struct {
    const char *name, *good, *bad, *why;
} samples[] = {
    {"KPROF", "0", "2", "is neither 0 nor 1, using 1"},
    {"KPROF_ACTIVITIES", "cpu", "gpu", "is not any of cpu,cuda (did you mean cuda?), using cpu,cuda"},
    {"KPROF_SCHEDULE", "wait=1,active=2", "a\nb", CONTROL ", using nothing"},
    {"KPROF_PHASES", "train=active=2;validate=active=1", "a\nb", CONTROL ", using nothing"},
    {"KPROF_STEP", "optimizer", "a\nb", CONTROL ", using auto"},
    {"KPROF_RANKS", "0,8-15", "8-", "is none of 0,8-15, first-of-node, 1/16, using all ranks"},
    {"KPROF_RECORD_SHAPES", "1", "yes", "is neither 0 nor 1, using 0"},
    {"KPROF_WITH_STACK", "native", "c++", "is not any of 0,1,ops,native, using 0"},
    {"KPROF_PROFILE_MEMORY", "1", "2", "is neither 0 nor 1, using 0"},
    {"KPROF_WITH_FLOPS", "1", "on", "is neither 0 nor 1, using 0"},
    {"KPROF_WITH_MODULES", "1", "all", "is neither 0 nor 1, using 0"},
    {"KPROF_EXECUTION_TRACE", "1", "on", "is neither 0 nor 1, using 0"},
    {"KPROF_MALLOC", "trace", "count,trce", "is not any of 0,count,trace (did you mean trace?), using 0"},
    {"KPROF_SYMBOLS", "SSL_read,at::_ops::*::call", "a\nb", CONTROL ", using nothing"},
    {"KPROF_COMPILE_RANGES", "1", "2", "is neither 0 nor 1, using 0"},
    {"KPROF_PYTHON_GC", "1", "2", "is neither 0 nor 1, using 0"},
    {"KPROF_DIR", "/tmp/x y", "a\tb", CONTROL ", using kprof"},
    {"KPROF_WORKER_NAME", "w0", "a/b", "has a slash in it, using HOST_PID"},
    {"KPROF_GZIP", "0", "01", "is neither 0 nor 1, using 1"},
    {"KPROF_EXPORT", "none", "table,none", "asks for none and for something, using trace"},
    {"KPROF_METADATA", "{\"a\": [1]}", "{\"a\":}", "is not a JSON object (offset 5: expected a value), using nothing"},
    {"KPROF_CUPTI", "tee", "tee,off", "names more than one, using yield"},
    {"KPROF_CUDA_SYNC", "1", "2", "is neither 0 nor 1, using 0"},
    {"KPROF_CHILDREN", "1", "yes", "is neither 0 nor 1, using 0"},
    {"KPROF_CONTROL", "1", "2", "is neither 0 nor 1, using 0"},
    {"KPROF_SIGNAL", "USR2", "a\nb", CONTROL ", using nothing"},
    {"KPROF_SUMMARY", "1", "yes", "is neither 0 nor 1, using 0"},
    {"KPROF_TRIGGER", "step>1.5x", "a\nb", CONTROL ", using nothing"},
    {"KPROF_PROM", "/tmp/k.prom", "a\nb", CONTROL ", using nothing"},
    {"KPROF_KEEP", "3", "10001", "is not between 0 and 10000, using 0"},
    {"KPROF_RING", "30s", "2h", "is no time from 1s to 3600s, such as 30s or 5m, using nothing"},
    {"KPROF_MAX_MB", "64", "64MB", "is not between 1 and 131072, using 4096"},
    {"KPROF_BUFFER_MB", "64", "70000", "is not between 0 and 65536, using 0"},
    {"KPROF_HANG", "300s", "5 s", "is no time from 1s to 1000000s, such as 30s or 5m, using nothing"},
    {"KPROF_ON_OOM", "dump", "core", "is not any of 0,dump, using 0"},
    {"KPROF_EXIT_S", "5", "0", "is not between 1 and 86400, using 60"},
    {"KPROF_SPOOL_DIR", "/dev/shm", "\x01", CONTROL ", using KPROF_DIR"},
    {"KPROF_LOG", "none", "a\nb", CONTROL ", using stderr"},
    {"KPROF_VERBOSE", "2", "3", "is not between 0 and 2, using 0"},
};

static char *joined(const char *name, const char *value)
{
    static char text[8][300];
    static int turn;
    char *const to = text[turn++ % 8];
    snprintf(to, sizeof text[0], "%s=%s", name, value);
    return to;
}

static void every_row_has_a_sample_here_and_a_sentence(void **state)
{
    (void)state;
    assert_int_equal(sizeof samples / sizeof samples[0], KP_SET_COUNT);
    for (int i = 0; i < KP_SET_COUNT; i++) {
        assert_string_equal(kp_config_rows[i].name, samples[i].name);
        assert_true(strlen(kp_config_rows[i].doc) > 10);
        assert_true(kp_config_rows[i].values[0]);
    }
}

static void nothing_set_gives_defaults(void **state)
{
    char *env[] = {(char *)"PATH=/bin",    (char *)"KPROFILER=1", (char *)"KPROF",
                   (char *)"XKPROF_DIR=1", (char *)"K=1",         NULL};
    (void)state;
    assert_int_equal(kp_config_read_as(&c, env, false), 0);
    assert_true(c.on);
    assert_int_equal(c.activities, KP_ACTIVITY_CPU | KP_ACTIVITY_CUDA);
    assert_int_equal(c.cupti, KP_CUPTI_YIELD);
    assert_null(c.schedule);
    assert_string_equal(c.step, "auto");
    assert_false(c.record_shapes);
    assert_int_equal(c.with_stack, KP_STACK_NONE);
    assert_int_equal(c.heap, KP_HEAP_OFF);
    assert_string_equal(c.dir, "kprof");
    assert_null(c.worker_name);
    assert_true(c.gzip);
    assert_int_equal(c.exports, KP_EXPORTS_TRACE);
    assert_null(c.metadata);
    assert_int_equal(c.max_mb, 4096);
    assert_null(c.spool_dir);
    assert_string_equal(c.log, "stderr");
    assert_int_equal(c.verbose, 0);
    assert_null(c.test_fail);
    assert_int_equal(c.from_env, 0);
    assert_int_equal(kp_config_read_as(&c, NULL, false), 0);
}

static void every_good_value_is_taken(void **state)
{
    char value[300];
    (void)state;
    for (int i = 0; i < KP_SET_COUNT; i++) {
        char *env[] = {joined(samples[i].name, samples[i].good), NULL};
        assert_int_equal(kp_config_read_as(&c, env, false), 0);
        kp_config_value(&c, (enum kp_config_index)i, value, sizeof value);
        assert_string_equal(value, samples[i].good);
        assert_int_equal(c.from_env, KP_SET_BIT(i));
        assert_int_equal(c.refused, 0);
    }
}

static void every_bad_value_gives_one_line_and_the_default(void **state)
{
    char value[300], before[300];
    (void)state;
    for (int i = 0; i < KP_SET_COUNT; i++) {
        char *env[] = {joined(samples[i].name, samples[i].bad), NULL};
        kp_config_read_as(&c, NULL, false);
        kp_config_value(&c, (enum kp_config_index)i, before, sizeof before);
        assert_int_equal(kp_config_read_as(&c, env, false), 1);
        kp_config_value(&c, (enum kp_config_index)i, value, sizeof value);
        assert_string_equal(value, before);
        assert_int_equal(c.from_env, 0);
        assert_int_equal(c.refused, KP_SET_BIT(i));
        assert_memory_equal(c.lines, samples[i].name, strlen(samples[i].name));
        assert_string_equal(strstr(c.lines, samples[i].why) ? samples[i].why : c.lines, samples[i].why);
    }
}

static void an_unknown_variable_is_named_with_the_nearest_known_one(void **state)
{
    char *env[] = {(char *)"KPROF_SHEDULE=x", (char *)"KPROF_FROBNICATE=x", (char *)"KPROF_TEST_FAIL=open:1",
                   (char *)"KPROF_PYTHON=x",  (char *)"KPROF_TEST_KILLS=2", NULL};
    (void)state;
    assert_int_equal(kp_config_read_as(&c, env, false), 2);
    assert_string_equal(c.lines, "KPROF_SHEDULE is no setting of kprof, ignored; did you mean KPROF_SCHEDULE?");
    assert_non_null(strstr(c.lines + strlen(c.lines) + 1, "`kprof config` lists them"));
    assert_string_equal(c.test_fail, "open:1");
    assert_null(kp_config_nearest("KPROF_FROBNICATE"));
    assert_string_equal(kp_config_nearest("KPROF_RECORD_SHAPE"), "KPROF_RECORD_SHAPES");
    assert_string_equal(kp_config_nearest("KPROF_SCEHDUEL"), "KPROF_SCHEDULE"); /* neighbours that changed places */
}

static void a_near_name_is_found_by_its_letters(void **state)
{
    static const struct {
        const char *word, *name;
        bool is_near;
    } cases[] = {{"rnu", "run", true},  {"dfif", "diff", true}, {"repotr", "report", true}, {"run", "run", true},
                 {"nur", "run", false}, {"ru", "ur", true},     {"rn", "run", true},        {"peak", "leaks", false},
                 {"runxy", "run", true}}; /* nothing is read behind the shorter */
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned best = 3;
        assert_int_equal(kp_config_is_nearer(cases[i].word, cases[i].name, &best), cases[i].is_near);
    }
}

static void neighbours_that_changed_places_are_one_change(void **state)
{
    static const struct {
        const char *a, *b;
        unsigned far;
    } cases[] = {{"", "", 0},
                 {"", "ab", 2},
                 {"ab", "", 2},
                 {"ab", "ba", 1},
                 {"ca", "abc", 3},
                 {"abcd", "badc", 2},
                 {"kitten", "sitting", 3},
                 {"axb", "bxa", 2}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(kp_config_distance(cases[i].a, cases[i].b), cases[i].far);
        assert_int_equal(kp_config_distance(cases[i].b, cases[i].a), cases[i].far);
    }
}

static void both_activities_are_recorded_unless_one_is_named(void **state)
{
    char *none[] = {NULL}, *env[] = {(char *)"KPROF_ACTIVITIES=cuda", NULL};
    (void)state;
    assert_int_equal(kp_config_read_as(&c, none, false), 0);
    assert_int_equal(c.activities, KP_ACTIVITY_CPU | KP_ACTIVITY_CUDA);
    assert_int_equal(kp_config_read_as(&c, env, false), 0);
    assert_int_equal(c.activities, KP_ACTIVITY_CUDA);
}

static void the_first_of_two_and_an_empty_one_count_as_with_getenv(void **state)
{
    char *env[] = {(char *)"KPROF_DIR=a", (char *)"KPROF_DIR=b", (char *)"KPROF_MAX_MB=", NULL};
    (void)state;
    assert_int_equal(kp_config_read_as(&c, env, false), 0);
    assert_string_equal(c.dir, "a");
    assert_int_equal(c.max_mb, 4096);
}

static void a_secure_program_reads_nothing_and_stays_off(void **state)
{
    char *env[] = {(char *)"KPROF=1", (char *)"KPROF_DIR=/etc", (char *)"KPROF_X=1", (char *)"KPROF_TEST_FAIL=open:1",
                   NULL};
    (void)state;
    assert_int_equal(kp_config_read_as(&c, env, true), 0);
    assert_false(c.on);
    assert_string_equal(c.dir, "kprof");
    assert_null(c.test_fail);
}

static void the_environment_may_change_afterwards(void **state)
{
    char entry[] = "KPROF_DIR=here";
    char *env[] = {entry, NULL};
    (void)state;
    kp_config_read_as(&c, env, false);
    memset(entry, 'x', sizeof entry - 1);
    assert_string_equal(c.dir, "here");
}

static void numbers_at_their_ends(void **state)
{
    const struct {
        const char *text;
        bool good;
    } cases[] = {
        {"1", true},
        {"131072", true},
        {"0", false},
        {"131073", false},
        {"18446744073709551617", false},
        {"-1", false},
        {"1.5", false},
        {" 1", false},
        {"99999999999999999999999999999", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        kp_config_read_as(&c, NULL, false);
        assert_int_equal(kp_config_set(&c, KP_SET_max_mb, cases[i].text), cases[i].good);
    }
}

static void a_value_too_long_is_refused_and_shown_short(void **state)
{
    char *const big = malloc(50000);
    char *env[] = {big, NULL};
    (void)state;
    memset(big, 'a', 49999);
    big[49999] = 0;
    memcpy(big, "KPROF_DIR=", 10);
    assert_int_equal(kp_config_read_as(&c, env, false), 1);
    assert_non_null(strstr(c.lines, "aaa... is too long, using kprof"));
    assert_true(strlen(c.lines) < 160);
    free(big);
}

static void a_hundred_bad_variables_do_not_overflow(void **state)
{
    static char texts[100][200];
    char *env[101] = {NULL};
    (void)state;
    for (int i = 0; i < 100; i++) {
        snprintf(texts[i], sizeof texts[0], "KPROF_%0150d=1", i);
        env[i] = texts[i];
    }
    assert_true(kp_config_read_as(&c, env, false) > 10);
    assert_true(c.lines_used <= sizeof c.lines);
    assert_int_equal(c.lines[c.lines_used - 1], 0);
}

static void the_text_for_the_spool_has_a_line_a_value_and_says_its_length(void **state)
{
    char *env[] = {(char *)"KPROF_METADATA={\"a\":\n1}", (char *)"KPROF_WORKER_NAME=w", NULL};
    char text[1000], small[20];
    size_t length;
    (void)state;
    kp_config_read_as(&c, env, false);
    length = kp_config_text(&c, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_non_null(strstr(text, "KPROF_METADATA={\"a\": 1}\n"));
    assert_non_null(strstr(text, "KPROF_WORKER_NAME=w\n"));
    assert_null(strstr(text, "KPROF_SCHEDULE"));
    assert_int_equal(kp_config_text(&c, small, sizeof small), length);
    assert_memory_equal(small, text, sizeof small - 1);
    assert_int_equal(small[sizeof small - 1], 0);
    assert_int_equal(kp_config_text(&c, NULL, 0), length);
}

static void a_time_has_a_unit_or_none(void **state)
{
    (void)state;
    assert_int_equal(kp_config_time_ms("300s"), 300000);
    assert_int_equal(kp_config_time_ms("90"), 90000);
    assert_int_equal(kp_config_time_ms("5m"), 300000);
    assert_int_equal(kp_config_time_ms("2h"), 7200000);
    static const char *const bad[] = {NULL, "", "s", "0", "-1", "5x", "5ms", "3 s", "99999999999999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_int_equal(kp_config_time_ms(bad[i]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_time_has_a_unit_or_none),
        cmocka_unit_test(every_row_has_a_sample_here_and_a_sentence),
        cmocka_unit_test(nothing_set_gives_defaults),
        cmocka_unit_test(every_good_value_is_taken),
        cmocka_unit_test(every_bad_value_gives_one_line_and_the_default),
        cmocka_unit_test(a_near_name_is_found_by_its_letters),
        cmocka_unit_test(neighbours_that_changed_places_are_one_change),
        cmocka_unit_test(an_unknown_variable_is_named_with_the_nearest_known_one),
        cmocka_unit_test(both_activities_are_recorded_unless_one_is_named),
        cmocka_unit_test(the_first_of_two_and_an_empty_one_count_as_with_getenv),
        cmocka_unit_test(a_secure_program_reads_nothing_and_stays_off),
        cmocka_unit_test(the_environment_may_change_afterwards),
        cmocka_unit_test(numbers_at_their_ends),
        cmocka_unit_test(a_value_too_long_is_refused_and_shown_short),
        cmocka_unit_test(a_hundred_bad_variables_do_not_overflow),
        cmocka_unit_test(the_text_for_the_spool_has_a_line_a_value_and_says_its_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
