// SPDX-License-Identifier: Apache-2.0
/* test_launchplace.c - what to change where a GPU waits for launches: an optimizer, a loop over rows, or in general */
#include "test/unit/advise/advised.h"

enum { STEPS = 2, STEP_US = 2000 };

struct training {
    struct little *t;
    int id;
};

/* An op of 20 us that launches a kernel of 2 us. */
static void launches(struct training *x, const char *name, int at, const char *stack)
{
    char args[160];
    snprintf(args, sizeof args, "\"External id\":%d,\"Call stack\":\"%s\"", ++x->id, stack);
    event(x->t, "cpu_op", name, 1, at, 20, args);
    snprintf(args, sizeof args, "\"External id\":%d,\"correlation\":%d", x->id, x->id);
    event(x->t, "cuda_runtime", "cudaLaunchKernel", 1, at + 14, 4, args);
    snprintf(args, sizeof args, "\"device\":0,\"stream\":7,\"External id\":%d,\"correlation\":%d", x->id, x->id);
    event(x->t, "kernel", "some_kernel", 7, at + 18, 2, args);
}

static int step_begin(struct training *x, int step)
{
    numbered_step(x->t, step, STEP_US * step, STEP_US);
    return STEP_US * step;
}

/* What it advises: its text is the trace's. */
static const char *launch_change(struct little *t)
{
    const struct kp_advice a = advise(t);
    for (size_t i = 0; i < a.count; i++)
        if (strcmp(a.findings[i].id, "launch-bound") == 0) return a.findings[i].change;
    fail_msg("no launch-bound");
    return NULL;
}

static const char *optimizer_change(struct little *t, const char *range, const char *op_name, int ops)
{
    struct training x = {.t = t};
    for (int step = 0; step < STEPS; step++) {
        const int at = step_begin(&x, step);
        event(t, "user_annotation", range, 1, at + 100, 20 * ops + 50, "");
        for (int i = 0; i < ops; i++) launches(&x, op_name, at + 120 + 20 * i, "torch/optim/x.py(3): step");
    }
    return launch_change(t);
}

static void an_optimizer_that_goes_through_its_parameters_is_named(void **state)
{
    assert_string_equal(optimizer_change(*state, "Optimizer.step#AdamW.step", "aten::mul_", 45),
                        "AdamW goes through its parameters one by one (45 ops a step): AdamW(..., fused=True), or "
                        "foreach=True.");
}

static void one_without_fused_kernels_gets_no_such_advice(void **state)
{
    const char *const change = optimizer_change(*state, "Optimizer.step#RMSprop.step", "aten::mul_", 45);
    assert_non_null(strstr(change, "RMSprop(..., foreach=True)."));
    assert_null(strstr(change, "fused"));
}

static void one_that_joins_its_ops_may_be_fused(void **state)
{
    assert_string_equal(optimizer_change(*state, "Optimizer.step#SGD.step", "aten::_foreach_add_", 45),
                        "Let SGD join its 45 ops a step: SGD(..., fused=True).");
}

static void a_few_ops_of_an_optimizer_are_no_matter(void **state)
{
    assert_non_null(strstr(optimizer_change(*state, "Optimizer.step#AdamW.step", "aten::mul_", 30), "Launch less"));
}

/* `turns` of a model of two layers at one line, and `added` additions of the gradients of its two parameters. */
static const char *loop_change(struct little *t, int turns, int added)
{
    struct training x = {.t = t};
    for (int step = 0; step < STEPS; step++) {
        int at = step_begin(&x, step);
        for (int i = 0; i < turns; i++) {
            for (int layer = 0; layer < 2; layer++, at += 22)
                launches(&x, "aten::linear", at, "torch/nn/modules/linear.py(9): forward;train.py(7): loss");
            launches(&x, "aten::pow", at, "train.py(7): loss;train.py(9): main");
            at += 22;
        }
        event(t, "cpu_op", "autograd::engine::evaluate_function: TBackward0", 1, at, added + 1, "");
        for (int i = 0; i < added; i++) event(t, "cpu_op", "aten::add_", 1, at + i, 1, "");
        at += added + 2;
        for (int i = 0; i < 2; i++) event(t, "cpu_op", "torch::autograd::AccumulateGrad", 1, at + 2 * i, 1, "");
    }
    return launch_change(t);
}

static void a_loop_over_rows_is_named_with_its_turns(void **state)
{
    const char *const change = loop_change(*state, 9, 16);
    assert_non_null(strstr(change, "train.py:7 loss uses the same weights 9 times a step"));
}

static void where_no_gradients_are_added_up_each_layer_has_weights_of_its_own(void **state)
{
    assert_non_null(strstr(loop_change(*state, 9, 0), "Launch less"));
}

static void norms_of_one_tensor_after_the_other_are_named(void **state)
{
    struct training x = {.t = *state};
    for (int step = 0; step < STEPS; step++) {
        const int at = step_begin(&x, step);
        for (int i = 0; i < 20; i++) launches(&x, "aten::linalg_vector_norm", at + 30 * i, "train.py(7): norms");
    }
    assert_non_null(strstr(launch_change(*state), "train.py:7 norms asks for 20 norms a step"));
}

/* A step has twenty ops, of which so many pick by a mask. */
static const char *mask_change(struct little *t, int masks)
{
    struct training x = {.t = t};
    for (int step = 0; step < STEPS; step++) {
        const int at = step_begin(&x, step);
        for (int i = 0; i < 20; i++)
            launches(&x, i < masks ? "aten::nonzero" : "aten::mul", at + 30 * i, "train.py(7): loss");
    }
    return launch_change(t);
}

static void elements_that_a_mask_picks_are_named_with_the_line(void **state)
{
    const char *const change = mask_change(*state, 8);
    assert_non_null(strstr(change, "train.py:7 loss picks elements by a mask ("));
    assert_non_null(strstr(change, "a step asks 8 times where one is true (aten::nonzero)"));
}

static void few_masks_are_no_matter(void **state) { assert_non_null(strstr(mask_change(*state, 7), "Launch less")); }

/* An op of 20 us that copies from the host. */
static void copies(struct training *x, int at)
{
    char args[160];
    snprintf(args, sizeof args, "\"External id\":%d,\"Call stack\":\"train.py(9): noise\"", ++x->id);
    event(x->t, "cpu_op", "aten::to", 1, at, 20, args);
    snprintf(args, sizeof args, "\"External id\":%d,\"correlation\":%d", x->id, x->id);
    event(x->t, "cuda_runtime", "cudaMemcpyAsync", 1, at + 14, 4, args);
    snprintf(args, sizeof args, "\"device\":0,\"stream\":7,\"External id\":%d,\"correlation\":%d", x->id, x->id);
    event(x->t, "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", 7, at + 18, 1, args);
}

static void tensors_that_come_from_the_host_one_by_one_are_named_with_the_line(void **state)
{
    struct training x = {.t = *state};
    for (int step = 0; step < STEPS; step++) {
        const int at = step_begin(&x, step);
        for (int i = 0; i < 10; i++)
            copies(&x, at + 60 * i), launches(&x, "aten::mul", at + 60 * i + 30, "train.py(7): loss");
    }
    assert_non_null(strstr(launch_change(*state), "train.py:9 noise copies most of the 10 tensors a step"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(an_optimizer_that_goes_through_its_parameters_is_named),
        LITTLE(one_without_fused_kernels_gets_no_such_advice),
        LITTLE(one_that_joins_its_ops_may_be_fused),
        LITTLE(a_few_ops_of_an_optimizer_are_no_matter),
        LITTLE(a_loop_over_rows_is_named_with_its_turns),
        LITTLE(where_no_gradients_are_added_up_each_layer_has_weights_of_its_own),
        LITTLE(norms_of_one_tensor_after_the_other_are_named),
        LITTLE(elements_that_a_mask_picks_are_named_with_the_line),
        LITTLE(few_masks_are_no_matter),
        LITTLE(tensors_that_come_from_the_host_one_by_one_are_named_with_the_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
