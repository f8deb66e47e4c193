// SPDX-License-Identifier: Apache-2.0
/*
 * step_source.c - decides which source may count steps
 *
 * Called by: sources inside a hook (range_end, api, advance), sources at each new name (classify), a thread by the
 *            clock (time). The calls inside a hook are hot: no lock, no allocation, no system call.
 * Owns:      the step counter, and the source that counts
 * Locks:     none of its own. regexec in classify takes a lock of libc and may use malloc, so it is not for the hot
 *            path.
 * Memory:    kp_steps_init compiles a pattern with libc's malloc. The other functions allocate none.
 * Safe in:   signal handlers yes, except classify; after fork yes, but a child stays off
 *
 *     rank     TIME < MODULE < DATALOADER < CALL < OPTIMIZER < LOOP < API. LOOP: the loop of a framework, in a phase.
 *              With a pattern in the rule, its source is the only one.
 *     auto     A source of a higher rank takes over when it first reports, and lower ranks never count again. The
 *              report that takes over counts no step, since the lower source counted that iteration already. TIME,
 *              MODULE and DATALOADER are guesses: what counted may have been another loop (an evaluation, data that is
 *              prepared). The report of a higher rank is then the first step, and the schedule starts over. Only from
 *              MODULE to DATALOADER it goes on.
 *
 * The first of several optimizers that steps is tracked, and only its steps count. Its identity is its object, which
 * the caller finds, or the name of its range. Another optimizer takes over in three cases:
 *     The tracked optimizer is destroyed. The other takes over at its next step. That step counts, unless the other has
 *         already stepped since the tracked one's last step.
 *     The tracked optimizer made LONE_LEAST steps or more and no other one stepped meanwhile: one training follows on
 *         another. The step counts. If the first steps again before the other made so many, both are of one training,
 *         and the first is tracked again.
 *     The tracked optimizer is silent for TAKEOVER_AFTER steps of others. The next step takes over, and counts no
 *         step, as above.
 * Calls of a model count after MODULES_ALONE outermost calls of one nn.Module, without a batch of a DataLoader between
 * them. Another module takes over when that one was silent for TAKEOVER_AFTER calls of others.
 */
#include "schedule/kp_schedule.h"

#include <errno.h>
#include <regex.h>
#include <string.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/kp_config.h"
#include "collector/base/kp_hot.h"
#include "collector/base/kp_log.h"
#include "collector/base/text/kp_units.h"

#include "collector/base/kp_poison.h"

enum {
    MARK_OPTIMIZER = 1u << 28, /* the low 23 bits are a hash of the name, in place of an identity */
    MARK_DATALOADER = 2u << 28,
    MARK_RULE = 3u << 28,
    MARK_SCRIPT = KP_STEP_MARK_SCRIPT,
    MARK_KIND = 7u << 28,
    MARK_HASH = (1u << KP_STEP_PHASE_SHIFT) - 1, /* above it the phase of the range */
    MODULES_ALONE = 16,                          /* calls of one module before they count */
    BATCHES_ALONE = 16,                          /* batches without an optimizer step before the DataLoader counts */
    MODEL_BYTES = 256,
    NEAR_MOST = 8,
    TAKEOVER_AFTER = 64, /* steps of other optimizers before another takes over */
    LONE_LEAST = 6,      /* steps of one optimizer alone: more than a critic has in an iteration */
};
/* Values of `tracked` beside a mark (below 2^30) and an identity (has the top bit). GONE: it was destroyed. */
enum { TRACKED_NONE, TRACKED_GONE };
/* In place of a module's address: all modules of TorchScript, for programs without Python. */
enum { SCRIPT_MODULES = 1 };
/*
 * Calls of inference that `auto` knows: each answers one request, or is one step of an engine. A call that lies in
 * another of them counts once. vLLM has up to three processes: the front, the engine and the workers.
 */
static const struct {
    const char *glob;
    bool is_plain; /* Python code calls it as self.step() */
} known_calls[] = {
    {"transformers.generation.utils:GenerationMixin.generate", false},
    {"transformers.pipelines.base:Pipeline.__call__", false},
    {"vllm.v1.engine.llm_engine:LLMEngine.step", true},
    {"vllm.v1.engine.core:EngineCore.step", true},
    {"vllm.v1.engine.core:EngineCore.step_with_batch_queue", true},
    {"vllm.v1.worker.gpu_worker:Worker.execute_model", true},
    {"vllm.engine.llm_engine:LLMEngine.step", true}, /* before 0.11 */
    {"sglang.srt.managers.scheduler:Scheduler.run_batch", true},
};
enum { KNOWN_CALLS = sizeof known_calls / sizeof *known_calls };
#define SECOND_NS UINT64_C(1000000000)
#define SILENCE_NS (30 * SECOND_NS)

static struct kp_step_rule rule;
static regex_t pattern;
static bool pattern_ready;

/* The event that is counted. Each phase has one of its own (phases.c); without phases only the first is used. */
struct counter {
    struct kp_schedule plan;
    _Atomic uint64_t finished;    /* steps that ended */
    _Atomic uint32_t source;      /* enum kp_step_source, only ever rises */
    _Atomic uint64_t tracked;     /* the optimizer that counts */
    _Atomic uint64_t others_seen; /* a bit (by hash) for each other optimizer that stepped since */
    _Atomic uint32_t silence;     /* steps of others since the tracked optimizer's last step */
    _Atomic uint32_t alone;       /* steps of the tracked optimizer since it is tracked */
    _Atomic uint64_t before;      /* the optimizer that was tracked until this one followed on it, 0: none */
    _Atomic uint32_t batches;
    _Atomic uint32_t reports[KP_STEP_API + 1]; /* of each source, whether they counted or not */
    _Atomic uintptr_t module;                  /* the one whose calls count */
    _Atomic uint32_t module_calls;             /* calls of it */
    _Atomic uint32_t module_silent;            /* calls of others since its last one */
    _Atomic bool starts_over;                  /* the next step is the first that counts */
    _Atomic uint64_t clock_asked;              /* time of the last call of kp_steps_time */
    _Atomic uint64_t clock_from;               /* time when silence began, later that of the last step; 0 before */
};
static _Alignas(64) struct counter counters[KP_PHASE_IDS];
KP_HOT_DATA static struct counter *_Atomic counting = counters; /* that of the phase */
static bool has_phases;
static const char *_Atomic model; /* the function that the first call of a module ran; the GIL lets one thread set it */

static inline struct counter *counter_now(void) { return kp_load_relaxed(&counting); }

static inline void report_note(enum kp_step_source who) { kp_add_relaxed(&counter_now()->reports[who], 1); }

const char *kp_step_source_name(enum kp_step_source which)
{
    static const char *const names[] = {"none",      "time", "module", "dataloader", "call",
                                        "optimizer", "loop", "range",  "api"};
    if (which == KP_STEP_RANGE && rule.kind == KP_RULE_OP) return "op";
    return (unsigned)which < sizeof names / sizeof names[0] ? names[which] : "none";
}

int kp_steps_init(const struct kp_schedule *schedule, const struct kp_step_rule *step_rule)
{
    if (pattern_ready) regfree(&pattern);
    pattern_ready = false;
    rule = *step_rule;
    kp_steps_start_over(schedule);
    if (rule.kind != KP_RULE_RANGE && rule.kind != KP_RULE_OP) return 0;
    if (regcomp(&pattern, rule.pattern, REG_EXTENDED | REG_NOSUB) != 0) return -EINVAL;
    pattern_ready = true;
    return 0;
}

void kp_steps_start_over(const struct kp_schedule *schedule)
{
    memset(counters, 0, sizeof counters);
    has_phases = kp_phases_are_set();
    for (uint32_t i = 0; i < KP_PHASE_IDS; i++) counters[i].plan = *kp_phases_schedule(i, schedule);
    kp_store_relaxed(&counting, counters);
}

void kp_steps_phase(uint32_t phase)
{
    kp_store_relaxed(&counters[phase].batches, 0);
    kp_store_relaxed(&counting, &counters[phase]);
}

uint64_t kp_steps_seen_in(uint32_t phase) { return kp_load_relaxed(&counters[phase].finished); }

void kp_steps_explain_phases(char *out, unsigned long bytes)
{
    size_t n = 0;
    for (uint32_t i = 1; *kp_phases_name(i) && n < bytes; i++) {
        const uint64_t seen = kp_steps_seen_in(i), needed = kp_schedule_steps_needed(kp_phases_schedule(i, NULL));
        n += kp_fmt(out + n, bytes - n, "%sphase %s saw %lu step%s", i > 1 ? ", " : "", kp_phases_name(i),
                    (unsigned long)seen, kp_units_s(seen));
        if (needed != UINT64_MAX && n < bytes) n += kp_fmt(out + n, bytes - n, " and needs %lu", (unsigned long)needed);
    }
}

bool kp_steps_needs_ops(void) { return rule.kind == KP_RULE_OP; }

/* FNV-1a, folded to the bits of MARK_HASH. */
static uint32_t name_hash(const char *name)
{
    uint32_t h = 2166136261u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
    return (h ^ h >> KP_STEP_PHASE_SHIFT) & MARK_HASH;
}

static bool ends_with(const char *name, const char *tail)
{
    const size_t n = strlen(name), t = strlen(tail);
    return n >= t && memcmp(name + n - t, tail, t) == 0;
}

static uint32_t step_mark(const char *name, bool user_scope)
{
    if (rule.kind == KP_RULE_RANGE || rule.kind == KP_RULE_OP) {
        const bool wanted = user_scope == (rule.kind == KP_RULE_RANGE) && pattern_ready;
        return wanted && regexec(&pattern, name, 0, NULL, 0) == 0 ? MARK_RULE : 0;
    }
    if (!user_scope) return 0;
    if (rule.kind == KP_RULE_AUTO || rule.kind == KP_RULE_OPTIMIZER)
        if (strncmp(name, "Optimizer.step#", 15) == 0) return MARK_OPTIMIZER | name_hash(name);
    if (rule.kind == KP_RULE_AUTO)
        if (strncmp(name, "enumerate(DataLoader)#", 22) == 0 && ends_with(name, ".__next__")) return MARK_DATALOADER;
    return 0;
}

uint32_t kp_steps_classify(const char *name, bool user_scope)
{
    const uint32_t phase = user_scope && has_phases ? kp_phases_match(name) : KP_PHASE_NONE;
    return step_mark(name, user_scope) | phase << KP_STEP_PHASE_SHIFT;
}

/* Whether the count of `seen` is void for `who`. */
static bool is_guess(uint32_t seen, uint32_t who)
{
    if (seen == KP_STEP_TIME) return true;
    return (seen == KP_STEP_MODULE || seen == KP_STEP_DATALOADER) && who > KP_STEP_DATALOADER;
}

/* Whether this source may count the step. It takes over from a lower source. */
static bool source_take(uint32_t who)
{
    struct counter *const c = counter_now();
    uint32_t seen = kp_load_relaxed(&c->source);
    while (seen < who) {
        if (!kp_cas_acq_rel(&c->source, &seen, who)) continue;
        const bool starts_over = is_guess(seen, who);
        if (starts_over) kp_store_relaxed(&c->starts_over, true);
        return seen == KP_STEP_NONE || starts_over;
    }
    return seen == who;
}

static uint64_t others_bit(uint64_t who) { return UINT64_C(1) << (who * UINT64_C(0x9E3779B97F4A7C15) >> 58); }

static bool is_alive(uint64_t tracked) { return tracked != TRACKED_NONE && tracked != TRACKED_GONE; }

/* Whether the tracked optimizer made so many steps alone that another one is of a training that follows. */
static bool was_alone(const struct counter *c)
{
    return kp_load_relaxed(&c->alone) >= LONE_LEAST && kp_load_relaxed(&c->others_seen) == 0;
}

/* Whether the tracked optimizer is silent for so long that another takes over. A lost update only delays it. */
static bool is_silent(struct counter *c, uint64_t who)
{
    if (kp_add_relaxed(&c->silence, 1) >= TAKEOVER_AFTER) return true;
    kp_store_relaxed(&c->others_seen, kp_load_relaxed(&c->others_seen) | others_bit(who));
    return false;
}

/* Whether a step of the optimizer `who` counts. */
static bool optimizer_counts(uint64_t who)
{
    struct counter *const c = counter_now();
    uint64_t seen = kp_load_relaxed(&c->tracked);
    if (seen == who) {
        kp_store_relaxed(&c->silence, 0);
        (void)kp_add_relaxed(&c->alone, 1);
        return true;
    }
    const bool follows = is_alive(seen) && was_alone(c);
    const bool returns = is_alive(seen) && !follows && kp_load_relaxed(&c->before) == who;
    if (is_alive(seen) && !follows && !returns && !is_silent(c, who)) return false;
    const uint64_t other = seen;
    if (!kp_cas_acq_rel(&c->tracked, &seen, who)) return false;
    const bool counted_already =
        kp_load_relaxed(&c->silence) == 0 && (kp_load_relaxed(&c->others_seen) & others_bit(who));
    const bool counts = follows || returns || seen == TRACKED_NONE || (seen == TRACKED_GONE && !counted_already);
    kp_store_relaxed(&c->silence, 0);
    kp_store_relaxed(&c->alone, counts);
    kp_store_relaxed(&c->others_seen, returns ? others_bit(other) : 0);
    kp_store_relaxed(&c->before, follows ? other : 0);
    return counts;
}

bool kp_steps_wants_optimizer(uint32_t mark)
{
    return (mark & MARK_KIND) == MARK_OPTIMIZER && kp_load_relaxed(&counter_now()->source) <= KP_STEP_OPTIMIZER;
}

uint64_t kp_steps_optimizer(void)
{
    const uint64_t seen = kp_load_relaxed(&counter_now()->tracked);
    return seen & KP_STEP_IDENTITY ? seen : 0;
}

/* A new optimizer in the memory of another that was freed has not stepped yet, so its bit is cleared, too. */
void kp_steps_optimizer_gone(uint64_t optimizer)
{
    for (struct counter *c = counters; c < counters + KP_PHASE_IDS; c++) {
        uint64_t seen = optimizer;
        (void)kp_cas_acq_rel(&c->tracked, &seen, TRACKED_GONE);
        if (kp_load_relaxed(&c->before) == optimizer) kp_store_relaxed(&c->before, 0);
        const uint64_t others = kp_load_relaxed(&c->others_seen), left = others & ~others_bit(optimizer);
        if (others != left) kp_store_relaxed(&c->others_seen, left);
    }
}

/* If another phase has an optimizer, one without is a loop of evaluation: its first batch or call may count. */
static bool is_evaluating(const struct counter *here)
{
    for (const struct counter *c = counters; has_phases && c < counters + KP_PHASE_IDS; c++)
        if (c != here && kp_load_relaxed(&c->source) >= KP_STEP_OPTIMIZER) return true;
    return false;
}

/* How many batches come before the DataLoader counts: in an evaluation each but the first ends a step. */
static uint32_t batches_before(const struct counter *here) { return is_evaluating(here) ? 1 : BATCHES_ALONE; }

/* How many calls of a model come before they count: in an evaluation without a DataLoader none. */
static uint32_t modules_before(const struct counter *here)
{
    return is_evaluating(here) && kp_load_relaxed(&here->batches) == 0 ? 0 : MODULES_ALONE;
}

/* Python's call of a module goes on into TorchScript, and tells more. */
static bool script_counts(void)
{
    return kp_load_relaxed(&counter_now()->module) <= SCRIPT_MODULES && kp_steps_module_end(SCRIPT_MODULES);
}

bool kp_steps_range_end(uint32_t mark, uint64_t optimizer)
{
    struct counter *const c = counter_now();
    switch (mark & MARK_KIND) {
    case MARK_OPTIMIZER:
        report_note(KP_STEP_OPTIMIZER);
        return optimizer_counts(optimizer ? optimizer : mark) && source_take(KP_STEP_OPTIMIZER);
    case MARK_DATALOADER:
        report_note(KP_STEP_DATALOADER);
        if (kp_load_relaxed(&c->source) > KP_STEP_DATALOADER) return false;
        if (kp_load_relaxed(&c->source) < KP_STEP_MODULE) kp_store_relaxed(&c->module_calls, 0);
        return kp_add_relaxed(&c->batches, 1) >= batches_before(c) && source_take(KP_STEP_DATALOADER);
    case MARK_RULE: return source_take(KP_STEP_RANGE);
    case MARK_SCRIPT: return script_counts();
    default: return false;
    }
}

bool kp_steps_is_call_rule(void) { return rule.kind == KP_RULE_CALL; }

bool kp_steps_are_marked(const struct kp_schedule *schedule) { return schedule->set || rule.kind != KP_RULE_AUTO; }

const char *kp_steps_call_glob(unsigned at)
{
    if (rule.kind == KP_RULE_CALL) return at == 0 ? rule.pattern : NULL;
    return rule.kind == KP_RULE_AUTO && counter_now()->plan.set && at < KNOWN_CALLS ? known_calls[at].glob : NULL;
}

bool kp_steps_call_is_plain(unsigned at)
{
    return rule.kind == KP_RULE_AUTO && at < KNOWN_CALLS && known_calls[at].is_plain;
}

bool kp_steps_call_end(void)
{
    report_note(KP_STEP_CALL);
    return (rule.kind == KP_RULE_CALL || rule.kind == KP_RULE_AUTO) && source_take(KP_STEP_CALL);
}

uint32_t kp_steps_classify_script(const char *name)
{
    return kp_steps_wants_modules() && strcmp(name, "forward") == 0 ? MARK_SCRIPT : 0;
}

bool kp_steps_wants_modules(void)
{
    const struct counter *const c = counter_now();
    if (rule.kind != KP_RULE_AUTO || !c->plan.set) return false;
    return has_phases || kp_load_relaxed(&c->source) <= KP_STEP_MODULE;
}

bool kp_steps_module_end(uintptr_t module)
{
    struct counter *const c = counter_now();
    const uintptr_t seen = kp_load_relaxed(&c->module);
    if (rule.kind != KP_RULE_AUTO) return false;
    report_note(KP_STEP_MODULE);
    if (seen > SCRIPT_MODULES && seen != module && kp_add_relaxed(&c->module_silent, 1) < TAKEOVER_AFTER) return false;
    kp_store_relaxed(&c->module, module);
    kp_store_relaxed(&c->module_silent, 0);
    const bool takes_over = seen && seen != module;
    if (takes_over && kp_load_relaxed(&c->source) < KP_STEP_MODULE) kp_store_relaxed(&c->module_calls, 0);
    return kp_add_relaxed(&c->module_calls, 1) >= modules_before(c) && source_take(KP_STEP_MODULE);
}

void kp_steps_loop_begin(uint32_t phase)
{
    uint32_t seen = kp_load_relaxed(&counters[phase].source);
    while (rule.kind == KP_RULE_AUTO && seen < KP_STEP_LOOP)
        if (kp_cas_acq_rel(&counters[phase].source, &seen, KP_STEP_LOOP)) return;
}

bool kp_steps_loop_end(void) { return rule.kind == KP_RULE_AUTO && source_take(KP_STEP_LOOP); }

bool kp_steps_takes_api(void) { return rule.kind == KP_RULE_AUTO || rule.kind == KP_RULE_API; }

bool kp_steps_api(void)
{
    report_note(KP_STEP_API);
    return kp_steps_takes_api() && source_take(KP_STEP_API);
}

uint64_t kp_steps_time_period_ns(void)
{
    struct counter *const c = counter_now();
    if (rule.kind == KP_RULE_TIME) return rule.period_ns;
    if (rule.kind != KP_RULE_AUTO || has_phases || !c->plan.set || kp_load_relaxed(&c->source) > KP_STEP_TIME) return 0;
    return SECOND_NS;
}

/*
 * Whether the host was idle since the last call. Under `auto`, idle time does not count: `clock_from` moves by it.
 */
static bool is_idle(uint64_t now_ns, uint64_t from, bool did_work)
{
    const uint64_t since = kp_exchange_acq_rel(&counter_now()->clock_asked, now_ns);
    if (did_work || rule.kind != KP_RULE_AUTO || !from || !since) return false;
    kp_store_relaxed(&counter_now()->clock_from, from + (now_ns - since));
    return true;
}

bool kp_steps_time(uint64_t now_ns, bool did_work)
{
    struct counter *const c = counter_now();
    const uint64_t from = kp_load_relaxed(&c->clock_from);
    const uint64_t period = kp_steps_time_period_ns();
    const bool silent = rule.kind == KP_RULE_AUTO && kp_load_relaxed(&c->source) == KP_STEP_NONE;
    const uint64_t due = silent ? SILENCE_NS : period;
    if (!period || is_idle(now_ns, from, did_work)) return false;
    if (!from) {
        kp_store_relaxed(&c->clock_from, now_ns);
        return false;
    }
    /* The caller's clock is not exact: a call that comes 1/16 of a period too early counts. */
    if (now_ns - from + period / 16 < due) return false;
    if (!source_take(KP_STEP_TIME)) return false;
    /* The next step is due a period after this step was due. Missed steps do not follow. */
    kp_store_relaxed(&c->clock_from, now_ns - from < due + period ? from + due : now_ns);
    if (silent)
        KP_LOG_ONCE(0, "no step seen for 30 s (no optimizer, no DataLoader, no kprof_step()): each second counts as a "
                       "step from now on; KPROF_STEP names another source");
    return true;
}

bool kp_steps_advance(struct kp_transition *out)
{
    struct counter *const c = counter_now();
    uint64_t n = kp_load_relaxed(&c->finished);
    const bool is_first = kp_exchange_acq_rel(&c->starts_over, false);
    out->starts_over = is_first && c->plan.set; /* if no schedule is set the count alone does */
    out->step = is_first ? 1 : n + 1;
    if (!kp_cas_acq_rel(&c->finished, &n, out->step)) {
        if (is_first) kp_store_relaxed(&c->starts_over, true); /* for the next call that succeeds */
        return false;
    }
    out->before = kp_schedule_action(&c->plan, n);
    out->after = kp_schedule_action(&c->plan, out->step);
    out->source = (enum kp_step_source)kp_load_relaxed(&c->source);
    return true;
}

uint64_t kp_steps_seen(void) { return kp_load_relaxed(&counter_now()->finished); }

enum kp_step_source kp_steps_source(void) { return (enum kp_step_source)kp_load_relaxed(&counter_now()->source); }

void kp_steps_source_text(char *out, unsigned long bytes)
{
    const enum kp_step_source source = kp_steps_source();
    const bool is_named = source == KP_STEP_CALL && rule.kind == KP_RULE_CALL;
    if (source == KP_STEP_MODULE)
        kp_fmt(out, bytes, "%s (the first %d calls not counted)", kp_step_source_name(source), MODULES_ALONE);
    else
        kp_fmt(out, bytes, "%s%s%s", kp_step_source_name(source), is_named ? " of " : "", is_named ? rule.pattern : "");
}

bool kp_steps_are_calls(void) { return kp_steps_source() == KP_STEP_CALL || kp_steps_source() == KP_STEP_MODULE; }

void kp_steps_model_set(const char *module, const char *name)
{
    static char texts[2][MODEL_BYTES]; /* one that was set is read by other threads: it stays */
    static unsigned count;
    if (count == sizeof texts / sizeof *texts) return;
    char *const text = texts[count++];
    kp_fmt(text, MODEL_BYTES, "%s:%s", module, name);
    if (strlen(text) + 1 < MODEL_BYTES) kp_store_release(&model, text); /* pairs with: step_source.c:kp_steps_model */
}

const char *kp_steps_model(void) { return kp_load_acquire(&model); } /* pairs with: step_source.c:kp_steps_model_set */

uint32_t kp_steps_model_calls(void)
{
    const struct counter *const c = counter_now();
    return kp_load_relaxed(&c->source) == KP_STEP_NONE ? kp_load_relaxed(&c->reports[KP_STEP_MODULE]) : 0;
}

static _Atomic(const char *) near_name;

void kp_steps_near_set(const char *module, const char *name)
{
    static char texts[NEAR_MOST][MODEL_BYTES]; /* one that was set is read by other threads: it stays */
    static unsigned count;
    if (count == NEAR_MOST) return;
    kp_fmt(texts[count], MODEL_BYTES, "%s:%s", module, name);
    if (strlen(texts[count]) + 1 < MODEL_BYTES)
        kp_store_release(&near_name, texts[count++]); /* pairs with: step_source.c:kp_steps_near */
}

/* pairs with: step_source.c:kp_steps_near_set */
const char *kp_steps_near(void) { return kp_load_acquire(&near_name); }

static const char *const other_ways =
    "KPROF_STEP=time:1s counts seconds, range:, op: and call: count names, and without KPROF_SCHEDULE all is recorded";

/* No step came: why not, by the rule. */
static void silence_explain(char *out, unsigned long bytes)
{
    const uint32_t seen = kp_load_relaxed(&counter_now()->batches);
    switch (rule.kind) {
    case KP_RULE_RANGE:
        kp_fmt(out, bytes, "no record_function range matches '%s' (a Python function is none); %s", rule.pattern,
               other_ways);
        return;
    case KP_RULE_OP:
        kp_fmt(out, bytes, "no op matches '%s'; `kprof report` of a run without KPROF_SCHEDULE lists the names",
               rule.pattern);
        return;
    case KP_RULE_CALL: kp_config_missed(out, bytes, rule.pattern, kp_steps_near()); return;
    case KP_RULE_API: kp_fmt(out, bytes, "kprof_step() was not called; %s", other_ways); return;
    case KP_RULE_TIME: kp_fmt(out, bytes, "the program ended before the first period was over"); return;
    default: break;
    }
    const uint32_t calls = kp_load_relaxed(&counter_now()->reports[KP_STEP_MODULE]);
    const char *const called = kp_steps_model();
    if (!seen && calls)
        kp_fmt(out, bytes, "no optimizer stepped, and calls of a model count from the %dth of one on (%u came)%s%s; %s",
               MODULES_ALONE + 1, calls, called ? "; each is a step with --step call:" : "", called ? called : "",
               other_ways);
    else if (seen)
        kp_fmt(out, bytes, "no optimizer stepped, and batches of a DataLoader count from the %dth on (%u came); %s",
               BATCHES_ALONE + 1, seen, other_ways);
    else
        kp_fmt(out, bytes, "no optimizer stepped%s; %s",
               rule.kind == KP_RULE_AUTO ? " and no DataLoader (torch::optim and torch::data of C++ mark no steps)"
                                         : "",
               other_ways);
}

bool kp_steps_unmatched(char *out, unsigned long bytes)
{
    const bool is_op = rule.kind == KP_RULE_OP;
    if (kp_steps_source() != KP_STEP_NONE) return false;
    if (rule.kind == KP_RULE_CALL) kp_config_missed(out, bytes, rule.pattern, kp_steps_near());
    else if (is_op || rule.kind == KP_RULE_RANGE) kp_config_unmatched(out, bytes, is_op, rule.pattern);
    else return false;
    return true;
}

void kp_steps_others(char *out, unsigned long bytes)
{
    static const struct {
        enum kp_step_source source;
        const char *one;
    } rows[] = {{KP_STEP_API, "kprof_step()"},
                {KP_STEP_OPTIMIZER, "optimizer step"},
                {KP_STEP_CALL, "known call"},
                {KP_STEP_DATALOADER, "batch"},
                {KP_STEP_MODULE, "model call"}};
    const struct counter *const c = counter_now();
    const uint32_t source = kp_load_relaxed(&c->source);
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && n < bytes; i++) {
        const uint32_t seen = kp_load_relaxed(&c->reports[rows[i].source]);
        /* Calls of models are no longer looked at once another source counts. */
        if (!seen || rows[i].source == source || (rows[i].source == KP_STEP_MODULE && source > KP_STEP_MODULE))
            continue;
        if (rows[i].source == KP_STEP_DATALOADER && source == KP_STEP_OPTIMIZER) continue; /* a step is of batches */
        n += kp_fmt(out + n, bytes - n, "%s%u %s%s", n ? ", " : "", seen, rows[i].one,
                    seen == 1 || rows[i].source == KP_STEP_API ? ""
                    : rows[i].source == KP_STEP_DATALOADER     ? "es"
                                                               : "s");
    }
}

void kp_steps_explain(char *out, unsigned long bytes)
{
    const uint64_t seen = kp_steps_seen();
    if (!seen) silence_explain(out, bytes);
    else if (seen == 1) kp_fmt(out, bytes, "try KPROF_SCHEDULE=active=1");
    else kp_fmt(out, bytes, "try KPROF_SCHEDULE=warmup=1,active=%lu", (unsigned long)seen - 1);
}
