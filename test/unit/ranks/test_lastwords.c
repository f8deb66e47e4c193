// SPDX-License-Identifier: Apache-2.0
/* test_lastwords.c - what a program did when a signal ended it */
#include "export/answers/ranks/lastwords.h"

#include "test/unit/tree/little_trace.h"

#define KILLED "\"kprof\":{\"complete\":false,\"ended_by\":\"SIGKILL\""
#define STACK ",\"Call stack\":\"evaluation.py(16): similarity;train.py(8): main\""

static int64_t sub_us = 300; /* how long aten::sub has been open */

static const char *words_of(struct little *t, const char *head, const char *args)
{
    static char words[KP_LASTWORDS_BYTES];
    snprintf(t->head, sizeof t->head, "%s},", head);
    trace_of(t, "step 4 0 1000; op aten::mm 0 900; step 5 1000 1000");
    event(t, "cpu_op", "aten::linear", 1, 2100, 400, args);
    event(t, "cpu_op", "aten::sub", 1, 2200, sub_us, args);
    assert_int_equal(choose(t, &everything), 0);
    return kp_lastwords(words, sizeof words, &t->tree, &t->chosen);
}

static void the_innermost_open_op_and_its_line_are_told(void **state)
{
    assert_string_equal(
        words_of(*state, KILLED ",\"ended_after_us\":500000,\"ended_peak_kb\":2097152", "\"finished\":false" STACK),
        " in step 6, in aten::sub, evaluation.py:16 similarity, called from train.py:8 main, which had run for 500.3 "
        "ms; it used at most 2.00 GiB "
        "of memory");
}

static void where_memory_lacked_what_the_job_may_have_is_told(void **state)
{
    assert_string_equal(words_of(*state, KILLED ",\"ended_peak_kb\":2097152,\"ended_may_have\":2147483648", ""),
                        " after step 5; it used at most 2.00 GiB of memory, and its job may have 2.00 GiB");
}

static void without_a_parent_its_time_is_a_least(void **state)
{
    assert_string_equal(words_of(*state, KILLED, "\"finished\":false"),
                        " in step 6, in aten::sub, which had run for at least 0.3 ms");
}

static void an_op_of_no_time_had_just_begun(void **state)
{
    sub_us = 20;
    assert_string_equal(words_of(*state, KILLED, "\"finished\":false"),
                        " in step 6, in aten::sub, which had just begun");
    sub_us = 300;
}

static void where_nothing_was_open_the_last_step_is_told(void **state)
{
    assert_string_equal(words_of(*state, KILLED, ""), " after step 5");
}

static void a_program_that_stood_still_says_for_how_long(void **state)
{
    assert_string_equal(words_of(*state, KILLED ",\"ended_after_us\":44999000,\"ended_peak_kb\":1024", ""),
                        " after step 5; it ran no operator for its last 45.0 s (after aten::sub, in step 6); it used "
                        "at most 1.00 MiB of memory");
    little_teardown(state);
    little_setup(state);
    assert_string_equal(words_of(*state, KILLED ",\"ended_after_us\":19999000", ""), " after step 5");
}

static void an_exception_has_its_line_and_the_step_before(void **state)
{
    assert_string_equal(words_of(*state,
                                 "\"kprof\":{\"complete\":true,\"exception\":\"ValueError\",\"exception_at\":"
                                 "\"train.py:18 main\"",
                                 ""),
                        " at train.py:18 main, after step 5");
}

static void an_exception_for_want_of_memory_says_what_lacked(void **state)
{
    assert_string_equal(words_of(*state,
                                 "\"kprof\":{\"complete\":true,\"exception\":\"RuntimeError\",\"out_of_memory\":"
                                 "\"cpu ran out of memory: 1.00 MiB asked for at k.py:6 huge, 3 B live\"",
                                 ""),
                        " after step 5; cpu ran out of memory: 1.00 MiB asked for at k.py:6 huge, 3 B live");
}

static void a_program_that_ended_by_itself_has_none(void **state)
{
    assert_string_equal(words_of(*state, "\"kprof\":{\"complete\":true", "\"finished\":false"), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        LITTLE(the_innermost_open_op_and_its_line_are_told),
        LITTLE(without_a_parent_its_time_is_a_least),
        LITTLE(an_op_of_no_time_had_just_begun),
        LITTLE(where_nothing_was_open_the_last_step_is_told),
        LITTLE(a_program_that_stood_still_says_for_how_long),
        LITTLE(an_exception_has_its_line_and_the_step_before),
        LITTLE(an_exception_for_want_of_memory_says_what_lacked),
        LITTLE(a_program_that_ended_by_itself_has_none),
        LITTLE(where_memory_lacked_what_the_job_may_have_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
