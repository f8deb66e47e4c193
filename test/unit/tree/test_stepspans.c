// SPDX-License-Identifier: Apache-2.0
/* test_stepspans.c - steps by number, gathered from a walk, are those that every other command shows */
#include "test/unit/tree/little_trace.h"

#include <errno.h>

#include "export/read/tree/stepspans.h"

/* In the order of the file, which need not be that of time. */
static int cut(struct little *t, long first, long last, struct kp_spans *out, char *why, size_t bytes)
{
    struct kp_stepspans steps = {0};
    *out = (struct kp_spans){0};
    for (size_t i = 0; i < t->trace->count; i++) kp_stepspans_see(&steps, t->trace, &t->trace->events[i]);
    const int rc = kp_stepspans_cut(&steps, t->trace, first, last, out, why, bytes);
    kp_spans_settle(out);
    kp_stepspans_fini(&steps);
    return rc;
}

static void same_as_chosen(struct little *t, long first, long last)
{
    struct kp_spans found;
    char why[200];
    assert_int_equal(choose(t, &(struct kp_choice){.first_step = first, .last_step = last}), 0);
    assert_int_equal(cut(t, first, last, &found, why, sizeof why), 0);
    assert_int_equal(found.count, t->chosen.spans.count);
    for (size_t i = 0; i < found.count; i++) {
        assert_int_equal(found.of[i].start_ns, t->chosen.spans.of[i].start_ns);
        assert_int_equal(found.of[i].end_ns, t->chosen.spans.of[i].end_ns);
    }
    kp_spans_fini(&found);
}

/* By hand: a backward and what its update writes, of one parameter. */
static void backward_passes_end_steps_where_nothing_else_does(void **state)
{
    struct little *t = *state;
    for (int i = 0; i < 5; i++) {
        op(t, "aten::mm", 100 * i, 20);
        op(t, "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 100 * i + 30, 40);
        op(t, "aten::sub_", 100 * i + 80, 5);
    }
    same_as_chosen(t, 2, 3);
}

static void marked_steps_go_before_an_optimizers(void **state)
{
    struct little *t = *state;
    trace_of(t, "range Optimizer.step#SGD.step 80 10; step 3 100 50; step 4 150 60; "
                "range Optimizer.step#SGD.step 180 10; op a 100 200");
    same_as_chosen(t, 4, 4);
}

static void an_optimizers_steps_are_numbered_by_time(void **state)
{
    struct little *t = *state;
    trace_of(t, "range Optimizer.step#SGD.step 280 10; range Optimizer.step#SGD.step 80 10");
    event(t, "user_annotation", "Optimizer.step#Adam.step", 1, 150, 10, ""); /* another one's do not count */
    trace_of(t, "range Optimizer.step#SGD.step 180 10; op a 0 400");
    same_as_chosen(t, 1, 2);
}

static void marked_ends_of_steps_count_alone(void **state)
{
    struct little *t = *state;
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"step_ends\":true},");
    trace_of(t, "range Optimizer.step#SGD.step 280 10 step='ended'; range Optimizer.step#SGD.step 80 10; "
                "range Optimizer.step#SGD.step 100 10 step='ended'; "
                "range Optimizer.step#Adam.step@2 180 10 step='ended'; op a 0 400");
    same_as_chosen(t, 1, 2);
    assert_int_equal(t->chosen.spans.of[0].start_ns, 110000);
}

static void what_is_not_there_is_told(void **state)
{
    struct little *t = *state;
    struct kp_spans found;
    char why[200];
    trace_of(t, "range Optimizer.step#SGD.step 80 10; range Optimizer.step#SGD.step 180 10");
    tree_make(t);
    assert_int_equal(cut(t, 0, 0, &found, why, sizeof why), -ENOENT); /* it has no known begin */
    assert_string_equal(why, "no step 0 in it: the trace has step 1");
    kp_spans_fini(&found);
}

static void a_trace_without_steps_says_how_to_mark_them(void **state)
{
    struct little *t = *state;
    struct kp_spans found;
    char why[200];
    op(t, "a", 0, 10);
    tree_make(t);
    assert_int_equal(cut(t, 1, 1, &found, why, sizeof why), -ENOENT);
    assert_non_null(strstr(why, "has no steps; kprof run --schedule or --step"));
    kp_spans_fini(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(backward_passes_end_steps_where_nothing_else_does),
        LITTLE(marked_steps_go_before_an_optimizers),
        LITTLE(an_optimizers_steps_are_numbered_by_time),
        LITTLE(marked_ends_of_steps_count_alone),
        LITTLE(what_is_not_there_is_told),
        LITTLE(a_trace_without_steps_says_how_to_mark_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
