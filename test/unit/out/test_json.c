// SPDX-License-Identifier: Apache-2.0
/* test_json.c - the JSON writer keeps strings legal and numbers exact */
#include "export/write/out/json.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "test/support/support.h"

static char out[1 << 20];
static size_t out_bytes;
static int fail_with;

static int take(void *context, const void *data, size_t bytes)
{
    (void)context;
    if (fail_with) return fail_with;
    if (out_bytes + bytes > sizeof out - 1) return -ENOSPC;
    memcpy(out + out_bytes, data, bytes);
    out_bytes += bytes;
    out[out_bytes] = 0;
    return 0;
}

static struct kp_json start(void)
{
    struct kp_json j;
    out_bytes = 0, out[0] = 0, fail_with = 0;
    assert_int_equal(kp_json_init(&j, take, NULL), 0);
    return j;
}

static void expect(struct kp_json *j, const char *text)
{
    assert_int_equal(kp_json_flush(j), 0);
    assert_string_equal(out, text);
    kp_json_fini(j);
}

static void numbers_are_written_exactly(void **state)
{
    struct kp_json j = start();
    (void)state;
    kp_json_u64(&j, 0), kp_json_char(&j, ' ');
    kp_json_u64(&j, 7), kp_json_char(&j, ' ');
    kp_json_u64(&j, 100), kp_json_char(&j, ' ');
    kp_json_u64(&j, UINT64_MAX), kp_json_char(&j, ' ');
    kp_json_i64(&j, INT64_MIN), kp_json_char(&j, ' ');
    kp_json_i64(&j, -1);
    expect(&j, "0 7 100 18446744073709551615 -9223372036854775808 -1");
}

static void microseconds_have_three_decimals(void **state)
{
    struct kp_json j = start();
    (void)state;
    kp_json_us(&j, 0), kp_json_char(&j, ' ');
    kp_json_us(&j, 7), kp_json_char(&j, ' ');
    kp_json_us(&j, 1050), kp_json_char(&j, ' ');
    kp_json_us(&j, 4360071033247534);
    expect(&j, "0.000 0.007 1.050 4360071033247.534");
}

static void a_format_has_numbers_times_and_escaped_texts(void **state)
{
    struct kp_json j = start();
    (void)state;
    kp_json_fmt(&j, "{\"a\":\"%s\",\"b\":\"%.*s\",", "x\"y", 2, "cut off");
    kp_json_fmt(&j, "\"c\":[%u,%d,%lu,%ld,%ju],\"d\":\"%c\"", UINT32_MAX, -7, UINT64_MAX, INT64_MIN, (uint64_t)1050,
                'f');
    kp_json_fmt(&j, "}");
    expect(&j, "{\"a\":\"x\\\"y\",\"b\":\"cu\",\"c\":[4294967295,-7,18446744073709551615,-9223372036854775808,1.050],"
               "\"d\":\"f\"}");
}

static void special_characters_are_escaped(void **state)
{
    struct kp_json j = start();
    (void)state;
    kp_json_string(&j, "a\"b\\c\nd\te\x01\x1f\x7f", 12);
    expect(&j, "\"a\\\"b\\\\c\\nd\\te\\u0001\\u001f\\u007f\"");
}

/* Plain bytes are taken eight at once: each byte is escaped as it is alone, wherever it stands. */
static void each_byte_is_escaped_alike_wherever_it_stands(void **state)
{
    char text[24], alone[16], want[64];
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        struct kp_json j = start();
        text[0] = (char)byte;
        kp_json_text(&j, text, 1);
        assert_int_equal(kp_json_flush(&j), 0);
        assert_in_range(out_bytes, 1, sizeof alone - 1);
        memcpy(alone, out, out_bytes + 1);
        kp_json_fini(&j);
        const bool is_plain = byte >= ' ' && byte < 0x7f && byte != '"' && byte != '\\';
        assert_int_equal(strlen(alone) == 1 && alone[0] == (char)byte, is_plain);
        for (size_t at = 0; at < sizeof text; at++) {
            memset(text, at % 2 ? '~' : ' ', sizeof text);
            text[at] = (char)byte;
            memcpy(want, text, at);
            strcpy(want + at, alone);
            strncat(want, text + at + 1, sizeof text - 1 - at);
            j = start();
            kp_json_text(&j, text, sizeof text);
            expect(&j, want);
        }
    }
}

static void good_utf8_is_kept_and_bad_becomes_the_replacement(void **state)
{
    struct kp_json j = start();
    (void)state;
    kp_json_cstring(&j, "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80");
    kp_json_cstring(&j, "\xc0\x80");         /* overlong */
    kp_json_cstring(&j, "\xed\xa0\x80");     /* surrogate */
    kp_json_cstring(&j, "\xf4\x90\x80\x80"); /* beyond the last plane */
    kp_json_cstring(&j, "x\xe2\x82");        /* cut */
#define BAD "\xef\xbf\xbd"
    expect(&j, "\"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\"\"" BAD BAD "\"\"" BAD BAD BAD "\"\"" BAD BAD BAD BAD
               "\"\"x" BAD BAD "\"");
}

static void long_strings_pass_through_in_slices(void **state)
{
    static char text[100002];
    struct kp_json j = start();
    (void)state;
    for (size_t i = 0; i + 2 <= sizeof text; i += 2) memcpy(text + i, "\xc3\xa4", 2);
    kp_json_string(&j, text, 100001); /* the last character is cut */
    assert_int_equal(kp_json_flush(&j), 0);
    assert_int_equal(out_bytes, 100000 + 3 + 2);
    assert_memory_equal(out + 1, text, 100000);
    kp_json_fini(&j);
}

static void every_byte_comes_out_when_the_buffer_empties_itself(void **state)
{
    struct kp_json j = start();
    (void)state;
    for (int i = 0; i < 100000; i++) kp_json_lit(&j, "12345");
    assert_int_equal(kp_json_flush(&j), 0);
    assert_int_equal(out_bytes, 500000);
    assert_memory_equal(out + 499995, "12345", 5);
    kp_json_fini(&j);
}

static void the_first_error_of_the_sink_is_kept(void **state)
{
    struct kp_json j = start();
    (void)state;
    fail_with = -ENOSPC;
    kp_json_lit(&j, "x");
    assert_int_equal(kp_json_flush(&j), -ENOSPC);
    fail_with = -EIO;
    kp_json_lit(&j, "y");
    assert_int_equal(kp_json_flush(&j), -ENOSPC);
    kp_json_fini(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_written_exactly),
        cmocka_unit_test(microseconds_have_three_decimals),
        cmocka_unit_test(a_format_has_numbers_times_and_escaped_texts),
        cmocka_unit_test(special_characters_are_escaped),
        cmocka_unit_test(each_byte_is_escaped_alike_wherever_it_stands),
        cmocka_unit_test(good_utf8_is_kept_and_bad_becomes_the_replacement),
        cmocka_unit_test(long_strings_pass_through_in_slices),
        cmocka_unit_test(every_byte_comes_out_when_the_buffer_empties_itself),
        cmocka_unit_test(the_first_error_of_the_sink_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
