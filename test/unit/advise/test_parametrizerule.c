// SPDX-License-Identifier: Apache-2.0
/* test_parametrizerule.c - parametrized weights that are computed again before a backward pass */
#include "test/unit/advise/advised.h"

enum { STEP_US = 1000, FORWARD_US = 100, BACKWARD_US = 150 };

/* A call of a weight's parametrizations, of one op. Its node of autograd runs `later` us after it. */
static void weight_make(struct little *t, const char *list, int number, int at, int later)
{
    char args[64];
    event(t, "python_function", list, 1, at, FORWARD_US, "");
    snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":0", number);
    event(t, "cpu_op", "aten::linalg_matrix_exp", 1, at, FORWARD_US, args);
    snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":1", number);
    event(t, "cpu_op", "autograd::engine::evaluate_function: ExpBackward0", 1, at + later, BACKWARD_US, args);
    event(t, "cpu_op", "ExpBackward0", 1, at + later, BACKWARD_US, args);
}

static const struct kp_finding *parametrized_find(struct kp_advice *a, struct little *t, const char *second, int later)
{
    for (int step = 0; step < 3; step++) {
        const int at = STEP_US * step;
        numbered_step(t, step, at, STEP_US);
        weight_make(t, "nn.Module: ParametrizationList_0", 2 * step, at, later);
        weight_make(t, second, 2 * step + 1, at + 300, later);
    }
    *a = advise(t);
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, "parametrized-again") == 0) return &a->findings[i];
    return NULL;
}

static void the_second_time_is_told_with_its_backward(void **state)
{
    struct kp_advice a;
    const struct kp_finding *const f = parametrized_find(&a, *state, "nn.Module: ParametrizationList_0", 500);
    assert_non_null(f);
    assert_float_equal(f->step_ns, 1000 * (FORWARD_US + BACKWARD_US), 1);
    assert_non_null(strstr(f->what, "2 times per step, 1 of them"));
    assert_non_null(strstr(f->change, "torch.nn.utils.parametrize.cached()"));
}

static void another_weight_is_not_again(void **state)
{
    struct kp_advice a;
    assert_null(parametrized_find(&a, *state, "nn.Module: ParametrizationList_1", 500));
}

/* Micro-batches: what a cache held belongs to a graph that is gone. */
static void a_weight_behind_a_backward_pass_is_not_again(void **state)
{
    struct kp_advice a;
    assert_null(parametrized_find(&a, *state, "nn.Module: ParametrizationList_0", FORWARD_US));
}

/* Stacks of ops alone show that it costs a step so much, and not which weights they are. */
static void without_calls_the_share_is_said_and_not_judged(void **state)
{
    static const char *const frames[] = {"model.py(20): forward;",
                                         "torch/nn/utils/parametrize.py(301): forward;model.py(20): forward;"};
    for (int i = 0; i < 2; i++) {
        struct little *const t = calloc(1, sizeof *t);
        char args[128];
        bool is_said = false;
        snprintf(args, sizeof args, "\"Call stack\":\"%s\"", frames[i]);
        for (int step = 0; step < 3; step++) {
            numbered_step(t, step, STEP_US * step, STEP_US);
            event(t, "cpu_op", "aten::linalg_matrix_exp", 1, STEP_US * step, FORWARD_US, args);
        }
        const struct kp_advice a = advise(t);
        for (size_t at = 0; at < a.unjudged_count; at++)
            is_said |= strstr(a.unjudged[at], "whether parametrized weights, 10 % of a step, are") != NULL;
        assert_int_equal(is_said, i);
        for (size_t at = 0; at < a.count; at++) assert_string_not_equal(a.findings[at].id, "parametrized-again");
        little_forget(t);
        free(t);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(the_second_time_is_told_with_its_backward),
        LITTLE(another_weight_is_not_again),
        LITTLE(without_calls_the_share_is_said_and_not_judged),
        LITTLE(a_weight_behind_a_backward_pass_is_not_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
