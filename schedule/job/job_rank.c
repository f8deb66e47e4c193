// SPDX-License-Identifier: Apache-2.0
/*
 * job_rank.c - a rank's side of a start of all ranks: what to do when the call of kprof ctl says so
 *
 * Called by: kprof-control
 * Safe in:   everywhere: no clock, no system call; the state is the caller's
 */
#include "schedule/job/job.h"

#include <errno.h>
#include <string.h>

#include "collector/base/kp_poison.h"

void kp_job_rank_begin(struct kp_job_rank *r, const struct kp_job_call *there)
{
    memset(r, 0, sizeof *r);
    r->stale_id = r->seen_id = there->id;
    r->stale_beat = r->seen_beat = there->beat;
}

static bool is_armed(const struct kp_job_rank *r) { return r->answer.state == KP_JOB_ARMED; }

/* When the call changed last. One that was there from the beginning, and does not change, is of a command that died. */
static void changes_note(struct kp_job_rank *r, const struct kp_job_call *call, uint64_t now_ms)
{
    if (call->id == r->seen_id && call->beat == r->seen_beat) return;
    r->seen_id = call->id;
    r->seen_beat = call->beat;
    r->changed_ms = now_ms;
    r->has_changed = true;
}

static enum kp_job_action enter(struct kp_job_rank *r, const struct kp_job_call *call, enum kp_job_state state,
                                enum kp_job_action action)
{
    r->answer.id = call->id;
    r->answer.round = call->round;
    r->answer.state = state;
    r->answer.err = 0;
    return action;
}

/* A call whose first state this process missed is not for it, and neither is one to another job of the folder. */
static enum kp_job_action call_begin(struct kp_job_rank *r, const struct kp_job_call *call)
{
    const bool is_stale = call->id == r->stale_id && call->beat == r->stale_beat;
    if (!call->id || is_stale || strcmp(call->job, r->answer.job) != 0) return KP_JOB_DO_NOTHING;
    if (call->state == KP_JOB_ASK) return enter(r, call, KP_JOB_READY, KP_JOB_DO_ANSWER);
    if (call->state == KP_JOB_STOP) return enter(r, call, KP_JOB_STOPPED, KP_JOB_DO_STOP);
    return KP_JOB_DO_NOTHING;
}

enum kp_job_action kp_job_rank_turn(struct kp_job_rank *r, const struct kp_job_call *call, uint64_t now_ms)
{
    changes_note(r, call, now_ms);
    const bool is_mine = call->id == r->answer.id && call->round == r->answer.round;
    const bool is_abandoned = now_ms - r->changed_ms >= KP_JOB_ABANDON_MS;
    if (is_armed(r) && (!is_mine || call->state == KP_JOB_DROP || is_abandoned)) {
        r->answer.state = KP_JOB_DROPPED;
        return KP_JOB_DO_DROP;
    }
    if (!is_mine) return call_begin(r, call);
    if (r->answer.state == KP_JOB_READY && call->state == KP_JOB_TARGET) return KP_JOB_DO_ARM;
    if (is_armed(r) && call->state == KP_JOB_COMMIT) return enter(r, call, KP_JOB_KEPT, KP_JOB_DO_KEEP);
    return KP_JOB_DO_NOTHING;
}

void kp_job_rank_armed(struct kp_job_rank *r, int err)
{
    r->answer.err = (uint64_t)(err < 0 ? -err : 0);
    r->answer.state = !err ? KP_JOB_ARMED : err == -ERANGE || err == -EAGAIN ? KP_JOB_LATE : KP_JOB_REFUSED;
}

void kp_job_rank_stopped(struct kp_job_rank *r, int err) { r->answer.err = (uint64_t)(err < 0 ? -err : 0); }

bool kp_job_rank_is_active(const struct kp_job_rank *r, uint64_t now_ms)
{
    return is_armed(r) || (r->has_changed && now_ms - r->changed_ms < KP_JOB_ACTIVE_MS);
}
