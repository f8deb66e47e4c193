// SPDX-License-Identifier: Apache-2.0
/* test_viewtext.c - unit tests of export/answers/view/viewtext.c: cells, and texts cut to columns */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "export/answers/view/viewparts.h"

static void assert_cut(const char *text, size_t columns, bool utf8, const char *expected, size_t used)
{
    char out[64];
    assert_int_equal(kp_view_cut(out, sizeof out, text, columns, utf8), used);
    assert_string_equal(out, expected);
}

static void cells_have_units(void **state)
{
    static const struct {
        enum kp_view_kind kind;
        double value;
        const char *text;
    } rows[] = {{KP_VIEW_TIME, 0, ""},
                {KP_VIEW_TIME, 999, "999 ns"},
                {KP_VIEW_TIME, 1234567, "1.23 ms"},
                {KP_VIEW_TIME, 7.2e12, "7200.00 s"},
                {KP_VIEW_BYTES, 512, "512 B"},
                {KP_VIEW_BYTES, 1536, "1.50 KiB"},
                {KP_VIEW_BYTES, -2.5e9, "-2.33 GiB"},
                {KP_VIEW_COUNT, 0, "0"},
                {KP_VIEW_COUNT, 1234567, "1,234,567"},
                {KP_VIEW_COUNT, -123, "-123"},
                {KP_VIEW_SHARE, 0.1234, "12.3 %"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char out[48];
        assert_string_equal(kp_view_cell(out, sizeof out, rows[i].kind, rows[i].value), rows[i].text);
    }
}

static void a_long_text_is_cut_between_letters(void **state)
{
    (void)state;
    assert_cut("short", 10, true, "short", 5);
    assert_cut("exactly", 7, true, "exactly", 7);
    assert_cut("too long", 7, true, "too l..", 7);
    assert_cut("\xc3\xa4\xc3\xb6\xc3\xbc\xc3\x9f", 3, true, "\xc3\xa4..", 3);
    assert_cut("\xe6\xbc\xa2\xe5\xad\x97", 3, true, "..", 2); /* letters of two columns */
    assert_cut("\xe6\xbc\xa2\xe5\xad\x97", 4, true, "\xe6\xbc\xa2\xe5\xad\x97", 4);
    assert_cut("x", 0, true, "", 0);
}

static void a_terminal_without_utf8_gets_ascii(void **state)
{
    (void)state;
    assert_cut("a\xc3\xa4 \xe6\xbc\xa2z", 10, false, "a? ?z", 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_have_units),
        cmocka_unit_test(a_long_text_is_cut_between_letters),
        cmocka_unit_test(a_terminal_without_utf8_gets_ascii),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
