// SPDX-License-Identifier: Apache-2.0
/* test_chosen.c - spans of time, the part of a trace that was chosen, and self times inside it */
#include "test/unit/tree/little_trace.h"

#include <errno.h>

#include "export/read/facts/selftime.h"
#include "export/answers/top/timeshares.h"

static void spans_join_and_measure(void **state)
{
    struct kp_spans s = {0}, other = {0};
    (void)state;
    kp_spans_add(&s, 50, 60);
    kp_spans_add(&s, 10, 20);
    kp_spans_add(&s, 15, 30);
    kp_spans_add(&s, 30, 30); /* nothing */
    kp_spans_settle(&s);
    assert_int_equal(s.count, 2);
    assert_int_equal(kp_spans_length(&s, NULL), 30);
    assert_true(kp_spans_has(&s, 10) && kp_spans_has(&s, 29) && !kp_spans_has(&s, 30) && !kp_spans_has(&s, 9));
    assert_int_equal(kp_spans_between(&s, 0, 100), 30);
    assert_int_equal(kp_spans_between(&s, 25, 55), 10);
    assert_int_equal(kp_spans_between(&s, 55, 25), 0);
    kp_spans_add(&other, 25, 52);
    kp_spans_settle(&other);
    assert_int_equal(kp_spans_length(&s, &other), 7);
    kp_spans_cut(&s, &other);
    assert_int_equal(s.count, 2);
    assert_int_equal(kp_spans_length(&s, NULL), 7);
    assert_int_equal(kp_spans_between(&s, 0, 51), 6);
    kp_spans_fini(&s);
    kp_spans_fini(&other);
}

static void training_make(struct little *t)
{
    for (int step = 0; step < 4; step++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step + 3);
        event(t, "user_annotation", name, 1, 100 * step, 100, "");
        op(t, "aten::mm", 100 * step + 10, 40);
        event(t, "user_annotation", "loss", 1, 100 * step + 60, 20, "");
    }
}

static void all_is_from_the_first_event_to_the_last(void **state)
{
    struct little *t = *state;
    training_make(t);
    assert_int_equal(choose(t, &everything), 0);
    assert_int_equal(kp_spans_length(&t->chosen.spans, NULL), 400000);
    assert_int_equal(t->chosen.step_count, 4);
    assert_int_equal(t->chosen.steps[0].number, 3);
    assert_int_equal(t->chosen.ended_by, KP_STEPENDS_NONE);
}

static void steps_are_chosen_by_number(void **state)
{
    struct little *t = *state;
    training_make(t);
    assert_int_equal(choose(t, &(struct kp_choice){.first_step = 4, .last_step = 5}), 0);
    assert_int_equal(t->chosen.spans.of[0].start_ns, t->trace->start_ns + 100000);
    assert_int_equal(kp_spans_length(&t->chosen.spans, NULL), 200000);
    assert_int_equal(t->chosen.step_count, 2);
}

/* Imports are in step 0, exit ended step 3, and a kill step 4. */
static void parts_make(struct little *t)
{
    static const char *const parts[] = {"\"partial\":\"start-up\"", "", "", "\"partial\":\"cut short\"",
                                        "\"finished\":false"};
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"version\":\"x\"},");
    for (int step = 0; step < 5; step++) {
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(t, "user_annotation", name, 1, 100 * step, 100, parts[step]);
        op(t, "aten::mm", 100 * step + 10, 40);
    }
}

static void steps_that_are_not_whole_are_left_out(void **state)
{
    struct little *t = *state;
    parts_make(t);
    assert_int_equal(choose(t, &everything), 0);
    assert_int_equal(t->chosen.step_count, 2);
    assert_int_equal(t->chosen.steps[0].number, 1);
    assert_int_equal(kp_spans_length(&t->chosen.in_steps, NULL), 200000);
    assert_true(t->chosen.parts.has_startup && t->chosen.parts.has_cut);
    assert_int_equal(t->chosen.parts.startup, 0);
    assert_int_equal(t->chosen.parts.cut, 4);
}

static void a_step_that_is_not_whole_can_be_asked_for(void **state)
{
    struct little *t = *state;
    parts_make(t);
    assert_int_equal(choose(t, &(struct kp_choice){.first_step = 0, .last_step = 1}), 0);
    assert_int_equal(t->chosen.step_count, 2);
    assert_int_equal(kp_spans_length(&t->chosen.spans, NULL), 200000);
}

static void a_step_that_is_not_there_is_told(void **state)
{
    struct little *t = *state;
    training_make(t);
    assert_int_equal(choose(t, &(struct kp_choice){.first_step = 7, .last_step = 9}), -ENOENT);
}

static void a_range_is_chosen_by_name_and_its_time_counts_in_each_step(void **state)
{
    struct little *t = *state;
    training_make(t);
    assert_int_equal(choose(t, &(struct kp_choice){.first_step = 3, .last_step = 4, .within = "lo*"}), 0);
    assert_int_equal(kp_spans_length(&t->chosen.spans, NULL), 40000);
    assert_int_equal(t->chosen.step_count, 2);
    assert_int_equal(t->chosen.steps[1].inside_ns, 20000);
    assert_int_equal(kp_spans_length(&t->chosen.in_steps, NULL), 40000);
}

/* Two calls of two steps each; the first begins before the steps. */
static void a_call_lasts_as_long_as_it_does_also_where_steps_have_a_part(void **state)
{
    struct little *t = *state;
    trace_of(t, "op train 50 250; step 3 100 100; step 4 200 100; "
                "step 5 300 200; op train 350 150");
    assert_int_equal(choose(t, &(struct kp_choice){.first_step = -1, .last_step = -1, .within = "train"}), 0);
    assert_int_equal(kp_chosen_call_ns(&t->chosen), 200000);
    assert_false(kp_chosen_are_calls_cut(&t->chosen));
    kp_chosen_keep_steps(&t->chosen);
    assert_int_equal(t->chosen.within_calls, 2);
    assert_int_equal(kp_spans_length(&t->chosen.spans, NULL), 350000);
    assert_int_equal(kp_chosen_call_ns(&t->chosen), 200000);
    assert_true(kp_chosen_are_calls_cut(&t->chosen));
    little_forget(t);
    /* Of the first call, which begins before these steps, a part is in them. */
    assert_int_equal(choose(t, &(struct kp_choice){.first_step = 4, .last_step = 5, .within = "train"}), 0);
    assert_int_equal(t->chosen.within_calls, 1);
    assert_int_equal(kp_chosen_call_ns(&t->chosen), 150000);
    assert_true(kp_chosen_are_calls_cut(&t->chosen));
    little_forget(t);
    assert_int_equal(choose(t, &(struct kp_choice){.first_step = 5, .last_step = 5, .within = "train"}), 0);
    assert_int_equal(t->chosen.within_calls, 1);
    assert_false(kp_chosen_are_calls_cut(&t->chosen));
}

/* Steps are those of any thread: they cut calls of two threads in parts. A part of what began before is no call. */
static void a_call_that_steps_cut_in_parts_is_one_call(void **state)
{
    struct little *t = *state;
    trace_of(t, "step 3 100 100; call 'a.py(3): answer' 110 90 'Python id'=1;"
                "call 'a.py(3): answer'@2 150 50 'Python id'=2; call 'b.py(8): rest' 160 40 'Python id'=3;"
                "call 'a.py(3): answer' 200 100 'further part'='yes' 'ns before'=90000 'Python id'=1;"
                "call 'a.py(3): answer'@2 200 250 'further part'='yes' 'ns before'=50000 'Python id'=2;"
                "step 4 200 100; step 5 300 200; call 'a.py(3): answer' 310 10 'Python id'=4;"
                "call 'a.py(3): answer'@3 310 90 'further part'='yes' 'ns before'=400000 'Python id'=5");
    assert_int_equal(choose(t, &(struct kp_choice){.first_step = -1, .last_step = -1, .within = "answer"}), 0);
    assert_int_equal(t->chosen.within_calls, 3);
    assert_int_equal(t->chosen.calls[0].end_ns - t->chosen.calls[0].start_ns, 190000);
    assert_int_equal(t->chosen.calls[1].end_ns - t->chosen.calls[1].start_ns, 300000);
    assert_int_equal(kp_chosen_call_ns(&t->chosen), 500000 / 3);
    little_forget(t);
    /* What goes on behind the step is the call's, too. */
    assert_int_equal(choose(t, &(struct kp_choice){.first_step = 3, .last_step = 3, .within = "answer"}), 0);
    assert_int_equal(t->chosen.within_calls, 2);
    assert_int_equal(t->chosen.calls[1].end_ns - t->chosen.calls[1].start_ns, 300000);
}

/* A short call of another thread begins behind the one that has the forward pass. */
static void forward_passes_are_found_in_calls_that_overlap(void **state)
{
    struct little *t = *state;
    trace_of(t, "call 'a.py(3): answer' 100 200; call 'a.py(3): answer'@2 110 20;"
                "call 'nn.Module: Net_0' 150 100; call 'nn.Module: Net_0' 400 10");
    assert_int_equal(choose(t, &(struct kp_choice){.first_step = -1, .last_step = -1, .within = "answer"}), 0);
    kp_chosen_count_passes(&t->chosen, &t->tree);
    assert_int_equal(t->chosen.passes, 1);
}

/* A call before the steps, and one in a step: what is kept is of one set. */
static void calls_outside_of_whole_steps_are_left_out_and_counted(void **state)
{
    struct little *t = *state;
    trace_of(t, "op save 0 10; step 3 100 100; step 4 200 100; op save 210 30");
    assert_int_equal(choose(t, &(struct kp_choice){.first_step = -1, .last_step = -1, .within = "save"}), 0);
    assert_int_equal(t->chosen.within_calls, 2);
    assert_int_equal(1e6 * kp_chosen_steps_share(&t->chosen, true), 190476);
    kp_chosen_keep_steps(&t->chosen);
    assert_int_equal(1e6 * kp_chosen_steps_share(&t->chosen, false) + 0.5, 150000);
    assert_int_equal(1e6 * kp_chosen_steps_share(&t->chosen, true), 190476);
    assert_int_equal(t->chosen.within_calls, 1);
    assert_int_equal(t->chosen.outside_calls, 1);
    assert_int_equal(t->chosen.outside_ns, 10000);
    assert_int_equal(kp_spans_length(&t->chosen.spans, NULL), 30000);
    assert_int_equal(t->chosen.step_count, 1);
    assert_int_equal(t->chosen.step_total, 2);
}

static void a_name_that_is_not_there_is_told(void **state)
{
    struct little *t = *state;
    training_make(t);
    assert_int_equal(choose(t, &(struct kp_choice){.first_step = -1, .last_step = -1, .within = "gone"}), -ENOENT);
}

static void a_function_without_an_event_is_its_ops(void **state)
{
    struct little *t = *state;
    event(t, "cpu_op", "aten::mm", 1, 10, 5, "\"Call stack\":\"torch/x.py(1): f;train.py(7): validate;\"");
    event(t, "cpu_op", "aten::add", 1, 20, 6, "\"Call stack\":\"train.py(9): main;\"");
    assert_int_equal(choose(t, &(struct kp_choice){.first_step = -1, .last_step = -1, .within = "validate"}), 0);
    assert_true(t->chosen.is_by_stacks);
    assert_int_equal(kp_spans_length(&t->chosen.spans, NULL), 5000);
}

/* Python's own `validate` is the logger's. It is left out, unless it is the only one, or the pattern names its file. */
static void the_programs_function_goes_before_an_installed_one_of_that_name(void **state)
{
    static const struct {
        const char *own, *pattern;
        int calls, left, us;
    } cases[] = {{"train.py(7): validate", "validate", 2, 1, 120}, /* inside an own one none is counted */
                 {"train.py(7): other", "validate", 2, 0, 20},
                 {"train.py(7): validate", "logging/*: validate", 2, 0, 20},
                 {"logging/__init__.py(99): validate", "validate", 3, 0, 130}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct little *t = calloc(1, sizeof *t);
        void *made = t;
        event(t, "python_function", "logging/__init__.py(435): validate", 1, 0, 10, "");
        event(t, "python_function", cases[i].own, 1, 100, 60, "");
        event(t, "python_function", "logging/__init__.py(435): validate", 1, 110, 10, "");
        event(t, "python_function", cases[i].own, 1, 200, 60, "");
        assert_int_equal(choose(t, &(struct kp_choice){.first_step = -1, .last_step = -1, .within = cases[i].pattern}),
                         0);
        assert_int_equal(t->chosen.within_calls, cases[i].calls);
        assert_int_equal(t->chosen.within_left, cases[i].left);
        assert_int_equal(kp_spans_length(&t->chosen.spans, NULL), cases[i].us * 1000);
        if (cases[i].left)
            assert_string_equal(kp_kineto_text(t->trace, t->chosen.within_other), "logging/__init__.py(435): validate");
        little_teardown(&made);
    }
}

/* The head's date is the trace's, whatever part was chosen. */
static void a_part_keeps_the_traces_begin(void **state)
{
    struct little *t = *state;
    struct kp_summary whole, part;
    snprintf(t->head, sizeof t->head, "\"baseTimeNanoseconds\":1700000000000000000,");
    trace_of(t, "op aten::mm 0 10; op aten::late 5000000 10");
    assert_int_equal(choose(t, &everything), 0);
    kp_summary_make(&whole, &t->tree, &t->chosen);
    kp_chosen_fini(&t->chosen);
    char why[256];
    const struct kp_choice late = {.first_step = -1, .last_step = -1, .within = "aten::late"};
    assert_int_equal(kp_chosen_make(&t->chosen, &t->tree, &late, why, sizeof why), 0);
    kp_summary_make(&part, &t->tree, &t->chosen);
    assert_true(whole.when_ns > 0);
    assert_int_equal(part.when_ns, whole.when_ns);
    assert_int_equal(part.wall_ns, 10000);
}

static void times_are_counted_from_the_profilers_start(void **state)
{
    struct little *t = *state;
    training_make(t);
    const struct kp_choice choice = {
        .first_step = -1, .last_step = -1, .has_from = true, .from_ns = 50000, .has_to = true, .to_ns = 250000};
    assert_int_equal(choose(t, &choice), 0);
    assert_int_equal(kp_spans_length(&t->chosen.spans, NULL), 200000);
    assert_int_equal(t->chosen.step_count, 1); /* the one that lies in it as a whole */
}

static void without_steps_an_optimizers_steps_are_the_bounds(void **state)
{
    struct little *t = *state;
    trace_of(t, "op aten::mm 0 10; range Optimizer.step#SGD.step 20 10; range Optimizer.step#Other.step 35 2; "
                "range Optimizer.step#SGD.step 60 10; range Optimizer.step#SGD.step 120 10");
    assert_int_equal(choose(t, &everything), 0);
    assert_int_equal(t->chosen.ended_by, KP_STEPENDS_OPTIMIZER);
    assert_int_equal(t->chosen.step_count, 2);
    assert_int_equal(t->chosen.steps[0].inside_ns, 40000);
    assert_int_equal(t->chosen.steps[1].inside_ns, 60000);
}

/* Two optimizers of one class, the first of which counts; and one that took over in another thread. */
static void where_the_ends_of_steps_are_marked_they_alone_are_the_bounds(void **state)
{
#define ENDED "\"External id\":1,\"step\":\"ended\",\"Ev Idx\":3"
    struct little *t = *state;
    snprintf(t->head, sizeof t->head, "\"kprof\":{\"step_ends\":true},");
    op(t, "aten::mm", 0, 10);
    event(t, "user_annotation", "Optimizer.step#Adam.step", 1, 15, 2, ""); /* before the first that counts */
    event(t, "user_annotation", "Optimizer.step#Adam.step", 1, 20, 10, ENDED);
    event(t, "user_annotation", "Optimizer.step#Adam.step", 1, 35, 2, "");
    event(t, "user_annotation", "Optimizer.step#Adam.step", 1, 60, 10, ENDED);
    event(t, "user_annotation", "Optimizer.step#SGD.step", 2, 120, 10, ENDED);
    assert_int_equal(choose(t, &everything), 0);
    assert_int_equal(t->chosen.step_count, 2);
    assert_int_equal(t->chosen.optimizer_steps, 3);
    assert_int_equal(t->chosen.steps[0].inside_ns, 40000);
    assert_int_equal(t->chosen.steps[1].inside_ns, 60000);
#undef ENDED
}

static void where_none_is_marked_another_threads_optimizer_does_not_count(void **state)
{
    struct little *t = *state;
    trace_of(t, "range Optimizer.step#SGD.step 20 10; range Optimizer.step#SGD.step@2 40 10; "
                "range Optimizer.step#SGD.step 60 10");
    assert_int_equal(choose(t, &everything), 0);
    assert_int_equal(t->chosen.step_count, 1);
    assert_int_equal(t->chosen.steps[0].inside_ns, 40000);
}

/* ---- self times ---- */

static int64_t self_of(const struct little *t, const int64_t *self, const char *name)
{
    for (size_t i = 0; i < t->tree.count; i++)
        if (strcmp(kp_kineto_text(t->trace, t->tree.nodes[i].name), name) == 0) return self[i];
    fail_msg("no %s", name);
    return 0;
}

static void a_moment_belongs_to_the_node_that_began_last(void **state)
{
    struct little *t = *state;
    int64_t self[8], sum = 0;
    trace_of(t, "op step 0 100; op in 10 20; op leaf 15 5");
    op(t, "across", 90, 20); /* ends behind the step */
    event(t, "cpu_op", "other", 2, 10, 30, "");
    assert_int_equal(choose(t, &everything), 0);
    kp_selftime(&t->tree, &t->chosen.spans, self);
    assert_int_equal(self_of(t, self, "step"), 70000);
    assert_int_equal(self_of(t, self, "in"), 15000);
    assert_int_equal(self_of(t, self, "leaf"), 5000);
    assert_int_equal(self_of(t, self, "across"), 20000);
    assert_int_equal(self_of(t, self, "other"), 30000);
    for (size_t i = 0; i < t->tree.count; i++) sum += self[i];
    assert_int_equal(sum, 110000 + 30000);
}

static void a_folded_nodes_time_is_its_parents(void **state)
{
    struct little *t = *state;
    int64_t self[4];
    trace_of(t, "op same 0 100; op same 10 20");
    assert_int_equal(choose(t, &everything), 0);
    kp_selftime(&t->tree, &t->chosen.spans, self);
    assert_int_equal(self[0], 100000);
    assert_int_equal(self[1], 0);
}

static void self_time_is_cut_to_what_was_chosen(void **state)
{
    struct little *t = *state;
    int64_t self[16];
    training_make(t);
    op(t, "aten::long", 380, 100);
    assert_int_equal(choose(t, &(struct kp_choice){.first_step = 6, .last_step = 6}), 0);
    kp_selftime(&t->tree, &t->chosen.spans, self);
    assert_int_equal(self_of(t, self, "aten::long"), 20000);
}

/* torch.profiler in the program: behind the last step() it opens one more, which ends with the recording. */
static void the_step_that_the_profiler_opens_last_is_none(void **state)
{
    struct little *t = *state;
    for (int i = 0; i < 3; i++) {
        numbered_step(t, i, 100 * i, 100);
        op(t, "aten::mm", 100 * i + 10, 50);
    }
    numbered_step(t, 3, 300, 4);
    assert_int_equal(choose(t, &everything), 0);
    assert_int_equal(t->chosen.step_count, 3);
    assert_int_equal(t->chosen.last_total, 2);
}

static void a_last_step_that_works_or_is_as_long_as_others_is_one(void **state)
{
    for (int works = 0; works < 2; works++) {
        struct little *t = *state;
        t->used = 0;
        for (int i = 0; i < 3; i++) {
            numbered_step(t, i, 100 * i, 100);
            op(t, "aten::mm", 100 * i + 10, 50);
        }
        numbered_step(t, 3, 300, works ? 4 : 60);
        if (works) op(t, "aten::mm", 301, 2);
        assert_int_equal(choose(t, &everything), 0);
        assert_int_equal(t->chosen.step_count, 4);
        if (!works) little_forget(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_join_and_measure),
        LITTLE(all_is_from_the_first_event_to_the_last),
        LITTLE(steps_are_chosen_by_number),
        LITTLE(steps_that_are_not_whole_are_left_out),
        LITTLE(a_step_that_is_not_whole_can_be_asked_for),
        LITTLE(a_step_that_is_not_there_is_told),
        LITTLE(a_range_is_chosen_by_name_and_its_time_counts_in_each_step),
        LITTLE(a_call_that_steps_cut_in_parts_is_one_call),
        LITTLE(forward_passes_are_found_in_calls_that_overlap),
        LITTLE(a_call_lasts_as_long_as_it_does_also_where_steps_have_a_part),
        LITTLE(calls_outside_of_whole_steps_are_left_out_and_counted),
        LITTLE(a_name_that_is_not_there_is_told),
        LITTLE(a_function_without_an_event_is_its_ops),
        LITTLE(the_programs_function_goes_before_an_installed_one_of_that_name),
        LITTLE(a_part_keeps_the_traces_begin),
        LITTLE(times_are_counted_from_the_profilers_start),
        LITTLE(without_steps_an_optimizers_steps_are_the_bounds),
        LITTLE(where_the_ends_of_steps_are_marked_they_alone_are_the_bounds),
        LITTLE(where_none_is_marked_another_threads_optimizer_does_not_count),
        LITTLE(a_moment_belongs_to_the_node_that_began_last),
        LITTLE(a_folded_nodes_time_is_its_parents),
        LITTLE(self_time_is_cut_to_what_was_chosen),
        LITTLE(the_step_that_the_profiler_opens_last_is_none),
        LITTLE(a_last_step_that_works_or_is_as_long_as_others_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
