// SPDX-License-Identifier: Apache-2.0
/* test_hotlines.c - the lines of the program with most of a step, beside any finding */
#include "test/unit/advise/advised.h"

enum { STEP_US = 1000 };

static void lined(struct little *t, const char *name, int at, int dur, const char *stack, const char *more)
{
    char args[160];
    snprintf(args, sizeof args, "\"Call stack\":\"%s\"%s", stack, more);
    event(t, "cpu_op", name, 1, at, dur, args);
}

/* Each step: `weights` us of copies at a line of its own, 300 of forward with 100 inside, and 200 of its backward. */
static struct kp_advice trained(struct little *t, int weights)
{
    strcpy(t->head, "\"with_stack\":1,");
    for (int step = 0; step < 3; step++) {
        const int at = STEP_US * step;
        char text[64];
        numbered_step(t, step, at, STEP_US);
        snprintf(text, sizeof text, ",\"Sequence number\":%d,\"Fwd thread id\":0", step);
        lined(t, "aten::linear", at, 300, "train.py(7): forward;train.py(20): main", text);
        lined(t, "aten::addmm", at + 50, 100, "train.py(7): forward;train.py(20): main", "");
        snprintf(text, sizeof text, ",\"Sequence number\":%d,\"Fwd thread id\":1", step);
        lined(t, "AddmmBackward0", at + 300, 200, "train.py(21): main", text);
        lined(t, "aten::mul", at + 500, weights, "train.py(30): update;train.py(22): main", "");
    }
    return advise(t);
}

static void the_lines_with_most_time_are_told_with_their_backward(void **state)
{
    const struct kp_advice a = trained(*state, 400);
    assert_string_equal(a.most,
                        "most of a step, lines with their backward: train.py:7 forward 50 %, train.py:30 update 40 %");
}

static void a_line_with_less_than_a_twentieth_is_left_out(void **state)
{
    assert_null(strstr(trained(*state, 40).most, "update"));
}

static void without_lines_operators_are_told_and_no_marker(void **state)
{
    struct little *const t = *state;
    for (int step = 0; step < 3; step++) {
        step_event(t, step);
        op(t, "aten::mm", 100 * step, 90);
    }
    assert_string_equal(advise(t).most, "most of a step: aten::mm 90 %");
}

static void calls_of_the_gpus_runtime_are_no_operators(void **state)
{
    struct little *const t = *state;
    event(t, "cuda_runtime", "cudaDeviceSynchronize", 1, 0, 900, "");
    event(t, "cuda_runtime", "cudaGetDeviceProperties_v2", 1, 900, 100, "");
    assert_string_equal(advise(t).most, "most of the recorded time in calls: cudaDeviceSynchronize 90 %, "
                                        "cudaGetDeviceProperties_v2 10 %");
}

static void a_collective_beside_the_step_is_no_operator_of_it(void **state)
{
    struct little *const t = *state;
    for (int step = 0; step < 3; step++) {
        step_event(t, step);
        op(t, "aten::mm", 100 * step, 20);
        for (int tid = 8; tid <= 9; tid++) event(t, "user_annotation", "gloo:all_reduce", tid, 100 * step, 80, "");
    }
    assert_string_equal(advise(t).most, "most of a step: aten::mm 20 %");
}

/* Each step waits in an op for the first half of what gloo does, and in no op for a quarter of it. */
static void a_line_has_of_its_collectives_what_runs_beside_no_op(void **state)
{
    struct little *const t = *state;
    strcpy(t->head, "\"with_stack\":1,");
    for (int step = 0; step < 3; step++) {
        const int at = STEP_US * step;
        numbered_step(t, step, at, STEP_US);
        lined(t, "c10d::allreduce_", at, 20, "train.py(7): reduce", "");
        lined(t, "aten::mul", at + 20, 400, "train.py(9): wait", "");
        for (int tid = 8; tid <= 9; tid++) event(t, "user_annotation", "gloo:all_reduce", tid, at + 20, 600, "");
        lined(t, "c10d::allreduce_", at + 900, 20, "train.py(7): reduce", ""); /* its range is in the next step */
    }
    assert_string_equal(advise(t).most, "most of a step: train.py:9 wait 40 %, train.py:7 reduce 24 %");
}

static void more_than_a_step_is_said_to_be_on_several_threads(void **state)
{
    struct little *const t = *state;
    for (int step = 0; step < 3; step++) {
        step_event(t, step);
        for (int tid = 1; tid <= 2; tid++) event(t, "cpu_op", "aten::mm", tid, 100 * step, 80, "");
    }
    assert_string_equal(advise(t).most, "most of a step, on several threads at once: aten::mm 160 %");
}

/* As of a thread that prepares the next batch: no line has more than the step. */
static void lines_of_more_than_a_step_together_are_on_several_threads(void **state)
{
    for (int beside = 30; beside >= 10; beside -= 20) {
        struct little *const t = *state;
        for (int step = 0; step < 3; step++) {
            step_event(t, step);
            event(t, "cpu_op", "aten::mm", 1, 100 * step, 80, "");
            event(t, "cpu_op", "aten::sort", 2, 100 * step, beside, "");
        }
        assert_string_equal(advise(t).most, beside > 20 ? "most of a step, on several threads at once: aten::mm 80 %, "
                                                          "aten::sort 30 %"
                                                        : "most of a step: aten::mm 80 %, aten::sort 10 %");
        little_teardown(state);
        little_setup(state);
    }
}

/* As a recording without a schedule has it, of a program without an optimizer. */
static void without_steps_the_shares_are_of_the_recorded_time(void **state)
{
    struct little *const t = *state;
    strcpy(t->head, "\"with_stack\":1,");
    for (int frame = 0; frame < 20; frame++) {
        lined(t, "aten::sqrt", 1000 * frame, 400, "levels.py(19): forward;infer.py(28): main", "");
        lined(t, "aten::mm", 1000 * frame + 400, 300, "denoiser.py(24): forward;infer.py(28): main", "");
        lined(t, "aten::abs", 1000 * frame + 700, 100, "infer.py(30): main", "");
    }
    const struct kp_advice a = advise(t);
    assert_int_equal(a.steps, 0);
    assert_non_null(strstr(a.missing, "no steps were found"));
    assert_string_equal(a.most, "most of the recorded time in operators: levels.py:19 forward 50 %, denoiser.py:24 "
                                "forward 38 %, infer.py:30 main 12 %");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(without_steps_the_shares_are_of_the_recorded_time),
        LITTLE(a_collective_beside_the_step_is_no_operator_of_it),
        LITTLE(a_line_has_of_its_collectives_what_runs_beside_no_op),
        LITTLE(more_than_a_step_is_said_to_be_on_several_threads),
        LITTLE(lines_of_more_than_a_step_together_are_on_several_threads),
        LITTLE(the_lines_with_most_time_are_told_with_their_backward),
        LITTLE(a_line_with_less_than_a_twentieth_is_left_out),
        LITTLE(without_lines_operators_are_told_and_no_marker),
        LITTLE(calls_of_the_gpus_runtime_are_no_operators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
