// SPDX-License-Identifier: Apache-2.0
/* test_jsoncheck.c - what is JSON and what is not, and where it stops */
#include "collector/base/kp_jsoncheck.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/support.h"

/* An exact copy on the heap, so that a byte read too far is seen under ASan. */
static int check(const char *text, size_t bytes, size_t *offset, const char **why)
{
    char *const copy = malloc(bytes ? bytes : 1);
    int rc;
    memcpy(copy, text, bytes);
    rc = kp_jsoncheck_value(copy, bytes, offset, why);
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
    assert_int_equal(kp_jsoncheck_object(" {\"a\":1}", 8, &offset, &why), 0);
    assert_int_equal(kp_jsoncheck_object(" [1]", 4, &offset, &why), -EINVAL);
    assert_int_equal(offset, 1);
    assert_int_equal(kp_jsoncheck_object("{", 1, &offset, &why), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_accepted),
        cmocka_unit_test(what_is_not_json_is_refused_at_its_first_wrong_byte),
        cmocka_unit_test(every_cut_of_a_good_object_is_refused),
        cmocka_unit_test(depth_has_an_end),
        cmocka_unit_test(only_an_object_is_an_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
