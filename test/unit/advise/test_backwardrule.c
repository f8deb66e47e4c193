// SPDX-License-Identifier: Apache-2.0
/* test_backwardrule.c - Python in the backward of a custom autograd function */
#include "test/unit/advise/advised.h"

enum { STEP_US = 1000 };

/* Each step: 400 us of ops, then a node of autograd of 500 us, of which an op takes 200. */
static const struct kp_finding *backward_find(struct kp_advice *a, struct little *t, const char *name)
{
    for (int step = 0; step < 3; step++) {
        const int at = STEP_US * step;
        char engine[96];
        snprintf(engine, sizeof engine, "autograd::engine::evaluate_function: %s", name);
        numbered_step(t, step, at, STEP_US);
        op(t, "aten::relu", at, 400);
        op(t, engine, at + 400, 520);
        op(t, name, at + 410, 500);
        op(t, "aten::mul", at + 500, 200);
        op(t, "aten::empty", at + 510, 50);
    }
    *a = advise(t);
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, "python-backward") == 0) return &a->findings[i];
    return NULL;
}

static void what_runs_without_an_op_there_is_told(void **state)
{
    struct kp_advice a;
    const struct kp_finding *const f = backward_find(&a, *state, "SlowBackward");
    assert_non_null(f);
    assert_float_equal(f->step_ns, 300000, 1);
    assert_string_equal(f->where, "autograd::engine::evaluate_function: SlowBackward");
    assert_false(f->is_critical);
}

static void a_node_of_cpp_or_of_a_compiled_function_is_not(void **state)
{
    struct kp_advice a;
    assert_null(backward_find(&a, *state, "MmBackward0"));
    little_teardown(state);
    little_setup(state);
    assert_null(backward_find(&a, *state, "CompiledFunctionBackward"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(what_runs_without_an_op_there_is_told),
        LITTLE(a_node_of_cpp_or_of_a_compiled_function_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
