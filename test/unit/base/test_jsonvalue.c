// SPDX-License-Identifier: Apache-2.0
/* test_jsonvalue.c - members and elements of a text, and texts without escapes */
#include "collector/base/text/kp_jsonvalue.h"

#include <stdlib.h>
#include <string.h>

#include "test/support/support.h"

static struct kp_jsonvalue value(const char *text) { return (struct kp_jsonvalue){text, strlen(text)}; }

static void assert_value(struct kp_jsonvalue found, const char *text)
{
    assert_int_equal(found.bytes, strlen(text));
    assert_memory_equal(found.at, text, found.bytes);
}

static void members_are_found_at_their_own_level(void **state)
{
    const struct kp_jsonvalue all = value("{ \"a\" : {\"b\":1,\"}\":[]} , \"b\":\"x\\\"}\",\"\":null,\"b\":3\n}");
    struct kp_jsonvalue key, found;
    const char *at = NULL;
    size_t count = 0;
    (void)state;
    assert_value(kp_jsonvalue_member(all, "a"), "{\"b\":1,\"}\":[]}");
    assert_value(kp_jsonvalue_member(all, "b"), "\"x\\\"}\"");
    assert_value(kp_jsonvalue_member(all, ""), "null");
    assert_null(kp_jsonvalue_member(all, "c").at);
    while (kp_jsonvalue_next(all, &at, &key, &found)) count++;
    assert_int_equal(count, 4);
    assert_value(found, "3");
    assert_null(kp_jsonvalue_member(value("[\"a\",1]"), "a").at);
    assert_null(kp_jsonvalue_member((struct kp_jsonvalue){NULL, 0}, "a").at);
}

static void elements_come_in_order(void **state)
{
    static const char *const wanted[] = {"1", "[2, \"]\"]", "{}", "\",\"", "-0.5e1"};
    const struct kp_jsonvalue list = value("[1 , [2, \"]\"],{},\",\", -0.5e1 ]");
    struct kp_jsonvalue found;
    const char *at = NULL;
    size_t count = 0;
    (void)state;
    for (; kp_jsonvalue_element(list, &at, &found); count++) assert_value(found, wanted[count]);
    assert_int_equal(count, 5);
    at = NULL;
    assert_false(kp_jsonvalue_element(value("[ ]"), &at, &found));
    at = NULL;
    assert_false(kp_jsonvalue_element(value("{\"a\":1}"), &at, &found));
    at = NULL;
    assert_false(kp_jsonvalue_element((struct kp_jsonvalue){NULL, 0}, &at, &found));
}

/* Memory ends where the text does, so that a read beyond it is caught. */
static void text_that_is_cut_is_not_read_beyond_its_end(void **state)
{
    static const char text[] = "{\"a\":[{\"b\":\"\\u12\\\"\"},12],\"c\":\"d\\\\\"}";
    (void)state;
    for (size_t bytes = 1; bytes < sizeof text; bytes++) {
        char *const copy = malloc(bytes), out[64];
        struct kp_jsonvalue key, found, element;
        memcpy(copy, text, bytes);
        for (const char *at = NULL; kp_jsonvalue_next((struct kp_jsonvalue){copy, bytes}, &at, &key, &found);) {
            (void)kp_jsonvalue_text(out, sizeof out, found);
            for (const char *in = NULL; kp_jsonvalue_element(found, &in, &element);)
                (void)kp_jsonvalue_member(element, "b");
        }
        free(copy);
    }
}

static void strings_lose_their_escapes(void **state)
{
    static const char *const pairs[][2] = {{"\"a\\n\\/\\\\\"", "a\n/\\"},
                                           {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80"},
                                           {"\"\\ud83d!\"", "\xef\xbf\xbd!"},
                                           {"12", "12"},
                                           {"\"\\u4e2d\"", "\xe4\xb8\xad"}};
    char out[64];
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        kp_jsonvalue_text(out, sizeof out, value(pairs[i][0]));
        assert_string_equal(out, pairs[i][1]);
    }
    assert_int_equal(kp_jsonvalue_text(out, 8, value("\"0123456789\"")), 4);
    assert_int_equal(kp_jsonvalue_text(out, 8, (struct kp_jsonvalue){NULL, 0}), 0);
    assert_string_equal(out, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_are_found_at_their_own_level),
        cmocka_unit_test(elements_come_in_order),
        cmocka_unit_test(text_that_is_cut_is_not_read_beyond_its_end),
        cmocka_unit_test(strings_lose_their_escapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
