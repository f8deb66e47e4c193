// SPDX-License-Identifier: Apache-2.0
/*
 * phasecalls.c - phases of Lightning's and transformers' trainers, by calls of their own functions (KPROF_PHASES)
 *
 * Called by: CPython, in place of its own call of these functions; stepfind.c
 * Owns:      nothing but what it knows of the sanity check
 * Locks:     the GIL, which CPython holds
 * On fail:   a function that is not found begins no phase; then kprof_phase() may name it
 * Safe in:   after fork yes: calls are passed on
 *
 * A phase lasts as long as the call of its loop. A step ends where the framework's own profiler, or a callback, would
 * call torch.profiler's step(): when a *_step function of Lightning's strategy has returned, and when the callbacks of
 * a Trainer have heard of the step.
 */
#include <errno.h>
#include <string.h>

#include "collector/base/sys/kp_clock.h"
#include "preload/guard.h"
#include "preload/python/steps/stepcalls.h"
#include "preload/run.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

/* The phase of a thread between begin and end. */
struct open_phase {
    uint32_t depth;
    bool has_begun;
};

static bool has_steps; /* a function that ends steps was hooked */
static uint32_t sanity_checks;

static void phase_begin(struct open_phase *open, const char *name)
{
    const uint32_t phase = kp_phases_find_loop(name);
    const int kept = errno;
    struct kp_guard guard;
    open->has_begun = false;
    if (!KP_HOOK_ENTER(&guard, KP_GATE_STEPS)) return;
    if (has_steps) kp_steps_loop_begin(phase);
    kp_run_phase_begin(guard.thread, phase, &open->depth);
    open->has_begun = true;
    KP_HOOK_LEAVE(&guard);
    errno = kept;
}

static void phase_end(const struct open_phase *open)
{
    const int kept = errno;
    struct kp_guard guard;
    if (!open->has_begun || !KP_HOOK_ENTER(&guard, KP_GATE_STEPS)) return;
    kp_run_phase_end(guard.thread, open->depth);
    KP_HOOK_LEAVE(&guard);
    errno = kept;
}

static void *call_phase(const char *name, void *callable, void *const *args, size_t count, void *keywords)
{
    struct open_phase open;
    if (!kp_run_is_active()) return kp_stephook_call(callable, args, count, keywords);
    phase_begin(&open, name);
    void *result = kp_stephook_call(callable, args, count, keywords);
    phase_end(&open);
    return result;
}

#define CALL_PHASE(name)                                                                      \
    static void *call_##name(void *callable, void *const *args, size_t count, void *keywords) \
    {                                                                                         \
        return call_phase(#name, callable, args, count, keywords);                            \
    }
CALL_PHASE(train)
CALL_PHASE(evaluate)
CALL_PHASE(predict)

/* Its loop is that of validation. */
static void *call_sanity_check(void *callable, void *const *args, size_t count, void *keywords)
{
    sanity_checks++;
    void *result = call_phase("sanity_check", callable, args, count, keywords);
    sanity_checks--;
    return result;
}

/* Is the loop's _stage, a str of Lightning's, that of test? */
static bool is_test(void *loop)
{
    void *stage = kp_pyobject_member(loop, "_stage");
    const char *text = kp_pyobject_text(stage);
    const bool is = text && strcmp(text, "test") == 0;
    KP_PYTHON_DROP(stage);
    return is;
}

/* The loop of validation and test. */
static void *call_evaluation_loop(void *callable, void *const *args, size_t count, void *keywords)
{
    if (sanity_checks || !kp_run_is_active()) return kp_stephook_call(callable, args, count, keywords);
    const bool has_self = (count & ~(SIZE_MAX / 2 + 1)) > 0; /* the top bit is a flag of CPython's */
    return call_phase(has_self && is_test(args[0]) ? "test" : "validate", callable, args, count, keywords);
}

static void *call_step(void *callable, void *const *args, size_t count, void *keywords)
{
    void *result = kp_stephook_call(callable, args, count, keywords);
    const int kept = errno;
    struct kp_guard guard;
    if (!kp_run_is_active() || !KP_HOOK_ENTER(&guard, KP_GATE_STEPS)) return result;
    if (kp_steps_loop_end()) kp_run_step(guard.thread, kp_ticks());
    KP_HOOK_LEAVE(&guard);
    errno = kept;
    return result;
}

/* Lightning is installed under either name. */
#define LIGHTNING(place, call, ends_step) \
    {"lightning.pytorch." place, call, ends_step}, { "pytorch_lightning." place, call, ends_step }

static const struct kp_phasecall rows[] = {
    {"transformers.trainer:Trainer.train", call_train, false},
    {"transformers.trainer:Trainer.evaluate", call_evaluate, false},
    {"transformers.trainer:Trainer.predict", call_predict, false},
    {"transformers.trainer_callback:CallbackHandler.on_step_end", call_step, true},
    {"transformers.trainer_callback:CallbackHandler.on_prediction_step", call_step, true},
    LIGHTNING("loops.fit_loop:_FitLoop.run", call_train, false),
    LIGHTNING("loops.evaluation_loop:_EvaluationLoop.run", call_evaluation_loop, false),
    LIGHTNING("loops.prediction_loop:_PredictionLoop.run", call_predict, false),
    LIGHTNING("trainer.trainer:Trainer._run_sanity_check", call_sanity_check, false),
    LIGHTNING("strategies.strategy:Strategy.training_step", call_step, true),
    LIGHTNING("strategies.strategy:Strategy.validation_step", call_step, true),
    LIGHTNING("strategies.strategy:Strategy.test_step", call_step, true),
    LIGHTNING("strategies.strategy:Strategy.predict_step", call_step, true),
};

const struct kp_phasecall *kp_phasecalls_row(unsigned at)
{
    return kp_phases_are_set() && at < sizeof rows / sizeof *rows ? &rows[at] : NULL;
}

bool kp_phasecalls_hook(const struct kp_phasecall *row, void *function)
{
    const bool is_hooked = kp_stephook_set(function, row->call);
    has_steps |= is_hooked && row->ends_step;
    return is_hooked;
}
