// SPDX-License-Identifier: Apache-2.0
/* test_jsonout.c - commas, brackets, texts and numbers of JSON that is written to a stream */
#include "export/show/jsonout.h"

#include <math.h>
#include <stdlib.h>

#include "test/support/support.h"

struct written {
    struct kp_jsonout j;
    char *text;
    size_t bytes;
};

static void begin(struct written *w)
{
    *w = (struct written){0};
    w->j.out = open_memstream(&w->text, &w->bytes);
}

static void assert_written(struct written *w, const char *expected)
{
    fclose(w->j.out);
    assert_string_equal(w->text, expected);
    free(w->text);
}

static void members_and_items_are_parted_by_commas(void **state)
{
    (void)state;
    struct written w;
    begin(&w);
    kp_jsonout_open(&w.j, NULL, '{');
    kp_jsonout_whole(&w.j, "a", -3);
    kp_jsonout_open(&w.j, "b", '[');
    kp_jsonout_open(&w.j, NULL, '[');
    kp_jsonout_close(&w.j, ']');
    kp_jsonout_bool(&w.j, NULL, true);
    kp_jsonout_close(&w.j, ']');
    kp_jsonout_null(&w.j, "c");
    kp_jsonout_wholes(&w.j, "d \"\n", KP_JSONOUT_NUMBERS(1, -2));
    kp_jsonout_id(&w.j, "e", INT64_MAX);
    kp_jsonout_close(&w.j, '}');
    assert_written(&w, "{\"a\":-3,\"b\":[[],true],\"c\":null,\"d \\\"\\u000a\":[1,-2],\"e\":\"9223372036854775807\"}");
}

static void a_line_begins_behind_the_comma(void **state)
{
    (void)state;
    struct written w;
    begin(&w);
    kp_jsonout_open(&w.j, NULL, '[');
    kp_jsonout_line(&w.j);
    kp_jsonout_whole(&w.j, NULL, 1);
    kp_jsonout_line(&w.j);
    kp_jsonout_whole(&w.j, NULL, 2);
    kp_jsonout_close(&w.j, ']');
    assert_written(&w, "[\n1,\n2]");
}

static void a_text_is_escaped_and_may_be_missing(void **state)
{
    (void)state;
    struct written w;
    begin(&w);
    kp_jsonout_open(&w.j, NULL, '{');
    kp_jsonout_text(&w.j, "a", "\"\n\xff");
    kp_jsonout_text(&w.j, "b", NULL);
    kp_jsonout_some(&w.j, "c", NULL);
    kp_jsonout_some(&w.j, "d", "x");
    kp_jsonout_close(&w.j, '}');
    assert_written(&w, "{\"a\":\"\\\"\\u000a\xef\xbf\xbd\",\"b\":null,\"d\":\"x\"}");
}

static void a_number_that_is_none_is_null(void **state)
{
    (void)state;
    struct written w;
    begin(&w);
    kp_jsonout_open(&w.j, NULL, '[');
    kp_jsonout_number(&w.j, NULL, NAN, 2);
    kp_jsonout_number(&w.j, NULL, 0.125, 2);
    kp_jsonout_real(&w.j, NULL, 1234567);
    kp_jsonout_unit(&w.j, NULL, 1500, KP_UNIT_MS);
    kp_jsonout_unit(&w.j, NULL, 0.5, KP_UNIT_PERCENT);
    kp_jsonout_unit(&w.j, NULL, 1, KP_UNIT_TRUE);
    kp_jsonout_close(&w.j, ']');
    assert_written(&w, "[null,0.12,1.23457e+06,0.001500,50.0000,true]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_and_items_are_parted_by_commas),
        cmocka_unit_test(a_line_begins_behind_the_comma),
        cmocka_unit_test(a_text_is_escaped_and_may_be_missing),
        cmocka_unit_test(a_number_that_is_none_is_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
