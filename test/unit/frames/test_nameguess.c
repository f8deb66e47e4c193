// SPDX-License-Identifier: Apache-2.0
/* test_nameguess.c - the name that a name which is not there may mean */
#include "export/read/frames/nameguess.h"
#include "test/unit/tree/little_trace.h"

static char said[256];

static const char *guess_told(struct little *t, const char *word, bool is_whole)
{
    struct kp_nameguess guess;
    if (!t->trace) tree_make(t);
    kp_nameguess_begin(&guess, word);
    guess.is_whole = is_whole;
    for (int twice = 0; twice < 2; twice++)
        for (size_t i = 0; i < t->trace->count; i++) kp_nameguess_see(&guess, t->trace, t->trace->events[i].name);
    kp_nameguess_text(&guess, said, sizeof said);
    kp_nameguess_fini(&guess);
    return said;
}

/* What is said of a word, in a trace with these names. */
static const char *told(struct little *t, const char *word) { return guess_told(t, word, false); }

static void names_make(struct little *t)
{
    trace_of(t, "op aten::mkldnn_convolution 0 1; op aten::_conv2d_impl 2 1; op aten::conv2d 4 1; "
                "range 'forward pass' 6 1; call 'train.py(12): evaluate' 8 1; call 'nn.Module: Linear_4' 10 1");
}

static void an_op_is_meant_without_its_namespace(void **state)
{
    struct little *t = *state;
    names_make(t);
    assert_string_equal(told(t, "conv2d"), " (did you mean aten::conv2d?)");
    assert_string_equal(told(t, "torch.conv2d"), " (did you mean aten::conv2d?)");
    assert_string_equal(told(t, "Conv2D"), " (did you mean aten::conv2d?)");
}

static void a_few_letters_may_differ(void **state)
{
    struct little *t = *state;
    names_make(t);
    assert_string_equal(told(t, "con2vd"), " (did you mean aten::conv2d?)");
    assert_string_equal(told(t, "aten::conv3d"), " (did you mean aten::conv2d?)");
    assert_string_equal(told(t, "evaluat"), " (did you mean evaluate?)");
    assert_string_equal(told(t, "Linear"), " (did you mean Linear_4?)");
}

static void a_call_of_python_is_meant_by_its_function_and_told_by_its_whole_name(void **state)
{
    struct little *t = *state;
    names_make(t);
    assert_string_equal(guess_told(t, "evaluate", true), " (did you mean train.py(12): evaluate?)");
    assert_string_equal(guess_told(t, "evaluat", true), " (did you mean train.py(12): evaluate?)");
    assert_string_equal(guess_told(t, "Linear", true), " (did you mean nn.Module: Linear_4?)");
    assert_string_equal(guess_told(t, "conv2d", true), " (did you mean aten::conv2d?)");
}

static void a_part_of_a_name_means_the_shortest(void **state)
{
    struct little *t = *state;
    names_make(t);
    assert_string_equal(told(t, "forwards p"), "");
    assert_string_equal(told(t, "mkldnn"), " (did you mean aten::mkldnn_convolution?)");
    assert_string_equal(told(t, "ward"), " (did you mean forward pass?)");
}

static void a_pattern_and_another_word_mean_none(void **state)
{
    struct little *t = *state;
    names_make(t);
    assert_string_equal(told(t, "*conv2"), "");
    assert_string_equal(told(t, "backward"), "");
    assert_string_equal(told(t, "xy"), "");
    assert_string_equal(told(t, ""), "");
}

static int teardown(void **state)
{
    struct little *t = *state;
    kp_tree_fini(&t->tree);
    kp_kineto_close(t->trace);
    free(t);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_op_is_meant_without_its_namespace, little_setup, teardown),
        cmocka_unit_test_setup_teardown(a_few_letters_may_differ, little_setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_of_python_is_meant_by_its_function_and_told_by_its_whole_name,
                                        little_setup, teardown),
        cmocka_unit_test_setup_teardown(a_part_of_a_name_means_the_shortest, little_setup, teardown),
        cmocka_unit_test_setup_teardown(a_pattern_and_another_word_mean_none, little_setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
