// SPDX-License-Identifier: Apache-2.0
/* test_commops.c - the time of an op without the functional collectives inside of it */
#include "export/read/facts/comm/commops.h"

#include "test/unit/tree/little_trace.h"

/* A redistribution waits for two collectives, one of them in an op of its own. */
static void what_communicates_inside_is_not_the_ops_time(void **state)
{
    struct little *t = *state;
    struct kp_spans of = {0};
    trace_of(t, "op Redistribute 0 100; op _c10d_functional::all_reduce 10 20; op aten::inner 40 50; "
                "op _c10d_functional::wait_tensor 50 30; op aten::mm 200 10");
    assert_int_equal(choose(t, &everything), 0);
    struct kp_commops ops;
    kp_commops_find(&ops, &t->tree);
    assert_non_null(ops.of);
    assert_int_equal(ops.of[0], KP_COMMOP_INSIDE);
    assert_int_equal(ops.of[1], KP_COMMOP_IS);
    assert_int_equal(ops.of[4], KP_COMMOP_NONE);
    kp_commops_add(&of, &t->tree, &ops, 0);
    kp_spans_settle(&of);
    assert_int_equal(kp_spans_length(&of, NULL), 50000); /* 0 to 10, 30 to 50, 80 to 100 */
    kp_spans_fini(&of);
    kp_commops_fini(&ops);
}

/* As FSDP: an op of autograd starts a collective, and waits for it. An op beside a collective computes. */
static void what_waits_for_its_collective_inside_is_not_the_ops_time(void **state)
{
    struct little *t = *state;
    struct kp_spans of = {0};
    struct kp_commops ops;
    trace_of(t, "op Post 0 100; op c10d::_reduce_scatter_base_ 10 5; op aten::add 90 5; op aten::mm 200 40");
    event(t, "user_annotation", "gloo:all_reduce", 9, 12, 70, "");
    event(t, "user_annotation", "gloo:all_reduce", 9, 210, 50, "");
    assert_int_equal(choose(t, &everything), 0);
    kp_commops_find(&ops, &t->tree);
    kp_commops_add(&of, &t->tree, &ops, 0);
    kp_spans_settle(&of);
    assert_int_equal(kp_spans_length(&of, NULL), 28000); /* 0 to 10, 82 to 100 */
    for (size_t i = 0; i < t->tree.count; i++)
        if (strcmp(kp_kineto_text(t->tree.trace, kp_tree_event(&t->tree, i)->name), "aten::mm") == 0)
            kp_commops_add(&of, &t->tree, &ops, i);
    kp_spans_settle(&of);
    assert_int_equal(kp_spans_length(&of, NULL), 68000);
    kp_spans_fini(&of);
    kp_commops_fini(&ops);
}

static void a_trace_without_collectives_has_no_marks(void **state)
{
    struct little *t = *state;
    struct kp_spans of = {0};
    op(t, "aten::mm", 0, 10);
    assert_int_equal(choose(t, &everything), 0);
    struct kp_commops ops;
    kp_commops_find(&ops, &t->tree);
    assert_null(ops.of);
    kp_commops_add(&of, &t->tree, &ops, 0);
    assert_int_equal(kp_spans_length(&of, NULL), 10000);
    kp_spans_fini(&of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {LITTLE(what_communicates_inside_is_not_the_ops_time),
                                       LITTLE(what_waits_for_its_collective_inside_is_not_the_ops_time),
                                       LITTLE(a_trace_without_collectives_has_no_marks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
