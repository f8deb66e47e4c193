// SPDX-License-Identifier: Apache-2.0
/*
 * stepcalls.h - shared by the files that count calls of Python functions as steps
 */
#pragma once

#include <stdbool.h>

#include "preload/python/pycalls.h"

/* All need the GIL. */

/* stepreturn.c */
void kp_stepcount_add(void);                /* a call has ended */
void kp_stepcount_module(uintptr_t module); /* an outermost call of this module has ended */

/* stephook.c: from now on each call of this function counts. False: its calls cannot be seen. May be repeated. */
typedef void *(*kp_vectorcall_fn)(void *callable, void *const *args, size_t count, void *keywords);
bool kp_stephook_count(void *function);
bool kp_stephook_set(void *function, kp_vectorcall_fn ours);
void *kp_stephook_call(void *callable, void *const *args, size_t count, void *keywords); /* CPython's own */
void kp_stephook_drop(void *function);                                                   /* CPython's own again */
bool kp_stephook_is_inside(void); /* is this thread in a call that counts? */
bool kp_stephook_is_function(const void *object);
/* Around a call. `is_outermost` is what enter returned; `result` what the call returned, NULL for an exception. */
bool kp_stephook_enter(void);
void kp_stephook_leave(bool is_outermost, void *result);

/* stepfind.c: hooks what the globs name in modules that are loaded; `loaded`: the module that changed. True: found. */
bool kp_stepfind_look(const char *loaded);
bool kp_stepfind_has_plain(void);       /* was a function found that Python code calls as any other? */
bool kp_stepfind_names_main(void);      /* may a glob name a function of __main__? */
bool kp_stepfind_is_code(const void *); /* is this the code of the function that was hooked last? */

/* modulecalls.c: the calls that tell of models. No rows: they count no steps. */
struct kp_phasecall;
unsigned kp_modulecalls_rows(void);
const struct kp_phasecall *kp_modulecalls_row(unsigned at); /* below kp_modulecalls_rows() */

/* phasecalls.c: functions of Lightning and transformers whose calls are phases. Row `at` counts from 0; NULL: no
 * more. */
struct kp_phasecall {
    const char *glob; /* as kp_steps_call_glob */
    kp_vectorcall_fn call;
    bool ends_step;
};
const struct kp_phasecall *kp_phasecalls_row(unsigned at);
bool kp_phasecalls_hook(const struct kp_phasecall *row, void *function); /* as kp_stephook_count */

/* stepgens.c: the call goes on in the generator or coroutine that it returned. False: it returned something else. */
bool kp_stepgens_follow(void *result);
bool kp_stepgens_attach(void);

/* stepeval.c */
void kp_stepeval_begin(void);
void kp_stepeval_pause(bool is_paused); /* while a module loads */
