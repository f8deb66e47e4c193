// SPDX-License-Identifier: Apache-2.0
/* test_partrules.c - of a part of the step that is near its bound, what is said */
#include "test/unit/advise/advised.h"

/* Ten steps of 1 ms with ten ops, between which no op runs for so many percent. */
static struct kp_advice rests_advise(struct little *t, int percent)
{
    for (int step = 0; step < 10; step++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, 1000 * step, 1000, "");
        for (int i = 0; i < 10; i++) op(t, "aten::mm", 1000 * step + 100 * i + percent, 100 - percent);
    }
    return advise(t);
}

/* Two runs of one program differ by a few percent: none of them is without a word, and none is CRITICAL. */
static void near_its_bound_no_op_is_a_note_or_a_warning(void **state)
{
    static const struct {
        int percent;
        const char *note;
        bool is_found, is_critical;
    } cases[] = {
        {34, NULL, false, false},
        {39, "no operator runs (Python code between operators, or a wait): 0.39 ms per step, 39.0 %", false, false},
        {43, NULL, true, false},
        {51, NULL, true, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct kp_advice a = rests_advise(*state, cases[i].percent);
        assert_int_equal(a.count, cases[i].is_found);
        if (cases[i].is_found) assert_int_equal(a.findings[0].is_critical, cases[i].is_critical);
        if (cases[i].is_found) assert_false(a.findings[0].is_at_most); /* no call of Python was recorded */
        assert_int_equal(a.no_op != NULL, cases[i].note != NULL);
        if (cases[i].note) assert_string_equal(a.no_op, cases[i].note);
        little_teardown(state);
        little_setup(state);
    }
}

/* A gap of 8 ms in `times` of three steps of 10 ms, in which the others have shorter ones elsewhere. */
static size_t gaps_found(struct little *t, int times)
{
    for (int step = 0; step < 3; step++) {
        const int at = 10000 * step, gap = step < times ? 8000 : 1700;
        numbered_step(t, step, at, 10000);
        op(t, step < times ? "aten::relu" : "aten::mm", at + gap, 10000 - gap);
    }
    return advise(t).count;
}

static void a_gap_of_one_step_of_three_is_no_loop_of_each(void **state) { assert_int_equal(gaps_found(*state, 1), 0); }

static void a_gap_of_each_step_is_told(void **state) { assert_int_equal(gaps_found(*state, 3), 1); }

/* Ten steps of 40 ms: nothing runs for 4 ms before an op of one line; with a loader it is that which is asked. */
static struct kp_advice gap_advise(struct little *t, bool has_loader)
{
    for (int step = 0; step < 10; step++) {
        const int at = 40000 * step;
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, at, 40000, "");
        op(t, "aten::mm", at, 16000);
        if (has_loader) event(t, "user_annotation", WORKERS, 1, at + 16000, 4100, "");
        event(t, "cpu_op", "aten::empty", 1, at + 20000, 50, "\"Call stack\":\"train.py(12): main\"");
        op(t, "aten::mm", at + 20100, 19900);
    }
    return advise(t);
}

static void a_loader_is_no_gap_of_the_line_that_asks_it(void **state)
{
    struct kp_advice a = gap_advise(*state, false);
    assert_int_equal(a.count, 1);
    assert_string_equal(a.findings[0].id, "no-op-runs");
    assert_string_equal(a.findings[0].line, "train.py:12 main");
    little_teardown(state);
    little_setup(state);
    a = gap_advise(*state, true);
    for (size_t i = 0; i < a.count; i++) assert_string_not_equal(a.findings[i].id, "no-op-runs");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_loader_is_no_gap_of_the_line_that_asks_it, little_setup, little_teardown),
        LITTLE(a_gap_of_one_step_of_three_is_no_loop_of_each),
        LITTLE(a_gap_of_each_step_is_told),
        LITTLE(near_its_bound_no_op_is_a_note_or_a_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
