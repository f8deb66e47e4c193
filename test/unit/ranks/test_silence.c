// SPDX-License-Identifier: Apache-2.0
/* test_silence.c - a program of no job that ran no operator for long at the end of its trace */
#include "export/answers/ranks/silence.h"

#include "test/unit/tree/little_trace.h"

#define SECOND 1000000
#define KILLED "\"kprof\":{\"complete\":false,\"ended_after_us\":400000},"
#define STACK ",\"Call stack\":\"train.py(25): main\""

static char said[KP_SILENCE_BYTES];

/* Five steps of `step_ms`, an op behind them, and the trace's end so many seconds later. */
static const char *say_of(struct little *t, const char *head, int step_ms, int seconds, bool is_running)
{
    const int step_us = 1000 * step_ms, last_us = 5 * step_us + 1000;
    snprintf(t->head, sizeof t->head, "%s", head);
    event(t, "Trace", "PyTorch Profiler (0)", 1, 0, last_us + seconds * SECOND, "");
    for (int i = 0; i < 5; i++) {
        numbered_step(t, i, step_us * i, step_us);
        op(t, "aten::mm", step_us * i, step_us / 2);
    }
    event(t, "cpu_op", "aten::is_nonzero", 1, last_us - 100, 100, "\"Sequence number\":1" STACK);
    assert_int_equal(choose(t, &everything), 0);
    return kp_silence_say(said, sizeof said, &t->tree, &t->chosen, is_running);
}

static void a_silence_far_longer_than_any_step_is_told(void **state)
{
    assert_string_equal(say_of(*state, KILLED, 10, 62, false),
                        "ran no operator for its last 62.4 s (after aten::is_nonzero, train.py:25 main, in step 5)");
}

static void of_a_program_that_runs_it_goes_on(void **state)
{
    assert_string_equal(say_of(*state, "\"kprof\":{\"complete\":false},", 10, 62, true),
                        "has run no operator for 62.0 s (after aten::is_nonzero, train.py:25 main, in step 5)");
}

static void seconds_are_no_silence(void **state) { assert_string_equal(say_of(*state, KILLED, 10, 20, false), ""); }

static void long_steps_need_a_long_silence(void **state)
{
    assert_string_equal(say_of(*state, KILLED, 2000, 62, false), "");
}

static void behind_the_window_nothing_is_known(void **state)
{
    assert_string_equal(say_of(*state, "\"kprof\":{\"complete\":true},", 10, 62, false), "");
}

static void a_rank_may_wait_for_others(void **state)
{
    assert_string_equal(say_of(*state, KILLED "\"distributedInfo\":{\"rank\":0,\"world_size\":2},", 10, 62, false), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(a_silence_far_longer_than_any_step_is_told),
        LITTLE(of_a_program_that_runs_it_goes_on),
        LITTLE(seconds_are_no_silence),
        LITTLE(long_steps_need_a_long_silence),
        LITTLE(behind_the_window_nothing_is_known),
        LITTLE(a_rank_may_wait_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
