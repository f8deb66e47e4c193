// SPDX-License-Identifier: Apache-2.0
/* test_commstarts.c - which op started what a backend of collectives does on a thread of its own */
#include "export/read/facts/comm/commstarts.h"

#include "test/unit/tree/little_trace.h"

/* When the op began that started the range which begins then, microseconds; -1: none did. */
static int start_of(const struct little *t, const int32_t *starts, int ts)
{
    for (size_t i = 0; i < t->tree.count; i++) {
        if (t->tree.nodes[i].start_ns - t->trace->start_ns != 1000 * ts || !kp_tree_event(&t->tree, i)->dur_ns)
            continue;
        return starts[i] < 0 ? -1 : (int)((t->tree.nodes[starts[i]].start_ns - t->trace->start_ns) / 1000);
    }
    fail();
    return -1;
}

static void range(struct little *t, const char *name, int ts, int dur, const char *args)
{
    event(t, "user_annotation", name, 9, ts, dur, args);
}

static void ranges_are_of_the_ops_of_their_name_in_order(void **state)
{
    struct little *t = *state;
    trace_of(t, "op aten::mm 0 5; op c10d::allreduce_ 10 5; op c10d::broadcast_ 20 5; op c10d::allreduce_ 30 5; "
                "op c10d::_allgather_base_ 40 5");
    range(t, "gloo:all_reduce", 3, 2, ""); /* started before the trace began */
    range(t, "gloo:all_reduce", 50, 9, "");
    range(t, "gloo:broadcast", 60, 9, "");
    range(t, "gloo:all_reduce", 70, 9, "");
    range(t, "gloo:all_gather", 80, 9, ""); /* the letters of another op */
    range(t, "gloo:all_reduce", 90, 9, "");
    assert_int_equal(choose(t, &everything), 0);
    int32_t *const starts = kp_commstarts_find(&t->tree);
    assert_non_null(starts);
    assert_int_equal(start_of(t, starts, 0), -1);
    assert_int_equal(start_of(t, starts, 3), -1);
    assert_int_equal(start_of(t, starts, 50), 10);
    assert_int_equal(start_of(t, starts, 60), 20);
    assert_int_equal(start_of(t, starts, 70), 30);
    assert_int_equal(start_of(t, starts, 80), 40);
    assert_int_equal(start_of(t, starts, 90), -1);
    free(starts);
}

/* A functional collective is one op, whatever it calls. */
static void an_op_in_another_one_starts_no_second_range(void **state)
{
    struct little *t = *state;
    trace_of(t, "op _c10d_functional::all_reduce 0 20; op c10d::allreduce_ 5 10; op c10d::allreduce_ 40 5");
    range(t, "gloo:all_reduce", 25, 9, "");
    range(t, "gloo:all_reduce", 50, 9, "");
    assert_int_equal(choose(t, &everything), 0);
    int32_t *const starts = kp_commstarts_find(&t->tree);
    assert_non_null(starts);
    assert_int_equal(start_of(t, starts, 25), 0);
    assert_int_equal(start_of(t, starts, 50), 40);
    free(starts);
}

/* A range of NCCL on the program's thread has a stack, and takes its op all the same. */
static void a_range_with_a_stack_needs_no_op(void **state)
{
    struct little *t = *state;
    trace_of(t, "op c10d::allreduce_ 0 5; op c10d::allreduce_ 20 5");
    range(t, "nccl:all_reduce", 6, 2, "\"Call stack\":\"train.py(3): main\"");
    range(t, "gloo:all_reduce", 30, 2, "");
    assert_int_equal(choose(t, &everything), 0);
    int32_t *const starts = kp_commstarts_find(&t->tree);
    assert_non_null(starts);
    assert_int_equal(start_of(t, starts, 6), -1);
    assert_int_equal(start_of(t, starts, 30), 20);
    free(starts);
}

static void a_trace_without_ranges_has_no_starts(void **state)
{
    struct little *t = *state;
    trace_of(t, "op c10d::allreduce_ 0 5; op aten::mm 10 5");
    assert_int_equal(choose(t, &everything), 0);
    assert_null(kp_commstarts_find(&t->tree));
}

/* Two threads of a backend, and a range in another one: no time counts twice, and what an op covers not at all. */
static void a_range_has_alone_what_nothing_else_has(void **state)
{
    struct little *t = *state;
    static const struct {
        int ts, alone_us;
    } rows[] = {{10, 30}, {20, 20}, {60, 20}, {150, 5}};
    struct kp_spans inside = {0};
    trace_of(t, "op c10d::send 0 2; op c10d::recv_ 2 2; op c10d::allreduce_ 4 2; op c10d::allreduce_ 6 2; "
                "op aten::mm 40 20");
    range(t, "gloo:send", 10, 70, "");
    range(t, "gloo:recv", 20, 25, "");
    event(t, "user_annotation", "gloo:all_reduce", 8, 60, 40, "");
    range(t, "gloo:all_reduce", 150, 50, "");
    assert_int_equal(choose(t, &everything), 0);
    int32_t *const starts = kp_commstarts_find(&t->tree);
    assert_non_null(starts);
    kp_spans_add(&inside, t->trace->start_ns, t->trace->start_ns + 155000);
    kp_spans_settle(&inside);
    int64_t *const alone = kp_commstarts_alone(&t->tree, starts, &inside);
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++)
        for (size_t i = 0; i < t->tree.count; i++)
            if (t->tree.nodes[i].start_ns - t->trace->start_ns == 1000 * rows[row].ts && starts[i] >= 0)
                assert_int_equal(alone[i], 1000 * rows[row].alone_us);
    kp_spans_fini(&inside);
    free(alone);
    free(starts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(ranges_are_of_the_ops_of_their_name_in_order), LITTLE(an_op_in_another_one_starts_no_second_range),
        LITTLE(a_range_with_a_stack_needs_no_op), LITTLE(a_trace_without_ranges_has_no_starts),
        LITTLE(a_range_has_alone_what_nothing_else_has)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
