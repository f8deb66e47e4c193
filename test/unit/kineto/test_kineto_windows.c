// SPDX-License-Identifier: Apache-2.0
/* test_kineto_windows.c - windows of phases: their time, and the runs that they make */
#include "export/read/kineto/kineto_windows.h"

#include "export/answers/top/timeshares.h"
#include "test/unit/tree/little_trace.h"

/* A window of 100 us from `ts` on, with one op at its begin. */
static struct kp_kineto *window_make(const char *run, int ts)
{
    void *state = NULL;
    assert_int_equal(little_setup(&state), 0);
    struct little *t = state;
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"phase\":\"train\"%s},", run);
    op(t, "aten::mm", ts, 20);
    event(t, "Trace", "PyTorch Profiler (0)", 9, ts - 10, 110, "");
    tree_make(t);
    struct kp_kineto *trace = t->trace;
    t->trace = NULL;
    kp_tree_fini(&t->tree);
    t->tree = (struct kp_tree){0};
    (void)little_teardown(&state);
    return trace;
}

#define RUN(run, part, gapless, leaving) \
    ",\"phase_run\":" #run ",\"phase_part\":" #part ",\"phase_gapless\":" #gapless ",\"phase_leaving\":" #leaving

static void add(struct kp_kineto_windows *all, const char *run, int ts)
{
    struct kp_kineto *trace = window_make(run, ts);
    kp_kineto_windows_append(all, trace->windows);
    kp_kineto_close(trace);
}

static void a_window_lasts_to_its_end_whatever_runs_there(void **state)
{
    (void)state;
    struct kp_kineto *trace = window_make(RUN(1, 1, 1, 2), 1000);
    assert_int_equal(trace->windows->count, 1);
    assert_int_equal(trace->windows->of[0].start_ns, 990000);
    assert_int_equal(trace->windows->of[0].end_ns, 1100000);
    kp_kineto_close(trace);
    trace = window_make(RUN(1, 1, 0, 2), 1000); /* the span may have a warm-up in it */
    assert_int_equal(trace->windows->of[0].start_ns, 1000000);
    assert_int_equal(trace->windows->of[0].end_ns, 1100000);
    kp_kineto_close(trace);
}

static void all_of_a_phase_is_chosen_and_what_no_step_has_is_told(void **state)
{
    struct little *t = *state;
    struct kp_summary summary;
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"phase\":\"train\"%s},", RUN(1, 1, 1, 2));
    trace_of(t, "step 0 1000 100; op aten::mm 1000 50; Trace 'PyTorch Profiler (0)'@9 1000 140");
    assert_int_equal(choose(t, &everything), 0);
    kp_summary_make(&summary, &t->tree, &t->chosen);
    assert_int_equal(summary.wall_ns, 140000);
    assert_int_equal(summary.shared_ns, 140000);
    assert_int_equal(summary.outside_ns, 40000);
    assert_int_equal(summary.step_median_ns, 100000); /* the step is no longer than it was */
    assert_false(summary.is_of_steps);
}

static void runs_are_measured_where_all_of_them_was_recorded(void **state)
{
    struct kp_kineto_windows all = {0};
    struct kp_kineto_runs runs;
    (void)state;
    add(&all, RUN(1, 1, 1, 0), 1000); /* two windows of one part, and another part */
    add(&all, RUN(1, 1, 1, 1), 2000);
    add(&all, RUN(1, 2, 1, 2), 3000);
    kp_kineto_windows_runs(&all, &runs);
    assert_int_equal(runs.count, 1);
    assert_int_equal(runs.median_ns, 330000);
    assert_true(runs.is_all && runs.has_parts);
    add(&all, RUN(2, 1, 1, 1), 4000); /* what came behind its first part had no event */
    kp_kineto_windows_runs(&all, &runs);
    assert_int_equal(runs.count, 2);
    assert_int_equal(runs.least_ns, 110000);
    assert_int_equal(runs.median_ns, 220000);
    assert_true(runs.is_all);
    add(&all, RUN(3, 1, 0, 2), 5000); /* not from its begin on */
    add(&all, RUN(4, 1, 1, 0), 6000); /* not to its end */
    add(&all, RUN(5, 2, 1, 2), 7000); /* without its first part */
    add(&all, "", 8000);              /* of a file that does not say */
    kp_kineto_windows_runs(&all, &runs);
    assert_int_equal(runs.count, 2);
    assert_false(runs.is_all);
    free(all.of);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_lasts_to_its_end_whatever_runs_there),
        cmocka_unit_test_setup_teardown(all_of_a_phase_is_chosen_and_what_no_step_has_is_told, little_setup,
                                        little_teardown),
        cmocka_unit_test(runs_are_measured_where_all_of_them_was_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
