// SPDX-License-Identifier: Apache-2.0
/* test_double.c - doubles as text equal C's %.17g */
#include "export/write/out/double.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "test/support/support.h"

static void expect(double v)
{
    char ours[KP_DOUBLE_TEXT], theirs[64];
    size_t len = kp_double_text(ours, v);
    snprintf(theirs, sizeof theirs, "%.17g", v);
    assert_string_equal(ours, theirs);
    assert_int_equal(len, strlen(theirs));
}

static void known_values_are_printed_as_printf_does(void **state)
{
    static const double values[] = {0.0,
                                    -0.0,
                                    1,
                                    -1,
                                    0.1,
                                    0.2,
                                    0.3,
                                    1e-5,
                                    9.9999e-5,
                                    1e-4,
                                    1e16,
                                    1e17,
                                    123456789012345678.,
                                    1.5e300,
                                    DBL_MIN,
                                    DBL_MAX,
                                    DBL_TRUE_MIN,
                                    DBL_EPSILON,
                                    5e-324,
                                    2.2250738585072011e-308,
                                    1e22,
                                    1e23,
                                    0.5,
                                    0.25,
                                    99999999999999999.,
                                    9007199254740993.,
                                    1e10,
                                    10000000000.5,
                                    INFINITY,
                                    -INFINITY,
                                    NAN,
                                    -NAN,
                                    3.141592653589793,
                                    100,
                                    1e100,
                                    1e-100,
                                    4503599627370497.5,
                                    0.99999999999999994};
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) expect(values[i]);
}

static void ties_round_to_even(void **state)
{
    (void)state;
    for (int i = 0; i < 64; i++) {
        expect(ldexp(9007199254740991. - i, 3));
        expect(ldexp(4503599627370497. + i, -1));
        expect(ldexp(1 + 2 * i, -60));
    }
}

static void random_bits_are_printed_as_printf_does(void **state)
{
    uint64_t x = 88172645463325252ull;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        double v;
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        memcpy(&v, &x, sizeof v);
        expect(v);
        expect((double)(int64_t)x / 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values_are_printed_as_printf_does),
        cmocka_unit_test(ties_round_to_even),
        cmocka_unit_test(random_bits_are_printed_as_printf_does),
    };
    return cmocka_run_group_tests_name("double", tests, NULL, NULL);
}
