// SPDX-License-Identifier: Apache-2.0
/*
 * stepeval.c - sees Python calls by PEP 523, where KPROF_STEP=call needs it
 *
 * Called by: CPython for each Python call, while our function is set (hot)
 * Owns:      the interpreter's frame evaluation function, while it is ours
 * Locks:     the GIL, which CPython holds
 * On fail:   functions of __main__, and on 3.11 those called by Python code, count no steps
 *
 * It is set for two reasons:
 *     __main__   its functions are defined while it runs, so no event tells when. Each call looks whether __main__ has
 *                got a new name, until the function is found. It is not set while a module is imported.
 *     3.11       calls from Python code to Python code do not use the function's pointer, except while such a function
 *                is set. So it stays set.
 * A function that another library has set stays. torch._dynamo sets its own later, and calls the one it replaced.
 */
#include "preload/python/steps/stepcalls.h"

#include <dlfcn.h>

#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_poison.h"

enum { DICT_USED = 16, THREAD_INTERPRETER_38 = 16, INTERPRETER_WORDS = 512, LOOK_EVERY = 256, LOOKS_MAX = 50000000 };
enum { MAKES_GENERATOR = 0x20 | 0x80 | 0x200 }; /* CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR */

/* 3.8: (frame, throw); later: (thread state, frame, throw). */
typedef void *(*eval_fn)(void *first, void *second, uintptr_t third);

static eval_fn python_eval;
static eval_fn (*eval_get)(void *interpreter);
static void (*eval_set)(void *interpreter, eval_fn fn);
static eval_fn *slot_38; /* 3.8 has no functions for it */
static bool is_ours, is_seeking, stays;
static uint32_t pauses;
static uint64_t looks;
static intptr_t names_seen;

static void *evaluate(void *first, void *second, uintptr_t third);

static void set(bool to_ours)
{
    const eval_fn from = to_ours ? python_eval : evaluate, to = to_ours ? evaluate : python_eval;
    void *interpreter = kp_python_api.main_interpreter();
    const eval_fn now = slot_38 ? *slot_38 : eval_get(interpreter);
    if (now != from) return;
    if (slot_38) *slot_38 = to;
    else eval_set(interpreter, to);
    is_ours = to_ours;
}

static void seek_end(void)
{
    is_seeking = false;
    if (!stays) set(false);
}

/* Has __main__ another number of names than at the last look? */
static bool has_news(void)
{
    void *names = kp_pymodule_dict("__main__");
    const intptr_t used = names ? (intptr_t)kp_python_at(names, DICT_USED) : 0;
    const bool is_news = used != names_seen || looks % LOOK_EVERY == 0;
    names_seen = used;
    return is_news;
}

static bool is_generator(const void *code)
{
    void *flags = kp_pyobject_member((void *)(uintptr_t)code, "co_flags");
    const long value = flags ? kp_python_api.int_value(flags) : MAKES_GENERATOR;
    KP_PYTHON_DROP(flags);
    return value & MAKES_GENERATOR;
}

/* True: the frame that begins is a call of the function that was found now, so nothing else counts it. */
static bool seek(const void *frame)
{
    const struct kp_python_layout *l = &kp_python_get()->layout;
    if (pauses) return false;
    if (++looks > LOOKS_MAX) {
        seek_end();
        return false;
    }
    if (!has_news() || !kp_stepfind_look("__main__")) return false;
    seek_end();
    const void *code = kp_pyframe_code(l, frame);
    return kp_stepfind_is_code(code) && (l->version >= 311 || !is_generator(code));
}

static void *evaluate(void *first, void *second, uintptr_t third)
{
    if (__builtin_expect(!is_seeking, 1)) return python_eval(first, second, third);
    if (!seek(kp_python_get()->layout.version == 308 ? first : second)) return python_eval(first, second, third);
    const bool is_outermost = kp_stephook_enter();
    void *result = python_eval(first, second, third);
    kp_stephook_leave(is_outermost, result);
    return result;
}

void kp_stepeval_pause(bool is_paused)
{
    if (!is_seeking) return;
    if (is_paused ? pauses++ == 0 : pauses && --pauses == 0)
        if (!stays) set(!is_paused);
}

/* The word of 3.8's interpreter state that holds the function. */
static eval_fn *slot_find(void)
{
    eval_fn words[INTERPRETER_WORDS], *found = NULL;
    void *interpreter = kp_python_at(kp_python_api.this_thread(), THREAD_INTERPRETER_38);
    if (kp_io_peek(interpreter, words, sizeof words) != 0) return NULL;
    for (unsigned i = 0; i < INTERPRETER_WORDS; i++) {
        if (words[i] != python_eval) continue;
        if (found) return NULL;
        found = (eval_fn *)interpreter + i;
    }
    return found;
}

void kp_stepeval_begin(void)
{
    const uint32_t version = kp_python_get()->layout.version;
    if (python_eval) return;
    *(void **)&python_eval = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
    *(void **)&eval_get = dlsym(RTLD_DEFAULT, "_PyInterpreterState_GetEvalFrameFunc");
    *(void **)&eval_set = dlsym(RTLD_DEFAULT, "_PyInterpreterState_SetEvalFrameFunc");
    dlerror();
    stays = version == 311;
    is_seeking = kp_stepfind_names_main();
    if (!python_eval || (!stays && !is_seeking)) return;
    if (version == 308) slot_38 = slot_find();
    if (slot_38 || (eval_get && eval_set)) set(true);
}
