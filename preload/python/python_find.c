// SPDX-License-Identifier: Apache-2.0
/*
 * python_find.c - finds CPython in this process, its release and the layout of its structures
 *
 * Called by: a source's attach through python_bridge.h (outside hooks, one call at a time). Cold.
 * Owns:      what is known of the interpreter, constant once found
 * Memory:    none. On fail: no interpreter; optimizers are told apart by name.
 *
 * Symbols are looked up in loaded modules; Python is never loaded. No lock of the interpreter is taken and no object is
 * used: Py_Version is a variable, Py_GetVersion prints constants into a buffer.
 *
 * From 3.13 on _PyRuntime begins with a table of offsets for debuggers. It tells what the version number does not: that
 * this build has no GIL, or has fields elsewhere.
 */
#include <dlfcn.h>
#include <string.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/python_bridge.h"
#include "preload/python/python.h"
#include "collector/base/kp_poison.h"

static const struct kp_python_layout layouts[] = {
#define KP_PYTHON_LAYOUT(version, ...) {version, __VA_ARGS__},
#include "preload/python/layouts.def"
#undef KP_PYTHON_LAYOUT
};

/* _Py_DebugOffsets: the meaning of its words, for each release that has it. */
enum { DEBUG_VERSION = 1, DEBUG_FREE_THREADED = 2, DEBUG_WORDS = 96 };
struct debug {
    uint32_t version;
    uint8_t current_frame, previous, executable, place, locals, owner, file, name, bytes, type, tuple_items, tuple_size,
        text_state, text_length, text_ascii;
};
static const struct debug debugs[] = {
    {313, 23, 29, 30, 31, 32, 33, 35, 36, 43, 45, 51, 52, 68, 69, 70},
    {314, 26, 32, 33, 34, 35, 36, 40, 41, 48, 51, 57, 58, 78, 79, 80},
};

static struct kp_python found;
static bool has_gil = true;
static char unknown[48];
static _Atomic bool is_found;

const struct kp_python *kp_python_get(void)
{
    return kp_load_acquire(&is_found) ? &found : NULL; /* pairs with: python_find.c:kp_caller_find */
}

const char *kp_python_unknown(void) { return unknown[0] ? unknown : NULL; }

static uint32_t version_find(void)
{
    const unsigned long *hex = dlsym(RTLD_DEFAULT, "Py_Version");
    if (hex) return (uint32_t)(*hex >> 24 & 0xff) * 100 + (uint32_t)(*hex >> 16 & 0xff);
    const char *(*ask)(void) = NULL;
    *(void **)&ask = dlsym(RTLD_DEFAULT, "Py_GetVersion");
    const char *text = ask ? ask() : NULL; /* "3.10.13 (main, ..." */
    if (!text || strncmp(text, "3.", 2) != 0) return 0;
    uint32_t minor = 0;
    for (const char *p = text + 2; *p >= '0' && *p <= '9' && minor < 100; p++)
        minor = minor * 10 + (uint32_t)(*p - '0');
    return 300 + minor;
}

static bool is_same(const uint64_t *w, const struct debug *d, const struct kp_python_layout *l)
{
    const bool same_frames = w[d->current_frame] == l->thread_frame && w[d->previous] == l->frame_back &&
                             w[d->executable] == l->frame_code && w[d->place] == l->frame_place &&
                             w[d->locals] == l->frame_locals && w[d->owner] == l->frame_owner;
    const bool same_code = w[d->file] == l->code_file && w[d->name] == l->code_name && w[d->bytes] == l->code_bytes;
    return same_frames && same_code && w[d->type] == 8 && w[d->tuple_items] == l->tuple_items &&
           w[d->tuple_size] == 16 && w[d->text_state] == 32 && w[d->text_length] == 16 &&
           w[d->text_ascii] == l->text_ascii;
}

/* Does the interpreter's own table agree with ours? */
static bool is_confirmed(const struct kp_python_layout *l)
{
    uint64_t w[DEBUG_WORDS];
    if (l->version < 313) return true;
    const void *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
    if (!runtime || kp_io_peek(runtime, w, sizeof w) != 0 || memcmp(w, "xdebugpy", 8) != 0) return false;
    has_gil = w[DEBUG_FREE_THREADED] == 0;
    for (size_t i = 0; i < sizeof debugs / sizeof *debugs; i++)
        if (debugs[i].version == l->version)
            return w[DEBUG_VERSION] >> 16 == (0x0300 | (l->version - 300)) && has_gil && is_same(w, &debugs[i], l);
    return false;
}

/* KPROF_TEST_FAIL=layout:1:N simulates a Python that has the field N elsewhere. */
static void layout_spoil(struct kp_python_layout *l)
{
    uint16_t *fields[] = {&l->thread_frame, &l->thread_profile, &l->frame_back, &l->frame_code,
                          &l->frame_place,  &l->code_file,      &l->code_name};
    const size_t which = (size_t)-kp_fail_point("layout");
    if (which > 0 && which <= sizeof fields / sizeof *fields)
        *fields[which - 1] += fields[which - 1] == &l->code_name ? -8 : 8;
}

static const struct kp_python_layout *layout_find(uint32_t version)
{
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].version == version && is_confirmed(&layouts[i])) return &layouts[i];
    return NULL;
}

void kp_caller_find(void)
{
    if (kp_load_relaxed(&is_found)) return;
    *(void **)&found.thread_state = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    if (found.thread_state) {
        const uint32_t version = version_find();
        const struct kp_python_layout *layout = layout_find(version);
        found.tuple_type = dlsym(RTLD_DEFAULT, "PyTuple_Type");
        found.object_free = dlsym(RTLD_DEFAULT, "PyObject_GC_Del");
        if (layout && found.tuple_type) {
            found.layout = *layout;
            layout_spoil(&found.layout);
            kp_store_release(&is_found, true); /* pairs with: python_find.c:kp_python_get */
        } else if (!unknown[0]) {
            kp_fmt(unknown, sizeof unknown, "Python %u.%u%s", version / 100, version % 100,
                   has_gil ? "" : " without a GIL");
            kp_log(1, "%s: its frames are not known here, so optimizers of one class cannot be told apart", unknown);
        }
    }
    dlerror(); /* clears our failed look-up, so that the host does not read it */
}
