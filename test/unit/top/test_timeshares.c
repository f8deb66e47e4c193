// SPDX-License-Identifier: Apache-2.0
/* test_timeshares.c - the numbers of the head of a report, and how many threads the cores hold */
#include "export/read/kineto/kineto_facts.h"
#include "export/answers/top/timeshares.h"

#include "test/unit/tree/little_trace.h"

static long wanted(long cores, long busy, long omp, long ranks, long torch, bool has_gpu)
{
    return kp_threads_wanted(&(struct kp_threads){cores, busy, omp, ranks, torch}, has_gpu);
}

static bool are_set(long cores, long busy, long omp, long ranks, long torch)
{
    return kp_threads_are_set(&(struct kp_threads){cores, busy, omp, ranks, torch});
}

static void too_many_threads_are_those_that_the_cores_do_not_hold(void **state)
{
    (void)state;
    assert_int_equal(wanted(2, 4, 0, 0, 0, false), 2);
    assert_int_equal(wanted(2, 3, 0, 0, 0, false), 0); /* one of them may have hardly run */
    assert_int_equal(wanted(2, 2, 0, 0, 0, false), 0);
    assert_int_equal(wanted(2, 2, 16, 0, 0, false), 0); /* torch takes no more than cores */
    assert_int_equal(wanted(2, 0, 16, 0, 0, false), 2); /* they were not counted */
    assert_int_equal(wanted(2, 2, 2, 2, 0, false), 1);
    assert_int_equal(wanted(2, 16, 1, 0, 0, false), 2); /* torch.set_num_threads(16) */
    assert_true(are_set(2, 16, 1, 0, 0) && !are_set(2, 16, 16, 0, 0));
    assert_true(are_set(2, 16, 0, 0, 0)); /* torch.set_num_threads(16) without the variable */
    assert_false(are_set(2, 6, 0, 0, 0)); /* a second library may have a pool of its own */
    assert_false(are_set(12, 24, 0, 0, 0));
    assert_false(are_set(0, 16, 0, 0, 0));
    assert_int_equal(wanted(2, 16, 1, 2, 0, false), 1);
    assert_int_equal(wanted(2, 3, 1, 2, 0, false), 0); /* set already: the others are no pool's */
    assert_int_equal(wanted(8, 8, 0, 4, 0, false), 2);
    assert_int_equal(wanted(2, 4, 0, 4, 0, false), 1);
    assert_int_equal(wanted(8, 10, 0, 1, 0, true), 0); /* threads of the GPU's libraries */
    assert_int_equal(wanted(0, 16, 16, 1, 0, false), 0);
}

static void where_the_number_of_torchs_own_is_known_others_are_no_pool_of_it(void **state)
{
    (void)state;
    assert_int_equal(wanted(2, 10, 1, 0, 1, false), 0); /* Ray's, gloo's: OMP_NUM_THREADS=1 is set */
    assert_int_equal(wanted(2, 10, 0, 0, 1, false), 2); /* a BLAS may have them */
    assert_int_equal(wanted(2, 4, 1, 0, 4, false), 2);  /* torch.set_num_threads(4) beside OMP_NUM_THREADS=1 */
    assert_int_equal(wanted(2, 3, 0, 0, 3, false), 2);
    assert_int_equal(wanted(2, 2, 0, 0, 16, false), 0); /* of 16 two ran */
    assert_int_equal(wanted(2, 0, 0, 0, 16, false), 2);
    assert_int_equal(wanted(2, 5, 0, 0, 2, false), 0);  /* three of the program's own */
    assert_int_equal(wanted(2, 17, 0, 0, 2, false), 2); /* a pool of another library */
    assert_int_equal(wanted(4, 4, 0, 2, 4, false), 2);
    assert_int_equal(wanted(8, 10, 0, 1, 10, true), 0);
    assert_int_equal(wanted(2, 4, 1, 3, 1, false), 0); /* more ranks than cores: none has less than one thread */
    assert_int_equal(wanted(2, 2, 0, 4, 2, false), 1);
    assert_true(are_set(2, 4, 1, 0, 4) && are_set(2, 16, 0, 0, 16) && are_set(2, 6, 0, 0, 6));
    assert_false(are_set(2, 16, 16, 0, 16) || are_set(2, 17, 0, 0, 2));
}

static void summary_make(struct little *t, struct kp_summary *out)
{
    assert_int_equal(choose(t, &everything), 0);
    kp_summary_make(out, &t->tree, &t->chosen);
}

static void the_wall_time_is_divided(void **state)
{
    struct little *t = *state;
    struct kp_summary s;
    trace_of(t, "step 0 0 100; range enumerate(DataLoader)#_Single.__next__ 0 30");
    op(t, "aten::stack", 10, 10); /* of the loader */
    op(t, "aten::mm", 40, 20);
    event(t, "cpu_op", "aten::mul", 2, 50, 20, ""); /* half of it beside the other thread's */
    summary_make(t, &s);
    assert_int_equal(s.wall_ns, 100000);
    assert_int_equal(s.data_ns, 30000);
    assert_int_equal(s.op_ns, 30000);
    assert_int_equal(s.rest_ns, 40000);
    assert_false(s.has_gpu);
}

/* Files of torch before 1.11 call the ranges of steps, of loaders and of optimizers operators. */
static void ranges_that_a_file_calls_operators_are_none(void **state)
{
    struct little *t = *state;
    struct kp_summary s;
    event(t, "Operator", "ProfilerStep#0", 1, 0, 100, "");
    event(t, "Operator", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1, 0, 30, "");
    event(t, "Operator", "aten::stack", 1, 10, 10, "");
    event(t, "Operator", "aten::mm", 1, 40, 20, "");
    event(t, "Operator", "Optimizer.step#SGD.step", 1, 70, 20, "");
    event(t, "Operator", "aten::add_", 1, 75, 5, "");
    summary_make(t, &s);
    assert_int_equal(s.wall_ns, 100000);
    assert_int_equal(s.data_ns, 30000);
    assert_int_equal(s.op_ns, 25000);
    assert_int_equal(s.rest_ns, 45000);
}

static void what_lies_outside_of_the_steps_has_no_share(void **state)
{
    struct little *t = *state;
    struct kp_summary s;
    op(t, "aten::empty", 0, 10); /* a model is built */
    trace_of(t, "step 0 500 100; op aten::mm 500 60");
    summary_make(t, &s);
    assert_true(s.is_of_steps);
    assert_int_equal(s.wall_ns, 600000);
    assert_int_equal(s.shared_ns, 100000);
    assert_int_equal(s.op_ns, 60000);
    assert_int_equal(s.rest_ns, 40000);
}

static void a_gpu_is_busy_or_waited_for(void **state)
{
    struct little *t = *state;
    struct kp_summary s;
    trace_of(t, "op aten::item 0 100; cuda cudaStreamSynchronize 20 50; kernel k@70 10 40");
    event(t, "kernel", "k", 71, 30, 40, ""); /* another stream */
    summary_make(t, &s);
    assert_true(s.has_gpu);
    assert_int_equal(s.gpu_ns, 60000);
    assert_int_equal(s.gpu_wait_ns, 50000);
}

static void a_call_of_the_runtime_in_no_op_is_counted_apart(void **state)
{
    struct little *t = *state;
    struct kp_summary s;
    trace_of(t, "op aten::mm 0 10; cuda cudaLaunchKernel 2 5; cuda cudaDeviceSynchronize 10 90; kernel k@7 5 90");
    summary_make(t, &s);
    assert_int_equal(s.op_ns, 100000);
    assert_int_equal(s.call_ns, 90000);
}

static void steps_add(struct little *t, const int *lengths, int count)
{
    for (int i = 0, at = 0; i < count; at += lengths[i++]) {
        numbered_step(t, i + 2, at, lengths[i]);
    }
}

static void steps_have_a_median_and_a_spread(void **state)
{
    static const int lengths[] = {10, 14, 12, 30};
    struct kp_summary s;
    steps_add(*state, lengths, 4);
    summary_make(*state, &s);
    assert_int_equal(s.steps, 4);
    assert_int_equal(s.first_step, 2);
    assert_int_equal(s.last_step, 5);
    assert_int_equal(s.step_median_ns, 13000);
    assert_int_equal(s.step_least_ns, 10000);
    assert_int_equal(s.step_most_ns, 30000);
    assert_false(s.is_first_slow);
}

static void a_first_step_longer_than_the_others_is_told(void **state)
{
    static const int lengths[] = {20, 14, 12, 13};
    struct kp_summary s;
    steps_add(*state, lengths, 4);
    summary_make(*state, &s);
    assert_true(s.is_first_slow);
    assert_int_equal(s.first_ns, 20000);
    assert_int_equal(s.rest_median_ns, 13000);
}

/* An evaluation, a checkpoint: each may be the first of what is looked at. */
static void a_long_step_in_the_middle_of_a_run_carries_no_start(void **state)
{
    struct little *t = *state;
    struct kp_summary s;
    for (int i = 0; i < 4; i++) numbered_step(t, 10 + i, 100 * i, i ? 20 : 90);
    summary_make(t, &s);
    assert_false(s.is_first_slow);
}

static void a_first_step_that_another_equals_carries_no_start(void **state)
{
    static const int lengths[] = {107, 10, 12, 100, 11, 10};
    struct kp_summary s;
    steps_add(*state, lengths, 6);
    summary_make(*state, &s);
    assert_false(s.is_first_slow);
}

static void a_count_of_losses_may_be_a_lower_bound(void **state)
{
    struct little *t = *state;
    struct kp_summary s;
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"lost\":5,\"lost_at_least\":true},");
    op(t, "a", 0, 1);
    summary_make(t, &s);
    assert_int_equal(s.lost, 5);
    assert_true(s.is_lost_least);
}

static void the_head_has_what_the_file_says(void **state)
{
    struct little *t = *state;
    struct kp_summary s;
    snprintf(t->head, sizeof t->head,
             "\"host_name\":\"node7\",\"distributedInfo\":{\"rank\":3,\"x\":[{\"a\":1}]},\"other\":{\"lost\":1},"
             "\"kprof\":{\"lost\":5,\"skipped\":2,\"complete\":true,\"cores\":2,\"busy_threads\":\"16\","
             "\"drops\":{\"OP\":{\"no chunk\":5}}},");
    op(t, "a", 0, 1);
    summary_make(t, &s);
    assert_int_equal(s.lost, 7);
    assert_false(s.is_lost_least);
    assert_int_equal(s.cores, 2);
    assert_int_equal(s.busy_threads, 16);
    assert_string_equal(kp_kineto_fact(t->trace, "host_name"), "node7");
    assert_string_equal(kp_kineto_fact(t->trace, "distributedInfo.rank"), "3");
    assert_string_equal(kp_kineto_fact(t->trace, "kprof.drops.OP.no chunk"), "5");
    assert_string_equal(kp_kineto_fact(t->trace, "kprof.complete"), "1");
    assert_null(kp_kineto_fact(t->trace, "other.lost"));
    assert_null(kp_kineto_fact(t->trace, "distributedInfo.x.a"));
}

/* A worker that sleeps: it waited long each time that it woke, and still that is little of the time. */
static void a_short_wait_in_a_trace_without_steps_is_no_crowd(void **state)
{
    struct little *t = *state;
    struct kp_summary s;
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"core_had_us\":30,\"core_waited_us\":45},");
    op(t, "aten::randn", 0, 1000);
    summary_make(t, &s);
    assert_int_equal(s.wall_ns, 1000000);
    assert_float_equal(s.core_waited, 0.6, 1e-6);
    assert_false(s.is_crowded);
}

static void a_long_wait_in_a_trace_without_steps_is_one(void **state)
{
    struct little *t = *state;
    struct kp_summary s;
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"core_had_us\":400,\"core_waited_us\":600},");
    op(t, "aten::randn", 0, 1000);
    summary_make(t, &s);
    assert_true(s.is_crowded);
}

static bool waits_for_slowest(struct little *t, const char *facts)
{
    struct kp_summary s;
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"cores\":\"4\"%s},", facts);
    event(t, "user_annotation", "ProfilerStep#0", 1, 0, 1000, "");
    summary_make(t, &s);
    return s.waits_for_slowest;
}

static void threads_wait_for_the_slowest_where_others_have_their_cores(void **state)
{
    assert_true(waits_for_slowest(*state, ",\"busy_threads\":\"4\",\"core_had_us\":400,\"core_waited_us\":600"));
}

static void one_thread_waits_for_no_other(void **state)
{
    assert_false(waits_for_slowest(*state, ",\"busy_threads\":\"1\",\"core_had_us\":400,\"core_waited_us\":600"));
}

static void torch_shares_no_op_with_one_thread(void **state)
{
    assert_false(waits_for_slowest(*state, ",\"busy_threads\":\"4\",\"core_had_us\":400,\"core_waited_us\":600,"
                                           "\"omp_num_threads\":\"1\""));
}

/* The other threads are the program's own. */
static void a_torch_of_one_thread_shares_no_op_whatever_the_variable_says(void **state)
{
    assert_false(waits_for_slowest(*state, ",\"busy_threads\":\"4\",\"core_had_us\":400,\"core_waited_us\":600,"
                                           "\"torch_threads\":\"1\""));
}

static void a_torch_of_two_threads_shares_its_ops_whatever_the_variable_says(void **state)
{
    assert_true(waits_for_slowest(*state, ",\"busy_threads\":\"4\",\"core_had_us\":400,\"core_waited_us\":600,"
                                          "\"torch_threads\":\"2\",\"omp_num_threads\":\"1\""));
}

static void threads_that_have_their_cores_wait_little(void **state)
{
    assert_false(waits_for_slowest(*state, ",\"busy_threads\":\"4\",\"core_had_us\":700,\"core_waited_us\":300"));
}

/* Five of twenty steps of 10 ms last 30. With `facts` they had no core for these 20. */
static struct kp_summary uneven_summary(struct little *t, const char *facts)
{
    struct kp_summary s;
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"cores\":\"2\"%s},", facts);
    for (int i = 0, at = 0; i < 20; i++) {
        const int us = i >= 15 ? 30000 : 10000;
        numbered_step(t, i, at, us);
        op(t, "aten::mm", at, us);
        at += us;
    }
    summary_make(t, &s);
    return s;
}

static void steps_that_are_long_by_waits_for_a_core_are_told_as_that(void **state)
{
    const struct kp_summary s = uneven_summary(*state, ",\"core_steps\":\"15-19:100000\"");
    assert_true(s.is_uneven && s.is_uneven_by_cores);
    assert_int_equal(s.no_core_ns, 100000000);
}

/* Their work grows from 1 to 20 ms, and the last of them wait for a core as well. */
static void steps_that_grow_are_not_those_that_waited(void **state)
{
    struct little *t = *state;
    struct kp_summary s;
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"cores\":\"2\",\"core_steps\":\"15-19:75000\"},");
    for (int i = 0, at = 0; i < 20; i++) {
        const int us = 1000 * (i + 1) + (i >= 15 ? 15000 : 0);
        numbered_step(t, i, at, us);
        op(t, "aten::mm", at, us);
        at += us;
    }
    summary_make(t, &s);
    assert_true(s.is_uneven && !s.is_uneven_by_cores);
    assert_int_equal(s.no_core_ns, 75000000);
}

static void steps_that_are_long_by_their_work_are_not(void **state)
{
    const struct kp_summary s = uneven_summary(*state, "");
    assert_true(s.is_uneven && !s.is_uneven_by_cores);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_many_threads_are_those_that_the_cores_do_not_hold),
        cmocka_unit_test(where_the_number_of_torchs_own_is_known_others_are_no_pool_of_it),
        LITTLE(the_wall_time_is_divided),
        LITTLE(ranges_that_a_file_calls_operators_are_none),
        LITTLE(what_lies_outside_of_the_steps_has_no_share),
        LITTLE(a_gpu_is_busy_or_waited_for),
        LITTLE(a_call_of_the_runtime_in_no_op_is_counted_apart),
        LITTLE(steps_have_a_median_and_a_spread),
        LITTLE(a_first_step_longer_than_the_others_is_told),
        LITTLE(a_long_step_in_the_middle_of_a_run_carries_no_start),
        LITTLE(a_first_step_that_another_equals_carries_no_start),
        LITTLE(steps_that_are_long_by_waits_for_a_core_are_told_as_that),
        LITTLE(steps_that_grow_are_not_those_that_waited),
        LITTLE(steps_that_are_long_by_their_work_are_not),
        LITTLE(threads_wait_for_the_slowest_where_others_have_their_cores),
        LITTLE(one_thread_waits_for_no_other),
        LITTLE(torch_shares_no_op_with_one_thread),
        LITTLE(a_torch_of_one_thread_shares_no_op_whatever_the_variable_says),
        LITTLE(a_torch_of_two_threads_shares_its_ops_whatever_the_variable_says),
        LITTLE(threads_that_have_their_cores_wait_little),
        LITTLE(a_short_wait_in_a_trace_without_steps_is_no_crowd),
        LITTLE(a_long_wait_in_a_trace_without_steps_is_one),
        LITTLE(the_head_has_what_the_file_says),
        LITTLE(a_count_of_losses_may_be_a_lower_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
