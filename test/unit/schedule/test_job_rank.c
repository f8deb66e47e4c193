// SPDX-License-Identifier: Apache-2.0
/* test_job_rank.c - a rank's side of a start of all ranks */
#include "schedule/job/job.h"

#include <errno.h>
#include <string.h>

#include "test/support/support.h"

static struct kp_job_rank r;
static struct kp_job_call call;

static void begin(void)
{
    const struct kp_job_call none = {.id = 0};
    kp_job_rank_begin(&r, &none);
    call = (struct kp_job_call){.id = 7, .round = 1, .beat = 1, .state = KP_JOB_ASK, .steps = 3};
}

static enum kp_job_action turn(uint64_t now_ms) { return kp_job_rank_turn(&r, &call, now_ms); }

static void arm(void)
{
    begin();
    assert_int_equal(turn(1000), KP_JOB_DO_ANSWER);
    call.state = KP_JOB_TARGET;
    assert_int_equal(turn(1100), KP_JOB_DO_ARM);
    kp_job_rank_armed(&r, 0);
}

static void a_call_goes_from_ready_to_kept(void **state)
{
    (void)state;
    begin();
    assert_false(kp_job_rank_is_active(&r, 900));
    assert_int_equal(turn(1000), KP_JOB_DO_ANSWER);
    assert_int_equal(r.answer.state, KP_JOB_READY);
    assert_int_equal(turn(1050), KP_JOB_DO_NOTHING);
    assert_true(kp_job_rank_is_active(&r, 1050));
    call.state = KP_JOB_TARGET;
    assert_int_equal(turn(1100), KP_JOB_DO_ARM);
    kp_job_rank_armed(&r, 0);
    assert_int_equal(turn(1150), KP_JOB_DO_NOTHING);
    call.state = KP_JOB_COMMIT;
    assert_int_equal(turn(1200), KP_JOB_DO_KEEP);
    assert_int_equal(r.answer.state, KP_JOB_KEPT);
    assert_int_equal(turn(1250), KP_JOB_DO_NOTHING);
    assert_false(kp_job_rank_is_active(&r, 1000 + KP_JOB_ACTIVE_MS));
}

static void what_cannot_be_armed_says_why(void **state)
{
    static const struct {
        int err;
        enum kp_job_state want;
    } rows[] = {{-ERANGE, KP_JOB_LATE}, {-EAGAIN, KP_JOB_LATE}, {-EALREADY, KP_JOB_REFUSED}, {-EIO, KP_JOB_REFUSED}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        begin();
        turn(1000);
        call.state = KP_JOB_TARGET;
        assert_int_equal(turn(1100), KP_JOB_DO_ARM);
        kp_job_rank_armed(&r, rows[i].err);
        assert_int_equal(r.answer.state, rows[i].want);
        assert_int_equal(r.answer.err, -rows[i].err);
        assert_int_equal(turn(1200), KP_JOB_DO_NOTHING);
        call.round++;
        call.state = KP_JOB_ASK;
        assert_int_equal(turn(1300), KP_JOB_DO_ANSWER);
        assert_int_equal(r.answer.round, 2);
    }
}

static void what_is_armed_is_dropped_at_a_drop_a_new_round_or_call_and_after_a_silence(void **state)
{
    (void)state;
    arm();
    call.state = KP_JOB_DROP;
    assert_int_equal(turn(1200), KP_JOB_DO_DROP);
    assert_int_equal(turn(1250), KP_JOB_DO_NOTHING);
    arm();
    call.round++;
    call.state = KP_JOB_ASK;
    assert_int_equal(turn(1200), KP_JOB_DO_DROP);
    assert_int_equal(turn(1200), KP_JOB_DO_ANSWER);
    arm();
    call.id++;
    call.state = KP_JOB_STOP;
    assert_int_equal(turn(1200), KP_JOB_DO_DROP);
    assert_int_equal(turn(1200), KP_JOB_DO_STOP);
    kp_job_rank_stopped(&r, -EALREADY);
    assert_int_equal(r.answer.state, KP_JOB_STOPPED);
    assert_int_equal(r.answer.err, EALREADY);
    arm();
    assert_int_equal(turn(1000 + KP_JOB_ABANDON_MS - 1), KP_JOB_DO_NOTHING);
    assert_true(kp_job_rank_is_active(&r, 1000 + KP_JOB_ABANDON_MS - 1));
    assert_int_equal(turn(1000 + KP_JOB_ABANDON_MS), KP_JOB_DO_DROP);
    call.state = KP_JOB_COMMIT; /* too late */
    assert_int_equal(turn(1001 + KP_JOB_ABANDON_MS), KP_JOB_DO_NOTHING);
    arm();
    call.beat++;
    assert_int_equal(turn(1000 + KP_JOB_ABANDON_MS), KP_JOB_DO_NOTHING);
}

static void what_lay_there_before_or_was_missed_is_for_nobody(void **state)
{
    const struct kp_job_call old = {.id = 7, .round = 1, .beat = 9, .state = KP_JOB_STOP};
    (void)state;
    kp_job_rank_begin(&r, &old);
    call = old;
    assert_int_equal(turn(1000), KP_JOB_DO_NOTHING);
    assert_false(kp_job_rank_is_active(&r, 1000));
    call.beat++; /* its command lives */
    assert_int_equal(turn(1000), KP_JOB_DO_STOP);
    begin();
    call.state = KP_JOB_TARGET;
    assert_int_equal(turn(1000), KP_JOB_DO_NOTHING);
    call.state = KP_JOB_COMMIT;
    assert_int_equal(turn(1100), KP_JOB_DO_NOTHING);
}

static void a_call_to_another_job_of_the_folder_is_for_nobody(void **state)
{
    (void)state;
    begin();
    memcpy(r.answer.job, "a", sizeof "a");
    memcpy(call.job, "ab", sizeof "ab");
    assert_int_equal(turn(1000), KP_JOB_DO_NOTHING);
    call.state = KP_JOB_STOP;
    assert_int_equal(turn(1000), KP_JOB_DO_NOTHING);
    call.job[0] = '\0'; /* to ranks without an id */
    assert_int_equal(turn(1000), KP_JOB_DO_NOTHING);
    memcpy(call.job, "a", sizeof "a");
    assert_int_equal(turn(1000), KP_JOB_DO_STOP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_goes_from_ready_to_kept),
        cmocka_unit_test(what_cannot_be_armed_says_why),
        cmocka_unit_test(what_is_armed_is_dropped_at_a_drop_a_new_round_or_call_and_after_a_silence),
        cmocka_unit_test(a_call_to_another_job_of_the_folder_is_for_nobody),
        cmocka_unit_test(what_lay_there_before_or_was_missed_is_for_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
