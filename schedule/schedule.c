// SPDX-License-Identifier: Apache-2.0
/*
 * schedule.c - what to do at step n: torch.profiler.schedule as a pure function
 *
 * Called by: step_source.c at each step, window.c, closingline.c
 * Safe in:   everywhere: no state, no clock, no system call.
 *
 *     steps   0 ... skip_first | wait | warmup | active | wait | warmup | active | ...  (repeat times, 0: for ever)
 *     action  NONE             | NONE | WARMUP | RECORD, the last one RECORD_AND_SAVE
 *
 * skip_first_wait drops the wait of the first cycle. schedule_text.c keeps every number below 10^15, so sums do not
 * wrap. The schedule "none" has active 0, and every step is NONE: windows are opened by kprof_start, kprof ctl and
 * KPROF_SIGNAL alone.
 */
#include "schedule/kp_schedule.h"

#include "collector/base/kp_poison.h"

enum kp_action kp_schedule_action(const struct kp_schedule *s, uint64_t step)
{
    const uint64_t cycle = s->wait + s->warmup + s->active;
    uint64_t in_cycle;
    if (!s->set) return KP_ACTION_RECORD;
    if (!s->active) return KP_ACTION_NONE;
    if (step < s->skip_first) return KP_ACTION_NONE;
    step -= s->skip_first;
    if (s->skip_first_wait) step += s->wait;
    if (s->repeat && step / cycle >= s->repeat) return KP_ACTION_NONE;
    in_cycle = step % cycle;
    if (in_cycle < s->wait) return KP_ACTION_NONE;
    if (in_cycle < s->wait + s->warmup) return KP_ACTION_WARMUP;
    return in_cycle == cycle - 1 ? KP_ACTION_RECORD_AND_SAVE : KP_ACTION_RECORD;
}

uint64_t kp_schedule_steps_needed(const struct kp_schedule *s)
{
    if (!s->set || !s->active) return UINT64_MAX;
    return s->skip_first + (s->skip_first_wait ? 0 : s->wait) + s->warmup + s->active;
}

bool kp_schedule_is_over(const struct kp_schedule *s, uint64_t step)
{
    const uint64_t cycle = s->wait + s->warmup + s->active, skipped = s->skip_first_wait ? s->wait : 0;
    return s->set && s->active && s->repeat && step >= s->skip_first &&
           (step - s->skip_first + skipped) / cycle >= s->repeat;
}
