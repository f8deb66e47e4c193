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
#include "preload/python/steps/stepcalls.h"

#include <dlfcn.h>

#include "preload/run.h"
#include "collector/base/kp_poison.h"

enum { OPEN_MAX = 1024, TAKES_ONE = 0x8 /* METH_O */, KINDS = 3 };

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
static void *callback;

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

static void *on_free(void *self, void *ref, void *unused)
{
    (void)self, (void)unused;
    for (uint32_t i = 0; i < open_count; i++) {
        if (opens[i].ref != ref) continue;
        kp_python_api.drop(open_take(i)); /* CPython holds it during this call */
        kp_stepcount_add();
        break;
    }
    kp_python_api.hold(kp_python_api.none);
    return kp_python_api.none;
}

/* Is the member this object? */
static bool is_member(void *object, const char *name, const void *expected)
{
    void *member = kp_pyobject_member(object, name);
    KP_PYTHON_DROP(member);
    return member == expected;
}

/* Counts the objects that have ended though the program keeps them. True: one that this thread is in runs right now,
 * so that a call is inside another. */
static bool look_through(const void *thread)
{
    const void *const none = kp_python_api.none;
    bool is_inside = false;
    for (uint32_t i = open_count; i-- > 0;) {
        if (i >= open_count) continue; /* one was freed meanwhile */
        const struct open_gen o = opens[i];
        void *object = kp_python_api.call_with(o.ref, NULL);
        if (!object) kp_python_api.forget_error();
        if (!object) continue;
        const bool is_running = object != none && is_member(object, o.kind->running, kp_python_api.yes);
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
    void *ref = kp_python_api.weak_make(result, callback);
    if (!ref) kp_python_api.forget_error();
    if (!ref) return false;
    opens[open_count++] = (struct open_gen){ref, thread, kind};
    return true;
}

bool kp_stepgens_attach(void)
{
    static struct kp_python_method method = {"kprof_step", on_free, TAKES_ONE, NULL};
    for (unsigned i = 0; i < KINDS; i++) kinds[i].type = dlsym(RTLD_DEFAULT, kinds[i].symbol);
    dlerror();
    callback = kp_python_api.function_make(&method, NULL, NULL);
    return callback != NULL;
}
