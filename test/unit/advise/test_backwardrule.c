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

static const struct kp_finding *finding_of(const struct kp_advice *a, const char *id)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, id) == 0) return &a->findings[i];
    return NULL;
}

/* 600 us of ops a step, then a function of 380 us with so many ops of 6 us in 9 us, or of 100 us. */
static struct kp_advice loop_advise(struct little *t, const char *name, const char *inner, int count)
{
    static const char around[] = "\"Call stack\":\"train.py(74): train\"";
    for (int step = 0; step < 3; step++) {
        const int at = STEP_US * step, length = count > 9 ? 6 : 100;
        numbered_step(t, step, at, STEP_US);
        op(t, "aten::relu", at, 600);
        event(t, "cpu_op", name, 1, at + 600, 380, around);
        for (int i = 0; i < count; i++)
            event(t, "cpu_op", inner, 1, at + 605 + i * (length + 3), length,
                  "\"Call stack\":\"mixing.py(26): backward;train.py(74): train\"");
    }
    return advise(t);
}

static void a_loop_of_small_ops_costs_all_of_its_backward(void **state)
{
    const struct kp_advice a = loop_advise(*state, "ScanBackward", "aten::mul", 40);
    const struct kp_finding *const f = finding_of(&a, "loop-in-function");
    assert_non_null(f);
    assert_null(finding_of(&a, "python-backward"));
    assert_float_equal(f->step_ns, 380000, 1);
    assert_int_equal(f->steps, 3);
    assert_string_equal(f->line, "mixing.py:26 backward");
    assert_false(f->is_backward);
    assert_false(f->is_critical);
    assert_non_null(strstr(f->what, "the backward of Scan, a custom"));
    assert_non_null(strstr(f->what, "runs 40 operators one by one"));
}

static void a_few_ops_are_no_loop_nor_is_a_pass_that_autograd_runs(void **state)
{
    struct kp_advice a = loop_advise(*state, "ScanBackward", "aten::mul", 31);
    assert_null(finding_of(&a, "loop-in-function"));
    little_teardown(state);
    little_setup(state);
    a = loop_advise(*state, "ScanBackward", "aten::mul", 3);
    assert_null(finding_of(&a, "loop-in-function"));
    little_teardown(state);
    little_setup(state);
    a = loop_advise(*state, "CheckpointFunctionBackward", "autograd::engine::evaluate_function: MmBackward0", 40);
    assert_null(finding_of(&a, "loop-in-function"));
    little_teardown(state);
    little_setup(state);
    a = loop_advise(*state, "Scan", "aten::mul", 40);
    assert_null(finding_of(&a, "loop-in-function"));
}

/* Its backward, which is no loop, tells that it is a custom function. */
static void a_loop_in_the_forward_pass_is_told(void **state)
{
    struct little *const t = *state;
    for (int step = 0; step < 3; step++) {
        const int at = STEP_US * step;
        char args[128];
        numbered_step(t, step, at, STEP_US);
        snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":0,\"Call stack\":\"train.py(9): run\"",
                 step);
        event(t, "cpu_op", "Scan", 1, at, 380, args);
        for (int i = 0; i < 40; i++)
            event(t, "cpu_op", "aten::add", 1, at + 5 + 9 * i, 6,
                  "\"Call stack\":\"mixing.py(18): forward;train.py(9): run\"");
        op(t, "aten::relu", at + 400, 400);
        op(t, "autograd::engine::evaluate_function: ScanBackward", at + 800, 110);
        snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":1", step);
        event(t, "cpu_op", "ScanBackward", 1, at + 805, 100, args);
        op(t, "aten::mm", at + 806, 98);
    }
    const struct kp_advice a = advise(t);
    const struct kp_finding *const f = finding_of(&a, "loop-in-function");
    assert_non_null(f);
    assert_float_equal(f->step_ns, 380000, 1);
    assert_string_equal(f->line, "mixing.py:18 forward");
    assert_non_null(strstr(f->what, "the forward of Scan, a custom"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(what_runs_without_an_op_there_is_told),
        LITTLE(a_node_of_cpp_or_of_a_compiled_function_is_not),
        LITTLE(a_loop_of_small_ops_costs_all_of_its_backward),
        LITTLE(a_few_ops_are_no_loop_nor_is_a_pass_that_autograd_runs),
        LITTLE(a_loop_in_the_forward_pass_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
