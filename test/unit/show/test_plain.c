// SPDX-License-Identifier: Apache-2.0
/* test_plain.c - unit tests of export/show/plain.c: lines with names from a file among their words */
#include "test/support/support.h"

#include <stdio.h>
#include <stdlib.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_has_its_names_made_safe_and_its_own_newline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
