// SPDX-License-Identifier: Apache-2.0
/*
 * pyapi.h - functions of CPython that we call, and what we read of its objects
 */
#pragma once

#include "preload/python/python.h"

struct kp_thread;
typedef int (*kp_python_profile_fn)(void *object, void *frame, int what, void *arg);

/* CPython's PyMethodDef. A function of C that takes fewer arguments leaves the last ones. */
typedef void *(*kp_python_call_fn)(void *self, void *argument, void *more);
struct kp_python_method {
    const char *name;
    _Atomic(kp_python_call_fn) call;
    int flags; /* METH_* */
    const char *doc;
};

/* Functions and objects of the interpreter: the rows of python_symbols.def. */
struct kp_python_api {
#define KP_PYTHON_SYMBOL(member, field, name, needed) member;
#include "preload/python/api/python_symbols.def"
#undef KP_PYTHON_SYMBOL
};
extern struct kp_python_api kp_python_api; /* constant once kp_python_api_find returned true */
bool kp_python_api_find(void);            /* false: no Python is known here, or it lacks a function, which was logged */
bool kp_python_is_over(void);             /* has the interpreter ended, or does it end? */
bool kp_python_later(void (*what)(void)); /* Python's main thread is to call it. Both keep errno. False: not done */
bool kp_python_with_gil(void (*what)(void),
                        bool may_wait); /* now if this thread has the GIL or may take it, or later */
/* For attach() on a thread without the GIL: has Python's main thread attach all sources again. Keeps errno. */
void kp_python_attach_later(void);

/*
 * pyobject.c, with the GIL. No exception of Python's is left set, and NULL in place of an object is none.
 * A text of an object that is a str; the name of its type, "" of none; a member as a new reference.
 */
const char *kp_pyobject_text(void *object);
const char *kp_pyobject_type(const void *object);
void *kp_pyobject_member(void *object, const char *name);
void kp_pyobjects_drop(void *const *objects, size_t count);
#define KP_PYTHON_DROP(...) \
    kp_pyobjects_drop((void *const[]){__VA_ARGS__}, sizeof((void *const[]){__VA_ARGS__}) / sizeof(void *))
/* A module that is loaded, and its dict, both borrowed; a member of it as a new reference. */
void *kp_pymodule_get(const char *name);
void *kp_pymodule_dict(const char *name);
void *kp_pymodule_member(const char *module, const char *name);
/*
 * Around calls of Python's functions: the exception that is set and errno stay. Calls that `hidden` makes in between,
 * NULL for none, are not recorded, since they are not the program's.
 */
struct kp_pyaside {
    struct kp_thread *hidden;
    uint64_t inside;
    void *error[3];
    int kept;
};
void kp_pyaside_begin(struct kp_pyaside *aside, struct kp_thread *hidden);
void kp_pyaside_end(const struct kp_pyaside *aside);

static inline void *kp_python_at(const void *base, size_t offset)
{
    return *(void *const *)((const uint8_t *)base + offset);
}
static inline bool kp_pyobject_is(const void *object, const void *type)
{
    const void *const own = object ? kp_python_at(object, KP_PYTHON_TYPE_OF) : NULL;
    return own && (own == type || kp_python_api.is_subtype(own, type));
}
static inline bool kp_python_is_ending(void)
{
    return (kp_python_api.is_finalizing && kp_python_api.is_finalizing()) ||
           (kp_python_api.is_ending && kp_python_api.is_ending());
}
