// SPDX-License-Identifier: Apache-2.0
/* test_settings.c - KPROF_STEP and KPROF_SCHEDULE as texts */
#include "schedule/kp_schedule.h"

#include <errno.h>
#include <string.h>

#include "collector/base/kp_config.h"
#include "collector/base/text/kp_glob.h"
#include "test/support/support.h"

#define NEEDS_BOTH "needs MODULE:FUNCTION"
static struct kp_config config;

static void every_rule_parses(void **state)
{
    struct kp_step_rule rule;
    char why[200];
    (void)state;
    assert_int_equal(kp_step_rule_parse("auto", &rule, why, sizeof why), 0);
    assert_int_equal(rule.kind, KP_RULE_AUTO);
    assert_int_equal(kp_step_rule_parse("optimizer", &rule, why, sizeof why), 0);
    assert_int_equal(rule.kind, KP_RULE_OPTIMIZER);
    assert_int_equal(kp_step_rule_parse("api", &rule, why, sizeof why), 0);
    assert_int_equal(rule.kind, KP_RULE_API);
    assert_int_equal(kp_step_rule_parse("range:a|b", &rule, why, sizeof why), 0);
    assert_int_equal(rule.kind, KP_RULE_RANGE);
    assert_string_equal(rule.pattern, "a|b");
    assert_int_equal(kp_step_rule_parse("op:^x$", &rule, why, sizeof why), 0);
    assert_int_equal(rule.kind, KP_RULE_OP);
    assert_string_equal(rule.pattern, "^x$");
    assert_int_equal(kp_step_rule_parse("range:^(forward|train)[0-9]+_[a-z]{2,8}.+$", &rule, why, sizeof why), 0);
    assert_int_equal(kp_step_rule_parse("range:[^+]x{999}(a+|b+|c+)+(d+|e+)+[+{9}]+\\{f+g+h+", &rule, why, sizeof why),
                     0);
    assert_int_equal(kp_step_rule_parse("call:my*:Server.answer", &rule, why, sizeof why), 0);
    assert_int_equal(rule.kind, KP_RULE_CALL);
    assert_string_equal(rule.pattern, "my*:Server.answer");
    assert_int_equal(kp_step_rule_parse("time:2s", &rule, why, sizeof why), 0);
    assert_int_equal(rule.kind, KP_RULE_TIME);
    assert_int_equal(rule.period_ns, 2000000000);
}

static void a_bad_rule_is_refused_with_a_phrase(void **state)
{
    const char *const bad[][2] = {
        {"", "none of"},
        {"Auto", "none of"},
        {"symbol:x", "none of"},
        {"kernel:x", "none of"},
        {"range:", "no regular expression"},
        {"range:(", "not a regular expression"},
        {"op:[", "not a regular expression"},
        {"call:", NEEDS_BOTH},
        {"call:serve", NEEDS_BOTH},
        {"call:module:", NEEDS_BOTH},
        {"call::serve", NEEDS_BOTH},
        {"call:a:b:c", NEEDS_BOTH},
        {"time:", "needs a time"},
        {"time:0s", "needs a time"},
        {"time:5", "needs a time"},
        {"time:5h", "needs a time"},
        {"op:a++++++++++++++++++++++++++++++", "repeats too much"},
        {"range:A????????+++++++", "repeats too much"},
        {"op:(a?*b?*c?*d?*e?*f?*g?*h?*i?*)+", "repeats too much"},
        {"op:((a|)|(b|)|(c|)|(d|)|(e|)|(f|)|(g|)|(h|))+", "repeats too much"},
        {"range:(a{99}){99}", "repeats too much"},
        {"range:a{99999999999}", "repeats too much"},
        {"range:(.*.*.*.*.*.*.*.*){400}", "repeats too much"},
        {"range:(ab?c)*{50}{50}", "repeats too much"},
        {"range:[]+]{50}{50}", "repeats too much"},
        {"range:((((((a{4}){4}){4}){4}){4}){4})", "repeats too much"},
        {"range:(a)\\1", "back-reference"},
        {"time:99999999999s", "needs a time"},
        {"time:10us", "shorter than 1ms"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct kp_step_rule rule;
        char why[200] = "";
        assert_int_equal(kp_step_rule_parse(bad[i][0], &rule, why, sizeof why), -EINVAL);
        if (!strstr(why, bad[i][1])) fail_msg("'%s' gives '%s'", bad[i][0], why);
    }
}

static bool matches(const char *glob, const char *text) { return kp_glob_matches(glob, strlen(glob), text); }

static void a_glob_matches_whole_names(void **state)
{
    (void)state;
    assert_true(matches("a.b", "a.b"));
    assert_false(matches("a.b", "a.bc"));
    assert_false(matches("a.bc", "a.b"));
    assert_true(matches("*", ""));
    assert_true(matches("*", "anything"));
    assert_true(matches("a*c*", "abcbc"));
    assert_true(matches("*.step", "one.two.step"));
    assert_false(matches("*.step", "one.steps"));
    assert_true(matches("st?p", "step"));
    assert_false(matches("st?p", "stp"));
    assert_false(matches("", "a"));
    assert_true(matches("", ""));
    assert_true(kp_glob_matches("module:name", 6, "module"));
}

static void a_bad_schedule_and_a_bad_rule_leave_defaults_and_one_line_each(void **state)
{
    char *env[] = {(char *)"KPROF_SCHEDULE=wait=1", (char *)"KPROF_STEP=range:(", NULL};
    struct kp_schedule schedule;
    struct kp_step_rule rule;
    (void)state;
    assert_int_equal(kp_config_read_as(&config, env, false), 0);
    kp_schedule_from_config(&config, &schedule, &rule);
    assert_false(schedule.set);
    assert_int_equal(rule.kind, KP_RULE_AUTO);
    assert_int_equal(config.complaints, 2);
    assert_string_equal(
        config.lines,
        "KPROF_SCHEDULE=wait=1 needs active=N with N at least 1, recording everything from start to exit");
    assert_non_null(strstr(config.lines + strlen(config.lines) + 1, "KPROF_STEP=range:( is not a regular"));
    assert_null(config.schedule);
    assert_string_equal(config.step, "auto");
}

static void good_texts_arrive(void **state)
{
    char *env[] = {(char *)"KPROF_SCHEDULE=active=2", (char *)"KPROF_STEP=time:250ms", NULL};
    struct kp_schedule schedule;
    struct kp_step_rule rule;
    (void)state;
    kp_config_read_as(&config, env, false);
    kp_schedule_from_config(&config, &schedule, &rule);
    assert_true(schedule.set);
    assert_int_equal(schedule.active, 2);
    assert_int_equal(rule.kind, KP_RULE_TIME);
    assert_int_equal(rule.period_ns, 250000000);
    assert_int_equal(config.complaints, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_parses),
        cmocka_unit_test(a_bad_rule_is_refused_with_a_phrase),
        cmocka_unit_test(a_bad_schedule_and_a_bad_rule_leave_defaults_and_one_line_each),
        cmocka_unit_test(a_glob_matches_whole_names),
        cmocka_unit_test(good_texts_arrive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
