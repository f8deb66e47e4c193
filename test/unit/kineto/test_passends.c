// SPDX-License-Identifier: Apache-2.0
/* test_passends.c - backward passes end the steps of a program without an optimizer, where they come regularly */
#include "export/read/kineto/passends.h"

#include "test/unit/tree/little_trace.h"

static const char engine[] = "autograd::engine::evaluate_function: ";

/* A forward, and its backward behind it: a node of that name and the gradients of two parameters. Ends at `ts` + 70. */
static void pass(struct little *t, const char *node, int ts, int engine_tid)
{
    char name[128];
    event(t, "cpu_op", "aten::linear", 1, ts, 20, "\"Sequence number\":1,\"Fwd thread id\":0");
    snprintf(name, sizeof name, "%s%s", engine, node);
    event(t, "cpu_op", name, engine_tid, ts + 30, 20, "");
    event(t, "cpu_op", "aten::add_", engine_tid, ts + 32, 5, "");
    snprintf(name, sizeof name, "%storch::autograd::AccumulateGrad", engine);
    for (int i = 0; i < 2; i++) event(t, "cpu_op", name, engine_tid, ts + 50 + 10 * i, 10, "");
}

static void update(struct little *t, int ts)
{
    for (int i = 0; i < 2; i++) op(t, "aten::sub_", ts + 72 + 4 * i, 3);
}

/* The steps that the trace has. */
static size_t steps_of(struct little *t)
{
    assert_int_equal(choose(t, &everything), 0);
    return t->chosen.step_count;
}

static void each_pass_with_its_update_is_a_step(void **state)
{
    struct little *const t = *state;
    for (int i = 0; i < 5; i++) pass(t, "A", 100 * i, 1), update(t, 100 * i);
    assert_int_equal(steps_of(t), 4);
    assert_int_equal(t->chosen.ended_by, KP_STEPENDS_PASS);
    assert_int_equal(t->chosen.optimizer_steps, 5);
    assert_int_equal(t->chosen.steps[0].start_ns, 70000);
    assert_int_equal(t->chosen.steps[3].end_ns, 470000);
}

static void passes_without_an_update_between_them_are_of_one_step(void **state)
{
    struct little *const t = *state;
    for (int i = 0; i < 12; i++) {
        pass(t, "A", 100 * i, 1);
        if (i % 4 == 3) update(t, 100 * i);
    }
    assert_int_equal(steps_of(t), 2);
    assert_int_equal(t->chosen.steps[0].start_ns, 370000);
    assert_int_equal(t->chosen.steps[1].end_ns, 1170000);
}

static void kinds_that_alternate_are_of_one_step(void **state)
{
    struct little *const t = *state;
    for (int i = 0; i < 12; i++) pass(t, i % 3 == 2 ? "Generator" : "Critic", 100 * i, 1), update(t, 100 * i);
    assert_int_equal(steps_of(t), 3);
    assert_int_equal(t->chosen.steps[0].start_ns, 270000);
}

static void the_first_pass_may_be_of_another_kind(void **state)
{
    struct little *const t = *state;
    for (int i = 0; i < 5; i++) pass(t, i ? "A" : "WithoutState", 100 * i, 1), update(t, 100 * i);
    assert_int_equal(steps_of(t), 4);
}

static void kinds_without_a_pattern_are_no_steps(void **state)
{
    static const char of[] = "AABABBBABAAB";
    struct little *const t = *state;
    for (int i = 0; i < 12; i++) pass(t, of[i] == 'A' ? "A" : "B", 100 * i, 1), update(t, 100 * i);
    assert_int_equal(steps_of(t), 0);
    assert_int_equal(t->chosen.optimizer_steps, 0);
}

static void two_passes_are_no_training(void **state)
{
    struct little *const t = *state;
    for (int i = 0; i < 2; i++) pass(t, "A", 100 * i, 1), update(t, 100 * i);
    assert_int_equal(steps_of(t), 0);
}

static void the_engine_of_a_device_has_a_thread_of_its_own(void **state)
{
    struct little *const t = *state;
    for (int i = 0; i < 4; i++) pass(t, "A", 100 * i, 7), update(t, 100 * i);
    assert_int_equal(steps_of(t), 3);
}

static void writes_inside_of_other_ops_are_no_update(void **state)
{
    struct little *const t = *state;
    for (int i = 0; i < 12; i++) {
        op(t, "aten::cross_entropy", 100 * i, 9);
        for (int k = 0; k < 2; k++) op(t, "aten::copy_", 100 * i + 2 + 3 * k, 2);
        pass(t, "A", 100 * i + 10, 1);
        if (i % 4 == 3) update(t, 100 * i + 10);
    }
    assert_int_equal(steps_of(t), 2);
}

static void a_step_that_is_marked_goes_before_passes(void **state)
{
    struct little *const t = *state;
    for (int i = 0; i < 4; i++) pass(t, "A", 100 * i, 1), update(t, 100 * i);
    event(t, "user_annotation", "Optimizer.step#SGD.step", 1, 90, 5, "");
    event(t, "user_annotation", "Optimizer.step#SGD.step", 1, 390, 5, "");
    assert_int_equal(steps_of(t), 1);
    assert_int_equal(t->chosen.ended_by, KP_STEPENDS_OPTIMIZER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(each_pass_with_its_update_is_a_step),
        LITTLE(passes_without_an_update_between_them_are_of_one_step),
        LITTLE(kinds_that_alternate_are_of_one_step),
        LITTLE(the_first_pass_may_be_of_another_kind),
        LITTLE(kinds_without_a_pattern_are_no_steps),
        LITTLE(two_passes_are_no_training),
        LITTLE(the_engine_of_a_device_has_a_thread_of_its_own),
        LITTLE(writes_inside_of_other_ops_are_no_update),
        LITTLE(a_step_that_is_marked_goes_before_passes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
