// SPDX-License-Identifier: Apache-2.0
/*
 * find.c - is CPython in this process, which release, and where are its fields
 *
 * Called by: a source's attach through caller.h (outside hooks, one call at a time). Cold.
 * Owns:      what is known of the interpreter, constant once found
 * Memory:    none. On fail: nothing is found; optimizers are told apart by name.
 *
 * Symbols are looked up among what is loaded; Python is never brought in. No lock of the interpreter is taken and no
 * object of it touched: Py_Version is a word, Py_GetVersion prints constants into a buffer.
 *
 * From 3.13 on _PyRuntime begins with a table of offsets, made for debuggers. It is read for what a version number does
 * not tell: that this build has no GIL, or fields elsewhere.
 */
#include <dlfcn.h>
#include <string.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/caller.h"
#include "preload/python/python.h"
#include "collector/base/kp_poison.h"

static const struct kp_python_layout layouts[] = {
#define KP_PYTHON_LAYOUT(version, cframe, frame, back, code, owner, locals, file, name, ascii, wide)                   \
    {version, cframe, frame, back, code, owner, locals, file, name, ascii, wide},
#include "preload/python/layouts.def"
#undef KP_PYTHON_LAYOUT
};

/* Words of 3.13's _Py_DebugOffsets. */
enum {
    DEBUG_VERSION = 1,
    DEBUG_FREE_THREADED = 2,
    DEBUG_CURRENT_FRAME = 23,
    DEBUG_PREVIOUS = 29,
    DEBUG_EXECUTABLE = 30,
    DEBUG_LOCALS = 32,
    DEBUG_OWNER = 33,
    DEBUG_FILE = 35,
    DEBUG_NAME = 36,
    DEBUG_TYPE = 45,
    DEBUG_TUPLE_ITEM = 51,
    DEBUG_TUPLE_SIZE = 52,
    DEBUG_TEXT_STATE = 68,
    DEBUG_TEXT_LENGTH = 69,
    DEBUG_TEXT_ASCII = 70,
    DEBUG_WORDS = 71,
};

static struct kp_python found;
static _Atomic bool is_found;

const struct kp_python *kp_python_get(void)
{
    return kp_load_acquire(&is_found) ? &found : NULL; /* pairs with: find.c:kp_caller_find */
}

static uint32_t version_find(void)
{
    const unsigned long *hex = dlsym(RTLD_DEFAULT, "Py_Version");
    if (hex) return (uint32_t)(*hex >> 24 & 0xff) * 100 + (uint32_t)(*hex >> 16 & 0xff);
    const char *(*ask)(void) = NULL;
    *(void **)&ask = dlsym(RTLD_DEFAULT, "Py_GetVersion");
    const char *text = ask ? ask() : NULL; /* "3.10.13 (main, ..." */
    if (!text || strncmp(text, "3.", 2) != 0) return 0;
    uint32_t minor = 0;
    for (const char *p = text + 2; *p >= '0' && *p <= '9' && minor < 100; p++) minor = minor * 10 + (uint32_t)(*p - '0');
    return 300 + minor;
}

/* Whether the interpreter's own table says what ours says. */
static bool is_confirmed(const struct kp_python_layout *l)
{
    uint64_t w[DEBUG_WORDS];
    if (l->version < 313) return true;
    const void *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
    if (!runtime || kp_io_peek(runtime, w, sizeof w) != 0 || memcmp(w, "xdebugpy", 8) != 0) return false;
    const bool same_frames = w[DEBUG_CURRENT_FRAME] == l->thread_frame && w[DEBUG_PREVIOUS] == l->frame_back &&
                             w[DEBUG_EXECUTABLE] == l->frame_code && w[DEBUG_LOCALS] == l->frame_locals &&
                             w[DEBUG_OWNER] == l->frame_owner;
    const bool same_objects = w[DEBUG_FILE] == l->code_file && w[DEBUG_NAME] == l->code_name && w[DEBUG_TYPE] == 8 &&
                              w[DEBUG_TUPLE_ITEM] == 24 && w[DEBUG_TUPLE_SIZE] == 16 && w[DEBUG_TEXT_STATE] == 32 &&
                              w[DEBUG_TEXT_LENGTH] == 16 && w[DEBUG_TEXT_ASCII] == l->text_ascii;
    return w[DEBUG_VERSION] >> 16 == 0x030d && w[DEBUG_FREE_THREADED] == 0 && same_frames && same_objects;
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
        if (layout && found.tuple_type) {
            found.layout = *layout;
            kp_store_release(&is_found, true); /* pairs with: find.c:kp_python_get */
        } else {
            kp_log(1, "Python %u.%u: its frames are not known here, so optimizers of one class cannot be told apart",
                   version / 100, version % 100);
        }
    }
    dlerror(); /* a failed look-up of ours is not the host's news */
}
