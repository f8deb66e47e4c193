// SPDX-License-Identifier: Apache-2.0
/*
 * python_source.c - sets our profile function on every Python thread that has none, while a window records
 *
 * Called by: boot.c through source.h; CPython (Py_AddPendingCall)
 * Owns:      whether the frame layout of this Python is proved; the window that the function was set for
 * Locks:     the GIL. It is held already, or the thread that steps takes it while it holds no other lock: that one is
 *            inside a call from Python, which takes the GIL anyway when it returns. Threads that never ran Python
 *            leave it to the main thread (Py_AddPendingCall).
 * On fail:   a Python whose frames cannot be proved is left alone, which is logged
 *
 * A profile function belongs to one thread. Existing threads get it when a window begins. A new thread gets it when the
 * C function that made it returns: the GIL was not released in between, so the new thread has not run yet. After the
 * window each thread removes it at its next call.
 */
#include <errno.h>
#include <string.h>

#include "collector/base/kp_config.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/guard.h"
#include "preload/python_bridge.h"
#include "preload/python/pycalls.h"
#include "preload/source.h"
#include "collector/base/kp_poison.h"

enum { FRAMES_MAX = 64 };

static bool wants_calls, wants_stacks, is_proved, is_refused; /* refused: frames read disagree with Python's API */
static bool wants_anywhere;                                   /* stacks of blocks: from anywhere, also without torch */
static bool wants_sites;                                      /* lines of blocks, also without a window */
static _Atomic bool are_stacks_on, has_begun;                 /* has_begun: what needs no window is on */
static _Atomic bool attached;
static _Atomic uint32_t installed_cycle, pending_cycle, watched_cycle; /* watched: until its end */

/* ---- the proof of the layout: fields read must agree with Python's API ---- */

/*
 * Reads a word at an offset of the layout, by the kernel, since a wrong offset may fault. NULL: no memory there. If the
 * kernel refuses process_vm_readv, the word is read by a plain load.
 */
static void *word_at(const void *base, size_t offset)
{
    void *word = NULL;
    const int rc = base ? kp_io_peek((const uint8_t *)base + offset, &word, sizeof word) : -EFAULT;
    return rc == 0 || rc == -EFAULT ? word : kp_python_at(base, offset);
}

/* Is the text at this offset the one that Python's API returns for the code object? */
static bool is_text_of(const void *code, size_t offset, const char *member)
{
    void *text = word_at(code, offset);
    if (word_at(text, 8) != kp_python_api.text_type) return false;
    void *said = kp_pyobject_member((void *)(uintptr_t)code, member);
    KP_PYTHON_DROP(said);
    return said == text;
}

static const void *frame_of(const struct kp_python_layout *l, const void *object)
{
    return l->object_frame ? word_at(object, l->object_frame) : object;
}

/* `frame`, or its nearest caller that runs Python code. */
static const void *frame_python(const struct kp_python_layout *l, const void *frame)
{
    for (unsigned i = 0; frame && l->frame_owner && i < FRAMES_MAX; i++, frame = word_at(frame, l->frame_back)) {
        const uint64_t word = (uint64_t)(uintptr_t)word_at(frame, l->frame_owner & ~7u);
        if ((uint8_t)(word >> 8 * (l->frame_owner & 7u)) < KP_PYTHON_OWNED_BY_C) break;
    }
    return frame;
}

static bool is_frame_right(const struct kp_python_layout *l, void *object)
{
    const void *frame = frame_of(l, object), *code = kp_python_unheld(l, word_at(frame, l->frame_code));
    void *said = kp_python_api.frame_code ? kp_python_api.frame_code(object) : (void *)(uintptr_t)code;
    const bool same =
        said == code && is_text_of(code, l->code_file, "co_filename") && is_text_of(code, l->code_name, "co_name");
    if (kp_python_api.frame_code) kp_python_api.drop(said);
    return same && kp_pystack_line(l, code, kp_pyframe_place(l, frame)) == kp_python_api.frame_line(object);
}

/* The caller's frame by Python's API, a new reference; NULL: `object` is the outermost. */
static void *back_said(void *object)
{
    if (kp_python_api.frame_back) return kp_python_api.frame_back(object);
    void *back = kp_pyobject_member(object, "f_back"); /* 3.8 */
    if (!back || word_at(back, 8) == word_at(object, 8)) return back;
    kp_python_api.drop(back); /* None */
    return NULL;
}

static bool is_back_right(const struct kp_python_layout *l, void *object)
{
    void *back = back_said(object);
    const void *read = frame_python(l, word_at(frame_of(l, object), l->frame_back));
    const bool same = back ? frame_of(l, back) == read && is_frame_right(l, back) : !read;
    KP_PYTHON_DROP(back);
    return same;
}

static const void *frame_innermost(const struct kp_python_layout *l, const void *thread)
{
    const void *holder = l->thread_cframe ? word_at(thread, l->thread_cframe) : thread;
    return frame_python(l, word_at(holder, l->thread_frame));
}

/* Does the thread's chain of frames begin with the current frame? */
static bool is_thread_right(const struct kp_python_layout *l, const void *thread, void *object)
{
    return frame_innermost(l, thread) == frame_of(l, object);
}

static bool prove(void)
{
    const struct kp_python *python = kp_python_get();
    void *thread = python->thread_state(), *frame = kp_python_api.this_frame();
    if (is_proved || is_refused) return is_proved;
    if (!thread || !frame) return false;          /* no Python code runs here: tried again at the next window */
    if (wants_calls && kp_pyprofile_of(thread)) { /* the program has a profile function, so ours cannot be tried */
        kp_pyprofile_replaced();
        return false;
    }
    is_proved = is_frame_right(&python->layout, frame) && is_back_right(&python->layout, frame) &&
                is_thread_right(&python->layout, thread, frame) && (!wants_calls || kp_pyprofile_is_right(thread));
    is_refused = !is_proved;
    if (is_refused)
        kp_log(
            0,
            "Python %u.%u: its frames are not where they should be, so Python calls and call stacks are not recorded",
            python->layout.version / 100, python->layout.version % 100);
    return is_proved;
}

/* ---- a window begins ---- */

static void calls_begin(struct kp_thread *t, uint64_t gate)
{
    kp_pysite_prepare();
    kp_pylines_enable();
    kp_pyprofile_set_all();
    kp_pycalls_begin(t, gate);
    kp_store_relaxed(&watched_cycle, kp_gate_cycle(gate));
}

/* The folders never change afterwards, since stacks are read without the GIL. */
static void stacks_begin(void)
{
    if (wants_sites) kp_callsites_enable();
    kp_store_relaxed(&has_begun, true);
    if (wants_calls ? !wants_anywhere : !wants_stacks) return;
    if (!kp_load_relaxed(&are_stacks_on)) kp_pysite_prepare();
    kp_store_relaxed(&are_stacks_on, true);
    kp_pystacks_enable();
}

/* The file of a frame's code; "": not known. Needs the GIL and the proof. */
static const char *file_of(const struct kp_python_layout *l, const void *frame)
{
    const char *text = kp_pyobject_text(word_at(kp_pyframe_code(l, frame), l->code_file));
    return text ? text : "";
}

/*
 * Does the program run? While Python starts, importlib imports site, which adds folders to sys.path. A C program may
 * have modules imported, too, and those are the program. Needs the GIL and the proof.
 */
static bool is_program_there(void)
{
    const struct kp_python *python = kp_python_get();
    const struct kp_python_layout *l = &python->layout;
    const char *outermost = "";
    bool has_site = false;
    for (const void *frame = frame_innermost(l, python->thread_state()); frame;
         frame = frame_python(l, kp_python_at(frame, l->frame_back))) {
        outermost = file_of(l, frame);
        const size_t n = strlen(outermost);
        has_site |= strcmp(outermost, "<frozen site>") == 0 || (n >= 8 && strcmp(outermost + n - 8, "/site.py") == 0);
    }
    return !has_site || strncmp(outermost, "<frozen importlib", 17) != 0;
}

/* Needs the GIL; not from inside a hook that CPython called. */
static void install(uint32_t cycle)
{
    struct kp_thread *t = kp_thread_get();
    struct kp_pyaside aside;
    if (!t || kp_python_is_over() || kp_load_relaxed(&installed_cycle) == cycle) return;
    kp_pyaside_begin(&aside, t);
    const uint64_t gate = kp_gate_get();
    if (wants_calls) kp_pyhandover_find();
    if ((gate & KP_GATE_RECORD) && kp_gate_cycle(gate) == cycle && prove()) {
        kp_store_relaxed(&installed_cycle, cycle);
        if (wants_calls) calls_begin(t, gate);
        stacks_begin();
    }
    kp_pyaside_end(&aside);
}

/* The program removed a profile function of its own: ours is set again while the window lasts. With the GIL. */
static void resume(void)
{
    const uint64_t gate = kp_gate_get();
    struct kp_thread *t = kp_thread_self;
    struct kp_pyaside aside;
    if (!(gate & KP_GATE_RECORD) || !t || kp_load_relaxed(&t->inside)) return;
    install(kp_gate_cycle(gate)); /* its window began while the program had a function */
    if (kp_load_relaxed(&installed_cycle) != kp_gate_cycle(gate)) return;
    kp_pyaside_begin(&aside, NULL);
    kp_pyprofile_set_all();
    kp_pyaside_end(&aside);
}

/* Before a window: call sites and frames of ops get their names, and nothing is recorded. Needs the GIL. */
static void warm(void)
{
    struct kp_thread *t = kp_thread_get();
    struct kp_pyaside aside;
    if (!t || kp_python_is_over() || !(kp_gate_get() & KP_GATE_WARM)) return;
    kp_pyaside_begin(&aside, t);
    if (wants_calls) kp_pyhandover_find();
    if (prove()) {
        stacks_begin();
        if (wants_calls) kp_pysite_prepare(), kp_pyprofile_set_all();
    }
    kp_pyaside_end(&aside);
}

static void warm_up(uint32_t timeout_ms)
{
    if (!kp_load_acquire(&attached) || is_refused) return; /* pairs with: attach */
    (void)kp_python_with_gil(warm, timeout_ms > 0);
}

static void install_pending(void)
{
    install(kp_load_acquire(&pending_cycle)); /* pairs with: python_source.c:wait_ready */
}

static void wait_ready(uint64_t begin_ticks, uint32_t timeout_ms)
{
    const uint64_t gate = kp_gate_get();
    const uint32_t cycle = kp_gate_cycle(gate);
    if (!kp_load_acquire(&attached) || !(gate & KP_GATE_RECORD) || is_refused) return;
    if (kp_load_relaxed(&installed_cycle) == cycle) return;
    kp_pycalls_window(cycle, begin_ticks);
    kp_store_release(&pending_cycle, cycle); /* pairs with: python_source.c:install_pending */
    if (!kp_python_with_gil(install_pending, timeout_ms > 0) && !kp_python_is_over())
        KP_LOG_ONCE(0, "Python did not answer in time: a window has no Python calls");
}

/* If a window goes on or ends, our function is still set, unless the program has replaced it. */
static void set_mode(enum kp_source_mode mode)
{
    const struct kp_thread *t = kp_thread_self;
    (void)mode;
    if (!kp_load_acquire(&attached) || !wants_calls || !t) return;
    const struct kp_pycalls *c = t->source_state[KP_STATE_PYTHON];
    const uint32_t cycle = kp_exchange_acq_rel(&watched_cycle, 0);
    const void *thread = kp_python_get()->thread_state();
    if (!c || !thread || !cycle || c->cycle != cycle || c->thread_no != t->thread_no) return;
    if (!kp_pyprofile_is_ours(thread)) kp_pyprofile_replaced();
    else if (kp_gate_get() & KP_GATE_RECORD && kp_gate_cycle(kp_gate_get()) == cycle)
        kp_store_relaxed(&watched_cycle, cycle);
}

static _Atomic bool is_asked; /* CPython is to call stacks_enable */

static void stacks_enable(void)
{
    struct kp_pyaside aside;
    struct kp_thread *t = kp_thread_get();
    kp_store_relaxed(&is_asked, false);
    if (!t || kp_python_is_over() || kp_load_relaxed(&has_begun)) return;
    kp_pyaside_begin(&aside, t);
    if (prove() && is_program_there()) stacks_begin();
    kp_pyaside_end(&aside);
}

/*
 * A window that began before CPython did has no stacks yet. CPython calls us on its main thread. Called when modules
 * changed, and when Python executes a module or the program.
 */
static void modules_changed(void)
{
    if (!kp_load_acquire(&attached) || kp_load_relaxed(&is_asked)) return; /* pairs with: attach */
    if (!(wants_anywhere || wants_sites) || kp_load_relaxed(&has_begun) || is_refused || kp_python_is_over()) return;
    kp_store_relaxed(&is_asked, true); /* before the call: the main thread may answer at once */
    if (!kp_python_later(stacks_enable)) kp_store_relaxed(&is_asked, false);
}

static void setup(const struct kp_config *config)
{
    wants_calls = config->with_stack & KP_STACK_CALLS;
    wants_stacks = config->with_stack & (KP_STACK_OPS | KP_STACK_NATIVE);
    wants_anywhere = (wants_calls || wants_stacks) && config->heap == KP_HEAP_TRACE;
    wants_sites = kp_config_dumps_oom(config) && kp_callsites_setup();
}

/* This source comes after torch in the list, because torch's attach looks for the interpreter. */
static bool attach(void)
{
    if (kp_load_relaxed(&attached)) return true;
    if (!wants_calls && !wants_stacks && !wants_sites) return false;
    if (wants_anywhere || wants_sites) {
        kp_caller_find();
        kp_pyaudit_add(modules_changed);
    }
    if (!kp_python_get() && kp_python_unknown())
        KP_LOG_ONCE(0, "%s: its frames are not known here, so Python calls and call stacks are not recorded",
                    kp_python_unknown());
    if (!kp_python_api_find()) return false;
    const kp_python_profile_fn on_event = kp_pycalls_event_of(kp_python_get()->layout.version);
    kp_pyprofile_attach(on_event);
    if (wants_calls) kp_pyhandover_attach(on_event, kp_pycalls_taken_over, resume);
    kp_store_release(&attached, true); /* pairs with: wait_ready, set_mode */
    return true;
}

/* The version, once it is in the spool, and what packages came since. One thread at a time. */
static _Atomic bool is_version_noted;
static void note(void)
{
    char version[16];
    kp_pypackages_note();
    if (!kp_load_acquire(&attached) || kp_load_relaxed(&is_version_noted)) return; /* pairs with: attach */
    const uint32_t number = kp_python_get()->layout.version;
    kp_fmt(version, sizeof version, "%u.%u", number / 100, number % 100);
    kp_store_relaxed(&is_version_noted, kp_record_note("python_version", version) == 0);
}

/* Other state is kept by window number, and a child's windows have other numbers than the parent's. */
static void forget(void)
{
    kp_store_relaxed(&watched_cycle, 0);
    kp_store_relaxed(&is_version_noted, false);
    kp_pypackages_forget();
}

const struct kp_source kp_python_source = {
    .name = "python",
    .setup = setup,
    .attach = attach,
    .set_mode = set_mode,
    .modules_changed = modules_changed,
    .wait_ready = wait_ready,
    .warm_up = warm_up,
    .note = note,
    .forget = forget,
};
