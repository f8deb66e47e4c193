// SPDX-License-Identifier: Apache-2.0
/* test_promptpieces.c - a trace that is read in pieces has the prompts of the whole */
#include "export/answers/advise/stepkinds/steppieces.h"
#include "export/answers/top/toprows.h"
#include "test/support/story.h"

enum { STEPS = 60, CALLS = 20, CALL_US = 50, STEP_US = 1200 };

/* Each 20th step takes a prompt of 9 tokens: its calls last four times as long. */
static void generation_put(struct story *s, bool has_shapes, bool has_prompts)
{
    begin(s, has_shapes ? "\"kprof\":{\"version\":\"1\"},\"record_shapes\":1," : "\"kprof\":{\"version\":\"1\"},");
    for (int step = 0, at = 1000; step < STEPS; step++) {
        const int times = has_prompts && step % 20 == 0 ? 4 : 1;
        char name[32], args[64] = "";
        snprintf(name, sizeof name, "ProfilerStep#%d", step);
        event(s, "user_annotation", name, 1, at, times * STEP_US - 10, "");
        if (has_shapes) snprintf(args, sizeof args, "\"Input Dims\":[[64,8],[1,%d],[]]", times > 1 ? 9 : 1);
        event(s, "cpu_op", "aten::embedding", 1, at + 10, 5, args);
        event(s, "cpu_op", "aten::argmax", 1, at + 16, 2, "");
        for (int i = 0; i < CALLS; i++)
            event(s, "cpu_op", "aten::addmm", 1, at + 20 + times * i * CALL_US, times * (CALL_US - 2), "");
        at += times * STEP_US;
    }
    add(s, "]}");
}

/* `wanted` NULL: no prompt is told. */
static void pieces_tell(const struct story *s, const char *wanted)
{
    struct kp_promptpieces *const prompts = kp_promptpieces_open();
    struct kp_toppieces *const pieces = kp_toppieces_open(KP_TOP_BY_OP, kp_promptpieces_add, prompts);
    struct kp_kineto *trace;
    struct kp_top top;
    struct kp_summary summary;
    struct kp_stepparts parts = {0};
    struct kp_chosen chosen;
    assert_int_equal(story_read(s, &trace, kp_toppieces_reading(pieces)), 0);
    assert_true(kp_toppieces_reading(pieces)->has_given);
    assert_true(kp_toppieces_end(pieces, trace, &top, &summary, &parts, &chosen));
    const char *const text = kp_promptpieces_text(prompts, trace, &chosen);
    if (wanted) assert_non_null(text), assert_string_equal(text, wanted);
    else assert_null(text);
    kp_promptpieces_close(prompts);
    kp_toppieces_close(pieces);
    kp_top_fini(&top);
    kp_chosen_fini(&chosen);
    kp_stepparts_fini(&parts);
    kp_kineto_close(trace);
}

#define TOLD                                                                                                     \
    "steps 0, 20, 40, each 20th step, process a prompt, 4.79 ms (median of 3); the other steps produce a token " \
    "each, 1.19 ms (median of 57)"

static void shapes_tell_prompts(void **state)
{
    generation_put(*state, true, true);
    pieces_tell(*state, TOLD);
}

static void ops_tell_prompts(void **state)
{
    generation_put(*state, false, true);
    pieces_tell(*state, TOLD "; so say their ops; --record-shapes tells the tokens");
}

static void tokens_alone_are_not_told(void **state)
{
    generation_put(*state, false, false);
    pieces_tell(*state, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(shapes_tell_prompts, story_setup, story_teardown),
        cmocka_unit_test_setup_teardown(ops_tell_prompts, story_setup, story_teardown),
        cmocka_unit_test_setup_teardown(tokens_alone_are_not_told, story_setup, story_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
