// SPDX-License-Identifier: Apache-2.0
/*
 * kp_schedule.h - the door of the schedule: decides when to record
 *
 * schedule.c is pure: (parameters, step) -> action, exactly as torch.profiler.schedule. step_source.c decides which
 * source may count steps. phases.c has the schedules of KPROF_PHASES, and knows in which phase the program is.
 *
 * Called by: boot, and the sources, which report steps, possibly inside a hook
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* torch.profiler.ProfilerAction */
enum kp_action { KP_ACTION_NONE, KP_ACTION_WARMUP, KP_ACTION_RECORD, KP_ACTION_RECORD_AND_SAVE };

struct kp_schedule {
    bool set; /* false: no schedule, RECORD at every step */
    uint64_t skip_first, wait, warmup, active, repeat, skip_first_wait;
};

/*
 * ProfilerAction of step `step` (from 0). Defined for every step and every tuple, each number
 * below 10^15.
 */
enum kp_action kp_schedule_action(const struct kp_schedule *schedule, uint64_t step);
/* Parses "wait=1,warmup=1,active=3,repeat=1", steps "10-12" or "none". 0, or -EINVAL with a short phrase in why. */
int kp_schedule_parse(const char *text, struct kp_schedule *out, char *why, unsigned long why_bytes);
/* Number of finished steps after which the first trace is complete, or UINT64_MAX (no schedule). */
uint64_t kp_schedule_steps_needed(const struct kp_schedule *schedule);

/* Whether no step from `step` on is recorded: the schedule has a `repeat`, and all of them are over. */
bool kp_schedule_is_over(const struct kp_schedule *schedule, uint64_t step);

/* The source of a step, by rank. Once a higher rank has stepped, a lower one never steps again. */
enum kp_step_source {
    KP_STEP_NONE,
    KP_STEP_TIME,
    KP_STEP_MODULE,
    KP_STEP_DATALOADER,
    KP_STEP_CALL,
    KP_STEP_OPTIMIZER,
    KP_STEP_LOOP, /* in a phase that was found: the framework says that a step has ended */
    KP_STEP_RANGE,
    KP_STEP_API
};
const char *kp_step_source_name(enum kp_step_source source);

/* The value of KPROF_STEP: auto, optimizer, api, range:REGEX, op:REGEX, call:GLOB, time:250ms. */
struct kp_step_rule {
    enum { KP_RULE_AUTO, KP_RULE_OPTIMIZER, KP_RULE_API, KP_RULE_RANGE, KP_RULE_OP, KP_RULE_CALL, KP_RULE_TIME } kind;
    const char *pattern; /* RANGE, OP: POSIX extended regular expression; CALL: "module glob:qualified name glob" */
    uint64_t period_ns;  /* TIME */
};
int kp_step_rule_parse(const char *text, struct kp_step_rule *out, char *why, unsigned long why_bytes);

/* --- phases.c --- */
enum { KP_PHASES_MAX = 16, KP_PHASE_NAME_BYTES = 32, KP_PHASE_PATTERN_BYTES = 128 };
/* Ids of phases: NONE is outside all, rows of KPROF_PHASES count from 1, OTHER has no row and records nothing. */
enum { KP_PHASE_NONE, KP_PHASE_OTHER = KP_PHASES_MAX + 1, KP_PHASE_IDS };
struct kp_phase {
    char name[KP_PHASE_NAME_BYTES];
    char pattern[KP_PHASE_PATTERN_BYTES]; /* ranges with such a name are the phase; "": none */
    struct kp_schedule schedule;
};
struct kp_phases {
    uint32_t count;
    struct kp_phase row[KP_PHASES_MAX];
};
/* Parses "train=wait=1,warmup=1,active=2;validate~^eval_=active=3". 0, or -EINVAL with a short phrase in why. */
int kp_phases_parse(const char *text, struct kp_phases *out, char *why, unsigned long why_bytes);
/* Before kp_steps_init. It compiles patterns, with libc's malloc. */
void kp_phases_init(const struct kp_phases *phases);
uint32_t kp_phases_match(const char *range);   /* the phase whose pattern matches this name, or NONE */
const char *kp_phases_pattern(uint32_t phase); /* "": none */
bool kp_phases_are_set(void);
uint32_t kp_phases_find(const char *name); /* the id of a name. NULL or "": NONE */
/* That of a framework's loop. Lightning's validate and transformers' evaluate are one, where one alone has a row. */
uint32_t kp_phases_find_loop(const char *name);
unsigned long kp_phases_rowless(char *out, unsigned long bytes); /* "train, predict": loops that had no row. Bytes */
const char *kp_phases_name(uint32_t phase);                      /* "" for NONE and OTHER */
/* That of its row; of NONE `outside`; of OTHER one that records nothing. */
const struct kp_schedule *kp_phases_schedule(uint32_t phase, const struct kp_schedule *outside);
/*
 * The phase of the schedule that the program is in. One phase may begin inside another; one that is set by name comes
 * before them. The caller lets one thread at a time change it. All return the phase in which the program then is.
 */
uint32_t kp_phases_set(uint32_t phase);                    /* NONE: no longer set */
uint32_t kp_phases_begin(uint32_t phase, uint32_t *depth); /* *depth is for kp_phases_end */
uint32_t kp_phases_end(uint32_t depth);                    /* also ends what began inside and did not end */
uint32_t kp_phases_now(void);
bool kp_phases_are_named(void); /* one is set by its name */
void kp_phases_forget(void);    /* in a forked child */

/*
 * Parses KPROF_SCHEDULE, KPROF_PHASES and KPROF_STEP of a configuration. kp_config_refuse replaces a bad value by the
 * default and keeps a line about it. The texts of `rule` point into `config`.
 */
struct kp_config;
void kp_schedule_from_config(struct kp_config *config, struct kp_schedule *schedule, struct kp_step_rule *rule);

/*
 * Called once before any thread steps (tests may call it again). It compiles the pattern, with libc's malloc. 0, or
 * -EINVAL for a bad pattern: then no range counts a step.
 */
int kp_steps_init(const struct kp_schedule *schedule, const struct kp_step_rule *rule);
/* In a forked child that records: forgets all steps and takes this schedule. The rule stays. */
void kp_steps_start_over(const struct kp_schedule *schedule);
/* Steps of this phase count from now on. One thread at a time, none of which is in kp_steps_advance. */
void kp_steps_phase(uint32_t phase);
uint64_t kp_steps_seen_in(uint32_t phase);
/* No phase was recorded: how many steps of each were seen, as a phrase for the log. */
void kp_steps_explain_phases(char *out, unsigned long bytes);
/* The loop of a framework says where steps of this phase end: nothing of a lower rank counts them. */
void kp_steps_loop_begin(uint32_t phase);
bool kp_steps_loop_end(void); /* a step of such a loop ended. True: it counts. Lock-free. */
/* Whether the rule needs ops (op:REGEX), not only user ranges, to be seen while waiting. */
bool kp_steps_needs_ops(void);
/*
 * The Python functions whose calls count steps, as "module glob:qualified name glob". Number `at` counts from 0; NULL:
 * no more.
 */
const char *kp_steps_call_glob(unsigned at);
bool kp_steps_call_is_plain(unsigned at); /* does Python code call it as any function, which 3.11 hides? */
bool kp_steps_is_call_rule(void);         /* call:GLOB: the user named the function */
/* Whether a trace marks its steps: the user set a schedule, or a rule (decisions/003). */
bool kp_steps_are_marked(const struct kp_schedule *schedule);
/* A call of such a function ended, the outermost on its thread. True: it counts a step. Lock-free. */
bool kp_steps_call_end(void);
/*
 * An outermost call of this nn.Module ended, outside of calls that count. True: it counts a step. Lock-free.
 */
bool kp_steps_module_end(uintptr_t module);
uint32_t kp_steps_classify_script(const char *name); /* the mark of a call of TorchScript with this name, not cached */
#define KP_STEP_MARK_SCRIPT (4u << 28)
static inline bool kp_steps_mark_is_script(uint32_t mark) { return mark & KP_STEP_MARK_SCRIPT; }
bool kp_steps_wants_modules(void); /* may calls of modules still count? */
/* How often to call kp_steps_time, in ns, or 0 for never. */
uint64_t kp_steps_time_period_ns(void);

/*
 * The mark of ranges with this name, for kp_steps_range_end, or 0 when they count no steps. Marked are
 * Optimizer.step#X, enumerate(DataLoader)#X.__next__, and names that a pattern of the rule or of a phase matches.
 * ProfilerStep#N (the program runs torch.profiler itself) has no mark unless a pattern matches it. Equal names get
 * equal marks. Not hot: the caller asks at a name's first sight and caches the mark by name id.
 */
uint32_t kp_steps_classify(const char *name, bool user_scope);
/* The phase that lasts as long as a range with this mark; KP_PHASE_NONE: none. */
enum { KP_STEP_PHASE_SHIFT = 23, KP_STEP_PHASE_MASK = 0x1f };
static inline uint32_t kp_steps_mark_phase(uint32_t mark) { return mark >> KP_STEP_PHASE_SHIFT & KP_STEP_PHASE_MASK; }
/*
 * A marked range ended. Returns true when this is a step: then the caller calls kp_steps_advance. Lock-free.
 * `optimizer` tells the object that stepped from others of its class: any value with the bit KP_STEP_IDENTITY. 0 when
 * it is not known. Then optimizers differ by name only, and with two of a class each step counts.
 */
#define KP_STEP_IDENTITY (UINT64_C(1) << 63)
bool kp_steps_range_end(uint32_t mark, uint64_t optimizer);
/* Whether `optimizer` matters at the end of this range; where not, the caller need not look for it. */
bool kp_steps_wants_optimizer(uint32_t mark);
/* The tracked optimizer. 0: none yet, or known by name only. */
uint64_t kp_steps_optimizer(void);
/* An optimizer was freed. If it was tracked, the next to step takes over. Its value may name a new one from now on. */
void kp_steps_optimizer_gone(uint64_t optimizer);
/*
 * Called by kprof_step(), which is the only source from then on. True: this counts a step. False: the rule forbids it
 * (kp_steps_takes_api), or it takes over from a lower source that had counted this step already.
 */
bool kp_steps_api(void);
bool kp_steps_takes_api(void);
/*
 * Called by one thread every kp_steps_time_period_ns with CLOCK_MONOTONIC ns. True: time counts a step. It does
 * with the rule `time`, and with `auto` and a schedule after 30 s of silence (logged once). Silence starts at the
 * first call, so the caller begins after the first event. did_work: an event came since the last call. Under `auto`,
 * time without events does not count.
 */
bool kp_steps_time(uint64_t now_ns, bool did_work);

struct kp_transition {
    uint64_t step;                /* number of the step that begins */
    enum kp_action before, after; /* actions of the step that ended and of the next */
    enum kp_step_source source;
    bool starts_over; /* steps were seconds so far: their recording ends, and the schedule is at its step 1 */
};
/*
 * Counts a step and fills in the transition. When two threads call at a time, the loser gets false: its step does not
 * count.
 */
bool kp_steps_advance(struct kp_transition *out);
uint64_t kp_steps_seen(void); /* steps finished so far */
/* Why no step came where the user named what counts. False: a step came, or nothing was named. */
bool kp_steps_unmatched(char *out, unsigned long bytes);
/* For a schedule that was not met: what was seen, and which setting would have recorded it, as a phrase for the log. */
void kp_steps_explain(char *out, unsigned long bytes);
enum kp_step_source kp_steps_source(void);
/* Its name, with the function that KPROF_STEP asked for: "call of train:step". */
void kp_steps_source_text(char *out, unsigned long bytes);
/* Do calls of functions or models count? Then the last step begins with no call. */
bool kp_steps_are_calls(void);
/* The function that a call of the model runs, as call: has it: "my.model:Net.forward". Set twice at most, by threads
 * with the GIL. NULL: none was seen. */
void kp_steps_model_set(const char *module, const char *name);
const char *kp_steps_model(void);
/* Calls of a model that came where nothing counts, too few to count themselves. 0: something does. */
uint32_t kp_steps_model_calls(void);
/* A function with nearly the name that call: asked for, as call: has it; the nearest last. As kp_steps_model_set. */
void kp_steps_near_set(const char *module, const char *name);
const char *kp_steps_near(void);
/* The events that sources saw whose reports do not count: "6 batches, 1 known call". "": nothing. */
void kp_steps_others(char *out, unsigned long bytes);
