// SPDX-License-Identifier: Apache-2.0
/*
 * stephook.c - stands in for CPython's own call of single Python functions
 *
 * Called by: CPython, in place of its own call of a counted function (hot); stepfind.c and stepcalls.c
 * Owns:      the vectorcall pointer of hooked functions. Per thread: how deep it is in counted calls.
 * Locks:     the GIL, which CPython holds
 * Memory:    none. No function is kept: CPython passes it to each call, so it may be freed at any time.
 * On fail:   a function that cannot be hooked counts no step
 * Safe in:   after fork yes: calls are passed on
 *
 * CPython calls a function through a pointer in the function object. Only the pointers of the functions named are
 * replaced, so other calls cost nothing, and Python code sees no difference. See decisions/053.
 */
#include "preload/python/steps/stepcalls.h"
#include "collector/base/kp_poison.h"

enum { TYPE_VECTORCALL = 56 }; /* tp_vectorcall_offset, from 3.8 on */

static kp_vectorcall_fn python_call; /* CPython's own, constant once a function was hooked */
static _Thread_local uint32_t depth __attribute__((tls_model("initial-exec")));

bool kp_stephook_enter(void) { return depth++ == 0; }

void kp_stephook_leave(bool is_outermost, void *result)
{
    depth--;
    if (is_outermost && !(result && kp_stepgens_follow(result))) kp_stepcount_add();
}

bool kp_stephook_is_inside(void) { return depth != 0; }

static void *call_counted(void *callable, void *const *args, size_t count, void *keywords)
{
    const bool is_outermost = kp_stephook_enter();
    void *result = python_call(callable, args, count, keywords);
    kp_stephook_leave(is_outermost, result);
    return result;
}

void *kp_stephook_call(void *callable, void *const *args, size_t count, void *keywords)
{
    return python_call(callable, args, count, keywords);
}

static kp_vectorcall_fn *vector_at(void *function)
{
    const size_t offset = (size_t)(uintptr_t)kp_python_at(kp_python_api.function_type, TYPE_VECTORCALL);
    return (kp_vectorcall_fn *)(void *)((uint8_t *)function + offset);
}

bool kp_stephook_set(void *function, kp_vectorcall_fn ours)
{
    kp_vectorcall_fn *at = vector_at(function);
    if (*at == ours) return true;
    if (!python_call) python_call = *at;
    if (*at != python_call) return false; /* another library has set it */
    if (kp_python_api.vector_set) kp_python_api.vector_set(function, (void *)(uintptr_t)ours);
    else *at = ours;
    return *at == ours;
}

void kp_stephook_drop(void *function)
{
    kp_vectorcall_fn *at = vector_at(function);
    if (kp_python_api.vector_set) kp_python_api.vector_set(function, (void *)(uintptr_t)python_call);
    else *at = python_call;
}

bool kp_stephook_is_function(const void *object) { return kp_python_at(object, 8) == kp_python_api.function_type; }

bool kp_stephook_count(void *function) { return kp_stephook_set(function, call_counted); }
