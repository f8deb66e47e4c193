// SPDX-License-Identifier: Apache-2.0
/*
 * pycalls.h - shared by the files that record calls of Python functions
 */
#pragma once

#include "collector/base/sys/kp_clock.h"
#include "collector/format/kp_python.h"
#include "collector/record/kp_record.h"
#include "preload/python/api/pyapi.h"

/* An open call. */
struct kp_py_open {
    struct kp_rec_pycall *rec; /* NULL: not recorded */
    const void *frame;         /* its frame object; for a C function the caller's, with the lowest bit set */
    uint8_t marks;
};
/* The name of a call site; `check` tells a code object from a later one at the same address. */
struct kp_py_site {
    uint64_t callee, caller, check;
    uint32_t name;
    uint8_t marks;
};
enum { KP_PY_STARTS_THREAD = 1, KP_PY_SETS_PROFILE = 2 }; /* marks of C functions that start a thread, set a profile */
enum { KP_PY_SITES = 8192, KP_PY_DEPTH = 2048 };
enum { KP_PY_MODULES = 4096, KP_PY_MODULE_WAYS = 4 }; /* a module may lie at so many places of the table */
struct kp_pycalls {                                   /* one for each thread, in source_state */
    uint32_t cycle, depth;                            /* depth may exceed KP_PY_DEPTH: deeper calls are not recorded */
    uint32_t thread_no;                               /* number of its thread, since a struct kp_thread is used again */
    struct kp_py_open open[KP_PY_DEPTH];
    struct kp_py_site sites[KP_PY_SITES];
    struct kp_py_site modules[KP_PY_MODULES]; /* calls of modules; callee: the object */
};

/* pycalls.c: what CPython of that release shall call at each call and return of a thread; the GIL is held. NULL: not
 * known */
kp_python_profile_fn kp_pycalls_event_of(uint32_t version);
/* Is a call of Python open on the thread, and none of C in it? */
bool kp_pycalls_is_in_python(const struct kp_thread *t, uint64_t gate);
/* Writes the calling thread's open frames as its first records of the gate's cycle. Inside a hook, with the GIL. */
void kp_pycalls_begin(struct kp_thread *t, uint64_t gate);
void kp_pycalls_taken_over(void); /* ends the calls that are open on the calling thread: it has ours no more */
void kp_pycalls_window(uint32_t cycle, uint64_t begin_ticks); /* before a window's first event */

/* call_text.c: names for call sites. The GIL is held; may take microseconds. 0: lost. */
uint32_t kp_pysite_call(struct kp_thread *t, void *frame);
uint32_t kp_pysite_c_call(struct kp_thread *t, void *frame, const void *function, uint8_t *marks);
uint32_t kp_pysite_module(struct kp_thread *t, void *frame, const void *self);
void kp_pysite_prepare(void);      /* once a window: reads the folders that are cut off file names */
void kp_pysite_prepare_once(void); /* unless a window did */
const char *
kp_pysite_file(const char *file); /* leaves out the folder that is cut off; also without the GIL once prepared */

/* packages.c: a file in one of Python's own folders, without that folder. Any thread, also inside hooks. */
void kp_pypackage_saw(const char *file);
void kp_pypackages_note(void);   /* writes what is new into the spool; one thread at a time */
void kp_pypackages_forget(void); /* a forked child has a spool of its own */

/*
 * stepcalls.c: kp_run_modules_changed is called when CPython has started and is about to run the program; `exec`, if
 * not NULL, before each module's code and the program's
 */
void kp_pyaudit_add(void (*exec)(void));
void kp_pyaudit_add_exception(void (*exception)(void *args)); /* one that nothing caught is about to be printed */

/* lastexception.c: with the GIL. Notes the exception that ends the program from now on. */
void kp_lastexception_watch(void);

/* caller_stack.c: the line at a place (kp_pyframe_place); below 0: none */
int kp_pystack_line(const struct kp_python_layout *l, const void *code, uint64_t place);
/* The hash of a thread's frames: a function for each release, NULL for one that is not known (caller_stack.c). */
typedef uint64_t (*kp_pystack_key_fn)(const void *thread);
kp_pystack_key_fn kp_pystack_key_of(uint32_t version);
/* Calls fn for the frames of the calling thread, from the innermost on, until it returns false. `qualified` is
 * "Net.forward", "" before Python 3.11. */
typedef bool (*kp_pystack_frame_fn)(void *context, const char *file, int line, const char *function,
                                    const char *qualified);
void kp_pystack_each(const struct kp_python_layout *l, const void *thread, kp_pystack_frame_fn fn, void *context);
void kp_callsites_enable(void); /* callsite.c: the layout of frames is proved. More than once */
/* Enables kp_caller_stack: call it once the layout is proved and the folders are known */
void kp_pystacks_enable(void);
void kp_pylines_enable(void); /* the same for kp_caller_line */

/* profile.c: the GIL is held. `thread`: a PyThreadState. */
void kp_pyprofile_attach(kp_python_profile_fn ours);
kp_python_profile_fn kp_pyprofile_of(const void *thread);
bool kp_pyprofile_is_ours(const void *thread);
bool kp_pyprofile_is_right(void *thread); /* sets ours on the calling thread, checks the layout by it, and removes it */
void kp_pyprofile_set_all(void);          /* sets ours on each thread without a profile function */
void kp_pyprofile_replaced(void);         /* the program is about to set a profile function of its own */
void kp_pyprofile_remove(void);           /* from the calling thread */

/* program_profile.c: the GIL is held. */
/* Once `ours` is what python_source.c sets. `give_up`: the calling thread has ours no more; `take_up`: the program
 * removed a function of its own, so ours may be set. */
void kp_pyhandover_attach(kp_python_profile_fn ours, void (*give_up)(void), void (*take_up)(void));
void kp_pyhandover_find(void); /* a window begins: finds what sets profile functions */
void kp_pyhandover_setter(
    const void *function); /* a C function is about to be called under ours; it may set a profile function */

static inline const void *kp_pyframe_of(const struct kp_python_layout *l, const void *object)
{
    return l->object_frame ? kp_python_at(object, l->object_frame) : object;
}
static inline const void *kp_pyframe_code(const struct kp_python_layout *l, const void *frame)
{
    return kp_python_unheld(l, kp_python_at(frame, l->frame_code));
}
/* A frame's position in its code as one number: from 3.11 on an address. Before, the offset is added to the code
 * object's address shifted left by 16. */
static inline uint64_t kp_pyframe_place(const struct kp_python_layout *l, const void *frame)
{
    if (l->object_frame) return (uint64_t)(uintptr_t)kp_python_at(frame, l->frame_place);
    const int32_t at = *(const int32_t *)((const uint8_t *)frame + l->frame_place);
    return ((uint64_t)(uintptr_t)kp_python_at(frame, l->frame_code) << 16) + (uint32_t)at;
}
static inline const void *kp_pyframe_back(const struct kp_python_layout *l, const void *frame)
{
    const void *back = kp_python_at(frame, l->frame_back);
    while (back && l->frame_owner && ((const uint8_t *)back)[l->frame_owner] >= KP_PYTHON_OWNED_BY_C)
        back = kp_python_at(back, l->frame_back);
    return back;
}
static inline uint64_t kp_pycode_check(const struct kp_python_layout *l, const void *code)
{
    const uint64_t file = (uint64_t)(uintptr_t)kp_python_at(code, l->code_file);
    return (uint64_t)(uintptr_t)kp_python_at(code, l->code_name) + (file << 21 | file >> 43);
}
/* A call that begins now. NULL: no room. */
static inline struct kp_rec_pycall *kp_pycall_put(struct kp_thread *t, uint64_t gate, uint32_t name, uint8_t flags)
{
    struct kp_rec_pycall *rec = kp_put_reserve(t, gate, sizeof *rec, KP_KIND_PYCALL);
    if (!rec) return NULL;
    rec->head = (struct kp_rec){.kind = KP_KIND_PYCALL, .flags = flags, .size = sizeof *rec, .name = name};
    kp_store_relaxed(&rec->ticks, 0);
    rec->start = kp_ticks();
    kp_put_commit(t, sizeof *rec);
    return rec;
}
