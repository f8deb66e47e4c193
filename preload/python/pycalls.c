// SPDX-License-Identifier: Apache-2.0
/*
 * pycalls.c - our profile function, which makes one record of each Python call
 *
 * Called by: CPython's evaluation loop with the GIL held, on every thread to which python_source.c gave our profile
 *            function (hot)
 * Owns:      struct kp_pycalls, one a thread: its open calls and the names of its call sites
 * Locks:     none. Memory: none but a thread's first touch (540 KB of address space, of which it touches what it
 *            needs).
 * On fail:   the call is not recorded and counted; a return that matches no call is ignored
 * Safe in:   after fork yes (the gate reads 0 in a child; our function removes itself)
 *
 * The key of a call site is the position of the callee and of its caller. Each is one word in the interpreter's frame,
 * so a known call site costs one look into a table. Its name is made once (call_text.c). Returns are matched by frame:
 * greenlets switch stacks, and returns are missed while our profile function is not set.
 */
#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_clock.h"
#include "preload/guard.h"
#include "preload/python/api/modulekeys.h"
#include "preload/python/pycalls.h"
#include "collector/base/kp_poison.h"

enum { CALL = 0, RETURN = 3, C_CALL = 4, C_EXCEPTION = 5, C_RETURN = 6 }; /* PyTrace_* */
enum { KEEPING = KP_GATE_RECORD | KP_GATE_WARM };
enum { METHOD_TABLE = 16, MATCH_DEPTH = 64, FRAMES_MAX = 128 }; /* FRAMES_MAX: Kineto's limit of open frames */

#define HOT inline __attribute__((always_inline))

static _Atomic uint32_t window_cycle;
static _Atomic uint64_t window_ticks;

void kp_pycalls_window(uint32_t cycle, uint64_t begin_ticks)
{
    kp_store_relaxed(&window_ticks, begin_ticks);
    kp_store_release(&window_cycle, cycle); /* pairs with: pycalls.c:start_of */
}

static inline const struct kp_python_layout *layout_get(void) { return &kp_python_get()->layout; }

/* ---- open calls ---- */

static inline void push(struct kp_pycalls *c, struct kp_rec_pycall *rec, const void *frame, uint8_t marks)
{
    const uint32_t at = c->depth;
    if (__builtin_expect(at < KP_PY_DEPTH, 1)) c->open[at] = (struct kp_py_open){rec, frame, marks};
    kp_signal_fence(); /* a signal handler may jump out of here: the entry is complete before depth counts it */
    c->depth = at + 1;
}

static void close_to(struct kp_pycalls *c, uint32_t depth, uint64_t now)
{
    for (; c->depth > depth; c->depth--) {
        if (c->depth > KP_PY_DEPTH) continue;
        struct kp_rec_pycall *rec = c->open[c->depth - 1].rec;
        if (rec) kp_put_end(&rec->ticks, rec->start, now);
    }
}

/* For a return that does not match the top call: some call ended without a return event. */
static __attribute__((noinline)) void pop_slowly(struct kp_pycalls *c, const void *frame, uint64_t now)
{
    if (c->depth > KP_PY_DEPTH) { /* frames so deep are not kept */
        c->depth--;
        return;
    }
    for (uint32_t i = c->depth, tries = 0; i-- > 0 && tries < MATCH_DEPTH; tries++)
        if (c->open[i].frame == frame) {
            close_to(c, i, now);
            return;
        }
}

/* Ends a call; returns its marks. */
static inline uint8_t pop(struct kp_pycalls *c, const void *frame, uint64_t now)
{
    const uint32_t at = c->depth - 1;
    if (__builtin_expect(at >= KP_PY_DEPTH || c->open[at].frame != frame, 0)) {
        if (c->depth) pop_slowly(c, frame, now);
        return 0;
    }
    struct kp_rec_pycall *rec = c->open[at].rec;
    if (rec) kp_put_end(&rec->ticks, rec->start, now);
    c->depth = at;
    return c->open[at].marks;
}

/* ---- records ---- */

static struct kp_rec_pycall *put_module(struct kp_thread *t, uint64_t gate, uint32_t name, uint8_t flags,
                                        const void *self)
{
    struct kp_rec_pymodule *rec = kp_put_reserve(t, gate, sizeof *rec, KP_KIND_PYCALL);
    if (!rec) return NULL;
    rec->call.head =
        (struct kp_rec){.kind = KP_KIND_PYCALL, .flags = flags | KP_PY_MODULE, .size = sizeof *rec, .name = name};
    kp_store_relaxed(&rec->call.ticks, 0);
    rec->self = (uint64_t)(uintptr_t)self;
    rec->type = (uint64_t)(uintptr_t)kp_python_at(self, 8);
    rec->call.start = kp_ticks();
    kp_put_commit(t, sizeof *rec);
    return &rec->call;
}

/* ---- call sites ---- */

static inline struct kp_py_site *site_at(struct kp_pycalls *c, uint64_t callee, uint64_t caller)
{
    uint64_t h = (callee ^ (caller << 23 | caller >> 41)) * UINT64_C(0x9e3779b97f4a7c15);
    return &c->sites[h >> 51];
}
_Static_assert(KP_PY_SITES == 1 << (64 - 51), "site_at takes the upper bits");

static inline bool is_site(const struct kp_py_site *s, uint64_t callee, uint64_t caller, uint64_t check)
{
    return s->callee == callee && s->caller == caller && s->check == check && s->name;
}

/* A signal handler may jump out in the middle: the entry then has no name. */
static void site_keep(struct kp_py_site *s, struct kp_py_site site)
{
    const uint32_t name = site.name;
    s->name = site.name = 0;
    kp_signal_fence();
    *s = site;
    kp_signal_fence();
    s->name = name;
}

/* The place that keeps a module's call site, or may keep it. */
static struct kp_py_site *module_site_at(struct kp_pycalls *c, uint64_t self, uint64_t caller, uint64_t check)
{
    const uint64_t h = (self ^ (caller << 23 | caller >> 41)) * UINT64_C(0x9e3779b97f4a7c15);
    struct kp_py_site *const group = &c->modules[(h >> 54) * KP_PY_MODULE_WAYS];
    for (unsigned i = 0; i < KP_PY_MODULE_WAYS; i++)
        if (is_site(&group[i], self, caller, check)) return &group[i];
    for (unsigned i = 0; i < KP_PY_MODULE_WAYS; i++)
        if (!group[i].name) return &group[i];
    return &group[(h >> 40) % KP_PY_MODULE_WAYS];
}
_Static_assert(KP_PY_MODULES / KP_PY_MODULE_WAYS == 1 << (64 - 54), "module_site_at takes the upper bits");

/* The call site of a module, whose object is `self`. */
static const struct kp_py_site *module_site(struct kp_thread *t, struct kp_pycalls *c, void *object, const void *self)
{
    const struct kp_python_layout *l = layout_get();
    const void *frame = kp_pyframe_of(l, object), *back = kp_pyframe_back(l, frame);
    const uint64_t type = (uint64_t)(uintptr_t)kp_python_at(self, 8), caller = back ? kp_pyframe_place(l, back) : 0;
    const uint64_t check = type * 5 + (back ? kp_pycode_check(l, kp_pyframe_code(l, back)) : 0);
    struct kp_py_site *s = module_site_at(c, (uint64_t)(uintptr_t)self, caller, check);
    if (!is_site(s, (uint64_t)(uintptr_t)self, caller, check))
        site_keep(s,
                  (struct kp_py_site){(uint64_t)(uintptr_t)self, caller, check, kp_pysite_module(t, object, self), 0});
    return s;
}

static struct kp_rec_pycall *module_start(struct kp_thread *t, struct kp_pycalls *c, uint64_t gate, void *object,
                                          uint8_t flags)
{
    const void *const self = kp_modulekey_self(layout_get(), kp_pyframe_of(layout_get(), object));
    return self ? put_module(t, gate, module_site(t, c, object, self)->name, flags, self) : NULL;
}

static __attribute__((noinline)) void site_name(struct kp_thread *t, struct kp_py_site *s, void *object,
                                                uint64_t callee, uint64_t caller, uint64_t check)
{
    site_keep(s, (struct kp_py_site){callee, caller, check, kp_pysite_call(t, object), 0});
}

static __attribute__((noinline)) void module_call_start(struct kp_thread *t, struct kp_pycalls *c, uint64_t gate,
                                                        void *object, uint8_t flags)
{
    push(c, c->depth < KP_PY_DEPTH ? module_start(t, c, gate, object, flags) : NULL, object, 0);
}

/* The call's site. NULL: it is of a module. */
static HOT const struct kp_py_site *call_site(const struct kp_python_layout *l, struct kp_thread *t,
                                              struct kp_pycalls *c, void *object)
{
    const void *frame = kp_pyframe_of(l, object), *back = kp_pyframe_back(l, frame), *code = kp_pyframe_code(l, frame);
    const uint64_t callee = kp_pyframe_place(l, frame), caller = back ? kp_pyframe_place(l, back) : 0;
    uint64_t check = kp_pycode_check(l, code);
    if (back) check += kp_pycode_check(l, kp_pyframe_code(l, back)) * 3;
    struct kp_py_site *s = site_at(c, callee, caller);
    if (__builtin_expect(code != kp_modulekey_code && !is_site(s, callee, caller, check), 0))
        site_name(t, s, object, callee, caller, check);
    return __builtin_expect(code == kp_modulekey_code, 0) ? NULL : s; /* the call above may have set it */
}

static HOT void call_start(const struct kp_python_layout *l, struct kp_thread *t, struct kp_pycalls *c, uint64_t gate,
                           void *object, uint8_t flags)
{
    const struct kp_py_site *const s = call_site(l, t, c, object);
    if (__builtin_expect(!s, 0)) {
        module_call_start(t, c, gate, object, flags);
        return;
    }
    push(c, c->depth < KP_PY_DEPTH ? kp_pycall_put(t, gate, s->name, flags) : NULL, object, 0);
}

static __attribute__((noinline)) void c_site_name(struct kp_thread *t, struct kp_py_site *s, void *object,
                                                  const void *function, uint64_t caller, uint64_t check)
{
    uint8_t marks = 0;
    const uint32_t name = kp_pysite_c_call(t, object, function, &marks);
    site_keep(
        s, (struct kp_py_site){(uint64_t)(uintptr_t)kp_python_at(function, METHOD_TABLE), caller, check, name, marks});
}

static HOT const struct kp_py_site *c_call_site(const struct kp_python_layout *l, struct kp_thread *t,
                                                struct kp_pycalls *c, void *object, const void *function)
{
    const void *frame = kp_pyframe_of(l, object), *method = kp_python_at(function, METHOD_TABLE);
    const uint64_t callee = (uint64_t)(uintptr_t)method, caller = kp_pyframe_place(l, frame);
    const uint64_t check =
        (uint64_t)(uintptr_t)kp_python_at(method, 0) + kp_pycode_check(l, kp_pyframe_code(l, frame)) * 3;
    struct kp_py_site *s = site_at(c, callee, caller);
    if (__builtin_expect(!is_site(s, callee, caller, check), 0)) c_site_name(t, s, object, function, caller, check);
    return s;
}

static HOT void c_call_start(const struct kp_python_layout *l, struct kp_thread *t, struct kp_pycalls *c, uint64_t gate,
                             void *object, const void *function)
{
    const struct kp_py_site *const s = c_call_site(l, t, c, object, function);
    if (__builtin_expect(s->marks & KP_PY_SETS_PROFILE, 0)) kp_pyhandover_setter(function);
    push(c, c->depth < KP_PY_DEPTH ? kp_pycall_put(t, gate, s->name, KP_PY_C) : NULL, (const uint8_t *)object + 1,
         s->marks);
}

/* ---- frames that were open before the window ---- */

static uint64_t start_of(const struct kp_thread *t, uint32_t cycle, uint64_t now)
{
    /* pairs with: pycalls.c:kp_pycalls_window. The calls that this thread put already started before. */
    if (kp_load_acquire(&window_cycle) != cycle || t->chunk_cycle == cycle) return now;
    return kp_load_relaxed(&window_ticks);
}

/* The caller's frame: a borrowed reference up to 3.8, a new one from 3.9 on. */
static void *back_of(void *frame)
{
    return kp_python_api.frame_back ? kp_python_api.frame_back(frame) : kp_python_at(frame, layout_get()->frame_back);
}

static void back_drop(void *frame)
{
    if (frame && kp_python_api.frame_back) kp_python_api.drop(frame);
}

/* Records `frame`, a borrowed reference, and its callers, the outermost first. */
static void frames_put(struct kp_thread *t, struct kp_pycalls *c, uint64_t gate, void *frame)
{
    void *frames[FRAMES_MAX];
    uint32_t n = 0;
    const uint64_t start = start_of(t, kp_gate_cycle(gate), kp_ticks());
    for (; frame && n < FRAMES_MAX; frame = back_of(frame)) frames[n++] = frame;
    back_drop(frame);
    while (n-- > 0) {
        call_start(layout_get(), t, c, gate, frames[n], KP_PY_OPEN);
        struct kp_rec_pycall *rec = c->depth && c->depth <= KP_PY_DEPTH ? c->open[c->depth - 1].rec : NULL;
        if (rec && start < rec->start) rec->start = start;
        if (n > 0) back_drop(frames[n]);
    }
}

static struct kp_pycalls *state_of(struct kp_thread *t)
{
    struct kp_pycalls *c = t->source_state[KP_STATE_PYTHON];
    if (c && c->thread_no == t->thread_no) return c;
    if (!c) t->source_state[KP_STATE_PYTHON] = c = kp_arena_alloc(sizeof *c);
    if (!c) return NULL;
    c->thread_no = t->thread_no;
    c->cycle = c->depth = 0;
    return c;
}

/* At a thread's first event of a window; `frame` is its current frame. */
static __attribute__((noinline)) struct kp_pycalls *begin(struct kp_thread *t, uint64_t gate, void *frame)
{
    struct kp_pycalls *c = state_of(t);
    if (!c) {
        kp_loss_count(KP_KIND_PYCALL, KP_LOSS_NO_SLOT);
        return NULL;
    }
    c->cycle = kp_gate_cycle(gate);
    c->depth = 0; /* open calls belong to an earlier window */
    frames_put(t, c, gate, frame);
    return c;
}

void kp_pycalls_taken_over(void)
{
    struct kp_guard guard;
    if (!KP_HOOK_ENTER(&guard, KP_GATE_RECORD)) return;
    struct kp_pycalls *const c = guard.thread->source_state[KP_STATE_PYTHON];
    if (c && c->thread_no == guard.thread->thread_no) {
        if (c->cycle == kp_gate_cycle(guard.gate)) close_to(c, 0, kp_ticks());
        c->cycle = c->depth = 0; /* the next event, if there is one, finds the frames that are open then */
    }
    KP_HOOK_LEAVE(&guard);
}

bool kp_pycalls_is_in_python(const struct kp_thread *t, uint64_t gate)
{
    const struct kp_pycalls *c = t->source_state[KP_STATE_PYTHON];
    if (!c || c->thread_no != t->thread_no || c->cycle != kp_gate_cycle(gate)) return false;
    return c->depth && c->depth <= KP_PY_DEPTH && !((uintptr_t)c->open[c->depth - 1].frame & 1);
}

void kp_pycalls_begin(struct kp_thread *t, uint64_t gate)
{
    struct kp_pycalls *c = t->source_state[KP_STATE_PYTHON];
    if (c && c->thread_no == t->thread_no && c->cycle == kp_gate_cycle(gate)) return;
    begin(t, gate, kp_python_api.this_frame());
}

static __attribute__((noinline)) struct kp_pycalls *calls_begin(struct kp_thread *t, uint64_t gate, void *frame,
                                                                int what)
{
    void *inner = what == CALL ? back_of(frame) : frame;
    struct kp_pycalls *c = begin(t, gate, inner);
    if (what == CALL) back_drop(inner);
    return c;
}

/* ---- events ---- */

static HOT void event_take(const struct kp_python_layout *l, const struct kp_guard *g, void *frame, int what, void *arg,
                           uint64_t now)
{
    struct kp_thread *t = g->thread;
    struct kp_pycalls *c = t->source_state[KP_STATE_PYTHON];
    if (__builtin_expect(!c || c->cycle != kp_gate_cycle(g->gate) || c->thread_no != t->thread_no, 0))
        c = calls_begin(t, g->gate, frame, what);
    if (!c) return;
    switch (what) {
    case CALL: call_start(l, t, c, g->gate, frame, 0); break;
    case RETURN: pop(c, frame, now); break;
    case C_CALL: c_call_start(l, t, c, g->gate, frame, arg); break;
    case C_EXCEPTION:
    case C_RETURN:
        if (__builtin_expect(pop(c, (const uint8_t *)frame + 1, now) & KP_PY_STARTS_THREAD, 0)) kp_pyprofile_set_all();
        break;
    default: break;
    }
}

/* In a warm-up no call is recorded, but its site gets its name: naming all of them is most of a first step's time. */
static __attribute__((noinline)) void event_warm(const struct kp_guard *g, void *frame, int what, const void *arg)
{
    const struct kp_python_layout *const l = layout_get();
    struct kp_pycalls *const c = what == CALL || what == C_CALL ? state_of(g->thread) : NULL;
    if (!c) return;
    if (what == C_CALL) {
        (void)c_call_site(l, g->thread, c, frame, arg);
        return;
    }
    if (call_site(l, g->thread, c, frame)) return;
    const void *const self = kp_modulekey_self(l, kp_pyframe_of(l, frame));
    if (self) (void)module_site(g->thread, c, frame, self);
}

/*
 * Removes our function, but not at the call of a C function that may set a profile function: the new one would then see
 * the end of that call (program_profile.c).
 */
static __attribute__((noinline)) void window_over(int what, const void *arg)
{
    if (what == C_CALL) kp_pyhandover_setter(arg);
    else kp_pyprofile_remove();
}

static HOT int event(const struct kp_python_layout *l, void *frame, int what, void *arg)
{
    struct kp_guard guard;
    const uint64_t now = what == CALL || what == C_CALL ? 0 : kp_ticks();
    if (!KP_HOOK_ENTER(&guard, KEEPING)) {
        if (!(kp_gate_get() & KEEPING)) window_over(what, arg);
        return 0;
    }
    if (__builtin_expect(guard.gate & KP_GATE_RECORD, 1)) event_take(l, &guard, frame, what, arg, now);
    else if (guard.gate & KP_GATE_WARM) event_warm(&guard, frame, what, arg);
    KP_HOOK_LEAVE(&guard);
    return 0;
}

/* A function for each release, in which its offsets are constants: a fifth fewer instructions. */
#define KP_PYTHON_LAYOUT(version, ...)                                         \
    static int event_##version(void *object, void *frame, int what, void *arg) \
    {                                                                          \
        static const struct kp_python_layout l = {version, __VA_ARGS__};       \
        (void)object;                                                          \
        return event(&l, frame, what, arg);                                    \
    }
#include "preload/python/api/layouts.def"
#undef KP_PYTHON_LAYOUT

kp_python_profile_fn kp_pycalls_event_of(uint32_t version)
{
    switch (version) {
#define KP_PYTHON_LAYOUT(version, ...) \
    case version:                      \
        return event_##version;
#include "preload/python/api/layouts.def"
#undef KP_PYTHON_LAYOUT
    default: return NULL;
    }
}
