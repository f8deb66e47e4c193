// SPDX-License-Identifier: Apache-2.0
/* test_gpusteps.c - the steps of a GPU whose host is ahead of it, for ever or until it waits */
#include "test/unit/advise/advised.h"

/* Steps of 100 us of a host that launches 1000 us of work in each. */
static void behind_make(struct little *t, const char *kernel)
{
    for (int step = 0; step < 3; step++) {
        char args[64];
        step_event(t, step);
        snprintf(args, sizeof args, "\"correlation\":%d", step + 1);
        event(t, "cuda_runtime", "cudaLaunchKernel", 1, 100 * step + 10, 5, args);
        snprintf(args, sizeof args, "\"device\":0,\"stream\":7,\"correlation\":%d", step + 1);
        event(t, "kernel", kernel, 7, 1000 * step + 50, 1000, args);
    }
}

static void a_gpu_that_is_behind_has_steps_of_its_own(void **state)
{
    struct little *t = *state;
    strcpy(t->head, "\"with_stack\":1,\"profile_memory\":1,\"record_shapes\":1,\"kprof\":{\"python_gc\":\"1\"},");
    behind_make(t, "gemm");
    const struct kp_advice a = advise(t);
    assert_int_equal(a.count, 0);
    assert_float_equal(a.step_ns, 1000000, 1);
    assert_float_equal(a.mean_ns[KP_SPLIT_COMPUTE], 1000000, 1);
    assert_float_equal(a.gpu.busy, 1, 0.001);
    assert_non_null(strstr(a.ahead, "by 2.8 steps more"));
    assert_string_equal(kp_advice_bound(&a), "GPU compute");
}

/* 20 steps of 100 us that launch 1000 us of work each; each tenth waits until all of it is done. */
static void a_host_that_is_ahead_and_waits_now_and_then_has_no_slow_steps(void **state)
{
    struct little *t = *state;
    int at = 0, free_at = 0;
    strcpy(t->head, "\"with_stack\":1,\"profile_memory\":1,\"record_shapes\":1,\"kprof\":{\"python_gc\":\"1\"},");
    for (int step = 0; step < 20; step++) {
        const int begin = at, works_at = free_at > at + 50 ? free_at : at + 50;
        char args[64];
        launch(t, step + 1, at + 10, works_at, 1000);
        free_at = works_at + 1000;
        at += 100;
        if (step % 10 == 9) {
            snprintf(args, sizeof args, "\"correlation\":%d", 100 + step);
            event(t, "cuda_runtime", "cudaStreamSynchronize", 1, at, free_at - at, args);
            at = free_at + 10;
        }
        numbered_step(t, step, begin, at - begin);
    }
    const struct kp_advice a = advise(t);
    assert_int_equal(a.count, 0);
    assert_true(a.is_late);
    assert_string_equal(a.ahead,
                        "the host is ahead of the GPU, by a step or more in 16 of 20 steps, until it waits: on "
                        "the GPU a step lasts 1.000 ms (median, from its first work to that of the next)");
    assert_float_equal(a.median_ns, 100000, 1);
}

static void what_a_gpu_that_is_behind_computes_is_judged(void **state)
{
    struct little *t = *state;
    strcpy(t->head, "\"deviceProperties\":[{\"id\":0,\"computeMajor\":8,\"numSms\":108}],");
    behind_make(t, "ampere_sgemm_128x64_nn");
    const struct kp_advice a = advise(t);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "tensor-cores-unused");
    assert_float_equal(a.findings[0].step_ns, 1000000, 1);
}

static void a_gpu_that_is_behind_tells_nothing_where_a_step_launches_nothing(void **state)
{
    struct little *t = *state;
    for (int step = 0; step < 3; step++) {
        step_event(t, step);
        if (step != 1) launch(t, step + 1, 100 * step + 10, 1000 * step + 1000, 1000);
    }
    const struct kp_advice a = advise(t);
    assert_int_equal(a.count, 0);
    assert_non_null(a.missing);
    assert_null(a.ahead);
    assert_false(a.is_healthy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_gpu_that_is_behind_has_steps_of_its_own),
        LITTLE(a_host_that_is_ahead_and_waits_now_and_then_has_no_slow_steps),
        LITTLE(what_a_gpu_that_is_behind_computes_is_judged),
        LITTLE(a_gpu_that_is_behind_tells_nothing_where_a_step_launches_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
