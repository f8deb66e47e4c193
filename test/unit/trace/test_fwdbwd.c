// SPDX-License-Identifier: Apache-2.0
/* test_fwdbwd.c - arrows from forward to backward ops, by Kineto's rule */
#include "export/write/trace/fwdbwd.h"

#include "test/support/support.h"

static struct kp_flows *flows;
static struct kp_flow_from from;

static bool take(int64_t seq, uint32_t thread, uint64_t fwd, uint64_t start, uint32_t tid)
{
    struct kp_event e = {
        .kind = KP_KIND_OP, .seq = seq, .rt_tid = thread, .fwd_tid = fwd, .start_ns = start, .tid = tid};
    from = (struct kp_flow_from){0};
    return kp_flows_take(flows, &e, &from);
}

static int start(void **state)
{
    (void)state;
    flows = kp_flows_open();
    return flows ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    kp_flows_close(flows);
    return 0;
}

static void the_forward_op_that_started_last_is_taken(void **state)
{
    (void)state;
    assert_false(take(5, 1, 0, 110, 77)); /* addmm ends first */
    assert_false(take(5, 1, 0, 100, 77)); /* linear around it */
    assert_true(take(5, 2, 1, 300, 88));
    assert_int_equal(from.start_ns, 110);
    assert_int_equal(from.tid, 77);
}

static void a_pair_is_made_once(void **state)
{
    (void)state;
    take(5, 1, 0, 110, 77);
    assert_true(take(5, 2, 1, 300, 88));
    assert_false(take(5, 2, 1, 290, 88));
}

static void threads_with_the_same_number_are_told_apart(void **state)
{
    (void)state;
    take(5, 1, 0, 110, 77), take(5, 3, 0, 111, 79);
    assert_true(take(5, 2, 3, 300, 88));
    assert_int_equal(from.tid, 79);
    assert_true(take(5, 2, 1, 310, 88));
    assert_int_equal(from.tid, 77);
    assert_false(take(6, 2, 1, 320, 88));
    assert_false(take(-1, 1, 0, 330, 77));
}

static void a_program_that_never_goes_backward_forgets_the_oldest(void **state)
{
    (void)state;
    for (int64_t i = 0; i < 1000000; i++) take(i, 1, 0, 1000 + (uint64_t)i, 77);
    assert_false(take(3, 2, 1, 2000000, 88));
    for (int64_t i = 1000000 - 262144; i < 1000000; i++) {
        assert_true(take(i, 2, 1, 2000000, 88));
        assert_int_equal(from.start_ns, 1000 + (uint64_t)i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_forward_op_that_started_last_is_taken, start, stop),
        cmocka_unit_test_setup_teardown(a_pair_is_made_once, start, stop),
        cmocka_unit_test_setup_teardown(threads_with_the_same_number_are_told_apart, start, stop),
        cmocka_unit_test_setup_teardown(a_program_that_never_goes_backward_forgets_the_oldest, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
