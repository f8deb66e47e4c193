// SPDX-License-Identifier: Apache-2.0
/* test_exceptiontext.c - one line of the text of an exception, without where in a library's source it was */
#include "collector/base/text/kp_exceptiontext.h"

#include <string.h>

#include "test/support/support.h"

static char out[24];

static const char *kept(const char *text)
{
    kp_exceptiontext_copy(out, sizeof out, text);
    return out;
}

static void the_first_line_stays_without_tabs(void **state)
{
    (void)state;
    assert_string_equal(kept("\n two\twords\r\nmore"), "two words");
    assert_string_equal(kept(""), "");
}

static void a_long_line_ends_in_dots_and_no_letter_is_cut(void **state)
{
    (void)state;
    assert_string_equal(kept("01234567890123456789"), "01234567890123456789");
    assert_string_equal(kept("012345678901234567890"), "01234567890123456789...");
    assert_string_equal(kept("0123456789012345678\xc3\xa4x"), "0123456789012345678...");
}

static void where_a_library_is_in_its_source_is_left_out(void **state)
{
    (void)state;
    assert_string_equal(kept("[/x/pair.cc:547] closed by peer"), "closed by peer");
    assert_string_equal(kept("[enforce fail at a.cpp:1] err == 0. no memory"), "no memory");
    assert_string_equal(kept("[1, 2] is no size"), "[1, 2] is no size");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_line_stays_without_tabs),
                                       cmocka_unit_test(a_long_line_ends_in_dots_and_no_letter_is_cut),
                                       cmocka_unit_test(where_a_library_is_in_its_source_is_left_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
