// SPDX-License-Identifier: Apache-2.0
/* test_anomalyrule.c - torch's anomaly mode: checks for NaN in backward, and stacks kept in forward */
#include "test/unit/advise/advised.h"

enum { STEP_US = 1000, NODES = 4 };

static const struct kp_finding *anomaly_find(const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, "anomaly-mode") == 0) return &a->findings[i];
    return NULL;
}

/* A forward op of 80 us, its node of 50 us, and 40 us of a check behind it in the engine's range. */
static void node_make(struct little *t, const char *op_name, const char *any, int step, int i)
{
    const int number = step * NODES + i, forward = STEP_US * step + 100 * i, backward = forward + 500;
    char args[64];
    snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":0", number);
    event(t, "cpu_op", op_name, 1, forward, 80, args);
    snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":1", number);
    event(t, "cpu_op", "autograd::engine::evaluate_function: TBackward0", 1, backward, 95, args);
    event(t, "cpu_op", "TBackward0", 1, backward + 1, 50, args);
    if (!any) return;
    op(t, "aten::isnan", backward + 52, 15);
    op(t, any, backward + 70, 15);
    op(t, "aten::item", backward + 90, 2);
}

static struct kp_advice nodes_advise(struct little *t, const char *any, int checked)
{
    for (int step = 0; step < 3; step++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, STEP_US * step, STEP_US, "");
        for (int i = 0; i < NODES; i++)
            node_make(t, i == 0 ? "aten::t" : "aten::mm", i < checked ? any : NULL, step, i);
    }
    return advise(t);
}

/* The view takes 80 us, and so much of each forward op is its stack. */
static void anomaly_mode_is_told_with_its_checks_and_stacks(void **state)
{
    const struct kp_advice a = nodes_advise(*state, "aten::_is_any_true", NODES);
    const struct kp_finding *const f = anomaly_find(&a);
    assert_non_null(f);
    assert_float_equal(f->step_ns, NODES * (40000 + 80000), 100);
    assert_string_equal(f->what,
                        "anomaly mode is on: autograd makes 4 checks for NaN in a step (0.160 ms), and keeps a "
                        "stack of Python for each of 4 forward ops (about 0.320 ms); that costs at least");
    assert_non_null(strstr(f->change, "torch.autograd.detect_anomaly()"));
}

static void older_torch_calls_any(void **state)
{
    const struct kp_advice a = nodes_advise(*state, "aten::any", NODES);
    assert_non_null(anomaly_find(&a));
}

/* Autograd reads them, and no line of the program. */
static void its_checks_are_no_reads_of_the_program(void **state)
{
    const struct kp_advice a = nodes_advise(*state, "aten::_is_any_true", NODES);
    assert_null(a.seen);
}

/* As a hook of one gradient does it. */
static void one_node_that_is_checked_is_no_mode(void **state)
{
    const struct kp_advice a = nodes_advise(*state, "aten::any", 1);
    assert_null(anomaly_find(&a));
}

static void backward_without_checks_is_not_told(void **state)
{
    const struct kp_advice a = nodes_advise(*state, NULL, 0);
    assert_null(anomaly_find(&a));
}

/* It computes for the first 600 us of each step: only the rest counts. */
static void a_gpu_that_computes_meanwhile_loses_nothing(void **state)
{
    struct little *t = *state;
    for (int step = 0; step < 3; step++)
        event(t, "kernel", "gemm", 7, STEP_US * step, 600, "\"device\":0,\"stream\":7");
    const struct kp_advice a = nodes_advise(t, "aten::_is_any_true", NODES);
    assert_true(a.has_gpu);
    assert_float_equal(anomaly_find(&a)->step_ns, (NODES - 1) * 40000, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(anomaly_mode_is_told_with_its_checks_and_stacks),
        LITTLE(older_torch_calls_any),
        LITTLE(its_checks_are_no_reads_of_the_program),
        LITTLE(one_node_that_is_checked_is_no_mode),
        LITTLE(backward_without_checks_is_not_told),
        LITTLE(a_gpu_that_computes_meanwhile_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
