// SPDX-License-Identifier: Apache-2.0
/* test_loadcore.c - loading costs no time in which the machine had no core for its thread */
#include "test/unit/advise/advised.h"
#include "export/answers/advise/parts/costrules.h"

#define LOADER "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"

enum { STEPS = 20, WAITED_STEPS = 10 };

/*
 * Of twenty steps of 10 ms, of which 2 load, the second half lasts 30 ms as its thread has no core for 20. `loading`:
 * the part of these 20 that is in the loading.
 */
static struct kp_advice advice_by(struct little *t, const char *loader, int loading_us, const char *facts)
{
    snprintf(t->head, sizeof t->head, "\"with_stack\":1,\"profile_memory\":1,\"kprof\":{\"python_gc\":\"1\"%s},",
             facts);
    for (int i = 0, at = 0; i < STEPS; i++) {
        const int waited = i >= STEPS - WAITED_STEPS ? 20000 : 0, loads = 2000 + (waited ? loading_us : 0);
        numbered_step(t, i, at, 10000 + waited);
        event(t, "user_annotation", loader, 1, at, loads, "");
        op(t, "aten::mm", at + loads, 10000 + waited - loads);
        at += 10000 + waited;
    }
    return advise(t);
}

static struct kp_advice advice_of(struct little *t, int loading_us, const char *facts)
{
    return advice_by(t, LOADER, loading_us, facts);
}

static const struct kp_finding *loading_in(const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->findings[i].id, "data-loading") == 0) return &a->findings[i];
    return NULL;
}

#define WAITS "\"core_steps\":\"10-19:200000\""
#define AWAKE "\"core_had_us\":200000,\"core_waited_us\":200000"

/* It is 4 ms a step with the waits, a fifth of it, and 2 without. */
static void loading_is_told_without_the_time_that_had_no_core(void **state)
{
    const struct kp_advice a = advice_of(*state, 4000, "," AWAKE "," WAITS);
    const struct kp_finding *const f = loading_in(&a);
    assert_non_null(f);
    assert_float_equal(f->step_ns, 2e6, 0.02e6);
    assert_float_equal(f->share, 0.2, 0.002);
    assert_int_equal(f->steps, STEPS);
    assert_string_equal(f->what, "the step waits for data, because the DataLoader has no workers");
    assert_float_equal(f->of.core_ns, 10e6, 0.1e6);
    assert_non_null(strstr(f->change, " That saves up to 2.0 ms a step."));
    assert_non_null(
        strstr(f->change, " The cores were busy (see the note). These times do not include waits for a core, and "));
}

/* Workers want a core as well, and nobody counted their waits: 4 ms in the mean are a fifth of a mean step of 20. */
static void the_wait_for_workers_is_of_the_step_as_it_was(void **state)
{
    const struct kp_advice a = advice_by(*state, WORKERS, 4000, "," AWAKE "," WAITS);
    const struct kp_finding *const f = loading_in(&a);
    assert_non_null(f);
    assert_float_equal(f->step_ns, 4e6, 1);
    assert_float_equal(f->share, 0.2, 0.002);
    assert_float_equal(f->of.core_ns, 0, 0);
    assert_true(f->of.has_waits);
}

/* The thread slept for as long as all of the loading: that needs no core, and nothing is taken out. */
static void a_loader_that_may_sleep_all_the_time_is_told_whole(void **state)
{
    const struct kp_advice a = advice_of(*state, 0, ",\"core_had_us\":160000,\"core_waited_us\":200000," WAITS);
    const struct kp_finding *const f = loading_in(&a);
    assert_non_null(f);
    assert_float_equal(f->step_ns, 2e6, 1);
    assert_float_equal(f->share, 0.1, 0.001);
    assert_true(f->of.has_waits && !(f->of.core_ns > 0));
}

static void a_trace_that_does_not_name_the_steps_has_the_wait_in_all_of_them(void **state)
{
    const struct kp_advice a = advice_of(*state, 4000, "," AWAKE);
    const struct kp_finding *const f = loading_in(&a);
    assert_non_null(f);
    assert_float_equal(f->step_ns, 2e6, 0.02e6); /* half of all time is a wait, and half of 4 ms */
}

/* Every second step loads for 3 ms, one and another time 0.9: each loads. */
static void steps_that_load_less_than_others_load_all_the_same(void **state)
{
    struct little *const t = *state;
    for (int i = 0; i < STEPS; i++) {
        const int loads = i % 2 ? 3000 : 900;
        numbered_step(t, i, 10000 * i, 10000);
        event(t, "user_annotation", LOADER, 1, 10000 * i, loads, "");
        op(t, "aten::mm", 10000 * i + loads, 10000 - loads);
    }
    const struct kp_advice a = advise(t);
    const struct kp_finding *const f = loading_in(&a);
    assert_non_null(f);
    assert_int_equal(f->steps, STEPS / 2);
    assert_non_null(strstr(f->change, " That saves up to 1.9 ms a step."));
}

/* Of each step of 20 ms no op runs for 12. A line of facts tells how busy the machine was. */
static struct kp_advice gap_advise(void **state, const char *facts)
{
    little_teardown(state);
    little_setup(state);
    struct little *const t = *state;
    snprintf(t->head, sizeof t->head, "\"with_stack\":1,\"kprof\":{\"python_gc\":\"1\"%s},", facts);
    for (int i = 0; i < STEPS; i++) {
        numbered_step(t, i, 20000 * i, 20000);
        op(t, "aten::mm", 20000 * i + 12000, 8000);
    }
    return advise(t);
}

/* Waits of 11 ms a step may all lie in the gap, of which 1 of 9 ms is then left; of 2 they leave 10 of 18. */
static void a_gap_that_waits_for_a_core_may_be_is_not_critical(void **state)
{
    const struct kp_advice busy = gap_advise(state, ",\"core_had_us\":180000,\"core_waited_us\":220000");
    assert_string_equal(busy.findings[0].id, KP_FINDING_NO_OP);
    assert_true(busy.findings[0].share > 0.5 && busy.findings[0].of.core_ns > 0);
    assert_false(busy.findings[0].is_critical);
    const struct kp_advice calm = gap_advise(state, ",\"core_had_us\":340000,\"core_waited_us\":60000");
    assert_string_equal(calm.findings[0].id, KP_FINDING_NO_OP);
    assert_true(calm.findings[0].of.core_ns > 0 && calm.findings[0].is_critical);
}

static void the_steps_of_a_share_are_data_until_they_are_words(void **state)
{
    struct kp_kineto trace = {.strings = kp_strings_open()};
    struct kp_tree tree = {.trace = &trace};
    const struct kp_costrules x = {.tree = &tree};
#define CORE_WAITS "waits for a CPU core"
    static const struct {
        struct kp_finding_steps of;
        const char *text;
    } rows[] = {{{false, true, 0, false, 0}, "of a step without evaluations"},
                {{true, true, 0, false, 0}, "of an ordinary step without evaluations"},
                {{true, false, 2e6, false, 0}, "of an ordinary step of 2 ms without " CORE_WAITS},
                {{false, true, 2e6, false, 0}, "of a step of 2 ms without evaluations and " CORE_WAITS},
                {{true, false, 2e6, false, 5e6}, "of an ordinary step's 2 ms without " CORE_WAITS " (5 ms with them)"},
                {{true, false, 0, false, 2e6}, "of an ordinary step of 2 ms"},
                {{true, false, 0, true, 2e6}, "of an ordinary step of 2 ms with " CORE_WAITS},
                {{false, false, 0, true, 0}, "of a step with " CORE_WAITS},
                {{true, true, 0, true, 0}, "of an ordinary step without evaluations, with " CORE_WAITS}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_string_equal(kp_costrules_share_of(&x, &rows[i].of), rows[i].text);
    assert_null(kp_costrules_share_of(&x, &(struct kp_finding_steps){0}));
    kp_strings_close(trace.strings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_gap_that_waits_for_a_core_may_be_is_not_critical),
        cmocka_unit_test(the_steps_of_a_share_are_data_until_they_are_words),
        LITTLE(loading_is_told_without_the_time_that_had_no_core),
        LITTLE(the_wait_for_workers_is_of_the_step_as_it_was),
        LITTLE(a_loader_that_may_sleep_all_the_time_is_told_whole),
        LITTLE(a_trace_that_does_not_name_the_steps_has_the_wait_in_all_of_them),
        LITTLE(steps_that_load_less_than_others_load_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
