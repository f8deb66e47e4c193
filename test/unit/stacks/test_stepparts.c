// SPDX-License-Identifier: Apache-2.0
/* test_stepparts.c - what of the steps is forward, backward and optimizer, on the host and on a GPU */
#include "export/answers/stacks/stepparts.h"

#include "test/unit/tree/little_trace.h"

static char text[160];

/* Two steps of 1 ms: 400 us forward, 300 backward on a thread of its own, 199 optimizer, 101 none of these. */
static void training_put(struct little *t, bool has_gpu)
{
    for (int i = 0; i < 2; i++) {
        const int at = 1000 * i;
        char args[100];
        numbered_step(t, i, at, 1000);
        snprintf(args, sizeof args, "\"Sequence number\":%d,\"External id\":%d", i, 10 * i + 1);
        event(t, "cpu_op", "aten::mm", 1, at, 400, args);
        snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":1,\"External id\":%d", i, 10 * i + 2);
        event(t, "cpu_op", "autograd::engine::evaluate_function: MmBackward0", 2, at + 450, 300, args);
        event(t, "cpu_op", "MmBackward0", 2, at + 460, 280, args);
        event(t, "user_annotation", "Optimizer.step#SGD.step", 1, at + 801, 199, "");
        snprintf(args, sizeof args, "\"External id\":%d,\"correlation\":%d", 10 * i + 1, i + 1);
        if (has_gpu) event(t, "kernel", "gemm", 7, at + 100, 100, args);
        snprintf(args, sizeof args, "\"External id\":%d,\"correlation\":%d", 10 * i + 2, i + 3);
        if (has_gpu) event(t, "kernel", "gemm", 7, at + 500, 200, args);
    }
}

static struct kp_stepparts parts_of(struct little *t, const struct kp_choice *choice)
{
    static struct kp_stepparts parts;
    kp_stepparts_fini(&parts);
    assert_int_equal(choose(t, choice), 0);
    kp_stepparts_add(&parts, &t->tree, &t->chosen);
    return parts;
}

static void a_step_is_forward_backward_optimizer_and_the_rest(void **state)
{
    struct little *t = *state;
    op(t, "aten::empty", -5000, 100); /* before the steps */
    training_put(t, false);
    const struct kp_stepparts parts = parts_of(t, &everything);
    assert_true(kp_stepparts_has(&parts) && !kp_stepparts_has_gpu(&parts));
    assert_int_equal(parts.all.steps_ns, 2000000);
    assert_int_equal(kp_stepparts_ns(&parts, KP_PART_FORWARD, false), 800000);
    assert_int_equal(kp_stepparts_ns(&parts, KP_PART_BACKWARD, false), 600000);
    assert_int_equal(kp_stepparts_ns(&parts, KP_PART_OPTIMIZER, false), 398000);
    assert_int_equal(kp_stepparts_ns(&parts, KP_PART_OTHER, false), 202000);
    assert_string_equal(kp_stepparts_text(text, sizeof text, &parts, false),
                        "forward 40.0 %, backward 30.0 %, optimizer 19.9 %, other 10.1 % (in gaps between these)");
}

/* As torch 1.8 wrote it: each range is an operator, and nothing names the forward op of a backward one. */
static void without_sequence_numbers_the_forward_pass_is_not_told_apart(void **state)
{
    struct little *t = *state;
    for (int i = 0; i < 2; i++) {
        const int at = 1000 * i;
        char args[60];
        numbered_step(t, i, at, 1000);
        event(t, "Operator", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, at, 200, "");
        event(t, "Operator", "aten::mm", 1, at + 200, 300, "");
        event(t, "Operator", "CudnnConvolutionBackward", 2, at + 500, 150, "");
        snprintf(args, sizeof args, "\"External id\":%d", i + 1);
        event(t, "Operator", "ReluBackward1", 2, at + 650, 150, args);
        event(t, "Operator", "Optimizer.step#SGD.step", 1, at + 800, 100, "");
        snprintf(args, sizeof args, "\"External id\":%d,\"correlation\":%d", i + 1, i + 1);
        event(t, "Kernel", "relu", 7, at + 700, 100, args);
    }
    const struct kp_stepparts parts = parts_of(t, &everything);
    assert_string_equal(kp_stepparts_text(text, sizeof text, &parts, false),
                        "backward 30.0 %, optimizer 10.0 %, data loading 20.0 %, forward and other 40.0 % (10.0 % in "
                        "gaps between these)");
    assert_string_equal(kp_stepparts_text(text, sizeof text, &parts, true), "backward 100.0 %");
}

/* Two steps of 1 ms with an optimizer of so many us. Autograd's threads are not in the file. */
static struct kp_stepparts cut_training(struct little *t, int optimizer_us)
{
    for (int i = 0; i < 2; i++) {
        numbered_step(t, i, 1000 * i, 1000);
        op(t, "aten::mm", 1000 * i, 100);
        event(t, "user_annotation", "Optimizer.step#SGD.step", 1, 1000 * (i + 1) - optimizer_us, optimizer_us, "");
    }
    return parts_of(t, &everything);
}

static void without_passes_in_the_file_the_parts_are_not_known(void **state)
{
    const struct kp_stepparts parts = cut_training(*state, 40);
    assert_int_equal(kp_stepparts_ns(&parts, KP_PART_OPTIMIZER, false), 80000);
    assert_false(kp_stepparts_has(&parts));
}

static void without_passes_a_long_optimizer_is_most_of_a_step_all_the_same(void **state)
{
    const struct kp_stepparts parts = cut_training(*state, 600);
    assert_true(kp_stepparts_has(&parts));
}

/* As in PyTorch's tutorial: what loads runs no op, behind step() and before zero_grad(). */
static void loading_between_two_calls_of_an_optimizer_is_no_optimizers(void **state)
{
    struct little *t = *state;
    for (int i = 0; i < 2; i++) {
        const int at = 1000 * i;
        char args[100];
        numbered_step(t, i, at, 1000);
        event(t, "user_annotation", "Optimizer.zero_grad#SGD.zero_grad", 1, at + 500, 50, "");
        snprintf(args, sizeof args, "\"Sequence number\":%d", i);
        event(t, "cpu_op", "aten::mm", 1, at + 550, 200, args);
        snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":1", i);
        event(t, "cpu_op", "autograd::engine::evaluate_function: MmBackward0", 1, at + 750, 150, args);
        event(t, "cpu_op", "MmBackward0", 1, at + 760, 140, args);
        event(t, "user_annotation", "Optimizer.step#SGD.step", 1, at + 900, 100, "");
    }
    const struct kp_stepparts parts = parts_of(t, &everything);
    assert_int_equal(kp_stepparts_ns(&parts, KP_PART_OPTIMIZER, false), 300000);
    assert_int_equal(kp_stepparts_ns(&parts, KP_PART_OTHER, false), 1000000);
}

#define BACKWARD(at, of) "op MmBackward0 " at " seq=" of " fwd=1; "

/* The step calls a closure from 100 on: 50 us of Python, 100 forward, 40, 10 of an op, 40, 200 backward, and 60 later
 * computes on its own. */
static const char closure_step[] = "range Optimizer.step#LBFGS.step 100 800; op aten::mm 150 100 seq=1; "
                                   "op aten::ones_like 290 10; " BACKWARD("340 200", "1") "op aten::add 600 300";

static void a_closure_is_no_optimizers(void **state)
{
    struct little *t = *state;
    numbered_step(t, 0, 0, 1000);
    trace_of(t, closure_step);
    const struct kp_stepparts parts = parts_of(t, &everything);
    assert_int_equal(kp_stepparts_ns(&parts, KP_PART_FORWARD, false), 100000);
    assert_int_equal(kp_stepparts_ns(&parts, KP_PART_BACKWARD, false), 200000);
    assert_int_equal(kp_stepparts_ns(&parts, KP_PART_OPTIMIZER, false), 360000);
    assert_int_equal(kp_stepparts_ns(&parts, KP_PART_OTHER, false), 340000);
}

#define IN_STEP                                                                          \
    "torch/optim/lbfgs.py(330): step;torch/utils/_contextlib.py(120): decorate_context;" \
    "torch/optim/optimizer.py(500): wrapper;m.py(9): <module>;"

/* An op of the closure is none of the optimizer's, whatever is around; one of an optimizer that is the program's is. */
static void an_op_of_a_closure_is_known_by_its_stack(void **state)
{
    struct little *t = *state;
    numbered_step(t, 0, 0, 1000);
    trace_of(t,
             "range Optimizer.step#LBFGS.step 100 300; "
             "op aten::rand 110 20 stack='m.py(3): closure;torch/utils/_contextlib.py(120): decorate_context;" IN_STEP
             "'; op aten::mul 130 30 stack='m.py(4): closure;torch/optim/lbfgs.py(300): _directional_evaluate;" IN_STEP
             "'; op aten::add 160 240 stack='" IN_STEP "'; range Optimizer.step#Mine.step 500 100; "
             "op aten::sub 500 100 stack='m.py(20): step;torch/optim/optimizer.py(500): wrapper;m.py(9): <module>;'; "
             "op autograd::engine::evaluate_function 700 100");
    const struct kp_stepparts parts = parts_of(t, &everything);
    assert_int_equal(kp_stepparts_ns(&parts, KP_PART_OPTIMIZER, false), 340000);
}

static void a_call_of_a_closure_is_no_optimizers(void **state)
{
    struct little *t = *state;
    numbered_step(t, 0, 0, 1000);
    trace_of(t, "call 'torch/optim/optimizer.py(500): wrapper' 100 500; range Optimizer.step#LBFGS.step 110 480; "
                "call 'torch/optim/lbfgs.py(330): step' 120 460; call 'm.py(3): closure' 200 300; "
                "op aten::rand 250 50; call 'torch/optim/optimizer.py(900): zero_grad' 300 20; "
                "op autograd::engine::evaluate_function 700 100");
    const struct kp_stepparts parts = parts_of(t, &everything);
    assert_int_equal(kp_stepparts_ns(&parts, KP_PART_OPTIMIZER, false), 220000);
}

/* What lies between the last op of a step and the next step's first is loaded, and no forward. */
static void forward_does_not_reach_from_step_to_step(void **state)
{
    struct little *t = *state;
    for (int i = 0; i < 2; i++) numbered_step(t, i, 1000 * i, 1000);
    trace_of(t, "op aten::mm 100 500 seq=1; op aten::rand 1000 100; op aten::mm 1100 500 seq=2; " BACKWARD(
                    "1700 50", "1") BACKWARD("1750 50", "2"));
    const struct kp_stepparts parts = parts_of(t, &everything);
    assert_int_equal(kp_stepparts_ns(&parts, KP_PART_FORWARD, false), 1000000);
}

static void one_step_alone_has_its_own(void **state)
{
    struct little *t = *state;
    training_put(t, false);
    const struct kp_choice second = {.first_step = 1, .last_step = 1};
    const struct kp_stepparts parts = parts_of(t, &second);
    assert_int_equal(parts.all.steps_ns, 1000000);
    assert_int_equal(kp_stepparts_ns(&parts, KP_PART_BACKWARD, false), 300000);
}

static void each_step_has_its_own_and_they_add_up_to_it(void **state)
{
    struct little *t = *state;
    int64_t rows[2][KP_STEPPARTS_SHOWN];
    struct kp_stepparts sums;
    training_put(t, false);
    op(t, "aten::add", 750, 30);
    sums = parts_of(t, &everything);
    assert_int_equal(t->chosen.step_count, 2);
    for (int i = 0; i < 2; i++) kp_stepparts_row(rows[i], &sums.each[i]);
    for (int p = 0; p < KP_STEPPARTS_SHOWN; p++)
        assert_int_equal(rows[0][p] + rows[1][p], kp_stepparts_ns(&sums, kp_stepparts_order[p], false));
    for (int i = 0; i < 2; i++) {
        int64_t sum = 0;
        for (int p = 0; p < KP_STEPPARTS_SHOWN; p++) sum += rows[i][p];
        assert_int_equal(sum, t->chosen.steps[i].end_ns - t->chosen.steps[i].start_ns);
    }
    assert_int_equal(rows[0][0], 400000); /* forward */
    assert_int_equal(rows[1][1], 300000); /* backward */
}

/* The second step compiles for 100 ms in backward, which is nearly all time. */
static void few_steps_that_have_half_of_all_time_are_left_out(void **state)
{
    struct little *t = *state;
    char bar[KP_STEPPARTS_BAR + 1];
    for (int i = 0, at = 0; i < 4; i++) {
        const int more = i == 1 ? 100000 : 0;
        char args[60];
        numbered_step(t, i, at, 1000 + more);
        snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":0", i);
        event(t, "cpu_op", "aten::mm", 1, at, 100, args);
        snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":1", i);
        event(t, "cpu_op", "MmBackward0", 1, at + 100, 300 + more, args);
        event(t, "user_annotation", "Optimizer.step#SGD.step", 1, at + 400 + more, 600, "");
        at += 1000 + more;
    }
    const struct kp_stepparts parts = parts_of(t, &everything);
    assert_string_equal(
        kp_stepparts_text(text, sizeof text, &parts, false),
        "forward 10.0 %, backward 30.0 %, optimizer 60.0 %, other 0.0 %; without 1 step that takes 97 % "
        "of all time");
    assert_string_equal(kp_stepparts_bar(bar, &parts), "ffbbbbbboooooooooooo");
    assert_int_equal(kp_stepparts_ns(&parts, KP_PART_BACKWARD, false), 101200000); /* of all, as JSON has it */
}

static void a_gpus_work_is_of_the_part_that_asked_for_it(void **state)
{
    struct little *t = *state;
    training_put(t, true);
    const struct kp_stepparts parts = parts_of(t, &everything);
    assert_true(kp_stepparts_has_gpu(&parts));
    assert_string_equal(kp_stepparts_text(text, sizeof text, &parts, true), "forward 33.3 %, backward 66.7 %");
    assert_string_equal(kp_stepparts_text(text, sizeof text, &parts, false),
                        "forward 40.0 %, backward 30.0 %, optimizer 19.9 %, other 10.1 % (in gaps between these)");
}

static void parts_are_a_hundred_percent_together(void **state)
{
    (void)state;
    struct kp_stepparts parts = {.all.steps_ns = 30000};
    parts.all.host_ns[KP_PART_FORWARD] = parts.all.host_ns[KP_PART_BACKWARD] = parts.all.host_ns[KP_PART_LOADING] =
        10000;
    assert_string_equal(kp_stepparts_text(text, sizeof text, &parts, false),
                        "forward 33.4 %, backward 33.3 %, optimizer 0.0 %, data loading 33.3 %, other 0.0 %");
}

static void an_op_of_no_part_is_other_all_the_same(void **state)
{
    struct little *t = *state;
    training_put(t, false);
    event(t, "user_annotation", "mine", 1, 760, 30, ""); /* between backward and the optimizer */
    op(t, "aten::randn", 765, 20);
    const struct kp_stepparts parts = parts_of(t, &everything);
    assert_int_equal(kp_stepparts_ns(&parts, KP_PART_OTHER, false), 202000);
    assert_int_equal(parts.all.between_ns, 172000);
    assert_string_equal(
        kp_stepparts_text(text, sizeof text, &parts, false),
        "forward 40.0 %, backward 30.0 %, optimizer 19.9 %, other 10.1 % (8.6 % in gaps between these)");
}

static void what_does_not_train_has_none(void **state)
{
    struct little *t = *state;
    trace_of(t, "step 0 0 1000; op aten::mm 0 400");
    const struct kp_stepparts parts = parts_of(t, &everything);
    assert_false(kp_stepparts_has(&parts));
}

static void without_steps_there_are_none(void **state)
{
    struct little *t = *state;
    event(t, "cpu_op", "autograd::engine::evaluate_function: MmBackward0", 1, 0, 300, "");
    const struct kp_stepparts parts = parts_of(t, &everything);
    assert_false(kp_stepparts_has(&parts));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_step_is_forward_backward_optimizer_and_the_rest),
        LITTLE(without_passes_in_the_file_the_parts_are_not_known),
        LITTLE(without_passes_a_long_optimizer_is_most_of_a_step_all_the_same),
        LITTLE(loading_between_two_calls_of_an_optimizer_is_no_optimizers),
        LITTLE(an_op_of_no_part_is_other_all_the_same),
        LITTLE(a_closure_is_no_optimizers),
        LITTLE(an_op_of_a_closure_is_known_by_its_stack),
        LITTLE(a_call_of_a_closure_is_no_optimizers),
        LITTLE(forward_does_not_reach_from_step_to_step),
        LITTLE(one_step_alone_has_its_own),
        LITTLE(each_step_has_its_own_and_they_add_up_to_it),
        LITTLE(few_steps_that_have_half_of_all_time_are_left_out),
        LITTLE(a_gpus_work_is_of_the_part_that_asked_for_it),
        LITTLE(without_sequence_numbers_the_forward_pass_is_not_told_apart),
        cmocka_unit_test(parts_are_a_hundred_percent_together),
        LITTLE(what_does_not_train_has_none),
        LITTLE(without_steps_there_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
