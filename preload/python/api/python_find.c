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
#include "collector/base/text/kp_digits.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/python_bridge.h"
#include "preload/python/python.h"
#include "collector/base/kp_poison.h"

static const struct kp_python_layout layouts[] = {
#define KP_PYTHON_LAYOUT(version, ...) {version, __VA_ARGS__},
#include "preload/python/api/layouts.def"
#undef KP_PYTHON_LAYOUT
};

/* _Py_DebugOffsets: the meaning of its words, for each release that has it. */
enum { DEBUG_VERSION = 1, DEBUG_FREE_THREADED = 2, DEBUG_WORDS = 96 };
enum { FIND_NAPS = 200, FIND_NAP_NS = 1000000, PLACE_MAX = 4096 };
struct debug {
    uint32_t version;
    uint8_t current_frame, previous, executable, place, locals, owner, file, name, bytes, type, tuple_items, tuple_size,
        text_state, text_length, text_ascii, thread_next, thread_id, lines, first_line;
};
static const struct debug debugs[] = {
    {313, 23, 29, 30, 31, 32, 33, 35, 36, 43, 45, 51, 52, 68, 69, 70, 21, 24, 38, 39},
    {314, 26, 32, 33, 34, 35, 36, 40, 41, 48, 51, 57, 58, 78, 79, 80, 24, 27, 43, 44},
};

static struct kp_python found;
static bool has_gil = true;
static char unknown[48];
static _Atomic bool is_found;

const struct kp_python *kp_python_get(void)
{
    return kp_load_acquire(&is_found) ? &found : NULL; /* pairs with: python_find.c:find */
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
    return 300 + (uint32_t)kp_digits(text + 2);
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

/* Fields that only pywhere.c reads are as the table says. A place that no structure has means: not known (thread_id
 * 0). */
static void places_take(const uint64_t *w, const struct debug *d)
{
    const bool are_known = w[d->thread_next] == KP_PYTHON_THREAD_NEXT && w[d->thread_id] < PLACE_MAX &&
                           w[d->thread_id + 1] == w[d->thread_id] + 8 && w[d->lines] < PLACE_MAX &&
                           w[d->first_line] < PLACE_MAX;
    found.layout.thread_id = are_known ? (uint16_t)w[d->thread_id] : 0;
    found.layout.code_lines = (uint16_t)w[d->lines];
    found.layout.code_line = (uint16_t)w[d->first_line];
}

static const struct debug *debug_of(uint32_t version)
{
    for (size_t i = 0; i < sizeof debugs / sizeof *debugs; i++)
        if (debugs[i].version == version) return &debugs[i];
    return NULL;
}

/* Does the interpreter's own table agree with ours? Then ours becomes that of the interpreter found. */
static bool is_confirmed(const struct kp_python_layout *l)
{
    uint64_t w[DEBUG_WORDS];
    const struct debug *const d = debug_of(l->version);
    found.layout = *l;
    if (l->version < 313) return true;
    const void *runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
    if (!runtime || kp_io_peek(runtime, w, sizeof w) != 0 || memcmp(w, "xdebugpy", 8) != 0) return false;
    has_gil = w[DEBUG_FREE_THREADED] == 0;
    const bool is_right = d && w[DEBUG_VERSION] >> 16 == (0x0300 | (l->version - 300)) && has_gil && is_same(w, d, l);
    if (is_right) places_take(w, d);
    return is_right;
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

/* The facts that a thread without the GIL asks for. */
static void others_find(void)
{
    *(void **)&found.main_interpreter = dlsym(RTLD_DEFAULT, "PyInterpreterState_Main");
    *(void **)&found.first_thread = dlsym(RTLD_DEFAULT, "PyInterpreterState_ThreadHead");
    *(void **)&found.is_initialized = dlsym(RTLD_DEFAULT, "Py_IsInitialized");
    *(void **)&found.is_ending = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    if (!found.is_ending) *(void **)&found.is_ending = dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
    found.code_type = dlsym(RTLD_DEFAULT, "PyCode_Type");
    found.text_type = dlsym(RTLD_DEFAULT, "PyUnicode_Type");
    found.runtime = dlsym(RTLD_DEFAULT, "_PyRuntime");
}

static void find(void)
{
    *(void **)&found.thread_state = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
    if (found.thread_state) {
        const uint32_t version = version_find();
        const struct kp_python_layout *layout = layout_find(version);
        found.tuple_type = dlsym(RTLD_DEFAULT, "PyTuple_Type");
        found.object_free = dlsym(RTLD_DEFAULT, "PyObject_GC_Del");
        others_find();
        if (layout && found.tuple_type) {
            layout_spoil(&found.layout);
            kp_store_release(&is_found, true); /* pairs with: python_find.c:kp_python_get */
        } else if (!unknown[0]) {
            kp_fmt(unknown, sizeof unknown, "Python %u.%u%s", version / 100, version % 100,
                   has_gil ? "" : " without a GIL");
            kp_log(1, "%s: its frames are not known here, so optimizers of one class cannot be distinguished", unknown);
        }
    }
    dlerror(); /* clears our failed look-up, so that the host does not read it */
}

/* One thread looks; another waits for it, which is a matter of some look-ups. */
void kp_caller_find(void)
{
    static _Atomic bool is_looking;
    for (int i = 0; !kp_load_acquire(&is_found) && i < FIND_NAPS; i++) { /* pairs with: python_find.c:find */
        if (kp_exchange_acq_rel(&is_looking, true)) {
            kp_io_nap(FIND_NAP_NS);
            continue;
        }
        find();
        (void)kp_exchange_acq_rel(&is_looking, false);
        break;
    }
}
