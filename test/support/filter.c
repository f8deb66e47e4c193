// SPDX-License-Identifier: Apache-2.0
/* filter.c - a unit test program runs only the tests that CMOCKA_TEST_FILTER names (`make t T=... K=...` sets it)
 *
 * Linked into every unit test program; cmocka's own pattern: `*` is any text, `?` any character.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

__attribute__((constructor)) static void filter_begin(void)
{
    const char *pattern = getenv("CMOCKA_TEST_FILTER");
    if (pattern && *pattern) cmocka_set_test_filter(pattern);
}
