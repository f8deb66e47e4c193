// SPDX-License-Identifier: Apache-2.0
/* test_cuptirule.c - which CUPTI must not be used, or only so: each known version, each row of the table */
#include "collector/base/elf/kp_cuptirule.h"

#include <string.h>

#include "test/support/support.h"

enum { OLD = KP_CUPTI_EARLY | KP_CUPTI_ONCE | KP_CUPTI_SHORT | KP_CUPTI_LOOK, RECENT = KP_CUPTI_SHORT | KP_CUPTI_LOOK };

/* Every version that is known, what is done about it, and what it is called. */
static const struct {
    uint32_t version, rules;
    const char *name;
} known[] = {
    {17, OLD, "CUPTI 17 (CUDA 11.7)"},
    {18, OLD, "CUPTI 18 (CUDA 11.8 to 12.1)"},
    {20, OLD, "CUPTI 20 (CUDA 12.2)"},
    {22, OLD, "CUPTI 22 (CUDA 12.4)"},
    {23, OLD, "CUPTI 23 (CUDA 12.5)"},
    {24, RECENT, "CUPTI 24 (CUDA 12.6)"},
    {26, RECENT, "CUPTI 26 (CUDA 12.8)"},
    {28, RECENT, "CUPTI 28 (CUDA 12.9 Update 1)"},
    {130000, KP_CUPTI_REFUSE | KP_CUPTI_FEW | RECENT, "CUPTI 130000 (CUDA 13.0)"},
    {130001, KP_CUPTI_FEW | RECENT, "CUPTI 130001 (CUDA 13.0 Update 1)"},
    {130100, KP_CUPTI_ONE_WINDOW | RECENT, "CUPTI 130100 (CUDA 13.1)"},
    {130101, RECENT, "CUPTI 130101 (CUDA 13.1 Update 1)"},
    {130200, RECENT, "CUPTI 130200 (CUDA 13.2)"},
    {130400, RECENT, "CUPTI 130400 (CUDA 13.4)"},
    {130401, 0, "CUPTI 130401 (CUDA 13.4 Update 1)"},
    {130500, 0, "CUPTI 130500 (CUDA 13.5)"},
    {140203, 0, "CUPTI 140203 (CUDA 14.2 Update 3)"},
    {19, OLD, "CUPTI 19"}, /* never seen */
    {99, RECENT, "CUPTI 99"},
};
enum { KNOWN = sizeof known / sizeof *known };

static void each_version_has_its_rules(void **state)
{
    (void)state;
    for (int i = 0; i < KNOWN; i++) assert_int_equal(kp_cuptirule_all(known[i].version), known[i].rules);
}

static void each_version_has_a_name(void **state)
{
    char name[64];
    (void)state;
    for (int i = 0; i < KNOWN; i++) {
        assert_int_equal(kp_cuptirule_name(known[i].version, name, sizeof name), strlen(known[i].name));
        assert_string_equal(name, known[i].name);
    }
}

static void each_row_concerns_a_known_version_and_says_what_is_wrong(void **state)
{
    static const struct kp_cuptirule_row none;
    const struct kp_cuptirule_row *seen[32] = {&none};
    int count = 0;
    (void)state;
    for (int i = 0; i < KNOWN; i++)
        for (const struct kp_cuptirule_row *row = NULL; (row = kp_cuptirule_next(known[i].version, row));) {
            int at = 0;
            while (at < count && seen[at] != row) at++;
            if (at == count) seen[count++] = row;
            assert_true(row->low <= row->high && row->rule && (row->rule & (row->rule - 1)) == 0);
            assert_true(strlen(row->text) > 20 && strlen(row->text) < 160);
            assert_true(strlen(kp_cuptirule_consequence(row->rule)) > 5);
        }
    assert_int_equal(count, 7); /* the rows of cuptirule.def */
}

static void one_line_says_why_by_the_rule_that_was_met(void **state)
{
    char why[300];
    (void)state;
    assert_true(kp_cuptirule_why(130000, KP_CUPTI_REFUSE, why, sizeof why) > 60);
    assert_true(strstr(why, "CUPTI 130000 (CUDA 13.0): it may hang the program") == why);
    (void)kp_cuptirule_why(130100, KP_CUPTI_ONE_WINDOW, why, sizeof why);
    assert_non_null(strstr(why, "(CUDA 13.1): after its first window"));
    assert_null(strchr(why, '\n'));
    assert_int_equal(kp_cuptirule_why(130500, KP_CUPTI_REFUSE, why, sizeof why), 0);
    assert_string_equal(why, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_version_has_its_rules),
        cmocka_unit_test(each_version_has_a_name),
        cmocka_unit_test(each_row_concerns_a_known_version_and_says_what_is_wrong),
        cmocka_unit_test(one_line_says_why_by_the_rule_that_was_met),
    };
    return cmocka_run_group_tests_name("base/cuptirule", tests, NULL, NULL);
}
