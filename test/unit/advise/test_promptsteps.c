// SPDX-License-Identifier: Apache-2.0
/* test_promptsteps.c - steps of a generation that take a prompt, by tokens or ops, also on a machine that others use */
#include "test/unit/advise/advised.h"

enum { STEPS = 18, EACH = 6 };

/* Each sixth step takes a prompt and prepares it. The ops of the steps whose bit is set last four times as long. */
static struct kp_advice generated(struct little *t, unsigned longer)
{
    for (int step = 0, at = 0; step < STEPS; step++) {
        const int begin = at;
        op(t, "aten::embedding", at + 2, 4);
        op(t, "aten::argmax", at + 8, 2);
        if (step % EACH == 0) op(t, "aten::cumsum", at + 6, 2);
        at += 10;
        for (int i = 0; i < 8; i++) {
            const int length = longer >> step & 1 ? 400 : 100;
            op(t, "aten::addmm", at, length);
            at += length;
        }
        numbered_step(t, step, begin, at - begin);
    }
    return advise(t);
}

#define PROMPTS(steps, ms, n, others_ms, others)                                                                     \
    steps " process a prompt, " ms " ms (median of " #n "); the other steps produce a token each, " others_ms " ms " \
          "(median of " #others ")"
#define BY_OPS "; so say their ops; --record-shapes tells the tokens"

static void a_prompt_that_lasts_no_longer_is_told_by_what_it_runs(void **state)
{
    const struct kp_advice a = generated(*state, 1u << 0 | 1u << 6);
    assert_non_null(a.prompts);
    assert_string_equal(a.prompts, PROMPTS("steps 0, 6, 12, each 6th step,", "3.21", 3, "0.81", 15) BY_OPS);
}

static void a_step_that_waited_as_long_is_a_tokens(void **state)
{
    const struct kp_advice a = generated(*state, 1u << 0 | 1u << 6 | 1u << 9);
    assert_non_null(strstr(a.prompts, "(median of 3); the other steps"));
    assert_null(strstr(a.prompts, "9"));
}

static void two_steps_that_waited_hide_no_prompt(void **state)
{
    const struct kp_advice a = generated(*state, 1u << 6 | 1u << 9 | 1u << 10);
    assert_non_null(strstr(a.prompts, "steps 0, 6, 12, each 6th step, process a prompt"));
}

static void where_most_of_them_run_what_others_do_the_length_alone_tells(void **state)
{
    const struct kp_advice a = generated(*state, 1u << 2 | 1u << 3 | 1u << 9);
    assert_non_null(strstr(a.prompts, "steps 2, 3, 9 process a prompt"));
}

/* Of twelve steps each sixth takes a prompt of `prompt` tokens, and four times as long; the others take `others`. */
static struct kp_advice tokens_advise(struct little *t, int prompt, int others)
{
    for (int step = 0, at = 0; step < 12; step++) {
        const bool is_prompt = step % 6 == 0;
        const int length = is_prompt ? 800 : 200;
        char text[96];
        snprintf(text, sizeof text, "ProfilerStep#%d", step);
        event(t, "user_annotation", text, 1, at, length, "");
        snprintf(text, sizeof text, "\"Input Dims\":[[50257,128],[1,%d],[],[],[]]", is_prompt ? prompt : others);
        event(t, "cpu_op", "aten::embedding", 1, at + 10, length - 20, text);
        at += length;
    }
    return advise(t);
}

static void steps_that_take_a_prompt_are_told_from_those_of_a_token(void **state)
{
    const struct kp_advice a = tokens_advise(*state, 12, 1);
    assert_non_null(a.prompts);
    assert_string_equal(a.prompts, PROMPTS("steps 0, 6", "0.8", 2, "0.2", 10));
    for (size_t i = 0; i < a.count; i++) assert_string_not_equal(a.findings[i].id, "slow-steps");
}

/* The same without shapes, of eight calls a step: in each sixth step `longer` of them last four times as long. */
static struct kp_advice calls_advise(struct little *t, int longer, bool picks)
{
    for (int step = 0, at = 0; step < 12; step++) {
        char text[32];
        const int begin = at, many = step % 6 == 0 ? longer : 0;
        snprintf(text, sizeof text, "ProfilerStep#%d", step);
        op(t, "aten::embedding", at + 2, 4);
        if (picks) op(t, "aten::argmax", at + 7, 2);
        at += 10;
        for (int i = 0; i < 8; i++) {
            const int length = i < many ? 400 : 100;
            op(t, "aten::addmm", at, length);
            at += length;
        }
        event(t, "user_annotation", text, 1, begin, at - begin, "");
    }
    return advise(t);
}

static void steps_of_a_prompt_are_told_by_their_ops_alone(void **state)
{
    const struct kp_advice a = calls_advise(*state, 8, true);
    assert_non_null(a.prompts);
    assert_string_equal(a.prompts, PROMPTS("steps 0, 6", "3.21", 2, "0.81", 10) BY_OPS);
    for (size_t i = 0; i < a.count; i++) assert_string_not_equal(a.findings[i].id, "slow-steps");
    assert_int_equal(a.waited_count, 0);
}

static void a_classifier_of_texts_picks_no_token_and_has_no_prompt(void **state)
{
    assert_null(calls_advise(*state, 8, false).prompts);
}

static void a_wait_in_some_ops_of_a_step_is_no_prompt(void **state)
{
    assert_null(calls_advise(*state, 3, true).prompts);
}

static void steps_of_sequences_alone_are_a_training_and_may_be_slow(void **state)
{
    const struct kp_advice a = tokens_advise(*state, 64, 16);
    assert_null(a.prompts);
    assert_string_equal(a.findings[0].id, "slow-steps");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_prompt_that_lasts_no_longer_is_told_by_what_it_runs),
        LITTLE(a_step_that_waited_as_long_is_a_tokens),
        LITTLE(two_steps_that_waited_hide_no_prompt),
        LITTLE(where_most_of_them_run_what_others_do_the_length_alone_tells),
        LITTLE(steps_that_take_a_prompt_are_told_from_those_of_a_token),
        LITTLE(steps_of_a_prompt_are_told_by_their_ops_alone),
        LITTLE(a_wait_in_some_ops_of_a_step_is_no_prompt),
        LITTLE(a_classifier_of_texts_picks_no_token_and_has_no_prompt),
        LITTLE(a_classifier_of_texts_picks_no_token_and_has_no_prompt),
        LITTLE(steps_of_sequences_alone_are_a_training_and_may_be_slow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
