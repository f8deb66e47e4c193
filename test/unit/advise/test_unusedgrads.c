// SPDX-License-Identifier: Apache-2.0
/* test_unusedgrads.c - gradients that no optimizer uses, and those that only look so */
#include "test/unit/advise/advised.h"

#define ENGINE "autograd::engine::evaluate_function: "
enum { STEP_US = 1000, STEPS = 6 };

struct leaf_of { /* a parameter in a backward pass: the line that uses it, whether its gradient was cleared */
    const char *line;
    int forward_us;
    bool is_cleared;
};

static void inside(struct little *t, const char *name, int ts, int dur, const char *stack)
{
    char args[160];
    snprintf(args, sizeof args, "\"Call stack\":\"%s\"", stack);
    event(t, "cpu_op", name, 1, ts, dur, args);
}

/* Each leaf's node takes 100 us, its AccumulateGrad 20. */
static void pass_add(struct little *t, int at, int root, const struct leaf_of *leaves, int count)
{
    static int number;
    char args[256];
    inside(t, "aten::ones_like", at + root, 1,
           root ? "torch/autograd/__init__.py(233): _make_grads;train.py(8): main" : "train.py(8): main");
    for (int i = 0; i < count; i++) {
        const int ts = at + root + 5 + 125 * i;
        number++;
        snprintf(args, sizeof args, "\"Call stack\":\"%s\",\"Sequence number\":%d,\"Fwd thread id\":0", leaves[i].line,
                 number);
        event(t, "cpu_op", "aten::mm", 1, at + leaves[i].forward_us, 20, args);
        snprintf(args, sizeof args, "\"Call stack\":\"train.py(8): main\",\"Sequence number\":%d,\"Fwd thread id\":1",
                 number);
        event(t, "cpu_op", ENGINE "MmBackward0", 1, ts, 100, "\"Call stack\":\"train.py(8): main\"");
        event(t, "cpu_op", "MmBackward0", 1, ts, 100, args);
        inside(t, ENGINE "torch::autograd::AccumulateGrad", ts + 101, 20, "train.py(8): main");
        inside(t, "torch::autograd::AccumulateGrad", ts + 101, 20, "train.py(8): main");
        inside(t, leaves[i].is_cleared ? "aten::detach" : "aten::add_", ts + 105, 5, "train.py(8): main");
    }
}

/* A step of an optimizer at that line, with an op for each of so many parameters. */
static void update_add(struct little *t, int ts, const char *line, const char *name, int count)
{
    inside(t, "Optimizer.step#SGD.step", ts, 50, line);
    for (int i = 0; i < count; i++) inside(t, name, ts + 1 + 4 * i, 3, line);
}

static const struct kp_finding *unused_of(const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, "gradients-unused") == 0) return &a->findings[i];
    return NULL;
}

static struct kp_advice trained_advise(struct little *t, const struct leaf_of *leaves, int count, const char *name,
                                       int updated)
{
    for (int step = 0; step < STEPS; step++) {
        numbered_step(t, step, STEP_US * step, STEP_US);
        pass_add(t, STEP_US * step, 300, leaves, count);
        update_add(t, STEP_US * step + 900, "train.py(9): main", name, updated);
    }
    return advise(t);
}

#define TEACHER "nets.py(20): forward;objective.py(10): soft;train.py(5): main"
#define STUDENT "nets.py(20): forward;train.py(6): main"

static const struct leaf_of teacher_first[] = {{STUDENT, 100, true}, {TEACHER, 0, false}, {TEACHER, 30, false}};
static const struct leaf_of teacher_last[] = {{TEACHER, 130, false}, {TEACHER, 100, false}, {STUDENT, 0, true}};

static void a_teacher_with_gradients_is_told_with_the_line_that_calls_it(void **state)
{
    const struct kp_advice a = trained_advise(*state, teacher_first, 3, "aten::add_", 1);
    const struct kp_finding *const f = unused_of(&a);
    assert_non_null(f);
    assert_float_equal(f->step_ns, 240000, 1);
    assert_string_equal(f->line, "objective.py:10 soft");
    assert_string_equal(f->what, "backward computes gradients of 2 parameters that no optimizer updates in these "
                                 "steps, and nothing clears, beside 1 that is updated");
    assert_true(f->is_critical);
}

static void a_part_behind_which_a_trained_one_may_lie_costs_at_most_so_much(void **state)
{
    const struct kp_advice a = trained_advise(*state, teacher_last, 3, "aten::add_", 1);
    const struct kp_finding *const f = unused_of(&a);
    assert_non_null(f);
    assert_float_equal(f->step_ns, 240000, 1);
    assert_false(f->is_critical);
    assert_non_null(strstr(f->what, "; at most this is saved"));
}

static void what_the_optimizers_update_is_used(void **state)
{
    const struct kp_advice a = trained_advise(*state, teacher_first, 3, "aten::add_", 3);
    assert_null(unused_of(&a));
}

static void lists_without_their_shapes_are_not_judged(void **state)
{
    const struct kp_advice a = trained_advise(*state, teacher_first, 3, "aten::_foreach_add_", 1);
    assert_null(unused_of(&a));
    assert_string_equal(a.unjudged[a.unjudged_count - 1],
                        "gradients that no optimizer uses (kprof run --record-shapes)");
}

/* The generator's pass leaves gradients in the other net, which its own optimizer clears before its own pass. */
static void the_other_net_of_a_gan_is_not_told(void **state)
{
    static const struct leaf_of own[] = {{"gan.py(4): judge;train.py(5): main", 0, true}};
    static const struct leaf_of both[] = {{"gan.py(4): judge;train.py(6): main", 130, false},
                                          {"gan.py(9): make;train.py(6): main", 100, true}};
    struct little *const t = *state;
    for (int step = 0; step < STEPS; step++) {
        const int at = STEP_US * step;
        numbered_step(t, step, at, STEP_US);
        pass_add(t, at, 200, own, 1);
        update_add(t, at + 350, "train.py(7): main", "aten::add_", 1);
        pass_add(t, at, 500, both, 2);
        update_add(t, at + 900, "train.py(9): main", "aten::add_", 1);
    }
    const struct kp_advice a = advise(t);
    assert_null(unused_of(&a));
}

/* Gradients are added up over two passes, and cleared after both. */
static void gradients_that_are_added_up_are_not_told(void **state)
{
    struct little *const t = *state;
    for (int step = 0; step < STEPS; step++) {
        const struct leaf_of leaves[] = {{STUDENT, 100, step % 2 == 0}, {STUDENT, 0, step % 2 == 0}};
        numbered_step(t, step, STEP_US * step, STEP_US);
        pass_add(t, STEP_US * step, 300, leaves, 2);
        if (step % 2) update_add(t, STEP_US * step + 900, "train.py(9): main", "aten::add_", 2);
    }
    const struct kp_advice a = advise(t);
    assert_null(unused_of(&a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_teacher_with_gradients_is_told_with_the_line_that_calls_it),
        LITTLE(a_part_behind_which_a_trained_one_may_lie_costs_at_most_so_much),
        LITTLE(what_the_optimizers_update_is_used),
        LITTLE(lists_without_their_shapes_are_not_judged),
        LITTLE(the_other_net_of_a_gan_is_not_told),
        LITTLE(gradients_that_are_added_up_are_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
