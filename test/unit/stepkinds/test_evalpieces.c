// SPDX-License-Identifier: Apache-2.0
/* test_evalpieces.c - a trace that is read in pieces has the evaluations of the whole */
#include "export/answers/advise/stepkinds/steppieces.h"
#include "export/answers/top/toprows.h"
#include "test/support/story.h"

enum { STEPS = 60, STEP_US = 1000, PASSES = 90, PASS_US = 100 };

/* A forward op of 50 us; the backward of those that have one. */
static void pass_put(struct story *s, int at, int sequence)
{
    char args[96] = "";
    if (sequence) snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":0", sequence);
    event(s, "cpu_op", "aten::linear", 1, at, 50, args);
    if (!sequence) return;
    snprintf(args, sizeof args, "\"Sequence number\":%d,\"Fwd thread id\":1", sequence);
    event(s, "cpu_op", "AddmmBackward0", 1, at + 60, 20, args);
}

/* Steps with a pass and a backward; each `evaluated`th evaluates: that alone is more than a piece. */
static void training_put(struct story *s, int evaluated)
{
    begin(s, "\"kprof\":{\"version\":\"1\"},");
    for (int step = 0, at = 1000; step < STEPS; step++) {
        const bool evaluates = step % evaluated == evaluated - 1;
        const int lasts = STEP_US + (evaluates ? PASSES * PASS_US : 0);
        char name[32];
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(s, "user_annotation", name, 1, at, lasts - 10, "");
        pass_put(s, at + 10, step + 1);
        for (int i = 0; evaluates && i < PASSES; i++) pass_put(s, at + 500 + i * PASS_US, 0);
        at += lasts;
    }
    add(s, "]}");
}

struct told {
    struct kp_kineto *trace;
    const char *text;
};

static struct told pieces_read(const struct story *s)
{
    struct told t = {.text = NULL};
    struct kp_evalpieces *const evaluations = kp_evalpieces_open();
    struct kp_toppieces *const pieces = kp_toppieces_open(KP_TOP_BY_OP, kp_evalpieces_add, evaluations);
    struct kp_top top;
    struct kp_summary summary;
    struct kp_stepparts parts;
    struct kp_chosen chosen;
    assert_int_equal(story_read(s, &t.trace, kp_toppieces_reading(pieces)), 0);
    assert_true(kp_toppieces_reading(pieces)->has_given);
    assert_true(kp_toppieces_end(pieces, t.trace, &top, &summary, &parts, &chosen));
    t.text = kp_evalpieces_text(evaluations, t.trace, &chosen);
    kp_evalpieces_close(evaluations);
    kp_toppieces_close(pieces);
    kp_top_fini(&top);
    kp_chosen_fini(&chosen);
    kp_stepparts_fini(&parts);
    return t;
}

static void evaluations_are_told(void **state)
{
    training_put(*state, 30);
    const struct told t = pieces_read(*state);
    assert_non_null(t.text);
    assert_string_equal(t.text,
                        "2 groups of gradient-free passes during the training take some 18.0 ms, 23.3 % of the time of "
                        "all steps. These steps are "
                        "long but not slow: steps 29, 59 hold 90 forward passes without backward, 9.00 ms per group");
    kp_kineto_close(t.trace);
}

static void a_training_alone_has_none(void **state)
{
    training_put(*state, STEPS + 1);
    const struct told t = pieces_read(*state);
    assert_null(t.text);
    kp_kineto_close(t.trace);
}

/* As of a teacher: it is a part of the training. */
static void what_each_step_does_is_no_evaluation(void **state)
{
    training_put(*state, 1);
    const struct told t = pieces_read(*state);
    assert_null(t.text);
    kp_kineto_close(t.trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(evaluations_are_told, story_setup, story_teardown),
        cmocka_unit_test_setup_teardown(a_training_alone_has_none, story_setup, story_teardown),
        cmocka_unit_test_setup_teardown(what_each_step_does_is_no_evaluation, story_setup, story_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
