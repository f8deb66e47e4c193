// SPDX-License-Identifier: Apache-2.0
/*
 * markers.c - records the ranges that torch makes only for its own profiler (KPROF_COMPILE_RANGES)
 *
 * Called by: boot.c through source.h; CPython, where torch enters and leaves a _RecordFunctionFast (hot)
 * Owns:      while a window records: torch.autograd.profiler._is_profiler_enabled where it was False, and the two
 *            functions of that class. Per thread: the ranges it is in.
 * Locks:     the GIL, as python_source.c takes it. Memory: arena, at a thread's first range.
 * On fail:   if this torch's flag or class cannot be used, that is logged, and nothing is done
 *
 * torch's Python code reads the module's flag before it makes such a range. We store an object that is true but is not
 * True, to tell it from torch.profiler's value at the end. The class itself does nothing unless torch.profiler records,
 * and that must not change between its enter and exit. So torch's state is left alone. Instead, our functions replace
 * the class's two in its method table and call them. They write a record unless torch made a range, which the observer
 * has then recorded. See decisions/024.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "collector/base/kp_arena.h"
#include "collector/base/kp_clock.h"
#include "collector/base/kp_config.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/python_bridge.h"
#include "preload/guard.h"
#include "preload/python/pycalls.h"
#include "preload/run.h"
#include "preload/source.h"
#include "collector/base/kp_poison.h"

#define FLAG "_is_profiler_enabled"
enum {
    DEPTH = 256,
    AT_NAME = 16,
    DESCRIPTOR_METHOD = 40,
    NO_ARGUMENTS = 4,
    ARGUMENTS = 1,
    BYTES_LEAST = 32,
    BYTES_MOST = 64
};
enum { USER_SCOPE = 7 };

typedef void *(*method_fn)(void *self, void *args);
struct marker_method { /* PyMethodDef */
    const char *name;
    _Atomic(method_fn) fn;
    int flags;
};
struct open_marker {
    const void *self;
    struct kp_rec_op *rec; /* NULL: not recorded */
};
struct markers {                      /* one for each thread */
    uint32_t cycle, thread_no, depth; /* depth may exceed DEPTH: deeper ranges are not recorded */
    struct open_marker open[DEPTH];
};

static bool wants, is_refused;
static _Atomic bool attached;
static void *flag_module, *on, *off; /* on: our true object; off: False */
static struct marker_method *enter_method, *exit_method;
static method_fn torch_enter, torch_exit;
static size_t guard_at;    /* offset of a pointer that is not NULL while torch has a range for the object */
static size_t keywords_at; /* offset of a dict or NULL; 0: this torch has no such field */
static const void *dict_type;
static _Atomic uint32_t installed_cycle;

/* ---- ranges ---- */

static struct markers *markers_get(struct kp_thread *t, uint32_t cycle)
{
    struct markers *m = t->source_state[KP_STATE_MARKERS];
    if (!m) t->source_state[KP_STATE_MARKERS] = m = kp_arena_alloc(sizeof *m);
    if (m && (m->cycle != cycle || m->thread_no != t->thread_no)) {
        m->cycle = cycle;
        m->thread_no = t->thread_no;
        m->depth = 0;
    }
    return m;
}

/* torch takes a marker with keyword_values={"scope": "user_scope"} for a user's range. */
static uint8_t scope_of(const void *self)
{
    void *keywords = keywords_at ? kp_python_at(self, keywords_at) : NULL;
    if (!keywords || kp_python_at(keywords, 8) != dict_type) return 0;
    void *scope = kp_python_api.dict_get(keywords, "scope");
    const bool is_text = scope && kp_python_at(scope, 8) == kp_python_api.text_type;
    const char *text = is_text ? kp_python_api.text_of(scope) : NULL;
    return text && strcmp(text, "user_scope") == 0 ? USER_SCOPE : 0;
}

static struct kp_rec_op *put(struct kp_thread *t, uint64_t gate, uint32_t name, uint8_t scope)
{
    const uint32_t stack = gate & KP_GATE_STACKS ? kp_caller_stack(t) : 0;
    const uint32_t bytes = sizeof(struct kp_rec_op) + (stack ? 8 : 0);
    struct kp_rec_op *rec = kp_put_reserve(t, gate, bytes, KP_KIND_OP);
    if (!rec) return NULL;
    memset(rec, 0, bytes);
    rec->head =
        (struct kp_rec){.kind = KP_KIND_OP, .flags = stack ? KP_OP_STACK : 0, .size = (uint16_t)bytes, .name = name};
    rec->scope = scope;
    if (stack) *(uint64_t *)(rec + 1) = stack;
    rec->start = kp_ticks();
    kp_put_commit(t, bytes);
    return rec;
}

static void range_begin(const void *self)
{
    struct kp_guard guard;
    if (kp_python_at(self, guard_at) || !KP_HOOK_ENTER(&guard, KP_GATE_RECORD)) return;
    struct markers *m = guard.gate & KP_GATE_RECORD ? markers_get(guard.thread, kp_gate_cycle(guard.gate)) : NULL;
    if (m && m->depth < DEPTH) {
        const char *name = kp_python_api.text_of(kp_python_at(self, AT_NAME));
        if (!name) kp_python_api.forget_error();
        const uint32_t id = name ? kp_name_intern(guard.thread, name, (uint32_t)strlen(name)) : 0;
        m->open[m->depth] = (struct open_marker){self, put(guard.thread, guard.gate, id, scope_of(self))};
    }
    kp_signal_fence(); /* a signal handler may jump out of here: the entry is complete before depth counts it */
    if (m && m->depth++ >= DEPTH) kp_loss_count(KP_KIND_OP, KP_LOSS_NO_SLOT);
    KP_HOOK_LEAVE(&guard);
}

/* Ends the range of `self`. Deeper ranges had no exit and get no end. */
static void open_end(struct kp_thread *t, struct markers *m, const void *self, uint64_t now)
{
    uint32_t i = m->depth < DEPTH ? m->depth : DEPTH;
    while (i && m->open[i - 1].self != self) i--;
    if (!i) return; /* began before the window, or on another thread, or too deep */
    struct kp_rec_op *rec = m->open[i - 1].rec;
    if (rec) kp_put_end(&rec->ticks, rec->start, now);
    t->ended++;
    m->depth = i - 1;
}

static void range_end(const void *self)
{
    const uint64_t now = kp_ticks();
    struct kp_guard guard;
    if (!KP_HOOK_ENTER(&guard, KP_GATE_RECORD)) return;
    struct markers *m = guard.thread->source_state[KP_STATE_MARKERS];
    const bool is_current = m && m->cycle == kp_gate_cycle(guard.gate) && m->thread_no == guard.thread->thread_no;
    if (is_current && (guard.gate & KP_GATE_RECORD)) open_end(guard.thread, m, self, now);
    KP_HOOK_LEAVE(&guard);
}

static void *marker_enter(void *self, void *args)
{
    void *result = torch_enter(self, args);
    if (result) range_begin(self);
    return result;
}

static void *marker_exit(void *self, void *args)
{
    range_end(self);
    return torch_exit(self, args);
}

/* ---- the gates: the flag and the method table. All with the GIL. ---- */

static void flag_set(const void *from, void *to)
{
    void *now = kp_python_api.member_get(flag_module, FLAG);
    const bool is_from = now == from;
    if (now) kp_python_api.drop(now);
    if (!now || (is_from && kp_python_api.member_set(flag_module, FLAG, to) != 0)) kp_python_api.forget_error();
}

static void gates_set(bool are_open)
{
    void *error[3] = {0};
    kp_python_api.error_take(&error[0], &error[1], &error[2]);
    kp_store_release(&enter_method->fn, are_open ? marker_enter : torch_enter); /* read by CPython, under the GIL */
    kp_store_release(&exit_method->fn, are_open ? marker_exit : torch_exit);
    flag_set(are_open ? off : on, are_open ? on : off);
    kp_python_api.error_give(error[0], error[1], error[2]);
}

static bool look(void);

/* Opens or closes the gates as the current window needs it. */
static void gates_follow(void)
{
    const uint64_t gate = kp_gate_get();
    const uint32_t cycle = gate & KP_GATE_RECORD ? kp_gate_cycle(gate) : 0;
    if (kp_python_is_over() || !look() || kp_exchange_acq_rel(&installed_cycle, cycle) == cycle)
        return; /* under the GIL */
    gates_set(cycle != 0);
}

/* Is there a Python with the functions needed here? */
static bool is_usable(void)
{
    static _Atomic bool is_found;
    if (kp_load_acquire(&is_found)) return !is_refused; /* pairs with: the store below */
    const struct kp_python *python = wants && !is_refused ? kp_python_get() : NULL;
    const struct kp_python_api *api = &kp_python_api;
    if (!python || !kp_python_api_find(python)) return false;
    if (!api->dict_get || !api->member_set || !api->int_make || !api->int_value || !api->call_with) return false;
    kp_store_release(&is_found, true);
    return true;
}

static void wait_ready(uint64_t begin_ticks, uint32_t timeout_ms)
{
    (void)begin_ticks;
    if (!is_usable() || kp_load_relaxed(&installed_cycle) == kp_gate_cycle(kp_gate_get()) || kp_python_is_over())
        return;
    (void)kp_python_with_gil(gates_follow, timeout_ms > 0);
}

/* After a window Python's main thread closes the gates. Until then our functions record nothing. */
static void set_mode(enum kp_source_mode mode)
{
    (void)mode;
    if (!kp_load_acquire(&attached) || !kp_load_relaxed(&installed_cycle) || kp_gate_get() & KP_GATE_RECORD) return;
    (void)kp_python_later(gates_follow);
}

/* ---- finding torch's flag and class ---- */

/* Can the row be written? The kernel writes it, which returns an error instead of faulting. */
static bool is_writable(struct marker_method *method)
{
    method_fn same;
    return kp_io_peek(&method->fn, &same, sizeof same) == 0 && kp_io_poke(&method->fn, &same, sizeof same) == 0;
}

/* The table's row of a method of a C class. */
static struct marker_method *method_find(void *class, const char *name, int flags)
{
    const void *descriptor_type = dlsym(RTLD_DEFAULT, "PyMethodDescr_Type");
    void *descriptor = kp_python_api.member_get(class, name);
    struct marker_method *method = NULL, seen;
    if (!descriptor || !descriptor_type || kp_python_at(descriptor, 8) != descriptor_type) return NULL;
    method = kp_python_at(descriptor, DESCRIPTOR_METHOD);
    if (kp_io_peek(method, &seen, sizeof seen) != 0 || seen.flags != flags || strcmp(seen.name, name) != 0) return NULL;
    return is_writable(method) ? method : NULL;
}

/* Checks the layout on a new object: the name comes first, and the guard last, which is NULL. */
static bool is_laid_out(void *class)
{
    void *name = kp_python_api.text_make("kprof"), *bytes = kp_python_api.member_get(class, "__basicsize__");
    void *object = name ? kp_python_api.call_with(class, name, NULL) : NULL;
    const long size = bytes ? kp_python_api.int_value(bytes) : 0;
    bool is_right =
        object && size >= BYTES_LEAST && size <= BYTES_MOST && size % 8 == 0 && kp_python_at(object, AT_NAME) == name;
    if (is_right) guard_at = (size_t)size - 8;
    if (is_right && guard_at >= AT_NAME + 24)
        keywords_at = guard_at - 8; /* name, input_values, keyword_values, guard */
    for (size_t at = AT_NAME + 8; is_right && at < (size_t)size; at += 8) is_right = !kp_python_at(object, at);
    if (object) kp_python_api.drop(object);
    if (bytes) kp_python_api.drop(bytes);
    if (name) kp_python_api.drop(name);
    return is_right;
}

static bool prove(void *modules)
{
    void *profiler = kp_python_api.dict_get(modules, "torch._C._profiler");
    void *class = profiler ? kp_python_api.member_get(profiler, "_RecordFunctionFast") : NULL;
    if (!class || !is_laid_out(class)) return false;
    enter_method = method_find(class, "__enter__", NO_ARGUMENTS);
    exit_method = method_find(class, "__exit__", ARGUMENTS);
    if (!enter_method || !exit_method) return false;
    dict_type = kp_python_at(modules, 8);
    torch_enter = kp_load_relaxed(&enter_method->fn);
    torch_exit = kp_load_relaxed(&exit_method->fn);
    on = kp_python_api.int_make(1);
    off = (void *)(uintptr_t)dlsym(RTLD_DEFAULT, "_Py_FalseStruct");
    return on && off;
}

static bool is_still_imported(void *modules)
{
    void *torch = kp_python_api.dict_get(modules, "torch"),
         *spec = torch ? kp_python_api.member_get(torch, "__spec__") : NULL;
    void *mark = spec ? kp_python_api.member_get(spec, "_initializing") : NULL;
    const bool is_done = torch && (!mark || mark == (void *)(uintptr_t)dlsym(RTLD_DEFAULT, "_Py_FalseStruct"));
    if (mark) kp_python_api.drop(mark);
    if (spec) kp_python_api.drop(spec);
    return !is_done;
}

/* Needs the GIL. Looks modules up in sys.modules, so it never waits for an import. */
static bool look(void)
{
    if (kp_load_relaxed(&attached) || is_refused) return !is_refused;
    void *modules = kp_python_api.sys_get("modules"), *error[3] = {0};
    if (!modules) return false;
    kp_python_api.error_take(&error[0], &error[1], &error[2]);
    bool is_ready = !is_still_imported(modules);
    kp_python_api.forget_error();
    if (is_ready) {
        void *autograd = kp_python_api.dict_get(modules, "torch.autograd"), *flag = NULL;
        if (autograd) flag_module = kp_python_api.member_get(autograd, "profiler"); /* the reference is never dropped */
        if (flag_module) flag = kp_python_api.member_get(flag_module, FLAG);
        is_ready = flag && prove(modules);
        is_refused = !is_ready;
        if (flag) kp_python_api.drop(flag);
        kp_python_api.forget_error();
        if (is_refused)
            kp_log(
                0,
                "KPROF_COMPILE_RANGES: this torch's markers cannot be recorded without its profiler, so they are not");
    }
    kp_python_api.error_give(error[0], error[1], error[2]);
    if (is_ready) kp_store_release(&attached, true); /* pairs with: set_mode */
    return is_ready;
}

/* Without this, a run whose only window began before torch was imported would have no such ranges. */
static bool attach(void)
{
    if (kp_load_relaxed(&attached)) return true;
    if (!is_usable() || kp_python_is_over()) return false;
    if (!kp_python_api.has_gil()) { /* on the ticker: leaves the search to Python's main thread */
        kp_python_attach_later();
        return false;
    }
    int saved = errno;
    const bool is_ready = look();
    errno = saved;
    return is_ready;
}

static void setup(const struct kp_config *config)
{
    wants = config->compile_ranges && config->activities & KP_ACTIVITY_CPU;
}

const struct kp_source kp_markers_source = {
    .name = "markers",
    .setup = setup,
    .attach = attach,
    .set_mode = set_mode,
    .wait_ready = wait_ready,
};
