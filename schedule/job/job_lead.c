// SPDX-License-Identifier: Apache-2.0
/*
 * job_lead.c - the side of kprof ctl in a start of all ranks: who is waited for, which step, when it is settled
 *
 * Called by: the CLI
 * Safe in:   everywhere: no clock, no system call; the state is the caller's
 */
#include "schedule/job/job.h"

#include <string.h>

#include "collector/base/kp_poison.h"

enum { MARGIN_MS = 500, MARGIN_MOST_MS = 60000, STEPS_BEFORE = 2, WALL_MS = 1000, MS_US = 1000 };

void kp_job_lead_begin(struct kp_job_lead *lead, uint64_t id, uint64_t steps, uint64_t fixed_target, uint64_t now_ms)
{
    *lead = (struct kp_job_lead){.fixed_target = fixed_target, .margin_ms = MARGIN_MS, .round_ms = now_ms};
    lead->call = (struct kp_job_call){.id = id, .round = 1, .beat = 1, .state = KP_JOB_ASK, .steps = steps};
}

void kp_job_lead_stop(struct kp_job_lead *lead, uint64_t id, uint64_t now_ms)
{
    *lead = (struct kp_job_lead){.round_ms = now_ms};
    lead->call = (struct kp_job_call){.id = id, .round = 1, .beat = 1, .state = KP_JOB_STOP};
}

/* The word that all who are in shall say next. */
static enum kp_job_state state_wanted(const struct kp_job_lead *lead)
{
    switch (lead->call.state) {
    case KP_JOB_ASK: return KP_JOB_READY;
    case KP_JOB_TARGET: return KP_JOB_ARMED;
    case KP_JOB_STOP: return KP_JOB_STOPPED;
    default: return KP_JOB_KEPT;
    }
}

static enum kp_job_progress fail(struct kp_job_lead *lead, enum kp_job_failure failure, uint32_t who)
{
    lead->failure = failure;
    lead->who = who;
    lead->call.state = KP_JOB_DROP;
    return KP_JOB_FAILED;
}

static bool is_of_round(const struct kp_job_lead *lead, const struct kp_job_answer *a)
{
    return a->id == lead->call.id && a->round == lead->call.round;
}

static bool says(const struct kp_job_lead *lead, const struct kp_job_member *m)
{
    return is_of_round(lead, &m->answer) && m->answer.state == state_wanted(lead);
}

/*
 * Time without a word counts from the begin of the round at the earliest: ranks that were not asked say nothing. One
 * that speaks and never says what is wanted cannot read the call.
 */
static bool is_lost(const struct kp_job_lead *lead, const struct kp_job_member *m, uint64_t now_ms)
{
    const uint64_t since = m->heard_ms > lead->round_ms ? m->heard_ms : lead->round_ms;
    const bool is_deaf = now_ms - lead->round_ms >= KP_JOB_ABANDON_MS && !says(lead, m);
    return m->is_gone || is_deaf || now_ms - since >= KP_JOB_SILENT_MS;
}

/* Before the target is set all ranks are in. Later none comes in any more. */
static void members_sort(const struct kp_job_lead *lead, struct kp_job_member *members, uint32_t count, uint64_t now_ms)
{
    const bool is_open = lead->call.state == KP_JOB_ASK || lead->call.state == KP_JOB_STOP;
    for (struct kp_job_member *m = members; m < members + count; m++) {
        if (is_open && !m->is_left_out) m->is_in = true;
        if (!m->is_in || !is_lost(lead, m, now_ms)) continue;
        m->is_in = false;
        m->is_left_out = true;
    }
}

static bool do_all_say(const struct kp_job_lead *lead, const struct kp_job_member *members, uint32_t count)
{
    uint32_t said = 0;
    for (const struct kp_job_member *m = members; m < members + count; m++) {
        if (!m->is_in) continue;
        if (!says(lead, m)) return false;
        said++;
    }
    return said > 0;
}

/* ---- the target ---- */

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* The step that the rank has reached by now, if its steps are as fast as they were. */
static uint64_t step_estimate(const struct kp_job_member *m, uint64_t now_ms)
{
    return m->answer.step + (now_ms - m->heard_ms) * MS_US / m->answer.step_us;
}

static void target_set(struct kp_job_lead *lead, const struct kp_job_member *members, uint32_t count, uint64_t now_ms,
                       uint64_t wall_ms)
{
    uint64_t target = 0, wait_ms = 0, step_us = 0;
    for (const struct kp_job_member *m = members; m < members + count; m++) {
        if (!m->is_in || !m->answer.step_us) continue;
        const uint64_t margin = (lead->margin_ms * MS_US + m->answer.step_us - 1) / m->answer.step_us;
        target = most(target, step_estimate(m, now_ms) + margin + STEPS_BEFORE);
        step_us = most(step_us, m->answer.step_us);
    }
    if (target && lead->fixed_target) target = lead->fixed_target;
    for (const struct kp_job_member *m = members; m < members + count; m++) {
        if (!m->is_in || !m->answer.step_us || step_estimate(m, now_ms) >= target) continue;
        wait_ms = most(wait_ms, (target - step_estimate(m, now_ms)) * m->answer.step_us / MS_US);
    }
    lead->call.target = target;
    lead->call.at_ms = wall_ms + most(wait_ms, lead->margin_ms + WALL_MS);
    lead->call.for_ms = lead->call.steps * (target ? step_us / MS_US + 1 : 1000);
    lead->call.state = KP_JOB_TARGET;
}

/* Steps count in a phase. Some ranks may be a step behind the others. `who`: one that is elsewhere. */
static bool are_in_one_phase(struct kp_job_lead *lead, const struct kp_job_member *members, uint32_t count,
                             uint32_t *who)
{
    const struct kp_job_member *first = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (!members[i].is_in) continue;
        if (!first) first = &members[i];
        *who = i;
        if (strcmp(first->answer.phase, members[i].answer.phase) != 0) return false;
    }
    memcpy(lead->call.phase, first->answer.phase, sizeof lead->call.phase);
    return true;
}

/* Some count steps and others do not: those may be in their first step. */
static bool are_alike(const struct kp_job_member *members, uint32_t count)
{
    uint32_t steppers = 0, others = 0;
    for (const struct kp_job_member *m = members; m < members + count; m++) {
        steppers += m->is_in && m->answer.step_us;
        others += m->is_in && !m->answer.step_us;
    }
    return !steppers || !others;
}

/* ---- a turn ---- */

static enum kp_job_progress all_said(struct kp_job_lead *lead, const struct kp_job_member *members, uint32_t count,
                                     uint64_t now_ms, uint64_t wall_ms)
{
    const bool has_waited = now_ms - lead->round_ms >= KP_JOB_SILENT_MS;
    uint32_t who = 0;
    switch (lead->call.state) {
    case KP_JOB_ASK:
        if (!are_in_one_phase(lead, members, count, &who))
            return has_waited ? fail(lead, KP_JOB_FAIL_PHASES, who) : KP_JOB_GOES_ON;
        if (!are_alike(members, count) && !has_waited) return KP_JOB_GOES_ON;
        target_set(lead, members, count, now_ms, wall_ms);
        if (lead->fixed_target && !lead->call.target) return fail(lead, KP_JOB_FAIL_STEPLESS, who);
        return KP_JOB_GOES_ON;
    case KP_JOB_TARGET: lead->call.state = KP_JOB_COMMIT; return KP_JOB_GOES_ON;
    default: return KP_JOB_AGREED;
    }
}

/* A rank says no: all try again with more time, if that can help. */
static enum kp_job_progress round_fail(struct kp_job_lead *lead, const struct kp_job_member *m, uint32_t who,
                                       uint64_t now_ms)
{
    if (m->answer.state == KP_JOB_REFUSED) return fail(lead, KP_JOB_FAIL_REFUSED, who);
    if (lead->fixed_target) return fail(lead, KP_JOB_FAIL_BEGUN, who);
    if (lead->call.round == KP_JOB_ROUNDS) return fail(lead, KP_JOB_FAIL_ROUNDS, who);
    lead->late = who;
    lead->call.round++;
    lead->call.state = KP_JOB_ASK;
    lead->round_ms = now_ms;
    lead->margin_ms = lead->margin_ms * 2 < MARGIN_MOST_MS ? lead->margin_ms * 2 : MARGIN_MOST_MS;
    return KP_JOB_GOES_ON;
}

enum kp_job_progress kp_job_lead_turn(struct kp_job_lead *lead, struct kp_job_member *members, uint32_t count,
                                      uint64_t now_ms, uint64_t wall_ms)
{
    const bool is_settled = lead->call.state == KP_JOB_COMMIT;
    uint32_t here = 0;
    members_sort(lead, members, count, now_ms);
    for (uint32_t i = 0; i < count; i++) {
        const struct kp_job_member *const m = &members[i];
        here += m->is_in;
        if (is_settled || !m->is_in || !is_of_round(lead, &m->answer)) continue;
        if (m->answer.state == KP_JOB_LATE || m->answer.state == KP_JOB_REFUSED || m->answer.state == KP_JOB_DROPPED)
            return round_fail(lead, m, i, now_ms);
    }
    if (here && do_all_say(lead, members, count)) return all_said(lead, members, count, now_ms, wall_ms);
    if (is_settled && !here) return KP_JOB_AGREED; /* all ended with their program */
    const bool is_over = !here && (count || now_ms - lead->round_ms >= KP_JOB_ACTIVE_MS);
    return is_over ? fail(lead, KP_JOB_FAIL_EMPTY, 0) : KP_JOB_GOES_ON;
}
