// SPDX-License-Identifier: Apache-2.0
/*
 * test_job_lead.c - kprof ctl's side of a start of all ranks, and both sides together in thousands of made-up jobs:
 * ranks of any speed that are stopped, killed and late, and a folder that shows a text late
 */
#include "schedule/job/job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "test/support/support.h"

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__ || defined __aarch64__
enum { JOBS = 1000 }; /* the first third of them: a sanitizer, or an emulator, sees each line of both sides in those */
#else
enum { JOBS = 3000 };
#endif
enum { RANKS = 8, GIVE_UP_MS = 600000, LATE_MOST_MS = 400 };

/* ---- one side ---- */

static struct kp_job_lead lead;
static struct kp_job_member members[RANKS];

static void ranks_make(uint32_t count)
{
    memset(members, 0, sizeof members);
    for (uint32_t i = 0; i < count; i++)
        members[i].answer = (struct kp_job_answer){.step = 100, .step_us = 10000, .rank = i, .size = count};
}

static void say(uint32_t who, enum kp_job_state state, uint64_t now_ms)
{
    members[who].answer.id = lead.call.id;
    members[who].answer.round = lead.call.round;
    members[who].answer.state = state;
    members[who].heard_ms = now_ms;
}

/* Asks for three steps from `target` on (0: as soon as all can), and all say that they are ready. */
static void begin_ready(uint32_t count, uint64_t target)
{
    kp_job_lead_begin(&lead, 7, 3, target, 0);
    for (uint32_t i = 0; i < count; i++) say(i, KP_JOB_READY, 0);
}

static enum kp_job_progress turn(uint32_t count, uint64_t now_ms)
{
    return kp_job_lead_turn(&lead, members, count, now_ms, 1000000 + now_ms);
}

static void the_target_is_the_highest_step_and_a_margin_of_half_a_second(void **state)
{
    (void)state;
    ranks_make(3);
    kp_job_lead_begin(&lead, 7, 3, 0, 1000);
    say(0, KP_JOB_READY, 1000);
    say(1, KP_JOB_READY, 1100);
    assert_int_equal(turn(3, 1100), KP_JOB_GOES_ON);
    assert_int_equal(lead.call.state, KP_JOB_ASK);
    members[2].answer.step_us = 1000;
    say(2, KP_JOB_READY, 1150);
    assert_int_equal(turn(3, 1200), KP_JOB_GOES_ON);
    assert_int_equal(lead.call.state, KP_JOB_TARGET);
    assert_int_equal(lead.call.target, 100 + 50 + 500 + 2); /* 50 ms ago it was at 100 */
    for (uint32_t i = 0; i < 3; i++) say(i, KP_JOB_ARMED, 1300);
    turn(3, 1300);
    assert_int_equal(lead.call.state, KP_JOB_COMMIT);
    assert_int_equal(turn(3, 1300), KP_JOB_GOES_ON);
    for (uint32_t i = 0; i < 3; i++) say(i, KP_JOB_KEPT, 1400);
    assert_int_equal(turn(3, 1400), KP_JOB_AGREED);
}

static void slow_steps_have_a_margin_of_two(void **state)
{
    (void)state;
    ranks_make(1);
    members[0].answer.step_us = 60000000;
    begin_ready(1, 0);
    turn(1, 10);
    assert_int_equal(lead.call.target, 100 + 1 + 2);
}

static void who_is_late_makes_all_try_again_with_twice_the_time(void **state)
{
    (void)state;
    ranks_make(2);
    kp_job_lead_begin(&lead, 7, 3, 0, 0);
    for (uint64_t round = 1; round <= KP_JOB_ROUNDS; round++) {
        assert_int_equal(lead.call.round, round);
        for (uint32_t i = 0; i < 2; i++) say(i, KP_JOB_READY, 0);
        assert_int_equal(turn(2, 0), KP_JOB_GOES_ON);
        const uint64_t margin_ms = 500u << (round - 1);
        assert_int_equal(lead.call.target, 102 + (margin_ms < 60000 ? margin_ms : 60000) / 10);
        say(0, KP_JOB_ARMED, 0);
        say(1, KP_JOB_LATE, 0);
        assert_int_equal(turn(2, 0), round < KP_JOB_ROUNDS ? KP_JOB_GOES_ON : KP_JOB_FAILED);
    }
    assert_int_equal(lead.failure, KP_JOB_FAIL_ROUNDS);
    assert_int_equal(lead.who, 1);
    assert_int_equal(lead.call.state, KP_JOB_DROP);
}

static void a_step_that_was_named_is_taken_or_refused(void **state)
{
    (void)state;
    ranks_make(2);
    begin_ready(2, 5000);
    turn(2, 0);
    assert_int_equal(lead.call.target, 5000);
    say(1, KP_JOB_LATE, 0);
    assert_int_equal(turn(2, 0), KP_JOB_FAILED);
    assert_int_equal(lead.failure, KP_JOB_FAIL_BEGUN);
    ranks_make(1);
    members[0].answer.step_us = 0;
    begin_ready(1, 5000);
    assert_int_equal(turn(1, 0), KP_JOB_FAILED);
    assert_int_equal(lead.failure, KP_JOB_FAIL_STEPLESS);
}

static void who_refuses_ends_it_for_all(void **state)
{
    (void)state;
    ranks_make(2);
    begin_ready(2, 0);
    turn(2, 0);
    members[1].answer.err = EALREADY;
    say(1, KP_JOB_REFUSED, 0);
    assert_int_equal(turn(2, 0), KP_JOB_FAILED);
    assert_int_equal(lead.failure, KP_JOB_FAIL_REFUSED);
    assert_int_equal(lead.who, 1);
}

static void who_is_gone_or_silent_is_left_out(void **state)
{
    (void)state;
    ranks_make(3);
    kp_job_lead_begin(&lead, 7, 3, 0, 1000);
    say(0, KP_JOB_READY, 1000);
    members[1].is_gone = true;
    turn(3, 1000 + KP_JOB_SILENT_MS - 1);
    assert_int_equal(lead.call.state, KP_JOB_ASK);
    say(0, KP_JOB_READY, 20000);
    turn(3, 1000 + KP_JOB_SILENT_MS);
    assert_int_equal(lead.call.state, KP_JOB_TARGET);
    assert_true(members[0].is_in && members[1].is_left_out && members[2].is_left_out);
    ranks_make(2);
    kp_job_lead_begin(&lead, 7, 3, 0, 1000);
    members[0].is_gone = members[1].is_gone = true;
    assert_int_equal(turn(2, 1000), KP_JOB_FAILED);
    assert_int_equal(lead.failure, KP_JOB_FAIL_EMPTY);
}

static void ranks_in_two_phases_are_waited_for(void **state)
{
    (void)state;
    ranks_make(2);
    memcpy(members[1].answer.phase, "train", 6);
    begin_ready(2, 0);
    assert_int_equal(turn(2, 100), KP_JOB_GOES_ON);
    assert_int_equal(lead.call.state, KP_JOB_ASK);
    memcpy(members[0].answer.phase, "train", 6);
    turn(2, 200);
    assert_int_equal(lead.call.state, KP_JOB_TARGET);
    assert_string_equal(lead.call.phase, "train");
    kp_job_lead_begin(&lead, 7, 3, 0, 0);
    members[0].answer.phase[0] = '\0';
    for (uint32_t i = 0; i < 2; i++) say(i, KP_JOB_READY, 29999);
    assert_int_equal(turn(2, KP_JOB_SILENT_MS), KP_JOB_FAILED);
    assert_int_equal(lead.failure, KP_JOB_FAIL_PHASES);
}

static void ranks_without_steps_get_a_moment(void **state)
{
    (void)state;
    ranks_make(2);
    members[0].answer.step_us = members[1].answer.step_us = 0;
    begin_ready(2, 0);
    turn(2, 10);
    assert_int_equal(lead.call.target, 0);
    assert_int_equal(lead.call.at_ms, 1000010 + 1500);
    assert_int_equal(lead.call.for_ms, 3000); /* a second for a step */
    ranks_make(2);                            /* the one that counts no steps may be in its first */
    members[0].answer.step_us = 0;
    begin_ready(2, 0);
    turn(2, 10);
    assert_int_equal(lead.call.state, KP_JOB_ASK);
    for (uint32_t i = 0; i < 2; i++) say(i, KP_JOB_READY, KP_JOB_SILENT_MS);
    turn(2, KP_JOB_SILENT_MS);
    assert_int_equal(lead.call.target, 152);
    assert_int_equal(lead.call.at_ms, 1000000 + KP_JOB_SILENT_MS + 1500);
    assert_int_equal(lead.call.for_ms, 33);
}

static void a_stop_waits_for_all(void **state)
{
    (void)state;
    ranks_make(2);
    kp_job_lead_stop(&lead, 7, 0);
    say(0, KP_JOB_STOPPED, 0);
    assert_int_equal(turn(2, 0), KP_JOB_GOES_ON);
    say(1, KP_JOB_STOPPED, 0);
    assert_int_equal(turn(2, 0), KP_JOB_AGREED);
}

/* ---- both sides ---- */

static uint64_t seed;
static uint64_t random_below(uint64_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (seed >> 33) % n;
}

/* A text of the folder: what was written last, and what readers see until `late_until`. */
struct made_file {
    char now[KP_JOB_BYTES], before[KP_JOB_BYTES];
    uint64_t late_until;
};
static struct made_rank {
    struct kp_job_rank side;
    struct made_file file;
    uint64_t step, step_ms, next_step, next_look, stopped_until, wrote_ms, killed_at, stop_at, faster_at;
    uint64_t wish, first, kept; /* the step armed for; the window's first step; that of the window that made a file */
    bool is_armed, has_window, is_dead;
} made[RANKS];
static struct made_file call_file;
static uint32_t made_count;
static bool is_coupled;

static void file_write(struct made_file *f, const char text[KP_JOB_BYTES], uint64_t now)
{
    memcpy(f->before, f->now, sizeof f->before);
    memcpy(f->now, text, sizeof f->now);
    f->late_until = now + (random_below(4) ? 0 : random_below(LATE_MOST_MS));
}

static const char *file_read(const struct made_file *f, uint64_t now)
{
    return now < f->late_until ? f->before : f->now;
}

static void answer_write(struct made_rank *r, uint64_t now)
{
    char text[KP_JOB_BYTES];
    r->side.answer.step = r->step;
    r->side.answer.step_us = r->step_ms * 1000;
    r->side.answer.beat++;
    r->wrote_ms = now;
    kp_job_answer_print(&r->side.answer, text);
    file_write(&r->file, text, now);
}

static void act(struct made_rank *r, const struct kp_job_call *call, enum kp_job_action action)
{
    if (action == KP_JOB_DO_ARM) {
        kp_job_rank_armed(&r->side, call->target <= r->step ? -ERANGE : 0);
        r->is_armed = r->side.answer.state == KP_JOB_ARMED;
        r->wish = call->target;
    }
    if (action == KP_JOB_DO_DROP) r->is_armed = r->has_window = false;
    if (action == KP_JOB_DO_KEEP) r->kept = r->wish;
}

static void look(struct made_rank *r, uint64_t now)
{
    struct kp_job_call call = {.id = 0};
    enum kp_job_action action;
    if (!kp_job_call_parse(file_read(&call_file, now), &call)) return;
    bool is_news = false;
    while ((action = kp_job_rank_turn(&r->side, &call, now)) != KP_JOB_DO_NOTHING) {
        act(r, &call, action);
        is_news = true;
    }
    const bool is_active = kp_job_rank_is_active(&r->side, now);
    if (is_news || (is_active && now - r->wrote_ms >= 1000)) answer_write(r, now);
    r->next_look = now + (is_active ? 20 + random_below(60) : 1000);
}

static void step_end(struct made_rank *r, uint64_t now)
{
    for (uint32_t i = 0; is_coupled && i < made_count; i++)
        if (!made[i].is_dead && made[i].step < r->step) return; /* it waits in a collective */
    r->step++;
    r->next_step = now + r->step_ms + random_below(r->step_ms + 1);
    if (r->is_armed && r->step == r->wish) {
        r->has_window = true;
        r->first = r->step;
    }
}

static void job_make(uint64_t asked_at)
{
    memset(made, 0, sizeof made);
    memset(&call_file, 0, sizeof call_file);
    made_count = 1 + (uint32_t)random_below(RANKS);
    is_coupled = random_below(2);
    const uint64_t all_faster_at = random_below(4) ? 0 : asked_at + random_below(1000);
    for (struct made_rank *r = made; r < made + made_count; r++) {
        const struct kp_job_call none = {.id = 0};
        kp_job_rank_begin(&r->side, &none);
        r->step_ms = 1 + random_below(random_below(2) ? 20 : 2000);
        r->step = random_below(3);
        r->next_look = random_below(1000);
        r->step_ms += all_faster_at ? 100 : 0;
        r->faster_at = all_faster_at;
        r->stop_at = random_below(3) ? 0 : random_below(6000);
        r->killed_at = random_below(10) ? 0 : random_below(6000);
    }
}

static void ranks_move(uint64_t now)
{
    for (struct made_rank *r = made; r < made + made_count; r++) {
        if (r->killed_at && now >= r->killed_at) r->is_dead = true;
        if (r->stop_at && now == r->stop_at) r->stopped_until = now + random_below(12000);
        if (r->faster_at && now == r->faster_at) r->step_ms = r->step_ms / 50 + 1;
        if (r->is_dead || now < r->stopped_until) continue;
        if (now >= r->next_step) step_end(r, now);
        if (now >= r->next_look) look(r, now);
    }
}

static enum kp_job_progress lead_look(uint64_t now)
{
    char text[KP_JOB_BYTES];
    for (uint32_t i = 0; i < made_count; i++) {
        struct kp_job_answer now_says;
        members[i].is_gone = made[i].is_dead && made[i].killed_at + 100 < now;
        if (!kp_job_answer_parse(file_read(&made[i].file, now), &now_says)) continue;
        if (now_says.beat == members[i].answer.beat) continue;
        members[i].answer = now_says;
        members[i].heard_ms = now;
    }
    const enum kp_job_progress progress = kp_job_lead_turn(&lead, members, made_count, now, now);
    lead.call.beat++;
    kp_job_call_print(&lead.call, text);
    file_write(&call_file, text, now);
    return progress;
}

/* Whoever is alive and in has a window from the one step; nobody has a file of another step. */
static void job_check(enum kp_job_progress progress, uint64_t job)
{
    for (uint32_t i = 0; i < made_count; i++) {
        const struct made_rank *const r = &made[i];
        if (r->kept && r->kept != lead.call.target) fail_msg("job %lu: rank %u kept %lu", job, i, r->kept);
        if (progress != KP_JOB_AGREED || r->is_dead || !members[i].is_in) continue;
        if (!r->kept) fail_msg("job %lu: rank %u kept nothing", job, i);
        if (r->step >= r->kept && (!r->has_window || r->first != r->kept))
            fail_msg("job %lu: rank %u has no window", job, i);
    }
    if (progress != KP_JOB_AGREED && lead.failure != KP_JOB_FAIL_EMPTY)
        fail_msg("job %lu: failure %d", job, lead.failure);
}

static void no_job_of_thousands_begins_on_two_steps(void **state)
{
    unsigned agreed = 0, again = 0;
    (void)state;
    for (uint64_t job = 0; job < JOBS; job++) {
        enum kp_job_progress progress = KP_JOB_GOES_ON;
        uint64_t now = 0, next = 0;
        seed = job;
        const uint64_t asked_at = 1000 + random_below(3000);
        job_make(asked_at);
        ranks_make(made_count);
        for (; progress == KP_JOB_GOES_ON && now < GIVE_UP_MS; now++) {
            ranks_move(now);
            if (now == asked_at) kp_job_lead_begin(&lead, job + 1, 3, 0, now);
            if (now < asked_at || now < next) continue;
            progress = lead_look(now);
            next = now + 20 + random_below(60);
        }
        job_check(progress, job);
        agreed += progress == KP_JOB_AGREED;
        again += lead.call.round > 1;
    }
    print_message("%u of %d agreed, %u of them tried again\n", agreed, JOBS, again);
    assert_true(agreed > JOBS * 9 / 10);
    assert_true(again > JOBS / 100); /* else no rank was ever late */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_target_is_the_highest_step_and_a_margin_of_half_a_second),
        cmocka_unit_test(slow_steps_have_a_margin_of_two),
        cmocka_unit_test(who_is_late_makes_all_try_again_with_twice_the_time),
        cmocka_unit_test(a_step_that_was_named_is_taken_or_refused),
        cmocka_unit_test(who_refuses_ends_it_for_all),
        cmocka_unit_test(who_is_gone_or_silent_is_left_out),
        cmocka_unit_test(ranks_in_two_phases_are_waited_for),
        cmocka_unit_test(ranks_without_steps_get_a_moment),
        cmocka_unit_test(a_stop_waits_for_all),
        cmocka_unit_test(no_job_of_thousands_begins_on_two_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
