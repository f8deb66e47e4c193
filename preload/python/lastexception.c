// SPDX-License-Identifier: Apache-2.0
/*
 * lastexception.c - notes the exception that ends the program, and the line that calls sys.exit() or raises SystemExit
 *
 * Called by: distributed.c and ctl.c (both add the watch), CPython before it calls sys.excepthook, in place of
 *            three functions of sys and where a SystemExit is made, with the GIL; exit.c, execs.c and childends.c at
 *            the end. Cold.
 * Owns:      what SystemExit said last; the pointers by which CPython calls those four
 * Locks:     the GIL
 * Memory:    none
 * On fail:   neither the trace nor HOST_PID.ends says how the program ended
 * Safe in:   after fork yes: a child's own exception goes into its own spool
 *
 * CPython tells its audit hooks of an exception that nothing caught (PEP 578), before it prints it. An exception that
 * some frame caught and printed begins within that frame's callers, so it ends no program. Yet one for which a handler
 * calls sys.exit() with a status does, as that of a function which torch starts as a process. The one that a process of
 * multiprocessing prints ends that process. exit(), quit() and `raise` make a SystemExit without sys.exit(): it is seen
 * where the object is made. See decisions/204 and 205.
 */
#include <string.h>
#include <unistd.h>

#include "collector/base/sys/kp_io.h"
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
enum { METHOD_OF = 16, TUPLE_COUNT = 16, TYPE_NAME = 24, TYPE_INIT = 296, WRAPPED = 48 };

struct last_leaving {
    int status; /* 0: nothing was said */
    bool has_exception;
    char place[KP_ENDPLACE_BYTES];     /* " at train.py:41 main (in argparse.py:2640 exit)"; "": not known */
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

/* A handled exception may be a library's: which of the program's lines called that? */
static void line_take(struct kp_run_exception *e, const char *place)
{
    const char *const within = strstr(place, KP_ENDPLACE_WITHIN);
    const char *const line = place + sizeof " at " - 1;
    if (*place && !e->is_own)
        kp_fmt(e->place, sizeof e->place, "%.*s", (int)(within ? within - line : (long)strlen(line)), line);
}

static bool is_in_main(void) { return kp_io_tid() == (uint32_t)getpid(); } /* in another thread it ends that */

static void leaving_note(int status)
{
    static struct last_leaving next; /* with the GIL */
    next.status = status;
    if (!status) return;
    next.has_exception = handled_read(&next.exception);
    kp_pysite_prepare_once();
    kp_endplace_put(next.place, sizeof next.place);
    if (next.has_exception) line_take(&next.exception, next.place);
    leaving_take(&next);
}

/* sys.exit() has a SystemExit made with its status: now, or before 3.12 once a frame handles it. */
static int made_next = -1; /* that status; -1: none */

static void exit_note(void *said)
{
    if (!is_in_main()) return;
    made_next = status_of(said);
    leaving_note(made_next);
}

static void made_note(void *args)
{
    const intptr_t count = (intptr_t)kp_python_at(args, TUPLE_COUNT);
    if (!is_in_main()) return;
    const int status = status_of(count == 1 ? kp_python_api.tuple_item(args, 0) : count ? args : NULL);
    const bool is_of_exit = status == made_next;
    made_next = -1;
    if (!is_of_exit) leaving_note(status);
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

/* SystemExit's own. */
typedef int (*init_fn)(void *self, void *args, void *named);
static init_fn real_init;
static int tap_init(void *self, void *args, void *named)
{
    if (kp_run_is_owner()) inside(made_note, args);
    return real_init(self, args, named);
}

static void init_poke(void *place)
{
    const init_fn ours = tap_init;
    init_fn now;
    memcpy(&now, place, sizeof now);
    if (!real_init) real_init = now;
    if (now && now == real_init) (void)kp_io_poke(place, &ours, sizeof ours);
}

/* `__init__` of the class is what classes of the program get that come from it, or call by super(). It wraps the same
 * function, which tells that the offsets are those of this Python. */
static void init_tap_set(void)
{
    void *const *const type = kp_python_api.system_exit;
    if (!type || !*type || strcmp(kp_python_at(*type, TYPE_NAME), "SystemExit") != 0) return;
    void *const method = kp_python_api.member_get(*type, "__init__");
    if (!method) return;
    char *const slot = (char *)*type + TYPE_INIT, *const wrapped = (char *)method + WRAPPED;
    if (strcmp(kp_pyobject_type(method), "wrapper_descriptor") == 0 && memcmp(slot, wrapped, sizeof(init_fn)) == 0) {
        init_poke(slot);
        init_poke(wrapped);
    }
    kp_python_api.drop(method);
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
    if (kp_python_api.handled_get && kp_python_api.tuple_item) init_tap_set();
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
