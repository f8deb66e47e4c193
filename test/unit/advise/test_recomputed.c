// SPDX-License-Identifier: Apache-2.0
/* test_recomputed.c - what activation checkpointing computes again: a note with its time and its line */
#include "test/unit/advise/advised.h"

#define LAYER "enc.py(18): forward;"
#define HOOK "torch/utils/checkpoint.py(1351): unpack_hook;torch/autograd/__init__.py(354): backward;train.py(9): main"
#define ASKED \
    "torch/utils/checkpoint.py(517): checkpoint;torch/_compile.py(54): inner;enc.py(34): forward;train.py(7): main"

static void op_from(struct little *t, const char *name, int at, int dur, const char *stack)
{
    char args[400];
    snprintf(args, sizeof args, "\"Call stack\":\"%s\"", stack);
    event(t, "cpu_op", name, 1, at, dur, args);
}

/* Four steps of 100 us. In each node of autograd, 30 us of 40 are of the forward pass, by `hook`. */
static struct kp_advice checkpointed(struct little *t, const char *hook)
{
    char stack[400];
    snprintf(stack, sizeof stack, "%s%s", LAYER, hook);
    for (int step = 0; step < 4; step++) {
        const int at = 100 * step;
        step_event(t, step);
        op_from(t, "aten::addmm", at + 5, 30, LAYER ASKED);
        event(t, "cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 1, at + 40, 55, "");
        event(t, "cpu_op", "AddmmBackward0", 1, at + 41, 53, "");
        op_from(t, "aten::addmm", at + 45, 30, stack);
        op_from(t, "aten::mm", at + 78, 15, "torch/autograd/__init__.py(354): backward;train.py(9): main");
    }
    return advise(t);
}

static void it_is_told_with_the_line_that_asks_for_it(void **state)
{
    const struct kp_advice a = checkpointed(*state, HOOK);
    assert_string_equal(a.recomputed, "activation checkpointing computes a part of the forward pass again: 30.0 us per "
                                      "step (30.0 %), called at enc.py:34 forward. If memory allows, checkpoint fewer "
                                      "layers");
}

/* A program that offloads activations has hooks of its own, by that name. */
static void hooks_of_others_compute_nothing_again(void **state)
{
    const struct kp_advice a =
        checkpointed(*state, "offload.py(12): unpack_hook;torch/autograd/__init__.py(354): backward;train.py(9): main");
    assert_null(a.recomputed);
}

static void without_it_there_is_no_note(void **state)
{
    const struct kp_advice a = checkpointed(*state, "train.py(9): main");
    assert_null(a.recomputed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_is_told_with_the_line_that_asks_for_it, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(hooks_of_others_compute_nothing_again, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(without_it_there_is_no_note, little_setup, little_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
