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
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_config.h"
#include "collector/base/sys/kp_io.h"
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
static void *flag_module, *on; /* on: our true object */
static struct kp_python_method *enter_method, *exit_method;
static kp_python_call_fn torch_enter, torch_exit;
static size_t guard_at;    /* offset of a pointer that is not NULL while torch has a range for the object */
static size_t keywords_at; /* offset of a dict or NULL; 0: this torch has no such field */
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
    if (!keywords || kp_python_at(keywords, 8) != kp_python_api.dict_type) return 0;
    const char *text = kp_pyobject_text(kp_python_api.dict_get(keywords, "scope"));
    return text && strcmp(text, "user_scope") == 0 ? KP_SCOPE_USER : 0;
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
        const uint32_t stack = guard.gate & KP_GATE_STACKS ? kp_caller_stack(guard.thread) : 0;
        struct kp_rec_op *const rec = kp_put_range(guard.thread, guard.gate, id, scope_of(self), stack);
        m->open[m->depth] = (struct open_marker){self, rec};
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

static void *marker_enter(void *self, void *args, void *more)
{
    void *result = torch_enter(self, args, more);
    if (result) range_begin(self);
    return result;
}

static void *marker_exit(void *self, void *args, void *more)
{
    range_end(self);
    return torch_exit(self, args, more);
}

/* ---- the gates: the flag and the method table. All with the GIL. ---- */

static void flag_set(const void *from, void *to)
{
    void *now = kp_pyobject_member(flag_module, FLAG);
    if (now == from && kp_python_api.member_set(flag_module, FLAG, to) != 0) kp_python_api.forget_error();
    KP_PYTHON_DROP(now);
}

static void gates_set(bool are_open)
{
    struct kp_pyaside aside;
    void *const off = kp_python_api.no;
    kp_pyaside_begin(&aside, NULL);
    kp_store_release(&enter_method->call, are_open ? marker_enter : torch_enter); /* read by CPython, under the GIL */
    kp_store_release(&exit_method->call, are_open ? marker_exit : torch_exit);
    flag_set(are_open ? off : on, are_open ? on : off);
    kp_pyaside_end(&aside);
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
static bool is_usable(void) { return wants && !is_refused && kp_python_api_find() && !kp_python_is_over(); }

static void wait_ready(uint64_t begin_ticks, uint32_t timeout_ms)
{
    (void)begin_ticks;
    if (!is_usable() || kp_load_relaxed(&installed_cycle) == kp_gate_cycle(kp_gate_get())) return;
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
static bool is_writable(struct kp_python_method *method)
{
    kp_python_call_fn same;
    return kp_io_peek(&method->call, &same, sizeof same) == 0 && kp_io_poke(&method->call, &same, sizeof same) == 0;
}

/* The table's row of a method of a C class. */
static struct kp_python_method *method_find(void *class, const char *name, int flags)
{
    void *descriptor = kp_pyobject_member(class, name);
    struct kp_python_method *method = NULL, seen;
    if (strcmp(kp_pyobject_type(descriptor), "method_descriptor") != 0) return NULL;
    method = kp_python_at(descriptor, DESCRIPTOR_METHOD);
    if (kp_io_peek(method, &seen, sizeof seen) != 0 || seen.flags != flags || strcmp(seen.name, name) != 0) return NULL;
    return is_writable(method) ? method : NULL;
}

/* Checks the layout on a new object: the name comes first, and the guard last, which is NULL. */
static bool is_laid_out(void *class)
{
    void *name = kp_python_api.text_make("kprof"), *bytes = kp_pyobject_member(class, "__basicsize__");
    void *object = name ? kp_python_api.call_with(class, name, NULL) : NULL;
    const long size = bytes ? kp_python_api.int_value(bytes) : 0;
    bool is_right =
        object && size >= BYTES_LEAST && size <= BYTES_MOST && size % 8 == 0 && kp_python_at(object, AT_NAME) == name;
    if (is_right) guard_at = (size_t)size - 8;
    if (is_right && guard_at >= AT_NAME + 24)
        keywords_at = guard_at - 8; /* name, input_values, keyword_values, guard */
    for (size_t at = AT_NAME + 8; is_right && at < (size_t)size; at += 8) is_right = !kp_python_at(object, at);
    KP_PYTHON_DROP(object, bytes, name);
    return is_right;
}

static bool prove(void)
{
    void *class = kp_pymodule_member("torch._C._profiler", "_RecordFunctionFast");
    if (!class || !is_laid_out(class)) return false;
    enter_method = method_find(class, "__enter__", NO_ARGUMENTS);
    exit_method = method_find(class, "__exit__", ARGUMENTS);
    if (!enter_method || !exit_method) return false;
    torch_enter = kp_load_relaxed(&enter_method->call);
    torch_exit = kp_load_relaxed(&exit_method->call);
    on = kp_python_api.int_make(1);
    return on;
}

static bool is_still_imported(void)
{
    void *spec = kp_pymodule_member("torch", "__spec__"), *mark = kp_pyobject_member(spec, "_initializing");
    const bool is_done = kp_pymodule_get("torch") && (!mark || mark == kp_python_api.no);
    KP_PYTHON_DROP(mark, spec);
    return !is_done;
}

static void flag_find(void)
{
    flag_module = kp_pymodule_member("torch.autograd", "profiler"); /* the reference is never dropped */
    void *flag = kp_pyobject_member(flag_module, FLAG);
    is_refused = !flag || !prove();
    KP_PYTHON_DROP(flag);
    if (!is_refused) kp_store_release(&attached, true); /* pairs with: set_mode */
    else
        kp_log(0,
               "KPROF_COMPILE_RANGES: this torch's markers cannot be recorded without its profiler, so they are not");
}

/* Needs the GIL. Never waits for an import. */
static bool look(void)
{
    struct kp_pyaside aside;
    if (kp_load_relaxed(&attached) || is_refused) return !is_refused;
    kp_pyaside_begin(&aside, NULL);
    if (!is_still_imported()) flag_find();
    kp_pyaside_end(&aside);
    return kp_load_relaxed(&attached);
}

/* If it did not, a run whose only window began before torch was imported would have no such ranges. */
static bool attach(void)
{
    if (kp_load_relaxed(&attached)) return true;
    if (!is_usable()) return false;
    if (kp_python_api.has_gil()) return look();
    kp_python_attach_later(); /* on the ticker: leaves the search to Python's main thread */
    return false;
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
