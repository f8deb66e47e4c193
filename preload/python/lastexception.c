// SPDX-License-Identifier: Apache-2.0
/*
 * lastexception.c - notes the exception that ends the program, and the line that calls sys.exit()
 *
 * Called by: distributed.c and ctl.c (both add the watch), CPython before it calls sys.excepthook, in place of
 *            three functions of sys, with the GIL; exit.c, execs.c and childends.c at the end. Cold.
 * Owns:      what sys.exit() said last; the pointers by which CPython calls those three
 * Locks:     the GIL
 * Memory:    none
 * On fail:   neither the trace nor HOST_PID.ends says how the program ended
 * Safe in:   after fork yes: a child's own exception goes into its own spool
 *
 * CPython tells its audit hooks of an exception that nothing caught (PEP 578), before it prints it. An exception that
 * some frame caught and printed begins within that frame's callers, so it ends no program. Yet one for which a handler
 * calls sys.exit() with a status does, as that of a function which torch starts as a process. The one that a process of
 * multiprocessing prints ends that process. See decisions/204.
 */
#include <string.h>
#include <unistd.h>

#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/guard.h"
#include "preload/python/exceptions.h"
#include "preload/python/pycalls.h"
#include "preload/python_bridge.h"
#include "preload/run.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

enum { AT_TYPE = 1, AT_VALUE = 2, AT_TRACE = 3 }; /* the event of sys.excepthook has hook, type, value, trace */
enum { METHOD_OF = 16 };

struct last_leaving {
    int status; /* 0: nothing was said */
    bool has_exception;
    char place[480];                   /* " at train.py:41 main"; "": no line of the program's own */
    struct kp_run_exception exception; /* which was handled */
};
static struct last_leaving leaving;

static void exception_keep(const struct kp_run_exception *e, int (*note)(const char *key, const char *value))
{
    const char *const oom = kp_run_last_out_of_memory(kp_steps_seen());
    kp_run_set_exception(e);
    if (!kp_record_is_open() || note("exception", e->name) != 0) return;
    (void)note("exception_at", e->place);
    if (*e->text) (void)note("exception_text", e->text);
    if (*e->root) (void)note("exception_root", e->root);
    if (e->has_lost_peer) (void)note("lost_peer", "1");
    if (oom) (void)note("out_of_memory", oom);
}

/* Ctrl-C is a signal's end, and SystemExit is no failure. */
static bool is_failure(const struct kp_run_exception *e)
{
    return strcmp(e->name, "KeyboardInterrupt") != 0 && strcmp(e->name, "SystemExit") != 0;
}

static void exception_note(void *args)
{
    struct kp_run_exception e;
    const void *const type = kp_python_api.tuple_item(args, AT_TYPE), *const value =
                                                                          kp_python_api.tuple_item(args, AT_VALUE);
    const void *const trace = kp_python_api.tuple_item(args, AT_TRACE);
    if (!kp_exception_is_trace(trace) || !kp_exception_is_of_all(trace)) return;
    if (kp_exception_read(&e, type, value, trace) && is_failure(&e)) exception_keep(&e, kp_record_note);
}

/* Calls `what` as a hook: without the exception that is set, which stays. */
static void inside(void (*what)(void *), void *context)
{
    struct kp_pyaside aside;
    if (!kp_run_is_active()) return;
    kp_pyaside_begin(&aside, kp_thread_self);
    what(context);
    kp_pyaside_end(&aside);
}

static void on_exception(void *args) { inside(exception_note, args); }

/* ---- sys.exit() ---- */

static bool handled_read(struct kp_run_exception *out)
{
    void *now[3] = {0};
    kp_python_api.handled_get(&now[0], &now[1], &now[2]);
    const bool is_read = kp_exception_read(out, now[0], now[1], now[2]) && is_failure(out);
    KP_PYTHON_DROP(now[0], now[1], now[2]);
    return is_read;
}

/* As CPython makes it of what sys.exit() has: a number, None, or a text, which it prints. */
static int status_of(void *said)
{
    const char *const type = said ? kp_pyobject_type(said) : "NoneType";
    const bool is_number = strcmp(type, "int") == 0 || strcmp(type, "bool") == 0;
    if (is_number) return (int)kp_python_api.int_value(said) & 0xff;
    return strcmp(type, "NoneType") != 0;
}

/* One that says no more than the last, as that of multiprocessing's own main, leaves what is known. */
static void leaving_take(struct last_leaving *next)
{
    if (!next->status || (next->status == leaving.status && !next->has_exception && !*next->place)) return;
    leaving = *next;
}

static void exit_note(void *said)
{
    static struct last_leaving next; /* with the GIL */
    struct kp_pywhere_frame at;
    next.status = status_of(said);
    next.place[0] = '\0';
    if (!next.status || kp_io_tid() != (uint32_t)getpid()) return; /* in another thread it ends that */
    next.has_exception = handled_read(&next.exception);
    kp_pysite_prepare_once();
    if (kp_pywhere_own(&at))
        kp_fmt(next.place, sizeof next.place, " at %s:%d %s", kp_pysite_file(at.file), at.line, at.function);
    if (*next.place && !next.exception.is_own) /* of a library: which of the program's lines called it? */
        kp_fmt(next.exception.place, sizeof next.exception.place, "%s", next.place + sizeof " at " - 1);
    leaving_take(&next);
}

/* Python's own main of a process (multiprocessing) prints it, and ends with status 1. */
static void print_note(void *unused)
{
    static struct last_leaving next; /* with the GIL */
    void *now[3] = {0};
    (void)unused;
    kp_python_api.handled_get(&now[0], &now[1], &now[2]);
    const bool is_of_process = kp_exception_is_trace(now[2]) && kp_exception_is_under(now[2], "_bootstrap");
    KP_PYTHON_DROP(now[0], now[1], now[2]);
    if (!is_of_process) return;
    next.status = 1;
    next.has_exception = handled_read(&next.exception);
    leaving_take(&next);
}

/* ---- functions of the module sys ---- */

enum { TAKES_NONE = 4, TAKES_ARRAY = 128 }; /* METH_NOARGS, METH_FASTCALL */
static kp_python_call_fn real_exit, real_exc_info, real_exception;
static void *tap_exit(void *module, void *args, void *count)
{
    if (kp_run_is_owner()) inside(exit_note, count ? *(void **)args : NULL);
    return real_exit(module, args, count);
}

static void *tap_exc_info(void *module, void *args, void *count)
{
    if (kp_run_is_owner()) inside(print_note, NULL);
    return real_exc_info(module, args, count);
}

static void *tap_exception(void *module, void *args, void *count)
{
    if (kp_run_is_owner()) inside(print_note, NULL);
    return real_exception(module, args, count);
}

/* `traceback` asks the last or, from 3.12 on, the one before. */
static const struct {
    const char *name;
    int flags;
    kp_python_call_fn ours, *real;
} taps[] = {{"exit", TAKES_ARRAY, tap_exit, &real_exit},
            {"exc_info", TAKES_NONE, tap_exc_info, &real_exc_info},
            {"exception", TAKES_NONE, tap_exception, &real_exception}};

/* CPython also calls it without a look at the object. Whatever the program has in its place is left. */
static void tap_set(size_t at)
{
    void *const object = kp_python_api.sys_get(taps[at].name);
    if (strcmp(kp_pyobject_type(object), "builtin_function_or_method") != 0) return;
    struct kp_python_method *const m = kp_python_at(object, METHOD_OF);
    const kp_python_call_fn now = kp_load_relaxed(&m->call);
    if (now == taps[at].ours || strcmp(m->name, taps[at].name) != 0 || m->flags != taps[at].flags) return;
    *taps[at].real = now;
    (void)kp_io_poke(&m->call, &taps[at].ours, sizeof m->call);
}

static void taps_set(void *unused)
{
    (void)unused;
    for (size_t i = 0; kp_python_api.handled_get && i < sizeof taps / sizeof *taps; i++) tap_set(i);
}

void kp_lastexception_watch(void)
{
    kp_pyaudit_add_exception(on_exception);
    inside(taps_set, NULL);
}

bool kp_lastexception_ask(void)
{
    return kp_python_get() && kp_python_api.call_later && kp_python_later(kp_lastexception_watch);
}

const char *kp_lastexception_leave(int status)
{
    if (!status || status != leaving.status) return "";
    if (leaving.has_exception && !kp_run_exception()) exception_keep(&leaving.exception, kp_record_note_try);
    return leaving.place;
}
