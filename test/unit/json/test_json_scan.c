// SPDX-License-Identifier: Apache-2.0
/* tests of json_scan.c: what it calls, before what it stops. test_kineto.c compares it with the reader of any JSON. */
#include "export/read/json/json_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char said[4096];

static int say(const char *kind, const char *text, size_t bytes)
{
    const size_t used = strlen(said);
    snprintf(said + used, sizeof said - used, "%s%.*s ", kind, (int)bytes, text);
    return 1;
}

static int on_null(void *context) { return (void)context, say("null", "", 0); }
static int on_boolean(void *context, int value) { return (void)context, say(value ? "true" : "false", "", 0); }
static int on_number(void *context, const char *text, size_t n) { return (void)context, say("", text, n); }
static int on_string(void *context, const unsigned char *text, size_t n)
{
    return (void)context, say("=", (const char *)text, n);
}
static int on_key(void *context, const unsigned char *text, size_t n)
{
    return (void)context, say(".", (const char *)text, n);
}
static int on_map_start(void *context) { return (void)context, say("{", "", 0); }
static int on_map_end(void *context) { return (void)context, say("}", "", 0); }
static int on_array_start(void *context) { return (void)context, say("[", "", 0); }
static int on_array_end(void *context) { return (void)context, say("]", "", 0); }

/* Returns how many bytes were read. The text ends where its memory does, so that a sanitizer sees a step too far. */
static size_t scan(const char *text, size_t bytes)
{
    static const struct kp_json_calls calls = {.null = on_null,
                                               .boolean = on_boolean,
                                               .number = on_number,
                                               .string = on_string,
                                               .map_start = on_map_start,
                                               .map_key = on_key,
                                               .map_end = on_map_end,
                                               .array_start = on_array_start,
                                               .array_end = on_array_end};
    struct kp_json_scan s = {.calls = &calls};
    char *const copy = calloc(1, bytes + KP_JSON_SCAN_ZEROS);
    memcpy(copy, text, bytes);
    said[0] = 0;
    const size_t read = kp_json_scan_list(&s, copy, bytes);
    free(s.buffer);
    free(copy);
    return read;
}

static void plain_values_are_called_in_order(void **state)
{
    static const char text[] = ", {\"a\": 1,\r\n\t\"b\" :[ -0.5e+7,true , false,null,[ ] ,{}]},\"x\\n\\\"\\/y\"  \n";
    (void)state;
    assert_int_equal(scan(text, sizeof text - 1), sizeof text - 1);
    assert_string_equal(said, "{ .a 1 .b [ -0.5e+7 true false null [ ] { } ] } =x\n\"/y ");
}

/* Strings of each length up to three words, and blanks of each number, at every place in a word. */
static void words_of_any_length_are_read_whole(void **state)
{
    (void)state;
    for (int bytes = 0; bytes < 25; bytes++)
        for (int blanks = 0; blanks < 20; blanks++) {
            char text[128], told[64];
            const int n = snprintf(text, sizeof text, ",\n%*s\"%.*s\xc3\xa9\\t!\xff\"%*s", blanks, "", bytes,
                                   "#$%&abcdefgh[]{}:,. 0-+~\x7f", blanks, "");
            assert_int_equal(scan(text, (size_t)n), n);
            snprintf(told, sizeof told, "=%.*s\xc3\xa9\t!\xff ", bytes, "#$%&abcdefgh[]{}:,. 0-+~\x7f");
            assert_string_equal(said, told);
        }
}

static void it_stops_before_a_value_that_is_not_plain(void **state)
{
    static const char *const odd[] = {"\"\\u0041\"", "\"a\x01\"", "\"a\x1f\"",  "\"open",  "\"a\\", "01 ",  "-",
                                      "-x",          "1. ",       "1.e1 ",      "1e ",     "1e+ ",  ".5 ",  "+1 ",
                                      "tru ",        "nul",       "truefalse",  "[1 2]",   "[1,]",  "[",    "[1",
                                      "{\"a\" 1}",   "{\"a\":}",  "{\"a\":1,}", "{a:1}",   "{1:1}", "]",    "}",
                                      "{\"a\":1]",   "NaN ",      "Infinity",   "\"\\x\"", "7",     "\x01", ","};
    (void)state;
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        char text[64];
        const int n = snprintf(text, sizeof text, ", 12 ,%s", odd[i]);
        assert_int_equal(scan(text, (size_t)n), strcmp(odd[i], "truefalse") ? 4 : 10);
    }
    assert_int_equal(scan(",\"a\0b\"", 6), 0);
    assert_int_equal(scan(",1\0,2 ", 6), 0);
    assert_int_equal(scan(", 1 \0, 2 ", 9), 3);
    assert_int_equal(scan("1", 1), 0);
}

static void levels_too_deep_are_left(void **state)
{
    char text[256] = ",";
    (void)state;
    for (int i = 0; i < 32; i++) strcat(text, "[");
    for (int i = 0; i < 32; i++) strcat(text, "]");
    assert_int_equal(scan(text, strlen(text)), strlen(text));
    memset(text + 1, '[', 33);
    memset(text + 34, ']', 33);
    assert_int_equal(scan(text, 67), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_values_are_called_in_order),
        cmocka_unit_test(words_of_any_length_are_read_whole),
        cmocka_unit_test(it_stops_before_a_value_that_is_not_plain),
        cmocka_unit_test(levels_too_deep_are_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
