// SPDX-License-Identifier: Apache-2.0
/* test_topmodules.c - rows of modules with forward and backward, and rows of their classes */
#include "export/answers/top/toprows.h"

#include "test/unit/top/little_rows.h"

#define FORWARD "\"Sequence number\":7"
#define BACKWARD "\"Sequence number\":7,\"Fwd thread id\":1"

/* Net_0 calls a Seq in a Seq, whose op has a backward op on thread 2; its gradient is added up behind it.
 * The call of a module itself belongs to the module around it. */
static struct kp_top modules_make(struct little *t, enum kp_top_by by)
{
    struct kp_top top;
    trace_of(t, "call 'nn.Module: Net_0' 0 100; call 'nn.Module: Seq_0' 10 80; call 'nn.Module: Seq_1' 20 60");
    event(t, "cpu_op", "aten::mul", 1, 30, 40, FORWARD);
    event(t, "cpu_op", KP_ENGINE_RANGE "MulBackward0", 2, 200, 50, BACKWARD);
    event(t, "cpu_op", "MulBackward0", 2, 205, 40, BACKWARD);
    event(t, "cpu_op", KP_ENGINE_RANGE "torch::autograd::AccumulateGrad", 2, 260, 10, "");
    event(t, "cpu_op", "torch::autograd::AccumulateGrad", 2, 262, 5, "");
    tree_make(t);
    kp_tree_fill_line_stacks(&t->tree, true);
    kp_tree_set_forward_stacks(&t->tree);
    char why[256];
    assert_int_equal(kp_chosen_make(&t->chosen, &t->tree, &everything, why, sizeof why), 0);
    kp_top_build(&top, &t->tree, &t->chosen, by);
    kp_top_join_modules(&top);
    return top;
}

static void costs_are(const struct kp_top *top, const char *name, int self, int total, int backward)
{
    const struct kp_top_cost *cost = &row_named(top, name)->cost;
    assert_int_equal(cost->self_ns, self * 1000);
    assert_int_equal(cost->total_ns, total * 1000);
    assert_int_equal(cost->backward_ns, backward * 1000);
    assert_int_equal(cost->count, strcmp(name, "Seq") == 0 ? 2 : 1);
}

static void a_module_has_forward_and_backward_with_those_inside(void **state)
{
    struct little *t = *state;
    struct kp_top top = modules_make(t, KP_TOP_BY_MODULE);
    assert_int_equal(top.count, 4);
    costs_are(&top, "Net_0", 20, 140, 60);
    costs_are(&top, "Net_0.Seq_0", 20, 120, 60);
    costs_are(&top, "Net_0.Seq_0.Seq_1", 100, 100, 60);
    kp_top_fini(&top);
}

static void a_class_inside_itself_has_its_time_once(void **state)
{
    struct little *t = *state;
    struct kp_top top = modules_make(t, KP_TOP_BY_CLASS);
    assert_int_equal(top.count, 3);
    costs_are(&top, "Net", 20, 140, 60);
    costs_are(&top, "Seq", 120, 120, 60);
    assert_int_equal(row_named(&top, "Seq")->modules, 2);
    kp_top_fini(&top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_module_has_forward_and_backward_with_those_inside),
        LITTLE(a_class_inside_itself_has_its_time_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
