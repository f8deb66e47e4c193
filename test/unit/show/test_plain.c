// SPDX-License-Identifier: Apache-2.0
/* test_plain.c - unit tests of export/show/plain.c: lines with names from a file among their words */
#include "test/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/show/plain.h"

static void a_line_has_its_names_made_safe_and_its_own_newline(void **state)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    (void)state;
    kp_plain_fmt(out, "%s at %s:%u, %zu of %d (%.1f %%)\n", "a\nb", "\x1b[2J", 7u, (size_t)1 << 40, -3, 12.34);
    kp_plain_fmt(out, "%ld to %lu%s", -1L, 1UL << 63, "");
    fclose(out);
    assert_string_equal(text, "a\\x0ab at \\x1b[2J:7, 1099511627776 of -3 (12.3 %)\n-1 to 9223372036854775808");
    free(text);
}

/* A letter that is not plain at every place of a word, in room for any part of the text: letters stay whole. */
static void words_of_plain_letters_end_before_one_that_is_not(void **state)
{
    static const struct {
        const char *letter, *shown;
    } odd[] = {{"\x1f", "\\x1f"},        {"\x7f", "\\x7f"}, {"\x80", "\\x80"},
               {"\xc3\xa9", "\xc3\xa9"}, {" ", " "},        {"~", "~"}};
    (void)state;
    for (size_t o = 0; o < sizeof odd / sizeof *odd; o++)
        for (int before = 0; before < 20; before++)
            for (size_t room = 1; room < 64; room++) {
                char text[64], whole[64], shown[64];
                const int n = snprintf(text, sizeof text, "%.*s%sabcdefghijk", before, "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
                                       odd[o].letter);
                const size_t all = (size_t)snprintf(whole, sizeof whole, "%.*s%sabcdefghijk", before,
                                                    "ABCDEFGHIJKLMNOPQRSTUVWXYZ", odd[o].shown);
                size_t fits = room > all ? all : room - 1;
                if (fits > (size_t)before && fits < (size_t)before + strlen(odd[o].shown)) fits = (size_t)before;
                assert_int_equal(kp_plain_text(shown, room, text, (size_t)n), all);
                assert_int_equal(strlen(shown), fits);
                assert_memory_equal(shown, whole, fits);
                assert_int_equal(kp_plain_is(text, (size_t)n), strcmp(odd[o].letter, odd[o].shown) == 0);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_its_names_made_safe_and_its_own_newline),
        cmocka_unit_test(words_of_plain_letters_end_before_one_that_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
