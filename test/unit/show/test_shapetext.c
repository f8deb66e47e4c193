// SPDX-License-Identifier: Apache-2.0
/* test_shapetext.c - equal tensors of a list are counted; what is no list, or is cut, stays as it is */
#include "export/show/shapetext.h"

#include <stdio.h>
#include <string.h>

#include "test/support/support.h"

static char out[256];

static const char *shown(const char *text) { return kp_shapetext_short(out, sizeof out, text); }

static void equal_tensors_of_a_list_are_counted(void **state)
{
    (void)state;
    assert_string_equal(shown("[[[3, 32, 32], [3, 32, 32], [3, 32, 32]], []]"), "[3 x [3, 32, 32], []]");
    assert_string_equal(shown("[[[3, 4], [3, 4], [5], [], []], [2]]"), "[[2 x [3, 4], [5], 2 x []], [2]]");
    assert_string_equal(shown("[[[5], [3, 4], [3, 4]]]"), "[[[5], 2 x [3, 4]]]");
    assert_string_equal(shown("[[], [[3], [3]], [[3], [3]]]"), "[[], 2 x [3], 2 x [3]]");
}

static void what_is_no_list_of_equal_tensors_stays(void **state)
{
    static const char *const texts[] = {
        "",          "[]",    "[[2, 3], [2, 3]]",   "[[[3, 4]], []]", "[[[3], [33], [3]]]", "[[[3], [3",
        "[[[3], 4]", "]]][[", "[[[3, 4], [3, 44]]]"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) assert_string_equal(shown(texts[i]), texts[i]);
}

static void a_long_list_is_its_number_of_tensors(void **state)
{
    char text[1024] = "[[", *at = text + 2;
    (void)state;
    for (int i = 0; i < 40; i++) at += sprintf(at, "%s[%d, 7]", i ? ", " : "", i);
    strcpy(at, "], [5]]");
    assert_string_equal(shown(text), "[40 tensors, [5]]");
}

static void torch_shows_a_list_as_an_empty_one(void **state)
{
    (void)state;
    assert_string_equal(kp_shapetext_torch(out, sizeof out, "[[2, 3], [[1], [2, 2]], [], [[]], [1, [2]]]"),
                        "[[2, 3], [], [], [], []]");
    assert_string_equal(kp_shapetext_torch(out, sizeof out, "[]"), "[]");
}

static void it_is_cut_at_its_room(void **state)
{
    (void)state;
    assert_string_equal(kp_shapetext_short(out, 9, "[[[3, 32, 32], [3, 32, 32]], []]"), "[2 x [3,");
    assert_string_equal(kp_shapetext_short(out, 1, "[[2]]"), "");
}

static void types_other_than_float_alone_are_shown(void **state)
{
    (void)state;
    assert_int_equal(kp_shapetext_type("double", 6), KP_TYPES_DOUBLE);
    assert_int_equal(kp_shapetext_type("c10::BFloat16", 13), KP_TYPES_BFLOAT16);
    assert_int_equal(kp_shapetext_type("doubled", 7) | kp_shapetext_type("long int", 8), 0);
    assert_string_equal(kp_shapetext_types(out, sizeof out, KP_TYPES_FLOAT), "");
    assert_string_equal(kp_shapetext_types(out, sizeof out, 0), "");
    assert_string_equal(kp_shapetext_types(out, sizeof out, KP_TYPES_DOUBLE), " double");
    assert_string_equal(kp_shapetext_types(out, sizeof out, KP_TYPES_HALF | KP_TYPES_FLOAT), " float and half");
}

static void numbers_are_counted_by_tensor(void **state)
{
    static const struct {
        const char *text;
        double all, largest;
    } rows[] = {
        {"[[32, 100], [], [100]]", 3300, 3200}, {"[]", 0, 0}, {"[[[2, 3], [4]], [5, 0]]", 10, 6}, {"[[7", 0, 0}};
    double all, largest;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kp_shapetext_numbers(rows[i].text, &all, &largest);
        assert_float_equal(all, rows[i].all, 0);
        assert_float_equal(largest, rows[i].largest, 0);
    }
}

static void an_input_is_found_by_its_number(void **state)
{
    static const char text[] = "[[32, 100], [], [[2, 3], [4]]]";
    static const char *const inputs[] = {"[32, 100]", "[]", "[[2, 3], [4]]", NULL};
    size_t bytes;
    (void)state;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        const char *const input = kp_shapetext_input(text, i, &bytes);
        assert_int_equal(input != NULL, inputs[i] != NULL);
        assert_int_equal(bytes, inputs[i] ? strlen(inputs[i]) : 0);
        if (input) assert_memory_equal(input, inputs[i], bytes);
    }
    assert_null(kp_shapetext_input("", 0, &bytes));
    assert_null(kp_shapetext_input("[[7", 0, &bytes));
}

static void dimensions_are_those_of_one_tensor(void **state)
{
    static const char text[] = "[[32, 100], [], [[2, 3], [4]], [1, 2, 3, 4, 5, 6, 7, 8, 9]]";
    static const struct {
        size_t count;
        double last;
        bool is_other;
    } inputs[] = {{2, 100, false}, {0, 0, false}, {0, 0, true}, {8, 8, true}};
    struct kp_dims dims;
    (void)state;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        assert_true(kp_shapetext_dims(&dims, text, i));
        assert_int_equal(dims.count, inputs[i].count);
        assert_int_equal(dims.is_other, inputs[i].is_other);
        if (dims.count) assert_float_equal(dims.of[dims.count - 1], inputs[i].last, 0);
    }
    assert_false(kp_shapetext_dims(&dims, text, 4));
    assert_false(kp_shapetext_dims(&dims, "", 0));
    assert_int_equal(dims.count, 0);
}

static void tensors_of_a_list_are_counted(void **state)
{
    (void)state;
    assert_int_equal(kp_shapetext_tensors("[[[3, 32], [3]], []]"), 2);
    assert_int_equal(kp_shapetext_tensors("[[2 x [3, 32], [], 4 x [3]], [[1]]]"), 7);
    assert_int_equal(kp_shapetext_tensors("[4 x [], []]"), 4);
    assert_int_equal(kp_shapetext_tensors("[148 tensors, []]"), 148);
    assert_int_equal(kp_shapetext_tensors("[[3, 32], []]"), 0);
    assert_int_equal(kp_shapetext_tensors("[[], []]"), 0);
    assert_int_equal(kp_shapetext_tensors(""), 0);
}

static void elements_of_each_tensor_are_counted(void **state)
{
    static const char *const list = "[[[16, 101, 128], [16, 1, 128], []], [5], [], [2, 3]]";
    double of[3] = {0};
    (void)state;
    assert_int_equal(kp_shapetext_elements(list, 0, of, 3), 2);
    assert_true(of[0] == 16.0 * 101 * 128 && of[1] == 16.0 * 128);
    assert_int_equal(kp_shapetext_elements(list, 0, of, 1), 1);
    assert_int_equal(kp_shapetext_elements(list, 3, of, 3), 1);
    assert_true(of[0] == 6);
    assert_int_equal(kp_shapetext_elements(list, 2, of, 3), 0);
    assert_int_equal(kp_shapetext_elements(list, 4, of, 3), 0);
    assert_int_equal(kp_shapetext_elements("", 0, of, 3), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_input_is_found_by_its_number),
        cmocka_unit_test(dimensions_are_those_of_one_tensor),
        cmocka_unit_test(numbers_are_counted_by_tensor),
        cmocka_unit_test(tensors_of_a_list_are_counted),
        cmocka_unit_test(elements_of_each_tensor_are_counted),
        cmocka_unit_test(types_other_than_float_alone_are_shown),
        cmocka_unit_test(equal_tensors_of_a_list_are_counted),
        cmocka_unit_test(what_is_no_list_of_equal_tensors_stays),
        cmocka_unit_test(a_long_list_is_its_number_of_tensors),
        cmocka_unit_test(torch_shows_a_list_as_an_empty_one),
        cmocka_unit_test(it_is_cut_at_its_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
