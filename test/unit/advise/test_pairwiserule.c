// SPDX-License-Identifier: Apache-2.0
/* test_pairwiserule.c - distances of all pairs by a broadcast difference, and what only looks like it */
#include "test/unit/advise/advised.h"

enum { STEP_US = 1000, STEPS = 3 };

static void shaped(struct little *t, const char *name, int at, int us, int id, bool is_backward, const char *dims)
{
    char args[240];
    snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":%d,\"Input Dims\":%s", id, is_backward, dims);
    event(t, "cpu_op", name, 1, at, us, args);
}

/* Each step: a difference of 200 us, its power of 130, a sum of 50, 100 us of backward of the power, and other ops. */
static struct kp_advice pairs_advise(struct little *t, const char *inputs, const char *pairs, const char *sum)
{
    for (int step = 0; step < STEPS; step++) {
        const int at = STEP_US * step;
        numbered_step(t, step, at, STEP_US);
        op(t, "aten::mm", at, 300);
        shaped(t, "aten::sub", at + 300, 200, 10 * step + 1, false, inputs);
        shaped(t, "aten::pow", at + 520, 130, 10 * step + 2, false, pairs);
        shaped(t, sum, at + 650, 50, 10 * step + 3, false, pairs);
        op(t, "autograd::engine::evaluate_function: PowBackward0", at + 700, 110);
        shaped(t, "PowBackward0", at + 705, 100, 10 * step + 2, true, pairs);
    }
    return advise(t);
}

static const struct kp_finding *pairs_find(const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, "pairwise-difference") == 0) return &a->findings[i];
    return NULL;
}

static void a_broadcast_difference_that_is_summed_costs_all_of_it(void **state)
{
    const struct kp_advice a = pairs_advise(*state, "[[1024,1,48],[1,384,48],[]]", "[[1024,384,48],[]]", "aten::sum");
    const struct kp_finding *const f = pairs_find(&a);
    assert_non_null(f);
    assert_float_equal(f->step_ns, 510000, 1); /* with 20 us in which the difference is freed */
    assert_true(f->is_critical);
    assert_non_null(strstr(f->what, "a tensor of [1024, 384, 48], 72.00 MiB, and then summed, 1 time per step"));
    assert_non_null(strstr(f->change, "torch.cdist"));
}

static void points_of_few_dimensions_are_a_warning(void **state)
{
    const struct kp_advice a =
        pairs_advise(*state, "[[8,1024,1,3],[8,1,1024,3],[]]", "[[8,1024,1024,3],[]]", "aten::linalg_vector_norm");
    assert_non_null(pairs_find(&a));
    assert_false(pairs_find(&a)->is_critical);
}

static void differences_of_no_pairs_are_none(void **state)
{
    static const char *const none[][3] = {
        {"[[1024,384,48],[1,1,48],[]]", "[[1024,384,48],[]]", "aten::sum"},      /* a mean is subtracted */
        {"[[1024,384,48],[1024,384,48],[]]", "[[1024,384,48],[]]", "aten::sum"}, /* a loss */
        {"[[1024,1,48],[1,384,48],[]]", "[[1024,384,48],[]]", "aten::relu"},     /* all of it is used */
        {"[[1024,1,48],[1,384,48],[]]", "[[1024,48],[]]", "aten::sum"}};         /* other tensors are */
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        const struct kp_advice a = pairs_advise(*state, none[i][0], none[i][1], none[i][2]);
        assert_null(pairs_find(&a));
        little_teardown(state);
        little_setup(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_broadcast_difference_that_is_summed_costs_all_of_it),
        LITTLE(points_of_few_dimensions_are_a_warning),
        LITTLE(differences_of_no_pairs_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
