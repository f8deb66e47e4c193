// SPDX-License-Identifier: Apache-2.0
/*
 * ops.c - torch's callbacks at the start and end of an op, which make one record of it
 *
 * Called by: torch, on any thread, around every op while a window warms up or records (hot)
 * Owns:      nothing; a slot (slots.c) keeps state from start to end
 * Locks:     none. Memory: none but a thread's first slots.
 * On fail:   the op is not recorded and counted (no slot, no room, re-entry)
 * Safe in:   after fork yes (the gate reads 0 in a child)
 *
 * The end may come on another thread, in another window or never. A range may be user code of any length. The start
 * callback reads the clock last and the end callback reads it first, so the op's time excludes our work.
 */
#include <string.h>

#include "collector/base/sys/kp_clock.h"
#include "preload/python_bridge.h"
#include "preload/guard.h"
#include "preload/unwind/kp_unwind.h"
#include "preload/run.h"
#include "preload/torch/entry.h"
#include "preload/torch/forwardline.h"
#include "preload/torch/openwork.h"
#include "preload/torch/torch.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

enum { KEEPING = KP_GATE_RECORD | KP_GATE_WARM, HEAD_BYTES_MAX = sizeof(struct kp_rec_op) + 40, USUAL_BYTES = 1024 };

static _Thread_local uint32_t script_depth __attribute__((tls_model("initial-exec"))); /* modules of TorchScript */

/* The callers of an op. Functions take NULL if the gate wants none of them. */
struct callers {
    uint64_t stack;   /* the word that KP_OP_STACK announces; 0: none */
    uint32_t modules; /* string id of TorchScript's modules; 0: none */
    uint32_t flags;   /* flags of the record for these two */
};

/* Lower half: the Python stack's id; upper half: the native stack's. */
static inline uint64_t stack_get(struct kp_thread *t, uint64_t gate)
{
    const uint64_t python = kp_caller_stack(t);
    return gate & KP_GATE_NATIVE ? python | (uint64_t)kp_unwind_stack(t) << 32 : python;
}

/* If scopes could not be proved, every range counts as a user's. */
static inline bool is_user_range(const uint8_t *rf)
{
    return KP_UNLIKELY((kp_torch.layout.dropped & KP_TORCH_NO_SCOPE) ||
                       rf[kp_torch.layout.rf_scope] == KP_TORCH_USER_SCOPE);
}

/* An op of the program may have been called by an operator, or by a type: then no call's site has its line. */
static inline uint64_t line_get(struct kp_thread *t, uint64_t gate, const uint8_t *rf)
{
    return is_user_range(rf) ? 0 : kp_caller_line(t, gate);
}

/* Backward ops have no modules: torch.profiler does not ask for theirs either. */
static KP_COLD void callers_get(struct callers *c, struct kp_thread *t, uint64_t gate, const uint8_t *rf)
{
    const bool is_backward =
        rf[kp_torch.layout.rf_scope] == KP_TORCH_BACKWARD_SCOPE && !(kp_torch.layout.dropped & KP_TORCH_NO_SCOPE);
    c->stack = gate & KP_GATE_STACKS ? stack_get(t, gate) : gate & KP_GATE_LINES ? line_get(t, gate, rf) : 0;
    c->modules = gate & KP_GATE_MODULES && !is_backward ? kp_torch_modules_id(t) : 0;
    c->flags = (c->stack ? KP_OP_STACK : 0u) | (c->modules ? KP_OP_MODULES : 0u);
}

static KP_COLD uint64_t *callers_put(const struct callers *c, uint64_t *tail)
{
    if (c->stack) *tail++ = c->stack;
    if (c->modules) *tail++ = c->modules;
    return tail;
}

/* Fills the record except its time and its inputs. Returns the size so far. `dropped` is the layout's. */
static inline __attribute__((always_inline)) uint32_t describe(struct kp_rec_op *rec, const uint8_t *rf, uint32_t name,
                                                               const struct callers *callers, uint32_t dropped)
{
    const struct kp_torch_layout *l = &kp_torch.layout;
    uint32_t flags = 0;
    uint64_t *tail = (uint64_t *)(rec + 1);
    if (KP_LIKELY(!(dropped & KP_TORCH_NO_SEQ))) {
        uint64_t seq = kp_torch_word(rf, l->rf_seq);
        if ((int64_t)seq >= 0) {
            flags |= KP_OP_SEQ;
            *tail++ = seq;
            *tail++ = KP_UNLIKELY(dropped & KP_TORCH_NO_FWD) ? 0 : kp_torch_word(rf, l->rf_fwd);
        }
    }
    uint64_t handle = KP_UNLIKELY(dropped & KP_TORCH_NO_FWD) ? 0 : kp_torch_word(rf, l->rf_handle);
    if (KP_UNLIKELY(handle)) {
        flags |= KP_OP_HANDLE;
        *tail++ = handle;
    }
    if (KP_UNLIKELY(callers)) {
        flags |= callers->flags;
        tail = callers_put(callers, tail);
    }
    if (!(dropped & KP_TORCH_NO_ASYNC) && KP_UNLIKELY(rf[l->rf_async])) flags |= KP_OP_ASYNC;
    uint32_t bytes = (uint32_t)((uint8_t *)tail - (uint8_t *)rec);
    rec->head = (struct kp_rec){.kind = KP_KIND_OP, .flags = (uint8_t)flags, .size = (uint16_t)bytes, .name = name};
    kp_store_relaxed(&rec->ticks, 0);
    rec->rt_tid = KP_UNLIKELY(dropped & KP_TORCH_NO_THREAD) ? 0 : (uint32_t)kp_torch_word(rf, l->rf_thread);
    rec->scope = KP_UNLIKELY(dropped & KP_TORCH_NO_SCOPE) ? 0 : rf[l->rf_scope];
    rec->ends_step = 0;
    return bytes;
}

/* The same where the layout of a field could not be proved. */
static KP_COLD uint32_t describe_partly(struct kp_rec_op *rec, const uint8_t *rf, uint32_t name,
                                        const struct callers *callers)
{
    return describe(rec, rf, name, callers, kp_torch.layout.dropped);
}

/* A call of TorchScript may be a module's, which counts where nothing else does. */
static KP_COLD uint32_t script_mark(const uint8_t *rf)
{
    const char *name = kp_torch.api.name(rf);
    return name ? kp_steps_classify_script(name) : 0;
}

static inline bool is_script_call(const uint8_t *rf)
{
    return rf[kp_torch.layout.rf_scope] == KP_TORCH_SCRIPT_SCOPE && !(kp_torch.layout.dropped & KP_TORCH_NO_SCOPE);
}

static inline uint32_t mark_get(uint64_t gate, const uint8_t *rf)
{
    bool user = is_user_range(rf);
    if (KP_UNLIKELY(!(gate & KP_GATE_STEPS))) return 0;
    if (KP_UNLIKELY(user || kp_torch_marks_ops)) return kp_torch_step_mark(rf, user);
    return KP_UNLIKELY(is_script_call(rf)) ? script_mark(rf) : 0;
}

static inline bool wants_inputs(uint64_t gate, const uint8_t *rf)
{
    return (gate & KP_GATE_SHAPES) && !(kp_torch.layout.dropped & KP_TORCH_NO_INPUTS) &&
           kp_torch_word(rf, kp_torch.layout.rf_inputs + 8u);
}

/*
 * Appends the inputs to a record that is not committed, of *bytes so far. If its chunk is too short, the record moves
 * to the next one. NULL: there is none.
 */
static inline struct kp_rec_op *inputs_append(struct kp_thread *t, uint64_t gate, const uint8_t *rf,
                                              struct kp_rec_op *first, uint32_t *bytes)
{
    uint8_t *at = (uint8_t *)first;
    const uint32_t whole = kp_torch_inputs_put(t, gate, rf, &at, *bytes);
    if (KP_UNLIKELY(at != (uint8_t *)first && at)) memcpy(at, first, *bytes);
    struct kp_rec_op *rec = (struct kp_rec_op *)at;
    if (KP_UNLIKELY(!whole)) return rec;
    rec->head.flags |= KP_OP_INPUTS;
    rec->head.size = (uint16_t)whole;
    *bytes = whole;
    return rec;
}

/* Makes the record. Its time is read last. NULL: no room, counted. */
static inline struct kp_rec_op *put(struct kp_thread *t, uint64_t gate, const uint8_t *rf, uint32_t name,
                                    const struct callers *callers, uint64_t *start)
{
    const bool has_inputs = wants_inputs(gate, rf);
    struct kp_rec_op *rec = kp_put_reserve(t, gate, has_inputs ? USUAL_BYTES : HEAD_BYTES_MAX, KP_KIND_OP);
    if (KP_UNLIKELY(!rec)) return NULL;
    uint32_t bytes = KP_LIKELY(!kp_torch.layout.dropped) ? describe(rec, rf, name, callers, 0)
                                                         : describe_partly(rec, rf, name, callers);
    if (has_inputs) rec = inputs_append(t, gate, rf, rec, &bytes);
    if (KP_UNLIKELY(!rec)) return NULL;
    *start = rec->start = kp_ticks();
    kp_put_commit(t, bytes);
    return rec;
}

static inline struct kp_torch_slot *start_record(struct kp_thread *t, uint64_t gate, const uint8_t *rf)
{
    __builtin_prefetch(t->at, 1); /* the stores of its record wait for this page, and for its chunk's head */
    __builtin_prefetch(t->chunk, 1);
    struct kp_torch_slot *s = kp_torch_slot_take(t);
    if (!s) return NULL;
    uint32_t name = kp_torch_name_id(t, rf);
    s->cycle = kp_gate_cycle(gate);
    s->mark = mark_get(gate, rf);
    s->phase = s->script = 0;
    struct callers wanted, *callers = NULL;
    if (KP_UNLIKELY(gate & (KP_GATE_STACKS | KP_GATE_LINES | KP_GATE_MODULES)))
        callers_get(callers = &wanted, t, gate, rf);
    s->rec = NULL;
    /* In a warm-up the op's name is now cached, and no record is made. */
    if (KP_LIKELY((gate & KP_GATE_RECORD))) s->rec = put(t, gate, rf, name, callers, &s->start);
    if (kp_torch_is_comms(t, name) && s->rec) kp_torch_comms_put(t, gate);
    if (KP_UNLIKELY(kp_load_relaxed(&kp_torch_forwards))) s->around = kp_torch_forward_begin(rf);
    return s;
}

/*
 * A range that begins a phase, or a module of TorchScript, of which the outermost counts. The phase begins after the
 * range did, so the range itself lies outside of it.
 */
static KP_COLD void special_begin(struct kp_thread *t, struct kp_torch_slot *s)
{
    uint32_t depth;
    if (kp_steps_mark_is_script(s->mark)) {
        s->script = ++script_depth;
        if (s->script > 1) s->mark = 0;
        return;
    }
    kp_run_phase_begin(t, kp_steps_mark_phase(s->mark), &depth);
    s->phase = depth + 1;
}

static inline bool is_special(uint32_t mark) { return kp_steps_mark_phase(mark) || kp_steps_mark_is_script(mark); }

static KP_COLD void phase_end(struct kp_thread *t, const struct kp_torch_slot *s) { kp_run_phase_end(t, s->phase - 1); }

/* Does the range count as a collective's, perhaps? */
static inline bool is_watched(const uint8_t *rf)
{
    return KP_UNLIKELY(kp_load_relaxed(&kp_torch_watches)) && is_user_range(rf);
}

KP_TORCH_ENTRY_MAKE(kp_torch_op_start);
KP_TORCH_HIDDEN void **kp_torch_op_start(void **context, const uint8_t *rf)
{
    struct kp_guard guard;
    *context = NULL;
    if (!KP_HOOK_ENTER(&guard, KEEPING)) return context;
    struct kp_torch_slot *s = guard.gate & KEEPING ? start_record(guard.thread, guard.gate, rf) : NULL;
    *context = s;
    if (s && is_watched(rf)) kp_torch_collective_begin(rf); /* with a slot its end comes, too */
    if (KP_UNLIKELY(s && is_special(s->mark))) special_begin(guard.thread, s);
    KP_HOOK_LEAVE(&guard);
    return context;
}

/*
 * Does the end of a range with this mark end a step? For an optimizer's step, the Python frame is asked for the
 * optimizer object, by a few system calls. The frame still exists: it calls record_function.__exit__.
 */
static KP_COLD bool ends_step(uint32_t mark)
{
    if (!kp_steps_wants_optimizer(mark)) return kp_steps_range_end(mark, 0);
    const uint64_t optimizer = kp_caller_optimizer(), seated = kp_steps_optimizer();
    if (optimizer && seated && optimizer != seated && kp_caller_is_gone(seated)) kp_steps_optimizer_gone(seated);
    return kp_steps_range_end(mark, optimizer);
}

/* An op belongs to the window it began in. An op that outlives the window has no end there. */
static inline void end_record(struct kp_thread *t, uint64_t gate, struct kp_torch_slot *s, uint64_t now)
{
    struct kp_rec_op *rec = s->rec;
    t->ended++;
    const bool is_kept = KP_LIKELY(rec && (gate & KP_GATE_RECORD) && kp_gate_cycle(gate) == s->cycle);
    if (is_kept) kp_put_end(&rec->ticks, s->start, now);
    if (KP_LIKELY(!s->mark) || !ends_step(s->mark)) return;
    if (is_kept) rec->ends_step = 1;
    kp_run_step(t, now);
}

void kp_torch_op_end(const uint8_t *rf, struct kp_torch_slot *slot)
{
    if (!slot) return;
    uint64_t now = kp_ticks();
    struct kp_guard guard;
    if (KP_UNLIKELY(slot->script)) script_depth = slot->script - 1;
    if (!KP_HOOK_ENTER(&guard, KP_GATE_ON)) return;
    if (is_watched(rf)) kp_torch_collective_end(rf);
    if (KP_UNLIKELY(kp_load_relaxed(&kp_torch_forwards))) kp_torch_forward_end(rf, slot->around);
    end_record(guard.thread, guard.gate, slot, now);
    if (KP_UNLIKELY(slot->phase)) phase_end(guard.thread, slot);
    KP_HOOK_LEAVE(&guard);
}

KP_TORCH_ENTRY_MAKE(kp_torch_step_start);
KP_TORCH_HIDDEN void **kp_torch_step_start(void **context, const uint8_t *rf)
{
    struct kp_guard guard;
    *context = NULL;
    if (!kp_phases_are_set() && !kp_steps_wants_modules() && !kp_load_relaxed(&kp_torch_watches)) return context;
    if (!KP_HOOK_ENTER(&guard, KP_GATE_STEPS)) return context;
    if (is_watched(rf)) kp_torch_collective_begin(rf);
    const uint32_t mark = mark_get(guard.gate, rf);
    struct kp_torch_slot *s = is_special(mark) ? kp_torch_slot_take(guard.thread) : NULL;
    if (s) {
        s->rec = NULL;
        s->mark = mark;
        s->phase = s->script = 0;
        special_begin(guard.thread, s);
    }
    *context = s;
    KP_HOOK_LEAVE(&guard);
    return context;
}

/* Installed while no window records: names of ranges matter, to count steps and to know the phase. */
void kp_torch_step_end(const uint8_t *rf, struct kp_torch_slot *slot)
{
    uint64_t now = kp_ticks();
    struct kp_guard guard;
    if (slot && slot->script) script_depth = slot->script - 1;
    if (!KP_HOOK_ENTER(&guard, KP_GATE_STEPS)) return;
    if (is_watched(rf)) kp_torch_collective_end(rf);
    const uint32_t mark = slot ? slot->mark : mark_get(guard.gate, rf);
    if (mark && (slot || !kp_steps_mark_is_script(mark)) && ends_step(mark)) kp_run_step(guard.thread, now);
    if (slot && slot->phase) phase_end(guard.thread, slot);
    KP_HOOK_LEAVE(&guard);
}
