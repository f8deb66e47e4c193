// SPDX-License-Identifier: Apache-2.0
/* test_fmt.c - the formatter agrees with libc's on every format it knows */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "collector/base/kp_log.h"
#include "test/support/support.h"

#define SAME(...)                                                      \
    do {                                                               \
        char mine[256], libc[256];                                     \
        size_t n = kp_fmt(mine, sizeof mine, __VA_ARGS__);             \
        assert_int_equal(n, snprintf(libc, sizeof libc, __VA_ARGS__)); \
        assert_string_equal(mine, libc);                               \
    } while (0)

static void it_formats_as_libc_does(void **state)
{
    (void)state;
    SAME("plain");
    SAME("%s|%s", "", "text");
    SAME("%d %d %d", 0, INT_MIN, INT_MAX);
    SAME("%u %x", UINT_MAX, 0xbeefu);
    SAME("%ld %lu %lx", LONG_MIN, ULONG_MAX, 0xfeedbeefcafel);
    SAME("%lld %llu %zu", LLONG_MIN, ULLONG_MAX, (size_t)12345678901234u);
    SAME("%02x%02x%02x %08lx %03u", 0, 7, 0xffu, 0xcafel, 12345u);
    SAME("%.*s|%.*s|%.*s", 3, "abcdef", 0, "abc", 9, "abc");
    SAME("%c%c 100%% %p", 'a', 'z', (void *)0x1234);
}

static void a_small_buffer_is_cut_and_ended(void **state)
{
    char b[8] = "xxxxxxx";
    (void)state;
    assert_int_equal(kp_fmt(b, sizeof b, "%s", "0123456789"), 10);
    assert_string_equal(b, "0123456");
    assert_int_equal(kp_fmt(b, 1, "%d", 42), 2);
    assert_string_equal(b, "");
    assert_int_equal(kp_fmt(NULL, 0, "%d", 42), 2);
}

static void a_null_string_does_no_harm(void **state)
{
    char b[16];
    const char *volatile none = NULL;
    (void)state;
    kp_fmt(b, sizeof b, "%s", none);
    assert_string_equal(b, "(null)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_formats_as_libc_does),
        cmocka_unit_test(a_small_buffer_is_cut_and_ended),
        cmocka_unit_test(a_null_string_does_no_harm),
    };
    return cmocka_run_group_tests_name("fmt", tests, NULL, NULL);
}
