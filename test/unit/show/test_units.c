// SPDX-License-Identifier: Apache-2.0
/* test_units.c - times, shares and bytes as a table prints them */
#include "test/support/support.h"

#include "export/show/units.h"

static const char *time_text(double us, char unit)
{
    static char out[40];
    return kp_units_time(out, sizeof out, us, unit);
}

static void a_time_takes_the_unit_of_its_size(void **state)
{
    (void)state;
    assert_string_equal(time_text(0, 0), "0.000us");
    assert_string_equal(time_text(999.9994, 0), "999.999us");
    assert_string_equal(time_text(1000, 0), "1.000ms");
    assert_string_equal(time_text(999999.9, 0), "1000.000ms");
    assert_string_equal(time_text(1e6, 0), "1.000s");
    assert_string_equal(time_text(-5000, 0), "-5000.000us");
    assert_string_equal(time_text(1500, 's'), "0.002s");
    assert_string_equal(time_text(1.5, 'm'), "0.002ms");
    assert_string_equal(time_text(2e6, 'u'), "2000000.000us");
}

static void a_share_of_nothing_is_no_number(void **state)
{
    char out[40];
    (void)state;
    assert_string_equal(kp_units_share(out, sizeof out, 0, 0), "NaN");
    assert_string_equal(kp_units_share(out, sizeof out, 1, 3), "33.33%");
    assert_string_equal(kp_units_share(out, sizeof out, 20, 10), "200.00%");
}

static void bytes_scale_by_their_absolute_value(void **state)
{
    char out[40];
    (void)state;
    assert_string_equal(kp_units_bytes(out, sizeof out, 1023), "1023 B");
    assert_string_equal(kp_units_bytes(out, sizeof out, -1024), "-1.00 KiB");
    assert_string_equal(kp_units_bytes(out, sizeof out, 1280 + 1024 * 8), "9.25 KiB");
    assert_string_equal(kp_units_bytes(out, sizeof out, 9 * 1024 + 128), "9.13 KiB"); /* as units.js rounds 9.125 */
    assert_string_equal(kp_units_torch_bytes(out, sizeof out, 9 * 1024 + 128), "9.12 KB"); /* as Python does */
    assert_string_equal(kp_units_bytes(out, sizeof out, INT64_MIN), "-8388608.00 TiB");
    assert_string_equal(kp_units_bytes(out, sizeof out, 3 << 20), "3.00 MiB");
    assert_string_equal(kp_units_bytes(out, sizeof out, 5ll << 30), "5.00 GiB");
    assert_string_equal(kp_units_bytes(out, sizeof out, (1ll << 40) - (5ll << 30)), "1019.00 GiB");
    assert_string_equal(kp_units_bytes(out, sizeof out, 1ll << 46), "64.00 TiB");
}

static void a_span_has_the_digits_that_tell(void **state)
{
    char out[40];
    (void)state;
    assert_string_equal(kp_units_span(out, sizeof out, 1234567), "1.23 ms");
    assert_string_equal(kp_units_span(out, sizeof out, 123456789), "123 ms");
    assert_string_equal(kp_units_span(out, sizeof out, 12345678901), "12.3 s");
    assert_string_equal(kp_units_span(out, sizeof out, 999999999), "1.00 s");
    assert_string_equal(kp_units_span(out, sizeof out, 4567), "4.57 us");
    assert_string_equal(kp_units_span(out, sizeof out, 0), "0 ms");
    assert_string_equal(kp_units_ms(9.9961e6), "10.0 ms");
    assert_string_equal(kp_units_scaled(out, sizeof out, 999, 0), "999 ns");
    assert_string_equal(kp_units_scaled(out, sizeof out, -1500, 1), "-1.50 ms");
    assert_string_equal(kp_units_scaled(out, sizeof out, 7.2e12, 0), "7200.00 s");
}

static void one_is_not_told_as_many(void **state)
{
    char out[40];
    (void)state;
    assert_string_equal(kp_units_steps(out, sizeof out, 5, 5), "step 5");
    assert_string_equal(kp_units_steps(out, sizeof out, 5, 7), "steps 5 to 7");
    assert_string_equal(kp_units_s(0), "s");
    assert_string_equal(kp_units_s(1), "");
    assert_string_equal(kp_units_s(2), "s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_time_takes_the_unit_of_its_size),
        cmocka_unit_test(a_share_of_nothing_is_no_number),
        cmocka_unit_test(bytes_scale_by_their_absolute_value),
        cmocka_unit_test(a_span_has_the_digits_that_tell),
        cmocka_unit_test(one_is_not_told_as_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
