// SPDX-License-Identifier: Apache-2.0
/* test_optimizerrule.c - an optimizer of the CPU that goes through its parameters op by op */
#include "test/unit/advise/advised.h"

#define MUL "aten::mul_"

enum { STEP_US = 1000, MODEL_US = 600 };

static const struct kp_finding *unfused_find(const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, "optimizer-unfused") == 0) return &a->findings[i];
    return NULL;
}

/* Two ops of the update, and `begin` us of other things at the optimizer's begin. */
static void update(struct little *t, const char *range, const char *first, const char *second, int at, int begin)
{
    event(t, "user_annotation", range, 1, at, STEP_US - MODEL_US, "");
    op(t, first, at + begin, 100);
    op(t, second, at + begin + 100, STEP_US - MODEL_US - begin - 100);
}

static void step_begin(struct little *t, int step)
{
    char name[32];
    snprintf(name, sizeof name, "ProfilerStep#%d", step);
    event(t, "user_annotation", name, 1, STEP_US * step, STEP_US, "");
    op(t, "aten::addmm", STEP_US * step, MODEL_US);
}

static struct kp_advice update_advise(struct little *t, const char *range, const char *first, const char *second)
{
    for (int step = 0; step < 4; step++) {
        step_begin(t, step);
        update(t, range, first, second, STEP_US * step + MODEL_US, 0);
    }
    return advise(t);
}

static void an_optimizer_that_goes_op_by_op_is_told(void **state)
{
    const struct kp_advice a = update_advise(*state, "Optimizer.step#AdamW.step", MUL, "aten::addcdiv_");
    assert_int_equal(a.count, 1);
    assert_non_null(unfused_find(&a));
    assert_float_equal(a.findings[0].step_ns, 400000, 1);
    assert_false(a.findings[0].is_critical); /* 0.4 ms: much of that is Optimizer.step's own Python */
    assert_string_equal(a.findings[0].where, "Optimizer.step#AdamW.step");
    assert_string_equal(a.findings[0].what, "AdamW updates its parameters operator by operator (2 per step)");
    assert_int_equal(strncmp(a.findings[0].change, "Use torch.optim.AdamW(..., fused=True), ", 40), 0);
    assert_null(strstr(a.findings[0].change, "this is torch"));
}

/* A GAN has two of them: half of the cost is at each line. */
static void two_optimizers_have_two_lines(void **state)
{
    struct little *t = *state;
    char stack[80], room[200];
    for (int step = 0; step < 4; step++) {
        step_begin(t, step);
        for (int of = 0; of < 2; of++) {
            const int at = STEP_US * step + MODEL_US + 200 * of;
            snprintf(stack, sizeof stack, "\"Call stack\":\"gan.py(%d): main\"", 12 + 3 * of);
            event(t, "user_annotation", "Optimizer.step#Adam.step", 1, at, 200, "");
            event(t, "cpu_op", MUL, 1, at, 100 + of, stack);
            event(t, "cpu_op", "aten::addcdiv_", 1, at + 101 + of, 98 - of, stack);
        }
    }
    const struct kp_advice a = advise(t);
    assert_non_null(unfused_find(&a));
    assert_string_equal(kp_finding_line(unfused_find(&a), room, sizeof room), "gan.py:12 main, and gan.py:15 main");
}

static void ops_of_lists_of_parameters_are_no_one_pass(void **state)
{
    const struct kp_advice a =
        update_advise(*state, "Optimizer.step#Adam.step", "aten::_foreach_lerp_", "aten::_foreach_addcdiv_");
    assert_non_null(unfused_find(&a));
}

static void an_old_torch_has_none_on_the_cpu(void **state)
{
    struct little *t = *state;
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"torch_version\":\"2.3.1\"},");
    const struct kp_advice a = update_advise(t, "Optimizer.step#SGD.step", MUL, "aten::add_");
    assert_non_null(strstr(unfused_find(&a)->change, "(on a CPU since torch 2.4; this is torch 2.3.1; "));
}

static void a_fused_optimizer_is_not_told(void **state)
{
    const struct kp_advice a = update_advise(*state, "Optimizer.step#AdamW.step", MUL, "aten::_fused_adamw_");
    assert_null(unfused_find(&a));
}

/* SGD without momentum: one pass saves a quarter. */
static void one_kind_of_op_is_not_told(void **state)
{
    const struct kp_advice a = update_advise(*state, "Optimizer.step#SGD.step", "aten::add_", "aten::add_");
    assert_null(unfused_find(&a));
}

static void an_optimizer_that_torch_has_not_fused_is_not_told(void **state)
{
    const struct kp_advice a = update_advise(*state, "Optimizer.step#RMSprop.step", MUL, "aten::addcdiv_");
    assert_null(unfused_find(&a));
}

static void sparse_gradients_are_not_told(void **state)
{
    const struct kp_advice a = update_advise(*state, "Optimizer.step#Adagrad.step", "aten::_coalesce", MUL);
    assert_null(unfused_find(&a));
}

/* step(closure) runs the model: what comes behind its last node of autograd is the update. */
static void a_closure_is_no_update(void **state)
{
    struct little *t = *state;
    for (int step = 0; step < 4; step++) {
        const int at = STEP_US * step + MODEL_US;
        step_begin(t, step);
        update(t, "Optimizer.step#AdamW.step", MUL, "aten::addcdiv_", at, 200);
        op(t, "autograd::engine::evaluate_function: AddmmBackward0", at + 10, 180);
        op(t, MUL, at + 20, 10);
    }
    const struct kp_advice a = advise(t);
    assert_float_equal(unfused_find(&a)->step_ns, 210000, 1);
    assert_non_null(strstr(unfused_find(&a)->what, "2 per step"));
}

/* On a GPU launches and kernels tell it. */
static void a_gpus_optimizer_is_not_told_here(void **state)
{
    struct little *t = *state;
    event(t, "kernel", "gemm", 7, 0, 4 * STEP_US, "\"device\":0,\"stream\":7");
    const struct kp_advice a = update_advise(t, "Optimizer.step#AdamW.step", MUL, "aten::addcdiv_");
    assert_true(a.has_gpu);
    assert_null(unfused_find(&a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_optimizers_have_two_lines, little_setup, little_teardown),
        LITTLE(an_optimizer_that_goes_op_by_op_is_told),
        LITTLE(ops_of_lists_of_parameters_are_no_one_pass),
        LITTLE(an_old_torch_has_none_on_the_cpu),
        LITTLE(a_fused_optimizer_is_not_told),
        LITTLE(one_kind_of_op_is_not_told),
        LITTLE(an_optimizer_that_torch_has_not_fused_is_not_told),
        LITTLE(sparse_gradients_are_not_told),
        LITTLE(a_closure_is_no_update),
        LITTLE(a_gpus_optimizer_is_not_told_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
