// SPDX-License-Identifier: Apache-2.0
/*
 * optimizer_find.c - finds the optimizer whose step() is running, in the calling thread's frames; learns of its end
 *
 * Called by: torch/ops.c through python_bridge.h, inside a hook, at the end of an optimizer's step and at no other op;
 *            CPython, before it frees an object of a class that has stepped
 * Owns:      what was seen: the address of torch's wrapper; tp_finalize of the classes that have stepped
 * Memory:    none. Locks: none, not even the GIL, which the caller may or may not have.
 * On fail:   0; the optimizer is then known by its name, as without Python
 * Costs:     8 system calls (process_vm_readv), a few microseconds; about 20 until the wrapper was seen. This is the
 *            only exception to "no system call in a hook": it runs once a step, and a wrong layout does no harm.
 *
 * Until the callback returns, its thread is inside a call that Python made. So its frames, their code objects and their
 * arguments do not change. torch's frames there, innermost first, from 1.13 to 2.15:
 *
 *     torch/_ops.py            __call__
 *     torch/autograd/profiler.py __exit__          of record_function
 *     torch/optim/optimizer.py wrapper(*args, **kwargs)    args[0] is the optimizer
 *
 * A new optimizer may be created in the memory of a freed one, before any optimizer steps again. Then no look at that
 * memory tells that it is another. So tp_finalize of its class calls us first. See decisions/010.
 */
#include <errno.h>
#include <string.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_io.h"
#include "preload/python_bridge.h"
#include "preload/python/python.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

#define FUNCTION "wrapper"
#define FILE_TAIL "optim/optimizer.py"
enum { FRAMES_MAX = 12, FRAME_HEAD = 80, TAIL_MAX = 24, OBJECT_BITS = 48 };
enum { TYPE_FREE = 320, TYPE_FINALIZE = 392 }; /* tp_free and tp_finalize of a PyTypeObject, from 3.8 on */
enum {
    MISSES_MAX = 16
}; /* ranges of that name without a wrapper in a row: the program's own, not worth another look */

static struct kp_optimizer_seen seen;

static bool peek_at(const void *base, size_t offset, void *to, size_t bytes)
{
    return base && kp_io_peek((const uint8_t *)base + offset, to, bytes) == 0;
}

static const void *pointer_in(const uint8_t *bytes, size_t offset)
{
    const void *p;
    memcpy(&p, bytes + offset, sizeof p);
    return p;
}

/* Whether a str ends in `tail` (is it, when `whole`). Characters have 1, 2 or 4 bytes; a home folder may need more than
 * one. */
static bool text_ends(const struct kp_python_layout *l, const void *text, const char *tail, bool whole)
{
    uint8_t head[40], chars[4 * TAIL_MAX];
    const size_t n = strlen(tail);
    if (n > TAIL_MAX || !peek_at(text, 0, head, sizeof head)) return false;
    uint64_t length;
    uint32_t state;
    memcpy(&length, head + 16, sizeof length);
    memcpy(&state, head + 32, sizeof state);
    const uint32_t width = state >> 2 & 7;
    const bool compact = state >> 5 & 1, ascii = state >> 6 & 1;
    if (!compact || (width != 1 && width != 2 && width != 4) || length < n || length > 1u << 16) return false;
    if (whole && length != n) return false;
    const size_t begin = (ascii ? l->text_ascii : l->text_wide) + (length - n) * width;
    if (!peek_at(text, begin, chars, n * width)) return false;
    for (size_t i = 0; i < n; i++)
        for (size_t b = 0; b < width; b++)
            if (chars[i * width + b] != (b == 0 ? (uint8_t)tail[i] : 0)) return false;
    return true;
}

static bool is_step_wrapper(const struct kp_python_layout *l, const void *code)
{
    const void *file = NULL, *name = NULL;
    return peek_at(code, l->code_name, &name, sizeof name) && text_ends(l, name, FUNCTION, true) &&
           peek_at(code, l->code_file, &file, sizeof file) && text_ends(l, file, FILE_TAIL, false);
}

/* Makes an object's identity from its address and type. */
static uint64_t identity_make(const void *object, const void *type)
{
    const uint64_t kind = ((uintptr_t)type >> 4 ^ (uintptr_t)type >> 19) & 0x7fff;
    return KP_STEP_IDENTITY | kind << OBJECT_BITS | (uintptr_t)object;
}

/* 0: the object was freed. Freed memory keeps the reference count 0 until it is used again. */
static uint64_t identity_of(const void *object, const void **type)
{
    const void *head[2]; /* ob_refcnt, ob_type */
    if ((uintptr_t)object >> OBJECT_BITS || !peek_at(object, 0, head, sizeof head) || !head[0]) return 0;
    *type = head[1];
    return identity_make(object, head[1]);
}

/* An optimizer ends: CPython calls this with the GIL, before another object can have its memory. */
static void finalize_watched(void *object) { kp_steps_optimizer_gone(identity_make(object, pointer_in(object, 8))); }

/*
 * Puts finalize_watched into tp_finalize of the class, where it is empty: the class has no __del__. Each class of
 * Python has PyObject_GC_Del in tp_free, which shows that the offsets are right. For other classes kp_caller_is_gone
 * alone tells.
 */
static void class_watch(const struct kp_python *python, struct kp_optimizer_seen *of, const void *type)
{
    const void *release = NULL;
    const void *now = NULL;
    void (*const ours)(void *) = finalize_watched;
    if (type == kp_load_relaxed(&of->watched) || !python->object_free) return;
    kp_store_relaxed(&of->watched, type);
    if (!peek_at(type, TYPE_FREE, &release, sizeof release) || release != python->object_free) return;
    if (!peek_at(type, TYPE_FINALIZE, &now, sizeof now) || now) return;
    (void)kp_io_poke((uint8_t *)(uintptr_t)type + TYPE_FINALIZE, &ours, sizeof ours);
}

/* The first local of wrapper is the tuple `args`. */
static uint64_t wrapper_self(const struct kp_python *python, struct kp_optimizer_seen *of, const void *frame)
{
    const void *args = NULL;
    const size_t items = python->layout.tuple_items;
    const void *tuple[5]; /* ob_refcnt, ob_type, ob_size, from 3.14 on a hash, ob_item[0] */
    if (!peek_at(frame, python->layout.frame_locals, &args, sizeof args)) return 0;
    args = kp_python_unheld(&python->layout, args);
    if (items + 8 > sizeof tuple || !peek_at(args, 0, tuple, items + 8)) return 0;
    if (tuple[1] != python->tuple_type || !tuple[2]) return 0;
    const void *type = NULL;
    const uint64_t optimizer = identity_of(tuple[items / 8], &type);
    if (optimizer) class_watch(python, of, type);
    return optimizer;
}

static const void *frame_innermost(const struct kp_python_layout *l, const void *thread_state)
{
    const void *holder = thread_state, *frame = NULL;
    if (l->thread_cframe && !peek_at(thread_state, l->thread_cframe, &holder, sizeof holder)) return NULL;
    return peek_at(holder, l->thread_frame, &frame, sizeof frame) ? frame : NULL;
}

/* Finds the first frame that runs *code; if that is NULL, the wrapper's frame, and sets *code. */
static const void *frame_find(const struct kp_python_layout *l, const void *thread_state, const void **code)
{
    uint8_t head[FRAME_HEAD];
    const void *frame = frame_innermost(l, thread_state);
    for (int i = 0; frame && i < FRAMES_MAX; i++) {
        if (!peek_at(frame, 0, head, sizeof head)) return NULL;
        const void *runs = kp_python_unheld(l, pointer_in(head, l->frame_code));
        const bool is_python = !l->frame_owner || head[l->frame_owner] < KP_PYTHON_OWNED_BY_C;
        if (is_python && (*code ? runs == *code : is_step_wrapper(l, runs))) {
            *code = runs;
            return frame;
        }
        frame = pointer_in(head, l->frame_back);
    }
    return NULL;
}

/* torch has one wrapper for all classes and keeps it, so its address identifies it until the module is loaded again. */
uint64_t kp_python_optimizer_find(const struct kp_python *python, struct kp_optimizer_seen *of,
                                  const void *thread_state)
{
    const void *code = kp_load_relaxed(&of->wrapper);
    const void *frame = code ? frame_find(&python->layout, thread_state, &code) : NULL;
    if (frame) return wrapper_self(python, of, frame);
    if (kp_load_relaxed(&of->misses) >= MISSES_MAX) return 0;
    code = NULL;
    frame = frame_find(&python->layout, thread_state, &code);
    if (!frame) {
        (void)kp_add_relaxed(&of->misses, 1);
        return 0;
    }
    kp_store_relaxed(&of->misses, 0);
    kp_store_relaxed(&of->wrapper, code);
    return wrapper_self(python, of, frame);
}

uint64_t kp_caller_optimizer(void)
{
    const struct kp_python *python = kp_python_get();
    if (!python) return 0;
    const int kept = errno;
    const uint64_t found = kp_python_optimizer_find(python, &seen, python->thread_state());
    errno = kept;
    return found;
}

bool kp_caller_is_gone(uint64_t optimizer)
{
    const void *object = (const void *)(uintptr_t)(optimizer & ((UINT64_C(1) << OBJECT_BITS) - 1));
    const void *type;
    const int kept = errno;
    const bool gone = identity_of(object, &type) != optimizer;
    errno = kept;
    return gone;
}
