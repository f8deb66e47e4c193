// SPDX-License-Identifier: Apache-2.0
/* test_readtimes.c - reads of single values, charged with all of the function that does little else */
#include "test/unit/advise/advised.h"

enum { STEPS = 4, READS = 20, COMPUTED = 8 };

static void op_at(struct little *t, const char *name, int ts, int dur, const char *frames)
{
    char args[128];
    snprintf(args, sizeof args, "\"Call stack\":\"%s\"", frames);
    event(t, "cpu_op", name, 1, ts, dur, args);
}

/*
 * Steps: 600 us of a product, and a function of 800 us in which 20 values are read, 20 us each with 5 us until
 * the next. It begins with an op of 200 us and ends with 100 us of Python. `more`: it computes for 500 us, too.
 * `caller`: the function that runs the step.
 */
static struct kp_advice called_advise(struct little *t, int step_us, bool has_calls, int more, const char *caller)
{
    char first[64], last[64];
    snprintf(first, sizeof first, "train.py(30): %s", caller);
    snprintf(last, sizeof last, "train.py(32): %s", caller);
    for (int step = 0; step < STEPS; step++) {
        const int at = step_us * step, reads = at + 800 + more;
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, at, step_us, "");
        op_at(t, "aten::mm", at, 600, first);
        if (has_calls) event(t, "python_function", "train.py(4): accuracy", 1, at + 600, 800 + more, "");
        op_at(t, "aten::argmax", at + 600, 190 + more, "train.py(6): accuracy;train.py(31): main");
        for (int i = 0; i < READS; i++)
            op_at(t, "aten::item", reads + 25 * i, 20, "train.py(8): accuracy;train.py(31): main");
        op_at(t, "aten::add_", at + 1400 + more, 100, last);
    }
    return advise(t);
}

static struct kp_advice reads_advise(struct little *t, int step_us, bool has_calls, int more)
{
    return called_advise(t, step_us, has_calls, more, "main");
}

static const struct kp_finding *reads_find(const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, "reads-in-step") == 0) return &a->findings[i];
    return NULL;
}

static bool tells_the_rest(const struct kp_finding *f)
{
    return strstr(f->what, "; with all of accuracy, which does little else") != NULL;
}

static void a_function_that_reads_is_charged_by_its_calls(void **state)
{
    const struct kp_advice a = reads_advise(*state, 2000, true, 0);
    assert_non_null(reads_find(&a));
    assert_true(tells_the_rest(reads_find(&a)));
    assert_int_equal((int)(reads_find(&a)->step_ns / 1000 + 0.5), 800);
}

/* Of 1110 us without an op 210 are in the function. Its reads alone, 495 us, would explain less than half of them. */
static void its_python_is_not_told_again(void **state)
{
    const struct kp_advice a = reads_advise(*state, 2400, true, 0);
    assert_int_equal(a.count, 1);
    assert_ptr_equal(reads_find(&a), &a.findings[0]);
}

static void other_python_is_told_without_it(void **state)
{
    const struct kp_advice a = reads_advise(*state, 3000, true, 0);
    assert_int_equal(a.count, 2);
    assert_string_equal(a.findings[0].id, "no-op-runs");
    assert_int_equal((int)(a.findings[0].step_ns / 1000 + 0.5), 3000 - 600 - 800 - 100);
}

static void a_function_that_reads_is_charged_by_its_ops_where_no_calls_were_recorded(void **state)
{
    const struct kp_advice a = reads_advise(*state, 2000, false, 0);
    assert_true(tells_the_rest(reads_find(&a)));
    assert_int_equal((int)(reads_find(&a)->step_ns / 1000 + 0.5), 200 + 25 * (READS - 1) + 20);
}

/* What the file itself runs behind the function, up to the next step's call of it, is no part of it. */
static void the_code_of_the_file_is_not_charged_with_its_function(void **state)
{
    const struct kp_advice a = called_advise(*state, 1520, false, 0, "<module>");
    assert_non_null(reads_find(&a));
    assert_true(tells_the_rest(reads_find(&a)));
    assert_int_equal((int)(reads_find(&a)->step_ns / 1000 + 0.5), 200 + 25 * (READS - 1) + 20);
}

static void a_function_that_does_more_than_read_is_not_charged(void **state)
{
    const struct kp_advice a = reads_advise(*state, 2000, true, 500);
    assert_non_null(reads_find(&a));
    assert_false(tells_the_rest(reads_find(&a)));
    assert_int_equal((int)(reads_find(&a)->step_ns / 1000 + 0.5), 25 * (READS - 1) + 20);
}

/* Steps of 1000 us: a product, and 8 values, of which each is read for 2 us behind ops of 20. */
static struct kp_advice computed_advise(struct little *t, const char *first, const char *second)
{
    for (int step = 0; step < STEPS; step++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, 1000 * step, 1000, "");
        op_at(t, "aten::mm", 1000 * step, 400, "train.py(30): main");
        for (int i = 0; i < COMPUTED; i++) {
            const int at = 1000 * step + 410 + 25 * i;
            op_at(t, first, at, 10, "train.py(8): <genexpr>;train.py(31): main");
            op_at(t, second, at + 10, 10, "train.py(8): <genexpr>;train.py(31): main");
            op_at(t, "aten::item", at + 21, 2, "train.py(8): <genexpr>;train.py(31): main");
        }
    }
    return advise(t);
}

/* if y[i] > 5: one comparison of all of y has no loop. */
static void what_is_computed_of_elements_goes_with_the_loop(void **state)
{
    const struct kp_advice a = computed_advise(*state, "aten::select", "aten::gt");
    assert_int_equal((int)(reads_find(&a)->step_ns / 1000 + 0.5), 25 * (COMPUTED - 1) + 2);
}

/* The norm of each gradient is to be computed, however it is read. */
static void what_is_computed_of_each_tensor_is_not_what_its_read_costs(void **state)
{
    const struct kp_advice a = computed_advise(*state, "aten::linalg_vector_norm", "aten::add");
    assert_null(reads_find(&a));
    assert_non_null(strstr(a.seen, "8 calls of .item() and the like per step, 16.0 us"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_function_that_reads_is_charged_by_its_calls),
        LITTLE(its_python_is_not_told_again),
        LITTLE(other_python_is_told_without_it),
        LITTLE(a_function_that_reads_is_charged_by_its_ops_where_no_calls_were_recorded),
        LITTLE(the_code_of_the_file_is_not_charged_with_its_function),
        LITTLE(a_function_that_does_more_than_read_is_not_charged),
        LITTLE(what_is_computed_of_elements_goes_with_the_loop),
        LITTLE(what_is_computed_of_each_tensor_is_not_what_its_read_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
