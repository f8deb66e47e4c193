// SPDX-License-Identifier: Apache-2.0
/* test_hierarchy.c - modules of TorchScript as a call stack */
#include "test/support/support.h"

#include <string.h>

#include "export/read/kineto/kineto_words.h"

static const char *stack_of(const char *text)
{
    static char out[80];
    out[kp_hierarchy_stack(out, sizeof out, text, strlen(text))] = 0;
    return out;
}

static void the_innermost_module_comes_first(void **state)
{
    (void)state;
    assert_string_equal(stack_of("TOP(Net)::forward.fc1(Linear)::forward."),
                        "nn.Module: fc1(Linear);nn.Module: TOP(Net)");
    assert_string_equal(stack_of("TOP(Net)::forward"), "nn.Module: TOP(Net)");
}

static void another_method_of_a_module_is_no_module(void **state)
{
    (void)state;
    assert_string_equal(stack_of("TOP(Net)::forward.SELF(Net)::gate.one(Linear)::forward."),
                        "nn.Module: one(Linear);nn.Module: TOP(Net)");
}

static void a_class_may_have_points_and_what_is_none_gives_none(void **state)
{
    (void)state;
    assert_string_equal(stack_of("TOP(a.b.Net)::forward.0(a.C(d))::f."),
                        "nn.Module: 0(a.C(d));nn.Module: TOP(a.b.Net)");
    assert_string_equal(stack_of(""), "");
    assert_string_equal(stack_of("..."), "");
    assert_string_equal(stack_of(")))(("), "nn.Module: )))");
    assert_string_equal(stack_of("forward.run"), "");
}

static void what_has_no_room_gives_none(void **state)
{
    (void)state;
    assert_string_equal(stack_of("TOP(NetWithAVeryLongNameThatFillsAllOfTheRoomThereIs)::forward.fc1(Linear)::f."), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_innermost_module_comes_first),
        cmocka_unit_test(another_method_of_a_module_is_no_module),
        cmocka_unit_test(a_class_may_have_points_and_what_is_none_gives_none),
        cmocka_unit_test(what_has_no_room_gives_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
