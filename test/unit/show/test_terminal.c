// SPDX-License-Identifier: Apache-2.0
/* test_terminal.c - unit tests of export/show/terminal.c: one line on a terminal of a few columns */
#include "test/support/support.h"

#include <stdio.h>
#include <stdlib.h>

#include "export/show/terminal.h"

static void assert_line(const char *line, size_t columns, bool has_colour, const char *expected)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    kp_terminal_line(out, line, columns, has_colour);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
}

static void prose_is_wrapped_and_goes_on_a_little_into_the_line(void **state)
{
    (void)state;
    assert_line("The training waits for the DataLoader.", 22, false, "The training waits for\n  the DataLoader.\n");
    assert_line("  it goes on below its begin", 22, false, "  it goes on below its\n    begin\n");
    assert_line("short", 22, false, "short\n");
    assert_line("", 22, false, "\n");
}

static void a_label_keeps_its_column(void **state)
{
    (void)state;
    assert_line("    change  Set num_workers=4 there.", 25, false,
                "    change  Set\n            num_workers=4\n"
                "            there.\n");
}

static void a_number_and_its_unit_stay_together(void **state)
{
    (void)state;
    assert_line("parts    forward 25.2 %, other 4.5 %", 34, false, "parts    forward 25.2 %, other\n         4.5 %\n");
    assert_line("step     it takes up to 16.2 ms (median)", 30, false,
                "step     it takes up to\n         16.2 ms (median)\n");
    assert_line("step     the times of all are 12 smiles", 33, false,
                "step     the times of all are 12\n         smiles\n");
}

static void a_word_that_is_wider_than_the_terminal_is_cut(void **state)
{
    (void)state;
    assert_line("kprof: /a/very/long/path/of/a/folder", 20, false, "kprof:\n  /a/very/long/path/\n  of/a/folder\n");
}

static void a_letter_of_two_columns_stays_whole(void **state)
{
    (void)state;
    assert_line("\036"
                "aaaaaaaaaaaaaaaaa\xe6\xbc\xa2\xe5\xad\x97",
                20, false, "aaaaaaaaaaaaaaaaa..\n");
}

static void a_row_is_cut_and_not_wrapped(void **state)
{
    (void)state;
    assert_line("\036op and its name, ms 12.34", 20, false, "op and its name, m..\n");
    assert_line("  12.0 KiB  3  aten::convolution", 20, false, "  12.0 KiB  3  ate..\n");
    assert_line("  12.0 KiB  3  aten", 20, false, "  12.0 KiB  3  aten\n");
}

static void severities_and_names_have_a_colour_if_it_is_wanted(void **state)
{
    (void)state;
    assert_line("CRITICAL  slow", 40, true, "\033[1;31mCRITICAL\033[0m  slow\n");
    assert_line("WARNING  slow", 40, true, "\033[1;33mWARNING\033[0m  slow\n");
    assert_line("WARNING  slow", 40, false, "WARNING  slow\n");
    assert_line("\036\016"
                "add\017 1",
                40, true, "\033[1madd\033[0m 1\n");
    assert_line("\036\016"
                "add\017 1",
                40, false, "add 1\n");
    assert_line("\036\016"
                "a_name_that_is_wide_and_cut\017 1",
                20, true, "\033[1ma_name_that_is_wid..\033[0m\n");
}

static void what_is_for_programs_stays_as_it_is(void **state)
{
    (void)state;
    assert_line("{\"verdict\": \"found\",  \"steps\":  12, \"file\": \"x\"}", 20, true,
                "{\"verdict\": \"found\",  \"steps\":  12, \"file\": \"x\"}\n");
    assert_line("[[1, 2, 3, 4, 5, 6],  [7],  [8]]", 20, true, "[[1, 2, 3, 4, 5, 6],  [7],  [8]]\n");
}

static void a_name_with_a_bracket_first_is_no_data(void **state)
{
    (void)state;
    assert_line("<built-in method f>  1.000us  2  3", 20, true, "<built-in method f..\n");
    assert_line("[param|forward]      1.000us  2  3", 20, true, "[param|forward]   ..\n");
}

static void a_stream_that_is_no_terminal_has_no_columns_and_no_marks(void **state)
{
    (void)state;
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    kp_terminal_row(out);
    kp_terminal_name(out, true);
    fputs("add", out);
    kp_terminal_name(out, false);
    assert_int_equal(kp_terminal_columns(out), 0);
    fclose(out);
    assert_string_equal(text, "add");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prose_is_wrapped_and_goes_on_a_little_into_the_line),
        cmocka_unit_test(a_label_keeps_its_column),
        cmocka_unit_test(a_number_and_its_unit_stay_together),
        cmocka_unit_test(a_word_that_is_wider_than_the_terminal_is_cut),
        cmocka_unit_test(a_letter_of_two_columns_stays_whole),
        cmocka_unit_test(a_row_is_cut_and_not_wrapped),
        cmocka_unit_test(severities_and_names_have_a_colour_if_it_is_wanted),
        cmocka_unit_test(what_is_for_programs_stays_as_it_is),
        cmocka_unit_test(a_name_with_a_bracket_first_is_no_data),
        cmocka_unit_test(a_stream_that_is_no_terminal_has_no_columns_and_no_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
