// SPDX-License-Identifier: Apache-2.0
/* test_loadsampler.c - next() of a DataLoader that computes in the process of the training is no wait for workers */
#include "test/unit/advise/advised.h"

#define ALONE "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
#define NEXT_INDEX "torch/utils/data/dataloader.py(714): _next_index"

enum { STEPS = 10, LOADS_US = 4000, STEP_US = 10000 };

static void head_set(struct little *t, const char *facts)
{
    snprintf(t->head, sizeof t->head, "\"with_stack\":1,\"profile_memory\":1,\"kprof\":{\"python_gc\":\"1\"%s},",
             facts);
}

/* Steps of 10 ms, of which 4 load. `sampler_us` of these are a call of the sampler, `op_us` of that an op it calls. */
static struct kp_advice calls_and_op_advise(struct little *t, const char *loader, int sampler_us, int op_us)
{
    head_set(t, "");
    for (int i = 0; i < STEPS; i++) {
        const int at = i * STEP_US;
        numbered_step(t, i, at, STEP_US);
        event(t, "user_annotation", loader, 1, at, LOADS_US, "");
        event(t, "python_function", "train.py(30): main", 1, at + 1, LOADS_US - 2, "");
        event(t, "python_function", NEXT_INDEX, 1, at + 2, sampler_us, "");
        event(t, "python_function", "draws.py(21): __iter__", 1, at + 3, sampler_us - 2, "");
        if (op_us)
            event(t, "cpu_op", "aten::cumsum", 1, at + 4, op_us,
                  "\"Call stack\":\"draws.py(20): __iter__;train.py(30): main\"");
        op(t, "aten::mm", at + LOADS_US, STEP_US - LOADS_US);
    }
    return advise(t);
}

static struct kp_advice calls_advise(struct little *t, const char *loader, int sampler_us)
{
    return calls_and_op_advise(t, loader, sampler_us, 0);
}

static void a_sampler_in_next_is_no_wait_for_workers(void **state)
{
    const struct kp_advice a = calls_advise(*state, WORKERS, 3000);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "data-sampler");
    assert_float_equal(a.findings[0].step_ns, 3e6, 1);
    assert_float_equal(a.findings[0].share, 0.3, 0.001);
    assert_true(a.findings[0].is_critical);
    assert_string_equal(a.findings[0].line, "draws.py:21 def __iter__");
    assert_non_null(strstr(a.findings[0].what, "(the rest of next() takes 1.0 ms)"));
    assert_null(strstr(a.findings[0].change, "num_workers"));
}

/* Python names a generator that goes on by its `yield`: the line that calls what costs a quarter is named as well. */
static void the_line_of_its_calls_stands_beside_the_function(void **state)
{
    struct little *const t = *state;
    const struct kp_advice a = calls_and_op_advise(t, WORKERS, 3000, 1000);
    assert_string_equal(a.findings[0].line, "draws.py:21 def __iter__");
    assert_non_null(a.findings[0].also_line);
    assert_string_equal(a.findings[0].also_line, "draws.py:20 __iter__");
    little_forget(t);
    memset(t, 0, sizeof *t);
    const struct kp_advice few = calls_and_op_advise(t, WORKERS, 3000, 500);
    assert_string_equal(few.findings[0].line, "draws.py:21 def __iter__");
    assert_null(few.findings[0].also_line);
}

static void a_sampler_costs_the_same_without_workers(void **state)
{
    const struct kp_advice a = calls_advise(*state, ALONE, 3000);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "data-sampler");
}

static void a_sampler_that_has_less_than_half_is_told_beside_the_wait(void **state)
{
    const struct kp_advice a = calls_advise(*state, WORKERS, 1500);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "data-loading");
    assert_string_equal(a.findings[0].what,
                        "the step waits for the DataLoader; its sampler takes 1.5 ms of that in the process of the "
                        "training, which workers do not shorten: draws.py:21 def __iter__");
}

static void a_sampler_of_next_to_nothing_is_not_told(void **state)
{
    const struct kp_advice a = calls_advise(*state, WORKERS, 100);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].what, "the step waits for the DataLoader");
}

/* Two ops with 1 ms of Python between them, as far as stacks of ops tell; `frame`: of these. */
static struct kp_advice ops_advise(struct little *t, const char *frame)
{
    char args[200];
    snprintf(args, sizeof args, "\"Call stack\":\"%s;train.py(30): main\"", frame);
    head_set(t, "");
    for (int i = 0; i < STEPS; i++) {
        const int at = i * STEP_US;
        numbered_step(t, i, at, STEP_US);
        event(t, "user_annotation", WORKERS, 1, at, LOADS_US, "");
        event(t, "cpu_op", "aten::randperm", 1, at + 100, 1000, args);
        event(t, "cpu_op", "aten::sort", 1, at + 2100, 1000, args);
        op(t, "aten::mm", at + LOADS_US, STEP_US - LOADS_US);
    }
    return advise(t);
}

static void stacks_of_ops_show_the_sampler(void **state)
{
    const struct kp_advice a = ops_advise(*state, NEXT_INDEX);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "data-sampler");
    assert_float_equal(a.findings[0].step_ns, 3e6, 1);
    assert_string_equal(a.findings[0].line, "train.py:30 main");
}

static void ops_of_items_are_not_the_sampler(void **state)
{
    const struct kp_advice a = ops_advise(*state, "torch/utils/data/dataloader.py(790): _next_data");
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "data-loading");
    assert_null(strstr(a.findings[0].what, "sampler"));
}

/* No op and no call is in next(): the time of the thread alone tells whether it slept there. */
static struct kp_advice facts_advise(struct little *t, const char *facts)
{
    head_set(t, facts);
    for (int i = 0; i < STEPS; i++) {
        numbered_step(t, i, i * STEP_US, STEP_US);
        event(t, "user_annotation", WORKERS, 1, i * STEP_US, LOADS_US, "");
        op(t, "aten::mm", i * STEP_US + LOADS_US, STEP_US - LOADS_US);
    }
    return advise(t);
}

#define SAYS "next() of the DataLoader computes in this process"

static void a_thread_that_hardly_sleeps_waits_for_no_worker(void **state)
{
    const struct kp_advice a = facts_advise(*state, ",\"core_had_us\":99000,\"core_waited_us\":500");
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].what, SAYS ": the thread hardly sleeps there, so it does not wait for workers");
    assert_true(a.findings[0].is_of_main && a.findings[0].is_critical);
    assert_non_null(strstr(a.findings[0].change, "More workers do not help."));
}

static void on_busy_cores_it_may_want_one(void **state)
{
    const struct kp_advice a = facts_advise(*state, ",\"core_had_us\":40000,\"core_waited_us\":59500");
    assert_int_equal(a.count, 1);
    assert_int_equal(strncmp(a.findings[0].what, SAYS ", or has no CPU core: ", sizeof SAYS + 20), 0);
    assert_false(a.findings[0].is_critical);
}

static void a_thread_that_sleeps_waits_for_workers(void **state)
{
    const struct kp_advice a = facts_advise(*state, ",\"core_had_us\":62000,\"core_waited_us\":500");
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].what, "the step waits for the DataLoader");
    assert_false(a.findings[0].is_of_main);
}

static void a_trace_without_the_times_of_a_thread_does_not_say(void **state)
{
    const struct kp_advice a = facts_advise(*state, "");
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].what, "the step waits for the DataLoader, or computes in its next()");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_sampler_in_next_is_no_wait_for_workers),
        LITTLE(the_line_of_its_calls_stands_beside_the_function),
        LITTLE(a_sampler_costs_the_same_without_workers),
        LITTLE(a_sampler_that_has_less_than_half_is_told_beside_the_wait),
        LITTLE(a_sampler_of_next_to_nothing_is_not_told),
        LITTLE(stacks_of_ops_show_the_sampler),
        LITTLE(ops_of_items_are_not_the_sampler),
        LITTLE(a_thread_that_hardly_sleeps_waits_for_no_worker),
        LITTLE(on_busy_cores_it_may_want_one),
        LITTLE(a_thread_that_sleeps_waits_for_workers),
        LITTLE(a_trace_without_the_times_of_a_thread_does_not_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
