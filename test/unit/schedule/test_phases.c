// SPDX-License-Identifier: Apache-2.0
/* test_phases.c - KPROF_PHASES is read, phases lie in each other, and each counts its own steps */
#include "schedule/kp_schedule.h"

#include <stdio.h>
#include <string.h>

#include "test/support/support.h"

#define TWO "train=wait=1,warmup=1,active=2;validate=active=3"

static const struct kp_schedule outside = {.set = true};
static char why[200];

static void start(const char *text)
{
    struct kp_phases phases;
    const struct kp_step_rule rule = {.kind = KP_RULE_AUTO};
    assert_int_equal(kp_phases_parse(text, &phases, why, sizeof why), 0);
    kp_phases_init(&phases);
    assert_int_equal(kp_steps_init(&outside, &rule), 0);
}

static void go_to(const char *name) { kp_steps_phase(kp_phases_set(kp_phases_find(name))); }

static void each_phase_has_its_name_and_schedule(void **state)
{
    (void)state;
    start(TWO ";");
    assert_true(kp_phases_are_set());
    assert_int_equal(kp_phases_find("train"), 1);
    assert_int_equal(kp_phases_find("validate"), 2);
    assert_int_equal(kp_phases_find("valid"), KP_PHASE_OTHER);
    assert_int_equal(kp_phases_find(""), KP_PHASE_NONE);
    assert_int_equal(kp_phases_find(NULL), KP_PHASE_NONE);
    assert_string_equal(kp_phases_name(2), "validate");
    assert_string_equal(kp_phases_name(KP_PHASE_OTHER), "");
    assert_int_equal(kp_phases_schedule(1, &outside)->wait, 1);
    assert_int_equal(kp_phases_schedule(2, &outside)->active, 3);
    assert_ptr_equal(kp_phases_schedule(KP_PHASE_NONE, &outside), &outside);
    for (uint64_t step = 0; step < 9; step++)
        assert_int_equal(kp_schedule_action(kp_phases_schedule(KP_PHASE_OTHER, &outside), step), KP_ACTION_NONE);
}

/* Lightning says validate, transformers evaluate. A row of the exact name comes first, and an own range is no loop. */
static void a_loop_of_evaluation_has_two_names(void **state)
{
    static const struct {
        const char *phases, *loop;
        uint32_t is;
        const char *rowless;
    } cases[] = {{TWO, "evaluate", 2, ""},
                 {"train=active=1;evaluate=active=1", "validate", 2, ""},
                 {"validate=active=1;evaluate=active=1", "evaluate", 2, ""},
                 {"validate~^val$=active=1", "evaluate", KP_PHASE_OTHER, "evaluate"},
                 {"evaluate=active=1", "test", KP_PHASE_OTHER, "test"},
                 {"training=active=1", "train", KP_PHASE_OTHER, "train"}};
    char rowless[64];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start(cases[i].phases);
        assert_int_equal(kp_phases_find_loop(cases[i].loop), cases[i].is);
        assert_int_equal(kp_phases_rowless(rowless, sizeof rowless), strlen(cases[i].rowless));
        assert_string_equal(rowless, cases[i].rowless);
    }
    assert_int_equal(kp_phases_find_loop("predict"), KP_PHASE_OTHER);
    kp_phases_rowless(rowless, sizeof rowless);
    assert_string_equal(rowless, "train, predict");
}

#define NEEDS "needs NAME=SCHEDULE, of a range NAME~REGEX=SCHEDULE, in "

static void a_bad_text_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "has no phase in ''"},
        {"train", NEEDS "'train'"},
        {"=active=1", "needs a name of up to 31 letters, digits, _ and - in '=active=1'"},
        {"a b=active=1", NEEDS "'a b=active=1'"},
        {"../x=active=1", "needs a name of"},
        {"train=active=1;train=active=2", "says twice 'train=active=2'"},
        {"train=active=1;;test=active=1", "needs a name"},
        {"train=wait=1", "needs active=N"},
        {"train~x", "needs NAME~REGEX=SCHEDULE: no schedule in 'x'"},
        {"train~=active=1", "has no regular expression"},
        {"train~(=active=1", "is not a regular expression"},
        {"train~x=active=0", "needs NAME~REGEX=SCHEDULE: no schedule in 'x=active=0'"},
        {"train=foo=1", "has an unknown part 'foo=1'"},
    };
    struct kp_phases phases;
    char many[400] = "";
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_not_equal(kp_phases_parse(bad[i].text, &phases, why, sizeof why), 0);
        assert_memory_equal(why, bad[i].says, strlen(bad[i].says));
    }
    for (int i = 0; i < 17; i++) sprintf(many + strlen(many), "p%d=active=1;", i);
    assert_int_not_equal(kp_phases_parse(many, &phases, why, sizeof why), 0);
    many[strlen(many) - strlen("p16=active=1;")] = '\0';
    assert_int_equal(kp_phases_parse(many, &phases, why, sizeof why), 0);
    assert_int_equal(phases.count, 16);
}

static void a_range_with_a_matching_name_is_a_phase(void **state)
{
    (void)state;
    start("train~^epoch=[0-9]+$=wait=1,active=2;validate~^val=active=3;test=active=1;late~.=none");
    assert_int_equal(kp_steps_mark_phase(kp_steps_classify("epoch=7", true)), 1);
    assert_int_equal(kp_phases_schedule(1, &outside)->wait, 1);
    assert_int_equal(kp_steps_mark_phase(kp_steps_classify("val 3", true)), 2);
    assert_int_equal(kp_steps_mark_phase(kp_steps_classify("interval", true)), 4); /* the first row that matches */
    assert_int_equal(kp_steps_mark_phase(kp_steps_classify("epoch=7", false)), KP_PHASE_NONE);
    const uint32_t mark = kp_steps_classify("Optimizer.step#SGD.step", true); /* both a step and a phase */
    assert_int_equal(kp_steps_mark_phase(mark), 4);
    assert_true(kp_steps_range_end(mark, 0));
    start(TWO);
    assert_int_equal(kp_steps_classify("train", true), 0);
}

static void a_phase_inside_another_gives_it_back(void **state)
{
    uint32_t train, validate, lost;
    (void)state;
    start(TWO);
    assert_int_equal(kp_phases_now(), KP_PHASE_NONE);
    assert_int_equal(kp_phases_begin(1, &train), 1);
    assert_int_equal(kp_phases_begin(2, &validate), 2);
    assert_int_equal(kp_phases_begin(KP_PHASE_OTHER, &lost), KP_PHASE_OTHER); /* its end never comes */
    assert_int_equal(kp_phases_set(1), 1);                                    /* by name comes first */
    assert_int_equal(kp_phases_set(KP_PHASE_NONE), KP_PHASE_OTHER);
    assert_int_equal(kp_phases_end(validate), 1);
    assert_int_equal(kp_phases_end(lost), 1);
    assert_int_equal(kp_phases_end(train), KP_PHASE_NONE);
    for (int i = 0; i < 20; i++) (void)kp_phases_begin(2, &lost); /* deeper than is kept */
    assert_int_equal(kp_phases_end(1), 2);
    kp_phases_forget();
    assert_int_equal(kp_phases_now(), KP_PHASE_NONE);
}

static void step(bool is_counted)
{
    struct kp_transition t;
    assert_int_equal(kp_steps_api(), is_counted);
    if (is_counted) assert_true(kp_steps_advance(&t));
}

static void each_phase_counts_its_own_steps(void **state)
{
    struct kp_transition t;
    (void)state;
    start(TWO);
    go_to("train");
    step(true);
    step(true);
    go_to("validate");
    assert_int_equal(kp_steps_seen(), 0);
    step(true);
    go_to("train");
    assert_int_equal(kp_steps_seen(), 2);
    assert_true(kp_steps_api() && kp_steps_advance(&t));
    assert_int_equal(t.step, 3);
    assert_int_equal(t.before, KP_ACTION_RECORD);
    assert_int_equal(t.after, KP_ACTION_RECORD_AND_SAVE);
    go_to("elsewhere");
    step(true);
    assert_int_equal(kp_steps_seen_in(1), 3);
    assert_int_equal(kp_steps_seen_in(2), 1);
    assert_int_equal(kp_steps_seen_in(KP_PHASE_NONE), 0);
    kp_steps_explain_phases(why, sizeof why);
    assert_string_equal(why, "phase train saw 3 steps and needs 4, phase validate saw 1 step and needs 3");
    kp_steps_explain_phases(why, 20); /* cut, not overrun */
    assert_string_equal(why, "phase train saw 3 s");
}

#define LOADER "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"

static bool ends(const char *name) { return kp_steps_range_end(kp_steps_classify(name, true), 0); }

/* Beside a phase with an optimizer, one without counts its batches: all but the first end a step. */
static void batches_count_where_another_phase_has_an_optimizer(void **state)
{
    (void)state;
    start(TWO);
    go_to("train");
    for (int i = 0; i < 3; i++) {
        assert_false(ends(LOADER));
        assert_true(ends("Optimizer.step#SGD.step"));
    }
    for (int i = 0; i < 2; i++) {
        go_to("validate");
        assert_false(ends(LOADER));
        assert_true(ends(LOADER));
        assert_true(ends(LOADER)); /* StopIteration */
        go_to("train");
    }
    assert_false(ends(LOADER));
    assert_true(ends("Optimizer.step#SGD.step"));
}

/* Without a DataLoader calls of the model count there, from the first on: one unit in all windows. */
static void calls_count_where_another_phase_has_an_optimizer(void **state)
{
    (void)state;
    start(TWO);
    go_to("validate"); /* before the first step of the optimizer nothing tells that it evaluates */
    assert_false(kp_steps_module_end(4096));
    go_to("train");
    assert_false(kp_steps_module_end(4096));
    assert_true(ends("Optimizer.step#SGD.step"));
    for (int i = 0; i < 2; i++) {
        go_to("validate");
        for (int call = 0; call < 3; call++) {
            assert_true(kp_steps_module_end(4096));
            assert_false(kp_steps_module_end(8192)); /* a loss is a module, too */
        }
        assert_string_equal(kp_step_source_name(kp_steps_source()), "module");
        go_to("train");
        assert_false(kp_steps_module_end(4096));
    }
    go_to("validate"); /* with a DataLoader its batches count, and not both */
    assert_false(ends(LOADER));
    assert_false(kp_steps_module_end(4096));
    (void)ends(LOADER); /* takes over */
    assert_false(kp_steps_module_end(4096));
    assert_true(ends(LOADER));
}

static void a_frameworks_loop_comes_before_the_optimizer(void **state)
{
    (void)state;
    start(TWO);
    kp_steps_loop_begin(1);
    go_to("train");
    assert_false(ends("Optimizer.step#SGD.step"));
    assert_true(kp_steps_loop_end());
    assert_string_equal(kp_step_source_name(kp_steps_source()), "loop");
    go_to("validate");
    assert_int_equal(kp_steps_source(), KP_STEP_NONE);
    assert_true(ends("Optimizer.step#SGD.step"));
}

static void seconds_count_no_steps_in_phases(void **state)
{
    (void)state;
    start(TWO);
    assert_int_equal(kp_steps_time_period_ns(), 0);
}

static void a_rule_of_the_user_comes_before_a_frameworks_loop(void **state)
{
    struct kp_phases phases;
    const struct kp_step_rule rule = {.kind = KP_RULE_OPTIMIZER};
    (void)state;
    assert_int_equal(kp_phases_parse(TWO, &phases, why, sizeof why), 0);
    kp_phases_init(&phases);
    assert_int_equal(kp_steps_init(&outside, &rule), 0);
    kp_steps_loop_begin(1);
    go_to("train");
    assert_false(kp_steps_loop_end());
    assert_true(ends("Optimizer.step#SGD.step"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_phase_has_its_name_and_schedule),
        cmocka_unit_test(a_loop_of_evaluation_has_two_names),
        cmocka_unit_test(a_bad_text_is_refused_with_its_place),
        cmocka_unit_test(a_range_with_a_matching_name_is_a_phase),
        cmocka_unit_test(a_phase_inside_another_gives_it_back),
        cmocka_unit_test(each_phase_counts_its_own_steps),
        cmocka_unit_test(batches_count_where_another_phase_has_an_optimizer),
        cmocka_unit_test(calls_count_where_another_phase_has_an_optimizer),
        cmocka_unit_test(a_frameworks_loop_comes_before_the_optimizer),
        cmocka_unit_test(seconds_count_no_steps_in_phases),
        cmocka_unit_test(a_rule_of_the_user_comes_before_a_frameworks_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
