// SPDX-License-Identifier: Apache-2.0
/* test_findings.c - sick and healthy traces, and what is said of them */
#include "test/unit/report/little_trace.h"

#include "export/advise/advise.h"

#define LOADER "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"

static void step_event(struct little *t, int step)
{
    char name[32];
    snprintf(name, sizeof name, "ProfilerStep#%d", step + 1);
    event(t, "user_annotation", name, 1, 100 * step, 100, "");
}

/* Steps of 100 us: the loader for `loading` us, then an op that ends with the step. */
static void training_make(struct little *t, int steps, int loading)
{
    for (int step = 0; step < steps; step++) {
        step_event(t, step);
        event(t, "user_annotation", LOADER, 1, 100 * step, loading, "");
        op(t, "aten::stack", 100 * step + 1, loading - 1);
        op(t, "aten::mm", 100 * step + loading, 100 - loading);
    }
}

static struct kp_advice advise(struct little *t)
{
    struct kp_advice advice;
    assert_int_equal(choose(t, &everything), 0);
    kp_advice_make(&advice, &t->tree, &t->chosen);
    return advice;
}

static void a_slow_loader_is_found_with_its_cost(void **state)
{
    training_make(*state, 4, 40);
    const struct kp_advice a = advise(*state);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "data-loading");
    assert_string_equal(a.findings[0].where, LOADER);
    assert_float_equal(a.findings[0].step_ns, 40000, 1);
    assert_float_equal(a.findings[0].share, 0.4, 0.001);
    assert_false(a.findings[0].is_critical || a.is_healthy);
    assert_null(a.missing);
}

static void a_fast_loader_is_healthy(void **state)
{
    training_make(*state, 4, 5);
    const struct kp_advice a = advise(*state);
    assert_int_equal(a.count, 0);
    assert_true(a.is_healthy);
}

static void one_step_is_incomplete_and_not_healthy(void **state)
{
    training_make(*state, 1, 5);
    const struct kp_advice a = advise(*state);
    assert_false(a.is_healthy);
    assert_non_null(a.missing);
}

static void communication_beside_compute_costs_nothing(void **state)
{
    struct little *t = *state;
    for (int step = 0; step < 3; step++) {
        step_event(t, step);
        event(t, "kernel", "gemm", 7, 100 * step, 60, "\"device\":0,\"stream\":7");
        event(t, "kernel", "ncclDevKernel_AllReduce", 8, 100 * step + 40, 50, "\"device\":0,\"stream\":8");
        event(t, "gpu_memcpy", "Memcpy HtoD", 9, 100 * step, 10, "\"device\":0,\"stream\":9");
    }
    const struct kp_advice a = advise(t);
    assert_true(a.has_gpu);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "exposed-communication");
    assert_float_equal(a.findings[0].step_ns, 30000, 1);
    assert_float_equal(a.mean_ns[KP_STEP_COPIES], 0, 1);
    assert_float_equal(a.mean_ns[KP_STEP_IDLE], 10000, 1);
}

static void a_step_of_few_ops_is_found_where_no_gpu_works(void **state)
{
    struct little *t = *state;
    for (int step = 0; step < 3; step++) {
        step_event(t, step);
        op(t, "aten::mm", 100 * step + 10, 50);
    }
    const struct kp_advice a = advise(t);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "no-op-runs");
    assert_float_equal(a.findings[0].share, 0.5, 0.001);
}

#define LITTLE(test) cmocka_unit_test_setup_teardown(test, little_setup, little_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_slow_loader_is_found_with_its_cost),          LITTLE(a_fast_loader_is_healthy),
        LITTLE(one_step_is_incomplete_and_not_healthy),        LITTLE(communication_beside_compute_costs_nothing),
        LITTLE(a_step_of_few_ops_is_found_where_no_gpu_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
