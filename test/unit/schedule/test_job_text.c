// SPDX-License-Identifier: Apache-2.0
/* test_job_text.c - calls and answers as texts: read as written, and refused when a byte is another */
#include "schedule/job/job.h"

#include <string.h>

#include "test/support/support.h"

static const struct kp_job_call call = {.id = UINT64_MAX,
                                        .round = 16,
                                        .beat = 77,
                                        .state = KP_JOB_TARGET,
                                        .steps = 3,
                                        .target = 1234567890123,
                                        .at_ms = 1795476195745,
                                        .for_ms = 9,
                                        .phase = "a-phase_with.31-letters-in-all-",
                                        .job = "a-job_with.45-letters-in-all-0123456789012345"};
static struct kp_job_answer answer_most(void)
{
    struct kp_job_answer a;
    memset(&a, 0xff, sizeof a);
    memset(a.host, 'h', sizeof a.host - 1);
    memset(a.phase, 'p', sizeof a.phase - 1);
    memset(a.job, 'j', sizeof a.job - 1);
    a.host[sizeof a.host - 1] = a.phase[sizeof a.phase - 1] = a.job[sizeof a.job - 1] = '\0';
    return a;
}

static void a_call_is_read_as_it_was_written(void **state)
{
    char text[KP_JOB_BYTES];
    struct kp_job_call back;
    (void)state;
    kp_job_call_print(&call, text);
    assert_int_equal(text[KP_JOB_BYTES - 1], '\n');
    assert_true(kp_job_call_parse(text, &back));
    assert_memory_equal(&back, &call, sizeof call);
}

static void the_longest_answer_fits(void **state)
{
    char text[KP_JOB_BYTES];
    struct kp_job_answer back;
    const struct kp_job_answer most = answer_most();
    (void)state;
    kp_job_answer_print(&most, text);
    memset(&back, 0, sizeof back);
    assert_true(kp_job_answer_parse(text, &back));
    assert_true(back.id == most.id && back.pidspace == most.pidspace);
    assert_string_equal(back.host, most.host);
    assert_string_equal(back.phase, most.phase);
    assert_string_equal(back.job, most.job);
}

static void no_changed_byte_is_taken(void **state)
{
    char text[KP_JOB_BYTES];
    struct kp_job_call back = {.id = 5};
    (void)state;
    kp_job_call_print(&call, text);
    const char *const end = memmem(text, sizeof text, " sum=", 5);
    for (char *at = text; at < end + 21; at++) {
        const char was = *at;
        *at ^= 1;
        assert_false(kp_job_call_parse(text, &back));
        *at = was;
    }
    for (size_t cut = 0; cut < (size_t)(end + 21 - text); cut++) { /* half written over an older text */
        char half[KP_JOB_BYTES];
        struct kp_job_call other = call;
        other.id = other.target = 99999;
        other.state = KP_JOB_ASK;
        kp_job_call_print(&other, half);
        memcpy(half, text, cut);
        if (kp_job_call_parse(half, &back)) assert_true(back.id == other.id || back.id == call.id);
    }
    memset(text, 0, sizeof text);
    assert_false(kp_job_call_parse(text, &back));
}

static void an_answer_is_no_call_and_a_bad_value_is_refused(void **state)
{
    char text[KP_JOB_BYTES];
    struct kp_job_call back;
    struct kp_job_call odd = call;
    const struct kp_job_answer most = answer_most();
    (void)state;
    kp_job_answer_print(&most, text);
    assert_false(kp_job_call_parse(text, &back));
    memcpy(odd.phase, "a/b", 4);
    kp_job_call_print(&odd, text);
    assert_false(kp_job_call_parse(text, &back));
    memcpy(odd.phase, "a b", 4);
    kp_job_call_print(&odd, text);
    (void)kp_job_call_parse(text, &back); /* "b" is a word that nobody knows */
    assert_memory_equal(back.phase, "a", 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_is_read_as_it_was_written),
        cmocka_unit_test(the_longest_answer_fits),
        cmocka_unit_test(no_changed_byte_is_taken),
        cmocka_unit_test(an_answer_is_no_call_and_a_bad_value_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
