// SPDX-License-Identifier: Apache-2.0
/* test_idlecause.c - what waits of the host cost: the queue is empty behind them */
#include "test/unit/advise/advised.h"

enum { STEPS = 3, STEP_US = 1800, READS = 6 };

static void launches(struct little *t, int *id, int call, int at, int us)
{
    char args[64];
    snprintf(args, sizeof args, "\"correlation\":%d", ++*id);
    event(t, "cuda_runtime", "cudaLaunchKernel", 1, call, 5, args);
    snprintf(args, sizeof args, "\"device\":0,\"stream\":7,\"correlation\":%d", *id);
    event(t, "kernel", us > 100 ? "gemm" : "sum", 7, at, us, args);
}

static void waits(struct little *t, const char *call, int at, int us)
{
    event(t, "cuda_runtime", call, 1, at, us, "\"correlation\":900");
}

/*
 * Steps of 1800 us. Six times the host has ops for 67 us, launches, and waits for `wait` us: the GPU is idle for 67 us
 * behind each. Then the GPU works to the end, for which the host waits, or which it has ops for.
 */
static struct kp_advice reads_advise(struct little *t, int wait, bool waits_for_end)
{
    int id = 0;
    for (int step = 0; step < STEPS; step++) {
        char name[32];
        int at = STEP_US * step;
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, at, STEP_US, "");
        for (int i = 0; i < READS; i++, at += 67 + wait) {
            event(t, "cpu_op", "aten::mul", 1, at, 66, "\"Call stack\":\"train.py(8): main\"");
            launches(t, &id, at + 60, at + 67, wait);
            event(t, "cpu_op", "aten::item", 1, at + 66, wait + 1, "\"Call stack\":\"train.py(7): main\"");
            waits(t, "cudaStreamSynchronize", at + 67, wait);
        }
        launches(t, &id, at, at + 6, STEP_US * (step + 1) - at - 6);
        if (waits_for_end) waits(t, "cudaDeviceSynchronize", at + 10, STEP_US * (step + 1) - at - 10);
        else op(t, "aten::view", at + 10, STEP_US * (step + 1) - at - 10);
    }
    return advise(t);
}

static void assert_waits(struct little *t, int wait)
{
    const struct kp_advice a = reads_advise(t, wait, true);
    assert_float_equal(a.mean_ns[KP_SPLIT_IDLE], (READS * 67 + 6) * 1e3, 1);
    assert_float_equal(a.cause_ns[KP_IDLE_SYNC], a.mean_ns[KP_SPLIT_IDLE], 23e3); /* no wait is before the first */
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "implicit-sync");
    if (wait >= 20) assert_string_equal(a.findings[0].line, "train.py:7 main"); /* else of the long wait before */
}

/* As 60 reads a step on an H100: of 4.1 ms of idle time 1.9 were the waits', 2.0 launching; 3.9 were saved. */
static void where_the_gpu_is_the_longer_side_waits_have_the_launching_behind_them(void **state)
{
    assert_waits(*state, 31);
}

static void short_waits_too(void **state) { assert_waits(*state, 10); }

static void where_the_host_is_they_cost_what_they_last(void **state)
{
    const struct kp_advice a = reads_advise(*state, 31, false);
    assert_float_equal(a.cause_ns[KP_IDLE_SYNC], READS * 31e3, 32e3);
    assert_true(a.cause_ns[KP_IDLE_LAUNCH] > READS * 30e3);
    assert_string_equal(a.findings[0].id, "launch-bound");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(where_the_gpu_is_the_longer_side_waits_have_the_launching_behind_them),
        LITTLE(short_waits_too),
        LITTLE(where_the_host_is_they_cost_what_they_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
