// SPDX-License-Identifier: Apache-2.0
/* test_columns.c - unit tests of export/show/columns.c: one list of columns as text and as JSON */
#include "test/support/support.h"

#include <stdio.h>
#include <stdlib.h>

#include "export/show/columns.h"

struct fruits {
    bool has_weight;
    double all;
};
struct fruit {
    const char *name, *remark;
    double ns, bytes;
};
#define KP_TABLE struct fruits
#define KP_ROW struct fruit
/* clang-format off */
#define COLUMNS(NUMBER, TEXT) \
    TEXT(name, "fruit", "name", -4, true, r->name) \
    NUMBER(ns, "ms", "ms", MS_FIT, 1, true, r->ns) \
    NUMBER(share, "share", "share", SHARE, 7, true, t->all > 0 ? r->ns / t->all : NAN) \
    NUMBER(bytes, "size", "bytes", BYTES, 1, t->has_weight, r->bytes) \
    NUMBER(is_light, NULL, "is_light", TRUE, 0, true, r->bytes < 100) \
    NUMBER(times, "times", NULL, TIMES, 1, true, r->ns / 1e6) \
    TEXT(remark, "", "remark", 0, true, r->remark)
KP_COLUMNS(columns, COLUMNS)
/* clang-format on */

static const struct fruit rows[] = {{"\xc3\xa4pfel", NULL, 12e6, 50}, {"fig", "ripe", -100, 2048}};

static void assert_table(const struct fruits *table, const char *expected)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    kp_columns_print(out, KP_COLUMNS_OF(columns, table, rows, 2));
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
}

static void columns_are_as_wide_as_what_they_show(void **state)
{
    (void)state;
    assert_table(&(struct fruits){true, 12e6}, "fruit     ms    share      size  times\n"
                                               "\xc3\xa4pfel  12.00  100.0 %      50 B  12.00\n"
                                               "fig     0.00    0.0 %  2.00 KiB   0.00  ripe\n");
}

static void what_is_not_known_is_a_line_and_what_is_not_shown_is_left_out(void **state)
{
    (void)state;
    assert_table(&(struct fruits){false, 0}, "fruit     ms    share  times\n"
                                             "\xc3\xa4pfel  12.00        -  12.00\n"
                                             "fig     0.00        -   0.00  ripe\n");
}

static void assert_json(const struct fruit *row, const char *expected)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    kp_columns_json(KP_JSONOUT(out), KP_COLUMNS_OF(columns, (&(struct fruits){true, 0}), rows, 2), row);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
}

static void json_has_the_keys_of_the_same_columns(void **state)
{
    (void)state;
    assert_json(&rows[1], "\"name\":\"fig\",\"ms\":-0.000100,\"bytes\":2048,\"is_light\":false,\"remark\":\"ripe\"");
}

static void json_has_no_key_of_a_text_that_a_row_has_not(void **state)
{
    (void)state;
    assert_json(&rows[0], "\"name\":\"\xc3\xa4pfel\",\"ms\":12.000000,\"bytes\":50,\"is_light\":true");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(columns_are_as_wide_as_what_they_show),
                                       cmocka_unit_test(what_is_not_known_is_a_line_and_what_is_not_shown_is_left_out),
                                       cmocka_unit_test(json_has_the_keys_of_the_same_columns),
                                       cmocka_unit_test(json_has_no_key_of_a_text_that_a_row_has_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
