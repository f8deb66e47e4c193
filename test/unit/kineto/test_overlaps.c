// SPDX-License-Identifier: Apache-2.0
/* test_overlaps.c - work of a device that lasts beyond the next ones of its stream */
#include "export/read/kineto/overlaps.h"

#include "test/unit/tree/little_trace.h"

static void work(struct little *t, int stream, int at, int dur, int correlation)
{
    char args[64];
    snprintf(args, sizeof args, "\"stream\":%d,\"correlation\":%d", stream, correlation);
    event(t, "kernel", "gemm", stream, at, dur, args);
}

static void an_end_behind_several_next_ones_is_cut(void **state)
{
    struct little *t = *state;
    for (int i = 0; i < 10; i++) work(t, 7, 110 * i, i == 2 ? 1500000 : 100, 10 + i);
    work(t, 8, 0, 900, 50); /* another stream works beside it */
    tree_make(t);
    kp_kineto_works_settle(t->trace);
    assert_int_equal(t->trace->overlaps, 1);
    assert_int_equal(t->trace->events[2].dur_ns, 110000);
    assert_int_equal(t->trace->events[10].dur_ns, 900000);
    assert_int_equal(t->trace->overlap_ns, 1500000000 - 110000);
}

/* Two next ones are not enough, but fifty times as long as the stream has time for is. */
static void the_last_ones_of_a_stream_are_cut_too(void **state)
{
    struct little *t = *state;
    work(t, 7, 0, 100, 1);
    work(t, 7, 110, 100000, 2);
    work(t, 7, 220, 100, 3);
    tree_make(t);
    kp_kineto_works_settle(t->trace);
    assert_int_equal(t->trace->overlaps, 1);
    assert_int_equal(t->trace->events[1].dur_ns, 110000);
}

/* A programmatic launch begins early, and kernels of a graph run side by side. */
static void what_may_overlap_is_left(void **state)
{
    struct little *t = *state;
    for (int i = 0; i < 6; i++) work(t, 7, 90 * i, 100, 10 + i);
    work(t, 7, 1000, 500, 30);
    for (int i = 0; i < 5; i++) work(t, 7, 1010 + 90 * i, 80, 30);
    tree_make(t);
    kp_kineto_works_settle(t->trace);
    assert_int_equal(t->trace->overlaps, 0);
}

/* torch's tables add it to the op's time on the GPU, as it stands in the file. */
static void a_wait_is_no_work_of_its_op(void **state)
{
    struct little *t = *state;
    struct kp_values values;
    trace_of(t, "op aten::item 0 900 id=3; cuda_sync 'Stream Sync'@7 10 800 id=3 corr=9; "
                "kernel copy@7 820 5 id=3 corr=8");
    tree_make(t);
    kp_tree_values(&t->tree, 0, &values);
    assert_int_equal((int)values.self_device, 805);
    kp_tree_fini(&t->tree);
    kp_kineto_works_settle(t->trace);
    assert_int_equal(kp_tree_build(&t->tree, t->trace), 0);
    kp_tree_values(&t->tree, 0, &values);
    assert_int_equal((int)values.self_device, 5);
    assert_true(t->tree.nodes[1].on_device); /* it is shown on its stream */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(an_end_behind_several_next_ones_is_cut),
        LITTLE(the_last_ones_of_a_stream_are_cut_too),
        LITTLE(what_may_overlap_is_left),
        LITTLE(a_wait_is_no_work_of_its_op),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
