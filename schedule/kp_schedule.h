// SPDX-License-Identifier: Apache-2.0
/*
 * kp_schedule.h - door of the deciding side: when to record
 *
 * machine.c is pure: (parameters, step) -> action, exactly torch.profiler.schedule. steps.c arbitrates who may step.
 * Called by: boot and the sources (step reports, possibly inside a hook: no lock, no allocation, no system call).
 */
#ifndef KP_SCHEDULE_H
#define KP_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

/* torch.profiler.ProfilerAction */
enum kp_action { KP_ACTION_NONE, KP_ACTION_WARMUP, KP_ACTION_RECORD, KP_ACTION_RECORD_AND_SAVE };

struct kp_schedule {
    bool set; /* false: no schedule, RECORD at every step */
    uint64_t skip_first, wait, warmup, active, repeat, skip_first_wait;
};

/* ProfilerAction of step `step` (from 0). Defined for every step and every tuple with active >= 1. */
enum kp_action kp_schedule_action(const struct kp_schedule *schedule, uint64_t step);
/* Parses "wait=1,warmup=1,active=3,repeat=1". 0, or -EINVAL with one clear phrase in why. */
int kp_schedule_parse(const char *text, struct kp_schedule *out, char *why, unsigned long why_bytes);
/* Smallest number of finished steps after which a first trace is complete; UINT64_MAX when never. */
uint64_t kp_schedule_steps_needed(const struct kp_schedule *schedule);

/* Who made a step, by rank: a lower rank never steps again once a higher one has (INTERFACE, Steps). */
enum kp_step_source { KP_STEP_NONE, KP_STEP_TIME, KP_STEP_DATALOADER, KP_STEP_OPTIMIZER, KP_STEP_RANGE, KP_STEP_API };
const char *kp_step_source_name(enum kp_step_source source);

/* What KPROF_STEP chose: auto, optimizer, api, range:REGEX, op:REGEX, time:250ms. */
struct kp_step_rule {
    enum { KP_RULE_AUTO, KP_RULE_OPTIMIZER, KP_RULE_API, KP_RULE_RANGE, KP_RULE_OP, KP_RULE_TIME } kind;
    const char *pattern;  /* RANGE, OP: POSIX extended regular expression */
    uint64_t period_ns;   /* TIME */
};
int kp_step_rule_parse(const char *text, struct kp_step_rule *out, char *why, unsigned long why_bytes);

/* Fixed once before any thread steps. */
int kp_steps_init(const struct kp_schedule *schedule, const struct kp_step_rule *rule);

/*
 * A class of user range as seen when its name is first interned (slow path, cached by the caller per name id):
 * 0 not a step mark; else a value to hand to kp_steps_range_end. Optimizer.step#X, enumerate(DataLoader)#X.__next__,
 * ProfilerStep#N, or a name the rule's pattern matches.
 */
uint32_t kp_steps_classify(const char *name, bool user_scope);
/* A marked range ended. Returns true when this is a step: then the caller calls kp_steps_advance. Lock-free. */
bool kp_steps_range_end(uint32_t mark);
/* kprof_step() was called: always a step (unless the rule forbids), and from then on the only source. */
bool kp_steps_api(void);
/* Called about once a second with CLOCK_MONOTONIC ns; true when time must step (rule time, or auto after 30 s of silence). */
bool kp_steps_time(uint64_t now_ns);

struct kp_transition {
    uint64_t step;                  /* number of the step that begins */
    enum kp_action before, after;   /* action of the step that ended, and of the one that begins */
    enum kp_step_source source;
};
/* Counts one step; fills the transition. Only one thread at a time wins; a loser returns false (its step is not counted). */
bool kp_steps_advance(struct kp_transition *out);
uint64_t kp_steps_seen(void);       /* steps finished so far */
enum kp_step_source kp_steps_source(void);

#endif
