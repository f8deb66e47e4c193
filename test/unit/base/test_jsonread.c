// SPDX-License-Identifier: Apache-2.0
/* test_jsonread.c - what is JSON and what is not, where it stops, and what is called of it */
#include "collector/base/text/kp_jsonread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/support.h"

/* An exact copy on the heap, so that a byte read too far is seen under ASan. */
static int check(const char *text, size_t bytes, size_t *offset, const char **why)
{
    char *const copy = malloc(bytes ? bytes : 1);
    int rc;
    memcpy(copy, text, bytes);
    rc = kp_jsonread_check(copy, bytes, offset, why);
    free(copy);
    return rc;
}

static void json_is_accepted(void **state)
{
    const char *const good[] = {
        "{}",
        "[]",
        " { } ",
        "0",
        "-0",
        "-1.5e+10",
        "1E5",
        "0.25",
        "true",
        "false",
        "null",
        "\"\"",
        "[[],{},[{}]]",
        "{\"a\":{\"b\":[1,2,{\"c\":null}]},\"d\":\"\\u00e9\\n\\\\\\\"\\/\"}",
        "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"",
        "\t\r\n[ 1 , 2 ]\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        size_t offset = 0;
        const char *why = "";
        if (check(good[i], strlen(good[i]), &offset, &why) != 0) fail_msg("%s: %s at %zu", good[i], why, offset);
    }
}

static void what_is_not_json_is_refused_at_its_first_wrong_byte(void **state)
{
    const struct {
        const char *text;
        size_t offset;
    } bad[] = {
        {"", 0},
        {" ", 1},
        {"{", 1},
        {"[", 1},
        {"{\"a\":1,}", 7},
        {"[1,]", 3},
        {"[1 2]", 3},
        {"{\"a\" 1}", 5},
        {"{a:1}", 1},
        {"{'a':1}", 1},
        {"01", 1},
        {"-", 1},
        {"1.", 2},
        {".5", 0},
        {"1e", 2},
        {"+1", 0},
        {"tru", 0},
        {"nulL", 0},
        {"NaN", 0},
        {"Infinity", 0},
        {"\"a", 2},
        {"\"\\x\"", 2},
        {"\"\\u12g4\"", 5},
        {"\"a\nb\"", 2},
        {"{}{}", 2},
        {"[}", 1},
        {"{]", 1},
        {"[1}", 2},
        {"\"\xc3\"", 1},
        {"\"\xc0\x80\"", 1},
        {"\"\xed\xa0\x80\"", 1},
        {"\"\xf5\x80\x80\x80\"", 1},
        {"\"\x80\"", 1},
        {"\"\xe0\x80\x80\"", 1},
        {"\"\xf4\x90\x80\x80\"", 1},
        {"// no\n{}", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        size_t offset = 999;
        const char *why = NULL;
        assert_int_equal(check(bad[i].text, strlen(bad[i].text), &offset, &why), -EINVAL);
        assert_non_null(why);
        if (offset != bad[i].offset) fail_msg("%s: offset %zu, %s", bad[i].text, offset, why);
    }
}

static void every_cut_of_a_good_object_is_refused(void **state)
{
    const char *const text = "{\"a\":[1.5e3,true,\"\\u00e9\xc3\xa9\"],\"b\":{\"c\":null}}";
    (void)state;
    for (size_t n = 0; n < strlen(text); n++) {
        size_t offset = 0;
        const char *why = "";
        assert_int_equal(check(text, n, &offset, &why), -EINVAL);
        assert_true(offset <= n);
    }
}

static void depth_has_an_end(void **state)
{
    char text[2048];
    size_t offset = 0;
    const char *why = "";
    (void)state;
    memset(text, '[', 512);
    memset(text + 512, ']', 512);
    assert_int_equal(check(text, 1024, &offset, &why), 0);
    memset(text, '[', 513);
    memset(text + 513, ']', 513);
    assert_int_equal(check(text, 1026, &offset, &why), -EINVAL);
    assert_int_equal(offset, 512);
    assert_string_equal(why, "nested too deep");
}

static void only_an_object_is_an_object(void **state)
{
    size_t offset = 9;
    const char *why = "";
    (void)state;
    assert_int_equal(kp_jsonread_check_object(" {\"a\":1}", 8, &offset, &why), 0);
    assert_int_equal(kp_jsonread_check_object(" [1]", 4, &offset, &why), -EINVAL);
    assert_int_equal(offset, 1);
    assert_int_equal(kp_jsonread_check_object("{", 1, &offset, &why), -EINVAL);
}

/* ---- what is called ---- */

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
static const struct kp_json_calls all_calls = {on_null, on_boolean, on_number,      on_string,   on_map_start,
                                               on_key,  on_map_end, on_array_start, on_array_end};

static void *grow(void *memory, size_t bytes)
{
    if (bytes) return realloc(memory, bytes);
    free(memory);
    return NULL;
}

/* Reads the text in pieces of so many bytes, each in memory of its own. Returns UINT64_MAX or the bad offset. */
static uint64_t feed(const char *text, size_t bytes, size_t piece, const char **why)
{
    struct kp_jsonread r = {.calls = &all_calls, .grow = grow};
    bool good = true;
    uint64_t offset = 0;
    said[0] = 0;
    kp_jsonread_open(&r);
    for (size_t at = 0; good && at < bytes; at += piece) {
        const size_t n = bytes - at < piece ? bytes - at : piece;
        char *copy = malloc(n);
        memcpy(copy, text + at, n);
        good = kp_jsonread_feed(&r, copy, n);
        offset = kp_jsonread_offset(&r);
        free(copy);
    }
    if (good && (good = kp_jsonread_end(&r))) offset = UINT64_MAX;
    *why = r.why;
    kp_jsonread_close(&r);
    return offset;
}

/* The text is read as `told`, in pieces of every size. */
static void reads(const char *text, size_t bytes, const char *told)
{
    for (size_t piece = 1; piece <= bytes; piece++) {
        const char *why = NULL;
        if (feed(text, bytes, piece, &why) != UINT64_MAX) fail_msg("%s in %zu: %s", text, piece, why);
        assert_string_equal(said, told);
    }
}

static void values_are_called_in_order(void **state)
{
    static const char text[] =
        " [{\"a\": 1,\r\n\t\"b\" :[ -0.5e+7,true , false,null,[ ] ,{}]},\"x\\n\\\"\\/y\"  \n,0] ";
    (void)state;
    reads(text, sizeof text - 1, "[ { .a 1 .b [ -0.5e+7 true false null [ ] { } ] } =x\n\"/y 0 ] ");
    reads("12", 2, "12 ");
    reads("\"\"", 2, "= ");
}

static void escapes_and_pairs_are_resolved(void **state)
{
    static const char text[] = "[\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\",\"\\ud83d\",\"\\ude00x\",\"\\ud83d\\u0041\","
                               "\"\\b\\f\\n\\r\\t\\\\\",{\"\\u006b\":1}]";
    (void)state;
    reads(text, sizeof text - 1,
          "[ =A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 =\xef\xbf\xbd =\xef\xbf\xbdx =\xef\xbf\xbd"
          "A =\b\f\n\r\t\\ { .k 1 } ] ");
}

/* Strings of each length up to three words, and blanks of each number, at every place in a word. */
static void words_of_any_length_are_read_whole(void **state)
{
    (void)state;
    for (int bytes = 0; bytes < 25; bytes++)
        for (int blanks = 0; blanks < 20; blanks++) {
            char text[128], told[64];
            const char *why = NULL;
            const int n = snprintf(text, sizeof text, "\n%*s\"%.*s\xc3\xa9\\t!\xff\"%*s", blanks, "", bytes,
                                   "#$%&abcdefgh[]{}:,. 0-+~\x7f", blanks, "");
            snprintf(told, sizeof told, "=%.*s\xc3\xa9\t!\xff ", bytes, "#$%&abcdefgh[]{}:,. 0-+~\x7f");
            for (size_t piece = (size_t)n; piece; piece /= 2) {
                assert_true(feed(text, (size_t)n, piece, &why) == UINT64_MAX);
                assert_string_equal(said, told);
            }
        }
}

#define CONTROL "control character in a string"
#define NO_NUMBER "NaN or Infinity in place of a number"
#define NO_NAME "expected a member name in double quotes"

/* As the cases of JSONTestSuite do: refused at the same byte for the same reason, in pieces of every size. */
static void what_is_wrong_is_refused_at_its_byte_in_any_pieces(void **state)
{
    static const struct {
        const char *text;
        unsigned offset;
        const char *why;
    } bad[] = {
        {"[1,,2]", 3, "expected a value"},
        {"[,1]", 1, "expected a value"},
        {"[1 true]", 3, "expected ',' or ']'"},
        {"[1,]", 3, "expected a value"},
        {"[\"\": 1]", 3, "expected ',' or ']'"},
        {"[\"a\\x00b\"]", 4, "unknown escape"},
        {"[\"\\u00A\"]", 7, "expected four hex digits after \\u"},
        {"[\"a\x1f\"]", 3, CONTROL},
        {"[\"new\nline\"]", 5, CONTROL},
        {"[-]", 2, "expected a digit"},
        {"[-x]", 2, "expected a digit"},
        {"[0.e1]", 3, "expected a digit"},
        {"[0e+]", 4, "expected a digit"},
        {"[1.]", 3, "expected a digit"},
        {"[-012]", 3, "expected ',' or ']'"},
        {"[.5]", 1, "expected a value"},
        {"[+1]", 1, "expected a value"},
        {"[0x1]", 2, "expected ',' or ']'"},
        {"[-Infinity]", 1, NO_NUMBER},
        {"[nan]", 1, NO_NUMBER},
        {"[nul]", 1, "expected a value"},
        {"[truth]", 1, "expected a value"},
        {"{\"a\" 1}", 5, "expected ':'"},
        {"{\"a\":}", 5, "expected a value"},
        {"{\"a\":1,}", 7, NO_NAME},
        {"{1:1}", 1, NO_NAME},
        {"{\"a\":1]", 6, "expected ',' or '}'"},
        {"[1}", 2, "expected ',' or ']'"},
        {"{}}", 2, "text after the end"},
        {"1 2", 2, "text after the end"},
        {"[\v1]", 1, "expected a value"},
        {"\xef\xbb\xbf{}", 0, "expected a value"},
        {"[1", 2, "expected ',' or ']'"},
        {"[\"a", 3, "string without an end"},
        {"[1,", 3, "ends too early"},
        {"", 0, "ends too early"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        for (size_t bytes = strlen(bad[i].text), piece = bytes ? bytes : 1; piece; piece--) {
            const char *why = NULL;
            const uint64_t offset = feed(bad[i].text, bytes, piece, &why);
            if (strncmp(bad[i].why, "NaN", 3) == 0 && piece < bytes) break; /* the word must lie in one piece */
            if (offset != bad[i].offset) fail_msg("%s in %zu: %ju: %s", bad[i].text, piece, (uintmax_t)offset, why);
            assert_string_equal(why, bad[i].why);
        }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) { /* the same far before the end of a text */
        char text[128];
        const char *why = NULL;
        if (bad[i].offset == strlen(bad[i].text)) continue;
        const int n = snprintf(text, sizeof text, "%s, \"and so it goes on\", \"and on\"]", bad[i].text);
        const uint64_t offset = feed(text, (size_t)n, (size_t)n, &why);
        if (offset != bad[i].offset) fail_msg("%s: %ju: %s", text, (uintmax_t)offset, why);
        assert_string_equal(why, bad[i].why);
    }
}

static int on_digits(void *context, const char *text, size_t bytes)
{
    const struct kp_jsonread *const r = context;
    const size_t used = strlen(said);
    (void)text, (void)bytes;
    if (r->decimals < 0) snprintf(said + used, sizeof said - used, "? ");
    else snprintf(said + used, sizeof said - used, "%ju/%d ", (uintmax_t)r->digits, r->decimals);
    return 1;
}

static int on_text(void *context, const unsigned char *text, size_t n)
{
    return on_digits(context, (const char *)text, n);
}

/* Of more digits than a word has, and of an exponent, the text alone is known. Also of a value that is no number. */
static void digits_of_a_number_are_known(void **state)
{
    static const char text[] = "[12, -1.250, 0, 0.5, 1e2, 1.5E1, 9999999999999999999, 10000000000000000000, "
                               "123456789012345678.9, 1234567890123456789.5, -0.001, \"12\", true, 7]";
    struct kp_json_calls calls = all_calls;
    struct kp_jsonread r = {.calls = &calls, .grow = grow, .context = &r};
    (void)state;
    calls.number = on_digits;
    calls.string = on_text;
    said[0] = 0;
    kp_jsonread_open(&r);
    assert_true(kp_jsonread_feed(&r, text, sizeof text - 1) && kp_jsonread_end(&r));
    assert_string_equal(said,
                        "[ 12/0 1250/3 0/0 5/1 ? ? 9999999999999999999/0 ? 1234567890123456789/1 ? 1/3 ? true 7/0 ] ");
    kp_jsonread_close(&r);
}

/* A word has 64 levels. */
static void each_of_many_levels_keeps_its_kind(void **state)
{
    enum { DEEP = 200 };
    char text[8 * DEEP] = "", told[8 * DEEP] = "";
    (void)state;
    for (int i = 0; i < DEEP; i++) {
        strcat(text, i % 3 ? "[" : "{\"a\":");
        strcat(told, i % 3 ? "[ " : "{ .a ");
    }
    strcat(text, "1");
    strcat(told, "1 ");
    for (int i = DEEP; i--;) {
        strcat(text, i % 3 ? "]" : "}");
        strcat(told, i % 3 ? "] " : "} ");
    }
    reads(text, strlen(text), told);
}

static void levels_have_no_end_where_memory_grows(void **state)
{
    enum { DEEP = 5000 };
    char *text = malloc(2 * DEEP);
    struct kp_jsonread r = {.grow = grow};
    (void)state;
    for (int i = 0; i < DEEP / 2; i++) memcpy(text + 2 * i, "[[", 2);
    memset(text + DEEP, ']', DEEP);
    kp_jsonread_open(&r);
    assert_true(kp_jsonread_feed(&r, text, 2 * DEEP) && kp_jsonread_end(&r));
    kp_jsonread_close(&r);
    r = (struct kp_jsonread){.grow = grow};
    text[2 * DEEP - 1] = '}';
    kp_jsonread_open(&r);
    assert_false(kp_jsonread_feed(&r, text, 2 * DEEP));
    assert_true(kp_jsonread_offset(&r) == 2 * DEEP - 1);
    kp_jsonread_close(&r);
    free(text);
}

/* Blocks of a trace are read so: each begins behind an event. */
static void a_text_may_begin_inside_of_a_list(void **state)
{
    struct kp_jsonread r = {.calls = &all_calls, .grow = grow};
    (void)state;
    said[0] = 0;
    kp_jsonread_open(&r);
    kp_jsonread_enter_list(&r);
    assert_true(kp_jsonread_feed(&r, ", {\"a\":1}", 9));
    assert_string_equal(said, "{ .a 1 } ");
    assert_true(kp_jsonread_offset(&r) == 9 && kp_jsonread_pending(&r) == 0);
    assert_true(kp_jsonread_feed(&r, " , \"b", 5));
    assert_true(kp_jsonread_pending(&r) == 3);
    kp_jsonread_close(&r);
}

/* A long string in small pieces is not read from its beginning with each. */
static void a_long_string_in_pieces_is_read_in_time(void **state)
{
    enum { LONG = 16 << 20, PIECE = 512 };
    struct kp_jsonread r = {.grow = grow};
    char piece[PIECE];
    (void)state;
    memset(piece, 'x', sizeof piece);
    kp_jsonread_open(&r);
    assert_true(kp_jsonread_feed(&r, "\"", 1));
    for (int i = 0; i < LONG / PIECE; i++) assert_true(kp_jsonread_feed(&r, piece, PIECE));
    assert_true(kp_jsonread_feed(&r, "\"", 1) && kp_jsonread_end(&r));
    kp_jsonread_close(&r);
}

static int refuse(void *context, int value) { return (void)context, !value; }

static void a_call_stops_the_reading(void **state)
{
    struct kp_json_calls calls = all_calls;
    struct kp_jsonread r = {.calls = &calls, .grow = grow};
    (void)state;
    calls.boolean = refuse;
    kp_jsonread_open(&r);
    assert_false(kp_jsonread_feed(&r, "[false,true,1]", 14));
    assert_true(kp_jsonread_offset(&r) == 11);
    assert_false(kp_jsonread_feed(&r, "]", 1));
    kp_jsonread_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_accepted),
        cmocka_unit_test(what_is_not_json_is_refused_at_its_first_wrong_byte),
        cmocka_unit_test(every_cut_of_a_good_object_is_refused),
        cmocka_unit_test(depth_has_an_end),
        cmocka_unit_test(only_an_object_is_an_object),
        cmocka_unit_test(values_are_called_in_order),
        cmocka_unit_test(escapes_and_pairs_are_resolved),
        cmocka_unit_test(words_of_any_length_are_read_whole),
        cmocka_unit_test(what_is_wrong_is_refused_at_its_byte_in_any_pieces),
        cmocka_unit_test(digits_of_a_number_are_known),
        cmocka_unit_test(each_of_many_levels_keeps_its_kind),
        cmocka_unit_test(levels_have_no_end_where_memory_grows),
        cmocka_unit_test(a_text_may_begin_inside_of_a_list),
        cmocka_unit_test(a_long_string_in_pieces_is_read_in_time),
        cmocka_unit_test(a_call_stops_the_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
