// SPDX-License-Identifier: Apache-2.0
/*
 * program_profile.c - hides events of calls that began under our profile function from one that the program then sets
 *
 * Called by: pycalls.c at the call of sys.setprofile; CPython, in place of sys.setprofile and of the program's profile
 *            function; modules of the host that call PyEval_SetProfile (a tap)
 * Owns:      the table of threads whose profile function is the program's, with our filter before it
 * Locks:     the GIL, which every caller holds
 * Memory:    none
 * On fail:   the program's function is called without a filter: it may see the return of the C function that set it
 * Safe in:   after fork yes: it does not depend on recording
 *
 * CPython reports the end of a C function to the profile function that is set at that time. While ours is set, the call
 * of sys.setprofile(f) is reported, so its end would be f's first event. Without us there is no such event, and torch's
 * profiler with stacks fails on it ("Python replay stack is empty"). So when ours is replaced, a filter is set before
 * the new function until every C function that began under ours has ended. The filter drops those ends and passes on
 * the rest. It counts calls to tell the ends that belong to the new function.
 *
 * sys.setprofile is replaced in CPython's method table, at its first call under ours. PyEval_SetProfile is tapped, for
 * calls from other libraries.
 */
#include <string.h>

#include "collector/base/kp_log.h"
#include "preload/hook/hook.h"
#include "preload/python/pycalls.h"
#include "collector/base/kp_poison.h"

enum { C_CALL = 4, C_EXCEPTION = 5, C_RETURN = 6 }; /* PyTrace_* */
enum { C_METHODS = 16, C_SELF = 24, THREADS = 256, TAKES_ONE = 0x8 /* METH_O */ };
#define NOT_KNOWN UINT32_MAX

/* CPython's PyMethodDef. */
struct handover_method {
    const char *name;
    void *(*call)(void *module, void *argument);
    int flags;
};

static struct filter {
    void *thread; /* thread state */
    kp_python_profile_fn program;
    uint32_t ours;  /* C functions that began under our function and have not ended; NOT_KNOWN: another thread's */
    uint32_t depth; /* C functions whose begin, but not yet whose end, was passed to the program's function */
} filters[THREADS];
static uint32_t filter_count;
static kp_python_profile_fn ours_is; /* our profile function */

static kp_python_profile_fn *profile_at(void *thread)
{
    return (kp_python_profile_fn *)((char *)thread + kp_python_get()->layout.thread_profile);
}

static struct filter *filter_of(const void *thread)
{
    for (uint32_t i = 0; i < filter_count; i++)
        if (filters[i].thread == thread) return &filters[i];
    return NULL;
}

static int filter_event(void *object, void *frame, int what, void *arg)
{
    void *thread = kp_python_api.this_thread();
    struct filter *f = filter_of(thread);
    if (!f) return 0;
    if (what == C_CALL) f->depth++;
    if ((what != C_EXCEPTION && what != C_RETURN) || f->depth-- > 0) return f->program(object, frame, what, arg);
    f->depth = 0;
    if (f->ours != NOT_KNOWN && --f->ours == 0) *profile_at(thread) = f->program;
    return 0;
}

/* Number of open C functions of the calling thread, with its call of the setter. */
static uint32_t open_c_functions(const void *thread)
{
    const struct kp_thread *t = kp_thread_self;
    const struct kp_pycalls *c = t ? t->source_state[KP_STATE_PYTHON] : NULL;
    uint32_t n = 0;
    if (!c || thread != kp_python_get()->thread_state() || c->thread_no != t->thread_no) return NOT_KNOWN;
    if (c->depth > KP_PY_DEPTH) return NOT_KNOWN;
    for (uint32_t i = 0; i < c->depth; i++) n += (uintptr_t)c->open[i].frame & 1;
    return n ? n : NOT_KNOWN;
}

/* Puts the filter before the program's function, which has just replaced ours; or the thread has none now. */
static void filter_put(void *thread)
{
    const kp_python_profile_fn now = *profile_at(thread);
    struct filter *f = filter_of(thread);
    if (!now || now == ours_is || now == filter_event) return;
    if (!f && filter_count < THREADS) f = &filters[filter_count++];
    if (!f) return;
    *f = (struct filter){.thread = thread, .program = now, .ours = open_c_functions(thread)};
    *profile_at(thread) = filter_event;
}

/* The program replaces its function by another: the filter and its counts stay. */
static void filter_keep(void *thread)
{
    const kp_python_profile_fn now = *profile_at(thread);
    struct filter *f = filter_of(thread);
    if (!f || !now || now == ours_is || now == filter_event) return;
    f->program = now;
    *profile_at(thread) = filter_event;
}

static void was_set(void *thread, kp_python_profile_fn before)
{
    if (before == ours_is) filter_put(thread);
    else if (before == filter_event) filter_keep(thread);
}

/* ---- sys.setprofile and sys._setprofileallthreads ---- */

static void *(*real_set)(void *module, void *argument), *(*real_set_all)(void *module, void *argument);

static void *our_set(void *module, void *argument)
{
    void *thread = kp_python_api.this_thread();
    const kp_python_profile_fn before = *profile_at(thread);
    void *result = real_set(module, argument);
    was_set(thread, before);
    return result;
}

/* Afterwards it is not known which threads had ours: each gets a filter, whose count begins here. */
static void *our_set_all(void *module, void *argument)
{
    void *result = real_set_all(module, argument);
    void *thread = kp_python_api.first_thread(kp_python_api.main_interpreter());
    for (; thread; thread = kp_python_api.next_thread(thread)) filter_put(thread);
    return result;
}

static bool is_of_sys(const void *function)
{
    void *name = kp_python_api.text_make("sys"), *module = name ? kp_python_api.module_find(name) : NULL;
    const bool is = module && kp_python_at(function, C_SELF) == module;
    if (module) kp_python_api.drop(module);
    if (name) kp_python_api.drop(name);
    return is;
}

void kp_pyhandover_setter(const void *function)
{
    struct handover_method *method = kp_python_at(function, C_METHODS);
    const bool is_all = strcmp(method->name, "_setprofileallthreads") == 0;
    if (!is_all && strcmp(method->name, "setprofile") != 0) return;
    if (!ours_is || method->call == our_set || method->call == our_set_all) return;
    if (method->flags != TAKES_ONE || !is_of_sys(function)) return;
    *(is_all ? &real_set_all : &real_set) = method->call;
    method->call = is_all ? our_set_all : our_set;
}

/* ---- PyEval_SetProfile ---- */

static void (*real_eval)(kp_python_profile_fn fn, void *object);

static void tap_eval(kp_python_profile_fn fn, void *object)
{
    void *thread = kp_python_api.this_thread();
    const kp_python_profile_fn before = *profile_at(thread);
    real_eval(fn, object);
    was_set(thread, before);
}

void kp_pyhandover_attach(kp_python_profile_fn ours)
{
    static struct kp_tap tap = {"PyEval_SetProfile", NULL, (void *)(uintptr_t)tap_eval};
    if (ours_is) return;
    ours_is = ours;
    real_eval = kp_python_api.set_profile;
    tap.real = (void *)(uintptr_t)real_eval;
    if (kp_hook_add_taps(&tap, 1) != 0)
        kp_log(1, "PyEval_SetProfile could not be hooked: a profile function that the program sets may see one return "
                  "too many");
}
