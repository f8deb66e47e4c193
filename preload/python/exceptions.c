// SPDX-License-Identifier: Apache-2.0
/*
 * exceptions.c - reads an exception of Python: its type, its text, the program's line, and what it came from
 *
 * Called by: lastexception.c, on the thread of the exception, with the GIL. Cold.
 * Owns:      nothing
 * Memory:    none
 * On fail:   a text is ""
 * Safe in:   after fork yes
 *
 * No function of Python's runs here: objects are read by their layout, since reading `tb_frame` would call hooks of the
 * program. 80 bytes of a text are kept: see decisions/186. An exception that was raised from another one, or while
 * another was handled, came from that; one of another process, or of a DataLoader's worker, has that as its text.
 */
#include "preload/python/exceptions.h"

#include <string.h>

#include "collector/base/text/kp_exceptiontext.h"
#include "collector/base/kp_log.h"
#include "collector/base/text/kp_lostpeer.h"
#include "collector/base/sys/kp_path.h"
#include "collector/base/text/kp_traceback.h"
#include "preload/python/pycalls.h"
#include "preload/python_bridge.h"
#include "collector/base/kp_poison.h"

/* A traceback and an exception, the same from 3.8 to 3.14. */
enum { TB_NEXT = 16, TB_FRAME = 24, TB_LASTI = 32, TB_LINE = 36, TYPE_OF = 8, TYPE_NAME = 24, ARGS_OF = 24 };
/* Behind the arguments; from 3.11 on notes come before, and groups have their exceptions. */
enum { TRACE_OF = 32, CONTEXT_OF = 40, CAUSE_OF = 48, HIDES_CONTEXT = 56, NOTES = 8, GROUP_OF = 80 };
enum { DEPTH_MAX = 2000, CHAIN_MAX = 32, ROOT_PLACE_MOST = 160 };

static const void *code_of(const void *trace)
{
    const struct kp_python_layout *const l = &kp_python_get()->layout;
    return kp_pyframe_code(l, kp_pyframe_of(l, kp_python_at(trace, TB_FRAME)));
}

/* In memory that the code object keeps. "": not a text. */
static const char *code_text(const void *code, size_t offset)
{
    const char *const text = kp_pyobject_text(kp_python_at(code, offset));
    return text ? text : "";
}

static const char *file_of(const void *trace) { return code_text(code_of(trace), kp_python_get()->layout.code_file); }

bool kp_exception_is_trace(const void *object) { return strcmp(kp_pyobject_type(object), "traceback") == 0; }

/* That of a prompt, or of a notebook's cell, has no file. */
bool kp_exception_is_of_all(const void *trace)
{
    const struct kp_python_layout *const l = &kp_python_get()->layout;
    void *const frame = kp_python_at(trace, TB_FRAME);
    if (file_of(trace)[0] == '<') return false;
    if (!l->object_frame) return !kp_python_at(frame, l->frame_back); /* 3.8 has no function for it */
    if (!kp_python_api.frame_back) return false;
    void *const back = kp_python_api.frame_back(frame);
    KP_PYTHON_DROP(back);
    return !back;
}

bool kp_exception_is_under(const void *trace, const char *function)
{
    return strcmp(code_text(code_of(trace), kp_python_get()->layout.code_name), function) == 0;
}

/* From 3.12 on the line is found when it is asked for. */
static int line_of(const void *trace)
{
    const int line = *(const int *)((const char *)trace + TB_LINE), at = *(const int *)((const char *)trace + TB_LASTI);
    return line >= 0 ? line : kp_python_api.code_line(code_of(trace), at);
}

/* The innermost line of the program's own, else the innermost. */
static const void *place_find(const void *trace)
{
    const void *found = NULL, *last = trace;
    const void *const type = kp_python_at(trace, TYPE_OF);
    for (int i = 0; trace && kp_python_at(trace, TYPE_OF) == type && i < DEPTH_MAX; i++) {
        if (kp_pyfile_is_own(file_of(trace))) found = trace;
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
    for (int i = 0; args && i < 2 && !text; i++) text = kp_pyobject_text(kp_python_api.tuple_item(args, i));
    return text ? text : "";
}

static const char *name_of(const void *type)
{
    const char *const full = kp_python_at(type, TYPE_NAME), *const dot = strrchr(full, '.');
    return dot ? dot + 1 : full;
}

static void place_put(char *out, size_t bytes, const void *at)
{
    kp_fmt(out, bytes, "%s:%d %s", kp_pysite_file(file_of(at)), line_of(at),
           code_text(code_of(at), kp_python_get()->layout.code_name));
    kp_path_shorten(out);
}

/* ---- what it came from ---- */

static const void *member(const void *value, size_t offset)
{
    return kp_python_at(value, offset + (kp_python_get()->layout.version >= 311 ? NOTES : 0));
}

/* The first exception of a group, else the cause, else what was handled, unless `from None` hides it. */
static const void *came_from(const void *value)
{
    const size_t hides = HIDES_CONTEXT + (kp_python_get()->layout.version >= 311 ? NOTES : 0);
    const char *const name = name_of(kp_python_at(value, TYPE_OF));
    if (strcmp(name, "ExceptionGroup") == 0 || strcmp(name, "BaseExceptionGroup") == 0) {
        void *const all = kp_python_get()->layout.version >= 311 ? kp_python_at(value, GROUP_OF) : NULL;
        return all ? kp_python_api.tuple_item(all, 0) : NULL;
    }
    if (member(value, CAUSE_OF)) return member(value, CAUSE_OF);
    return ((const char *)value)[hides] ? NULL : member(value, CONTEXT_OF);
}

static const void *root_of(const void *value)
{
    for (int i = 0; i < CHAIN_MAX; i++) {
        const void *const before = came_from(value);
        if (!before) break;
        value = before;
    }
    return value;
}

static void root_put(struct kp_run_exception *out, const char *name, const char *text, const char *place)
{
    char said[KP_ENDS_TEXT_BYTES];
    kp_exceptiontext_copy(said, sizeof said, text);
    kp_fmt(out->root, sizeof out->root, "%s%s%s%s%s%.*s", name, *said ? " \"" : "", said, *said ? "\"" : "",
           *place ? " at " : "", (int)strnlen(place, ROOT_PLACE_MOST), place);
}

/* The place in another process's traceback, which the text has. */
static bool root_read(struct kp_run_exception *out, const char *text)
{
    struct kp_traceback block;
    char place[sizeof block.file + sizeof block.function + 16];
    if (!kp_traceback_next(&text, &block, kp_pyfile_is_own)) return false;
    kp_fmt(place, sizeof place, "%s:%d %s", kp_pysite_file(block.file), block.line, block.function);
    root_put(out, block.type, block.text, place);
    return true;
}

/* One that no line of the program raised, and that says nothing, explains nothing: an empty queue that torch looked at.
 */
static void root_find(struct kp_run_exception *out, const void *value)
{
    const void *const root = root_of(value), *const type = kp_python_at(root, TYPE_OF);
    const char *const text = text_of(type, root);
    const void *const trace = member(root, TRACE_OF);
    const void *const at = kp_exception_is_trace(trace) ? place_find(trace) : NULL;
    char place[sizeof out->place] = "";
    if (root_read(out, text) || root == value) return;
    if (at) place_put(place, sizeof place, at);
    if (*text || (at && kp_pyfile_is_own(file_of(at)))) root_put(out, name_of(type), text, place);
}

bool kp_exception_read(struct kp_run_exception *out, const void *type, const void *value, const void *trace)
{
    if (!type || !kp_exception_is_trace(trace)) return false;
    *out = (struct kp_run_exception){0};
    kp_pysite_prepare_once();
    kp_fmt(out->name, sizeof out->name, "%s", name_of(type));
    const void *const at = place_find(trace);
    out->is_own = kp_pyfile_is_own(file_of(at));
    place_put(out->place, sizeof out->place, at);
    const char *const text = text_of(type, value);
    kp_exceptiontext_copy(out->text, sizeof out->text, text);
    out->has_lost_peer = kp_lostpeer_is(out->name, text);
    if (value && kp_python_at(value, TYPE_OF) == type) root_find(out, value);
    return true;
}
