// SPDX-License-Identifier: Apache-2.0
/*
 * stepgens.c - follows the generators and coroutines that counted calls returned, to their end
 *
 * Called by: stephook.c when such a call returned; CPython, when it frees such an object
 * Owns:      a weak reference to each
 * Locks:     the GIL, which the caller holds
 * On fail:   the step ends when the call returned
 *
 * CPython frees a coroutine when its await has ended, and a generator when its loop has. One that the program keeps
 * after its end (a task in a list) is found by its missing frame, when the next one begins or ends.
 */
#include "preload/python/stepcalls.h"

#include <dlfcn.h>

#include "preload/run.h"
#include "collector/base/kp_poison.h"

enum { OPEN_MAX = 1024, TAKES_ONE = 0x8 /* METH_O */, KINDS = 3 };

/* CPython's PyMethodDef. */
struct gen_method {
    const char *name;
    void *(*call)(void *self, void *argument);
    int flags;
    const char *doc;
};

static struct kind {
    const char *symbol, *running, *frame;
    const void *type;
} kinds[KINDS] = {
    {"PyGen_Type", "gi_running", "gi_frame", NULL},
    {"PyCoro_Type", "cr_running", "cr_frame", NULL},
    {"PyAsyncGen_Type", "ag_running", "ag_frame", NULL},
};

static struct open_gen {
    void *ref; /* a weak reference, owned */
    const void *thread;
    const struct kind *kind;
} opens[OPEN_MAX];
static uint32_t open_count;
static void *(*weak_make)(void *object, void *callback),
    *(*function_make)(struct gen_method *, void *self, void *module);
static void (*hold)(void *object);
static void *none, *callback, *yes;

static const struct kind *kind_of(const void *object)
{
    for (unsigned i = 0; i < KINDS; i++)
        if (kp_python_at(object, 8) == kinds[i].type) return &kinds[i];
    return NULL;
}

/* Takes an entry out. */
static void *open_take(uint32_t at)
{
    void *ref = opens[at].ref;
    opens[at] = opens[--open_count];
    return ref;
}

static void *on_free(void *self, void *ref)
{
    (void)self;
    for (uint32_t i = 0; i < open_count; i++) {
        if (opens[i].ref != ref) continue;
        kp_python_api.drop(open_take(i)); /* CPython holds it during this call */
        kp_stepcount_add();
        break;
    }
    hold(none);
    return none;
}

/* Is the member this object? */
static bool is_member(void *object, const char *name, const void *expected)
{
    void *member = kp_python_api.member_get(object, name);
    if (!member) kp_python_api.forget_error();
    else kp_python_api.drop(member);
    return member == expected;
}

/* Counts the objects that have ended though the program keeps them. True: one that this thread is in runs right now,
 * so that a call is inside another. */
static bool look_through(const void *thread)
{
    bool is_inside = false;
    for (uint32_t i = open_count; i-- > 0;) {
        if (i >= open_count) continue; /* one was freed meanwhile */
        const struct open_gen o = opens[i];
        void *object = kp_python_api.call_with(o.ref, NULL);
        if (!object) kp_python_api.forget_error();
        if (!object) continue;
        const bool is_running = object != none && is_member(object, o.kind->running, yes);
        const bool has_ended = object != none && !is_running && is_member(object, o.kind->frame, none);
        is_inside |= is_running && o.thread == thread;
        if (has_ended) {
            kp_python_api.drop(open_take(i));
            kp_stepcount_add();
        }
        kp_python_api.drop(object);
    }
    return is_inside;
}

bool kp_stepgens_follow(void *result)
{
    const struct kind *kind = kind_of(result);
    if (!kind || !callback || !kp_run_is_active()) return false;
    const void *thread = kp_python_api.this_thread();
    if (look_through(thread)) return true;
    if (open_count == OPEN_MAX) return false;
    void *ref = weak_make(result, callback);
    if (!ref) kp_python_api.forget_error();
    if (!ref) return false;
    opens[open_count++] = (struct open_gen){ref, thread, kind};
    return true;
}

bool kp_stepgens_attach(void)
{
    static struct gen_method method = {"kprof_step", on_free, TAKES_ONE, NULL};
    for (unsigned i = 0; i < KINDS; i++) kinds[i].type = dlsym(RTLD_DEFAULT, kinds[i].symbol);
    *(void **)&weak_make = dlsym(RTLD_DEFAULT, "PyWeakref_NewRef");
    *(void **)&function_make = dlsym(RTLD_DEFAULT, "PyCFunction_NewEx");
    *(void **)&hold = dlsym(RTLD_DEFAULT, "Py_IncRef");
    none = dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
    yes = dlsym(RTLD_DEFAULT, "_Py_TrueStruct");
    dlerror();
    if (!weak_make || !function_make || !hold || !none || !yes) return false;
    callback = function_make(&method, NULL, NULL);
    return callback != NULL;
}
