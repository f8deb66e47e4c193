// SPDX-License-Identifier: Apache-2.0
/* test_valuereads.c - reads of single values are those of the program, each counted once */
#include "test/unit/tree/little_trace.h"

#include "export/read/facts/valuereads.h"

static void step_make(struct little *t, int number, int ts)
{
    char name[32];
    snprintf(name, sizeof name, "ProfilerStep#%d", number);
    event(t, "user_annotation", name, 1, ts, 100, "");
}

static size_t count(struct little *t)
{
    assert_int_equal(choose(t, &everything), 0);
    return kp_valuereads_count(&t->tree, &t->chosen);
}

static void a_read_inside_a_read_is_one(void **state)
{
    struct little *t = *state;
    step_make(t, 1, 0);
    trace_of(t, "op aten::is_nonzero 10 20; op aten::item 11 18; op aten::_local_scalar_dense 12 16; "
                "op aten::item 40 5; op aten::mm 50 5");
    assert_int_equal(count(t), 2);
}

static void what_torch_reads_itself_does_not_count(void **state)
{
    struct little *t = *state;
    step_make(t, 1, 0);
    trace_of(t, "range Optimizer.step#SGD.step 10 20; op aten::item 11 5; "
                "range enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ 40 20; op aten::item 41 5; "
                "op aten::item 70 5");
    assert_int_equal(count(t), 1);
}

/* A GPU waits for it as for any other, and torch.allclose() answers Python. */
static void a_value_that_an_op_reads_for_itself_is_no_read_of_the_program_without_a_gpu(void **state)
{
    struct little *t = *state;
    step_make(t, 1, 0);
    trace_of(t, "op aten::std 10 20; op aten::item 12 10; op aten::_local_scalar_dense 13 5; "
                "op aten::allclose 40 20; op aten::item 45 5; op aten::item 70 5");
    assert_int_equal(count(t), 2);
    little_forget(t);
    event(t, "kernel", "gemm", 7, 80, 5, "\"device\":0,\"stream\":7,\"correlation\":5");
    assert_int_equal(count(t), 3);
}

static void a_read_outside_of_steps_does_not_count(void **state)
{
    struct little *t = *state;
    step_make(t, 1, 0);
    trace_of(t, "op aten::item 50 5; op aten::item 150 5");
    step_make(t, 2, 200);
    op(t, "aten::item", 250, 5);
    assert_int_equal(count(t), 2);
}

/* A file with whole microseconds. */
static void a_read_too_short_to_have_a_length_is_one(void **state)
{
    struct little *t = *state;
    step_make(t, 1, 0);
    trace_of(t, "op aten::item 10 0; op aten::_local_scalar_dense 10 0; op aten::item 20 3; "
                "op aten::_local_scalar_dense 23 0; op aten::item 23 2");
    assert_int_equal(count(t), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_read_inside_a_read_is_one, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(what_torch_reads_itself_does_not_count, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(a_value_that_an_op_reads_for_itself_is_no_read_of_the_program_without_a_gpu,
                                        little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(a_read_outside_of_steps_does_not_count, little_setup, little_teardown),
        cmocka_unit_test_setup_teardown(a_read_too_short_to_have_a_length_is_one, little_setup, little_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
