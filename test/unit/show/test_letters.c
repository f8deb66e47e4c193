// SPDX-License-Identifier: Apache-2.0
/* test_letters.c - unit tests of export/show/letters.c: columns of a terminal, and names that are shortened */
#include "test/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/show/letters.h"

#define WIDE "\xe6\xbc\xa2" /* takes two columns */
#define ACUTE "e\xcc\x81"   /* a letter and a combining mark */

static void letters_take_columns(void **state)
{
    (void)state;
    assert_int_equal(kp_letters_columns("aten::mm"), 8);
    assert_int_equal(kp_letters_columns("\xc3\xa4\xe2\x82\xacz"), 3);
    assert_int_equal(kp_letters_columns(WIDE "\xf0\x9f\x98\x80" ACUTE), 5);
    assert_int_equal(kp_letters_columns("\xff\xfe"), 2);
    assert_int_equal(kp_letters_columns("\xe2\x82"), 2);
    assert_string_equal(kp_letters_skip("a" WIDE "b", 2), WIDE "b");
    assert_string_equal(kp_letters_skip("ab", 5), "");
}

static void assert_fit(const char *text, size_t most, size_t head, const char *dots, const char *expected)
{
    char out[64];
    assert_string_equal(kp_letters_fit(out, sizeof out, text, most, head, dots), expected);
}

static void a_long_name_keeps_whole_letters(void **state)
{
    (void)state;
    assert_fit("short", 5, 3, "..", "short");
    assert_fit("abcdefghij", 8, 2, "..", "ab..ghij");
    assert_fit("abcdefghij", 7, 4, "...", "abcd...");
    assert_fit("abcdefghij", 7, 0, "...", "...ghij");
    assert_fit("x\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 5, 1, "..", "x..\xc3\xa9\xc3\xa9");
    assert_fit(WIDE WIDE WIDE, 5, 1, "..", ".." WIDE);
    assert_fit("abc", 2, 0, "..", "ab");
    assert_fit("a\x1b[2J", 20, 3, "..", "a\\x1b[2J");
}

static void a_text_is_shortened_in_its_own_room(void **state)
{
    char text[32] = "backward of a/long/path.py(12)";
    (void)state;
    assert_string_equal(kp_letters_fit(text, sizeof text, text, 24, 12, "..."), "backward of ...th.py(12)");
}

static void padded_names_line_up(void **state)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    (void)state;
    kp_letters_pad(out, WIDE, 4);
    kp_letters_pad(out, "ab", -4);
    kp_letters_name_put(out, "abcdefghij", 6, 2);
    kp_letters_pad(out, "long", 2);
    fclose(out);
    assert_string_equal(text, "  " WIDE "ab  ab..ijlong");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_take_columns), cmocka_unit_test(a_long_name_keeps_whole_letters),
        cmocka_unit_test(a_text_is_shortened_in_its_own_room), cmocka_unit_test(padded_names_line_up)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
