// SPDX-License-Identifier: Apache-2.0
/* test_sortrule.c - a sort of which the next op takes a few */
#include "test/unit/advise/advised.h"

enum { STEP_US = 1000 };
#define ROWS "\"Input Dims\":[[4,8192],[],[]]"
#define TAKES(dims) ROWS ",\"Concrete Inputs\":[\"\"," dims "]"

/* Each step: 500 us of ops, a sort over dimension 1 of 400 us, then the op that takes of it, and one more. */
static struct kp_advice sort_advise(struct little *t, const char *taker, const char *takes, const char *last)
{
    const bool has_shapes = *takes;
    for (int step = 0; step < 3; step++) {
        const int at = STEP_US * step;
        numbered_step(t, step, at, STEP_US);
        op(t, "aten::relu", at, 500);
        event(t, "cpu_op", "aten::sort", 1, at + 500, 400, has_shapes ? TAKES("\"False\",\"-1\",\"True\"") : "");
        event(t, "cpu_op", "aten::sort", 1, at + 501, 398, has_shapes ? TAKES("\"False\",\"-1\",\"True\"") : "");
        event(t, "cpu_op", taker, 1, at + 900, 10, takes);
        event(t, "cpu_op", last, 1, at + 910, 10, takes);
    }
    return advise(t);
}

static const struct kp_finding *sort_find(const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, "sort-for-few") == 0) return &a->findings[i];
    return NULL;
}

static void the_first_and_the_last_of_a_sort_are_told_with_their_number(void **state)
{
    static const struct {
        const char *taker, *takes, *said;
    } cases[] = {{"aten::slice", TAKES("\"1\",\"0\",\"64\",\"1\""), "takes 64 of them"},
                 {"aten::slice", TAKES("\"-1\",\"-2048\",\"9223372036854775807\",\"1\""), "takes 2048 of them"},
                 {"aten::narrow", TAKES("\"1\",\"8000\",\"192\""), "takes 192 of them"},
                 {"aten::select", TAKES("\"1\",\"-1\""), "takes 1 of them"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct kp_advice a = sort_advise(*state, cases[i].taker, cases[i].takes, "aten::slice");
        const struct kp_finding *const f = sort_find(&a);
        assert_non_null(f);
        assert_float_equal(f->step_ns, 400000, 1);
        assert_true(f->is_critical);
        assert_non_null(strstr(f->what, "sorts 8192 elements"));
        assert_non_null(strstr(f->what, cases[i].said));
        little_teardown(state);
        little_setup(state);
    }
}

static void more_than_a_quarter_another_dimension_and_the_middle_are_not(void **state)
{
    static const char *const takes[] = {TAKES("\"1\",\"0\",\"2049\",\"1\""), TAKES("\"0\",\"0\",\"1\",\"1\""),
                                        TAKES("\"1\",\"2500\",\"2501\",\"1\""),
                                        "\"Input Dims\":[[4,1],[]],\"Concrete Inputs\":[\"\",\"1\",\"0\",\"1\"]"};
    for (size_t i = 0; i < sizeof takes / sizeof *takes; i++) {
        const struct kp_advice a = sort_advise(*state, "aten::slice", takes[i], "aten::relu");
        assert_null(sort_find(&a));
        little_teardown(state);
        little_setup(state);
    }
    const struct kp_advice a = sort_advise(*state, "aten::cumsum", TAKES("\"1\""), "aten::slice");
    assert_null(sort_find(&a));
}

static void without_shapes_it_is_told_with_a_condition(void **state)
{
    struct kp_advice a = sort_advise(*state, "aten::slice", "", "aten::index");
    assert_non_null(sort_find(&a));
    assert_false(sort_find(&a)->is_critical);
    assert_non_null(strstr(sort_find(&a)->change, "If only the first or the last are used"));
    little_teardown(state);
    little_setup(state);
    a = sort_advise(*state, "aten::slice", "", "aten::slice"); /* of two, the difference may follow */
    assert_null(sort_find(&a));
}

/* As the mask of an autoencoder: the first order's begin is kept, and the second one puts all back. */
static void a_sort_that_inverts_an_order_is_not_told(void **state)
{
    struct little *const t = *state;
    for (int step = 0; step < 3; step++) {
        const int at = STEP_US * step;
        numbered_step(t, step, at, STEP_US);
        op(t, "aten::relu", at, 500);
        op(t, "aten::argsort", at + 500, 200);
        op(t, "aten::argsort", at + 700, 200);
        op(t, "aten::slice", at + 900, 10);
        op(t, "aten::gather", at + 910, 10);
    }
    const struct kp_advice a = advise(t);
    assert_null(sort_find(&a));
}

static void of_a_gpu_it_costs_what_the_sort_launched(void **state)
{
    struct little *const t = *state;
    for (int step = 0; step < 3; step++) {
        const int at = STEP_US * step;
        numbered_step(t, step, at, STEP_US);
        op(t, "aten::mm", at, 20);
        launch(t, 10 * step + 1, at + 5, at + 20, 680);
        op(t, "aten::argsort", at + 30, 20);
        launch(t, 10 * step + 2, at + 35, at + 700, 300);
        op(t, "aten::slice", at + 60, 5);
        op(t, "aten::index", at + 70, 5);
    }
    const struct kp_advice a = advise(t);
    assert_non_null(sort_find(&a));
    assert_float_equal(sort_find(&a)->step_ns, 300000, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(the_first_and_the_last_of_a_sort_are_told_with_their_number),
        LITTLE(more_than_a_quarter_another_dimension_and_the_middle_are_not),
        LITTLE(without_shapes_it_is_told_with_a_condition),
        LITTLE(a_sort_that_inverts_an_order_is_not_told),
        LITTLE(of_a_gpu_it_costs_what_the_sort_launched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
