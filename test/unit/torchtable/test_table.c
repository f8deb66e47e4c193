// SPDX-License-Identifier: Apache-2.0
/* test_table.c - letters, widths and frame of the table */
#include "test/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/answers/torchtable/keyavg.h"
#include "test/support/kineto_text.h"

/* Prints the table of a trace text; the caller frees it. */
static char *table_of(const char *json, const struct kp_keyavg_options *group, const struct kp_table_options *table)
{
    struct kp_kineto *trace;
    struct kp_tree tree;
    struct kp_keyavg averages;
    char why[256], *text = NULL;
    size_t bytes;
    assert_int_equal(kineto_text_read(&trace, json, strlen(json), false, why, sizeof why), 0);
    assert_int_equal(kp_tree_build(&tree, trace), 0);
    assert_int_equal(kp_keyavg_build(&averages, &tree, group), 0);
    FILE *out = open_memstream(&text, &bytes);
    assert_int_equal(kp_table_print(out, &averages, table), 0);
    fclose(out);
    kp_keyavg_fini(&averages);
    kp_tree_fini(&tree);
    kp_kineto_close(trace);
    return text;
}

#define TWO                                                                                                           \
    "{\"traceEvents\":[{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":1,\"tid\":1,\"ts\":10.0,"       \
    "\"dur\":3.0},{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::add\",\"pid\":1,\"tid\":1,\"ts\":20.0,\"dur\":1." \
    "0}]}"

static void a_small_table_is_printed_letter_for_letter(void **state)
{
    struct kp_keyavg_options group = {0};
    struct kp_table_options table = KP_TABLE_DEFAULTS;
    table.row_limit = 1;
    table.header = "H";
    (void)state;
    char *text = table_of(TWO, &group, &table);
    assert_string_equal(
        text, "=================================================================================================\n"
              "H\n"
              "-------------  ------------  ------------  ------------  ------------  ------------  ------------  \n"
              "         Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls  \n"
              "-------------  ------------  ------------  ------------  ------------  ------------  ------------  \n"
              "     aten::mm        75.00%       3.000us        75.00%       3.000us       3.000us             1  \n"
              "-------------  ------------  ------------  ------------  ------------  ------------  ------------  \n"
              "Self CPU time total: 4.000us\n");
    free(text);
}

static void a_row_limit_of_minus_one_prints_all_and_zero_none(void **state)
{
    struct kp_keyavg_options group = {0};
    struct kp_table_options table = KP_TABLE_DEFAULTS;
    (void)state;
    table.row_limit = -1;
    char *all = table_of(TWO, &group, &table);
    assert_non_null(strstr(all, "aten::add"));
    table.row_limit = 0;
    char *none = table_of(TWO, &group, &table);
    assert_null(strstr(none, "aten::"));
    assert_non_null(strstr(none, "Self CPU time total: 4.000us"));
    free(all);
    free(none);
}

static void names_at_the_limit_lose_their_end(void **state)
{
    struct kp_keyavg_options group = {0};
    struct kp_table_options table = KP_TABLE_DEFAULTS;
    (void)state;
    table.name_width = 10;
    char *text = table_of(TWO, &group, &table);
    assert_non_null(strstr(text, "\naten::m...  "));
    free(text);
}

static void no_event_prints_nothing(void **state)
{
    struct kp_keyavg_options group = {0};
    struct kp_table_options table = KP_TABLE_DEFAULTS;
    (void)state;
    char *text = table_of("{\"traceEvents\":[]}", &group, &table);
    assert_string_equal(text, "");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_table_is_printed_letter_for_letter),
        cmocka_unit_test(a_row_limit_of_minus_one_prints_all_and_zero_none),
        cmocka_unit_test(names_at_the_limit_lose_their_end),
        cmocka_unit_test(no_event_prints_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
