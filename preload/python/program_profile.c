// SPDX-License-Identifier: Apache-2.0
/*
 * program_profile.c - makes way for a profile function that the program sets, and takes over again when that is gone
 *
 * Called by: pycalls.c at the call of sys.setprofile; python_source.c when a window begins; CPython, in place of
 *            sys.setprofile, of the methods of cProfile and of the program's profile function; modules of the host that
 *            call PyEval_SetProfile or _PyEval_SetProfile (taps)
 * Owns:      the table of threads whose profile function is the program's, with our filter before it
 * Locks:     the GIL, which every caller holds
 * Memory:    none
 * On fail:   the program's function is called without a filter: it may see the return of the C function that set it
 * Safe in:   after fork yes: it does not depend on recording
 *
 * CPython reports the end of a C function to the profile function that is set at that time. While ours is set, the call
 * of sys.setprofile(f) is reported, so its end would be f's first event. If we were absent there would be no such
 * event, and torch's profiler with stacks fails on it ("Python replay stack is empty"). So when ours is replaced, a
 * filter is set before the new function until every C function that began under ours has ended. The filter drops those
 * ends and passes on the rest. It counts calls to tell the ends that belong to the new function.
 *
 * Calls that are open end where the program's function takes over. When it is removed, ours is set again while the
 * window lasts, and the frames that are open then are new calls.
 *
 * sys.setprofile, and cProfile's methods where it has a profile function (up to 3.11), are replaced in CPython's method
 * tables, when a window begins or at their first call under ours. PyEval_SetProfile is tapped, for calls from other
 * libraries.
 */
#include <string.h>

#include "collector/base/kp_log.h"
#include "preload/hook/hook.h"
#include "preload/python/pycalls.h"
#include "collector/base/kp_poison.h"

enum { C_CALL = 4, C_EXCEPTION = 5, C_RETURN = 6 }; /* PyTrace_* */
enum { C_METHODS = 16, C_SELF = 24, DESCRIPTOR_METHOD = 40, THREADS = 256 };
enum { TAKES_KEYWORDS = 0x3, TAKES_NONE = 0x4, TAKES_ONE = 0x8 }; /* METH_* */
#define NOT_KNOWN UINT32_MAX

static struct filter {
    void *thread; /* thread state */
    kp_python_profile_fn program;
    uint32_t ours;  /* C functions that began under our function and have not ended; NOT_KNOWN: another thread's */
    uint32_t depth; /* C functions whose begin, but not yet whose end, was passed to the program's function */
} filters[THREADS];
static uint32_t filter_count;
static kp_python_profile_fn ours_is; /* our profile function */
static void (*give_up)(void), (*take_up)(void);

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

/* The thread's profile function was `before`. */
static void was_set(void *thread, kp_python_profile_fn before)
{
    const kp_python_profile_fn now = *profile_at(thread);
    if (before == ours_is && now && now != ours_is && now != filter_event) {
        filter_put(thread);
        if (thread == kp_python_get()->thread_state()) give_up();
        kp_pyprofile_replaced();
    } else if (before == filter_event) {
        filter_keep(thread);
    }
    if (!now && before) take_up();
}

/* ---- sys.setprofile and sys._setprofileallthreads, enable() and disable() of cProfile ---- */

enum { SET, SET_ALL, ENABLE, DISABLE, SETTERS };
static kp_python_call_fn real[SETTERS];

static void *set_one(int setter, void *self, void *argument, void *more)
{
    void *thread = kp_python_api.this_thread();
    const kp_python_profile_fn before = *profile_at(thread);
    void *result = real[setter](self, argument, more);
    was_set(thread, before);
    return result;
}

static void *our_set(void *self, void *argument, void *more) { return set_one(SET, self, argument, more); }
static void *our_enable(void *self, void *argument, void *more) { return set_one(ENABLE, self, argument, more); }
static void *our_disable(void *self, void *argument, void *more) { return set_one(DISABLE, self, argument, more); }

/* Afterwards it is not known which threads had ours: each gets a filter, whose count begins here. */
static void *our_set_all(void *self, void *argument, void *more)
{
    const kp_python_profile_fn before = *profile_at(kp_python_api.this_thread());
    void *result = real[SET_ALL](self, argument, more);
    void *thread = kp_python_api.first_thread(kp_python_api.main_interpreter());
    was_set(kp_python_api.this_thread(), before);
    for (; thread; thread = kp_python_api.next_thread(thread)) filter_put(thread);
    return result;
}

static bool is_of_sys(const void *function)
{
    const void *const self = kp_python_at(function, C_SELF);
    return self && self == kp_pymodule_get("sys");
}

/* Puts ours in the method's place, once. */
static void method_take(struct kp_python_method *method, int setter)
{
    static const int flags[SETTERS] = {TAKES_ONE, TAKES_ONE, TAKES_KEYWORDS, TAKES_NONE};
    static const kp_python_call_fn ours[SETTERS] = {our_set, our_set_all, our_enable, our_disable};
    const kp_python_call_fn now = kp_load_relaxed(&method->call);
    if (now == ours[setter]) return;
    if (method->flags != flags[setter]) {
        kp_pyprofile_replaced();
        return;
    }
    real[setter] = now;
    kp_store_relaxed(&method->call, ours[setter]); /* read by CPython, under the GIL */
}

/* A program may have put a function of its own in the place of this one. */
static void descriptor_take(const void *descriptor, int setter)
{
    if (strcmp(kp_pyobject_type(descriptor), "method_descriptor") == 0)
        method_take(kp_python_at(descriptor, DESCRIPTOR_METHOD), setter);
}

/* From 3.12 on cProfile has no profile function but is told of events beside ours. */
static void cprofile_take(void)
{
    if (kp_python_get()->layout.version >= 312) return;
    void *const type = kp_pymodule_member("_lsprof", "Profiler");
    void *const enable = kp_pyobject_member(type, "enable"), *const disable = kp_pyobject_member(type, "disable");
    descriptor_take(enable, ENABLE);
    descriptor_take(disable, DISABLE);
    KP_PYTHON_DROP(disable, enable, type);
}

void kp_pyhandover_setter(const void *function)
{
    struct kp_python_method *method = kp_python_at(function, C_METHODS);
    if (!ours_is) return;
    if (strcmp(method->name, "enable") == 0) {
        if (strcmp(kp_pyobject_type(kp_python_at(function, C_SELF)), "_lsprof.Profiler") == 0) cprofile_take();
        return;
    }
    const bool is_all = strcmp(method->name, "_setprofileallthreads") == 0;
    if (!is_all && strcmp(method->name, "setprofile") != 0) return;
    if (is_of_sys(function)) method_take(method, is_all ? SET_ALL : SET);
}

void kp_pyhandover_find(void)
{
    static const char *const names[] = {"setprofile", "_setprofileallthreads"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const void *const function = kp_python_api.sys_get(names[i]);
        if (strcmp(kp_pyobject_type(function), "builtin_function_or_method") == 0) kp_pyhandover_setter(function);
    }
    cprofile_take();
}

/* ---- PyEval_SetProfile and _PyEval_SetProfile ---- */

static void (*real_eval)(kp_python_profile_fn fn, void *object);
static int (*real_eval_of)(void *thread, kp_python_profile_fn fn, void *object);

static void tap_eval(kp_python_profile_fn fn, void *object)
{
    void *thread = kp_python_api.this_thread();
    const kp_python_profile_fn before = *profile_at(thread);
    real_eval(fn, object);
    was_set(thread, before);
}

static int tap_eval_of(void *thread, kp_python_profile_fn fn, void *object)
{
    const kp_python_profile_fn before = *profile_at(thread);
    const int rc = real_eval_of(thread, fn, object);
    was_set(thread, before);
    return rc;
}

void kp_pyhandover_attach(kp_python_profile_fn ours, void (*gives_up)(void), void (*takes_up)(void))
{
    static struct kp_tap taps[] = {{"PyEval_SetProfile", NULL, (void *)(uintptr_t)tap_eval},
                                   {"_PyEval_SetProfile", NULL, (void *)(uintptr_t)tap_eval_of}};
    if (ours_is) return;
    give_up = gives_up;
    take_up = takes_up;
    ours_is = ours;
    real_eval = kp_python_api.set_profile;
    real_eval_of = kp_python_api.set_profile_of;
    taps[0].real = (void *)(uintptr_t)real_eval;
    taps[1].real = (void *)(uintptr_t)real_eval_of;
    if (kp_hook_add_taps(taps, real_eval_of ? 2 : 1) != 0)
        kp_log(1, "PyEval_SetProfile could not be hooked: a profile function that the program sets may see one return "
                  "too many");
}
