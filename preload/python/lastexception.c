// SPDX-License-Identifier: Apache-2.0
/*
 * lastexception.c - notes the exception that ends the program, and the line of the program it came from
 *
 * Called by: distributed.c and ctl.c (both add the watch), CPython before it calls sys.excepthook, with the GIL.
 *            Cold.
 * Owns:      nothing
 * Memory:    none
 * On fail:   neither the trace nor HOST_PID.ends says how the program ended
 * Safe in:   after fork yes: a child's own exception goes into its own spool
 *
 * CPython tells its audit hooks of an exception that nothing caught (PEP 578), before it prints it. No function of
 * Python's runs here: objects are read by their layout, since reading `tb_frame` would call hooks of the program. An
 * exception that some frame caught and printed begins within that frame's callers, so it ends no program. Of its text
 * 80 bytes are kept: see decisions/186.
 */
#include <errno.h>
#include <string.h>

#include "collector/base/kp_log.h"
#include "collector/base/kp_lostpeer.h"
#include "collector/base/kp_path.h"
#include "collector/record/kp_record.h"
#include "preload/guard.h"
#include "preload/python/pycalls.h"
#include "preload/python_bridge.h"
#include "preload/run.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

/* A traceback and an exception, the same from 3.8 to 3.14; the event of sys.excepthook has hook, type, value, trace. */
enum { TB_NEXT = 16, TB_FRAME = 24, TB_LASTI = 32, TB_LINE = 36, TYPE_OF = 8, TYPE_NAME = 24, ARGS_OF = 24 };
enum { AT_TYPE = 1, AT_VALUE = 2, AT_TRACE = 3, DEPTH_MAX = 2000 };

static const void *code_of(const void *trace)
{
    const struct kp_python_layout *const l = &kp_python_get()->layout;
    return kp_pyframe_code(l, kp_pyframe_of(l, kp_python_at(trace, TB_FRAME)));
}

/* In memory that the code object keeps. "": not a text. */
static const char *code_text(const void *code, size_t offset)
{
    void *const object = kp_python_at(code, offset);
    const bool is_text = object && kp_python_at(object, TYPE_OF) == kp_python_api.text_type;
    const char *const text = is_text ? kp_python_api.text_of(object) : NULL;
    if (!text) kp_python_api.forget_error();
    return text ? text : "";
}

static const char *file_of(const void *trace) { return code_text(code_of(trace), kp_python_get()->layout.code_file); }

/* Nothing called the outermost frame. That of a prompt, or of a notebook's cell, has no file. */
static bool is_of_all(const void *trace)
{
    void *const frame = kp_python_at(trace, TB_FRAME);
    if (file_of(trace)[0] == '<' || !kp_python_api.frame_back) return false;
    void *const back = kp_python_api.frame_back(frame);
    if (back) kp_python_api.drop(back);
    return !back;
}

/* From 3.12 on the line is found when it is asked for. */
static int line_of(const void *trace)
{
    const int line = *(const int *)((const char *)trace + TB_LINE), at = *(const int *)((const char *)trace + TB_LASTI);
    return line >= 0 ? line : kp_python_api.code_line(code_of(trace), at);
}

/* The innermost line of the program's own, else the innermost. */
static const void *place_find(const void *trace, const void *type)
{
    const void *found = NULL, *last = trace;
    for (int i = 0; trace && kp_python_at(trace, TYPE_OF) == type && i < DEPTH_MAX; i++) {
        const char *const file = file_of(trace);
        if (file[0] && file[0] != '<' && !kp_pysite_is_installed(file)) found = trace;
        last = trace;
        trace = kp_python_at(trace, TB_NEXT);
    }
    return found ? found : last;
}

/* Its first argument is the text, or the second one behind a number, as of OSError; no __str__ runs. "": neither. */
static const char *text_of(const void *type, const void *value)
{
    void *const args = value && kp_python_at(value, TYPE_OF) == type ? kp_python_at(value, ARGS_OF) : NULL;
    const char *text = NULL;
    for (int i = 0; args && i < 2 && !text; i++) {
        void *const item = kp_python_api.tuple_item(args, i);
        const bool is_text = item && kp_python_at(item, TYPE_OF) == kp_python_api.text_type;
        text = is_text ? kp_python_api.text_of(item) : NULL;
    }
    if (!text) kp_python_api.forget_error();
    return text ? text : "";
}

/* Copies its first line, or the begin of it. */
static void text_copy(char out[KP_ENDS_TEXT_BYTES], const char *text)
{
    text += strspn(text, " \t\r\n");
    size_t n = strcspn(text, "\r\n");
    const bool is_cut = n > KP_ENDS_TEXT_MOST;
    if (is_cut) n = KP_ENDS_TEXT_MOST;
    while (is_cut && n && ((unsigned char)text[n] & 0xc0) == 0x80) n--;
    kp_fmt(out, KP_ENDS_TEXT_BYTES, "%.*s%s", (int)n, text, is_cut ? "..." : "");
    for (char *c = out; *c; c++)
        if (*c == '\t') *c = ' ';
}

static void exception_note(const void *type, const void *value, const void *trace)
{
    struct kp_run_exception e;
    const char *const full = kp_python_at(type, TYPE_NAME), *const dot = strrchr(full, '.');
    const char *const name = dot ? dot + 1 : full, *const of_trace =
                                                       kp_python_at(kp_python_at(trace, TYPE_OF), TYPE_NAME);
    /* Ctrl-C is a signal's end */
    if (strcmp(of_trace, "traceback") != 0 || !is_of_all(trace) || strcmp(name, "KeyboardInterrupt") == 0) return;
    const void *const at = place_find(trace, kp_python_at(trace, TYPE_OF));
    kp_pysite_prepare_once();
    kp_fmt(e.name, sizeof e.name, "%s", name);
    kp_fmt(e.place, sizeof e.place, "%s:%d %s", kp_pysite_file(file_of(at)), line_of(at),
           code_text(code_of(at), kp_python_get()->layout.code_name));
    kp_path_shorten(e.place);
    const char *const text = text_of(type, value);
    text_copy(e.text, text);
    e.has_lost_peer = kp_lostpeer_is(name, text);
    kp_run_set_exception(&e);
    if (!kp_record_is_open() || kp_record_note("exception", name) != 0) return;
    (void)kp_record_note("exception_at", e.place);
    if (*e.text) (void)kp_record_note("exception_text", e.text);
    if (e.has_lost_peer) (void)kp_record_note("lost_peer", "1");
    const char *const oom = kp_run_last_out_of_memory(kp_steps_seen());
    if (oom) (void)kp_record_note("out_of_memory", oom);
}

static void on_exception(void *args)
{
    struct kp_thread *const t = kp_thread_self;
    const uint64_t inside = t ? kp_load_relaxed(&t->inside) : 0;
    const int kept = errno;
    void *error[3] = {0};
    if (!kp_run_is_active()) return;
    if (t) kp_store_relaxed(&t->inside, 1);
    kp_signal_fence();
    kp_python_api.error_take(&error[0], &error[1], &error[2]);
    const void *const type = kp_python_api.tuple_item(args, AT_TYPE);
    const void *const trace = kp_python_api.tuple_item(args, AT_TRACE);
    if (type && trace) exception_note(type, kp_python_api.tuple_item(args, AT_VALUE), trace);
    kp_python_api.forget_error();
    kp_python_api.error_give(error[0], error[1], error[2]);
    kp_signal_fence();
    if (t) kp_store_relaxed(&t->inside, inside);
    errno = kept;
}

void kp_lastexception_watch(void) { kp_pyaudit_add_exception(on_exception); }

bool kp_lastexception_ask(void)
{
    return kp_python_get() && kp_python_api.call_later && kp_python_later(kp_lastexception_watch);
}
