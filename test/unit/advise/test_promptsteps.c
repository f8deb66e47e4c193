// SPDX-License-Identifier: Apache-2.0
/* test_promptsteps.c - steps of a generation that take a prompt, by their ops, on a machine that others use, too */
#include "test/unit/advise/advised.h"

enum { STEPS = 18, EACH = 6 };

/* Each sixth step takes a prompt and prepares it. The ops of the steps whose bit is set last four times as long. */
static struct kp_advice generated(struct little *t, unsigned longer)
{
    for (int step = 0, at = 0; step < STEPS; step++) {
        const int begin = at;
        op(t, "aten::embedding", at + 2, 4);
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

static void a_prompt_that_lasts_no_longer_is_told_by_what_it_runs(void **state)
{
    const struct kp_advice a = generated(*state, 1u << 0 | 1u << 6);
    assert_non_null(a.prompts);
    assert_string_equal(
        a.prompts, "steps 0, 6, 12, each 6th step, process a prompt, 3.21 ms (median of 3); the other steps produce a "
                   "token each, 0.81 ms (median of 15); so say their ops; --record-shapes tells the tokens");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_prompt_that_lasts_no_longer_is_told_by_what_it_runs),
        LITTLE(a_step_that_waited_as_long_is_a_tokens),
        LITTLE(two_steps_that_waited_hide_no_prompt),
        LITTLE(where_most_of_them_run_what_others_do_the_length_alone_tells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
