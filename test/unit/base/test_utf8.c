// SPDX-License-Identifier: Apache-2.0
/* test_utf8.c - what is written for a code point is one whole character */
#include "collector/base/text/kp_utf8.h"

#include "test/support/support.h"

static uint32_t code_of(const unsigned char *s, size_t n)
{
    uint32_t c = n == 1 ? s[0] : s[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) c = c << 6 | (s[i] & 0x3f);
    return c;
}

static void every_code_point_comes_back(void **state)
{
    (void)state;
    for (uint32_t c = 0; c <= 0x10ffff; c++) {
        char out[4];
        const size_t n = kp_utf8_put(out, c);
        const int is_surrogate = c >= 0xd800 && c < 0xe000;
        assert_int_equal(n, c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4);
        assert_int_equal(code_of((const unsigned char *)out, n), c);
        assert_int_equal(kp_utf8_length((const unsigned char *)out, n), n == 1 || is_surrogate ? 0 : n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
