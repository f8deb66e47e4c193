// SPDX-License-Identifier: Apache-2.0
/*
 * ops.c - torch tells us that an op starts and ends; this makes one record of it
 *
 * Called by: torch, on any thread, around every op while a window warms up or records (hot)
 * Owns:      nothing; slots.c keeps what must live from start to end
 * Locks:     none. Memory: none but a thread's first slots.
 * On fail:   the op is not recorded and counted (no slot, no room, re-entry)
 * Safe in:   after fork yes (the gate reads 0 in a child)
 *
 * The end may come on another thread, in another window or never; a range may be user code of any length. The
 * clock is read last in start and first in end, so our own work is not counted as the op's.
 */
#include "collector/base/kp_clock.h"
#include "preload/guard.h"
#include "preload/source.h"
#include "preload/torch/torch.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

enum { KEEPING = KP_GATE_RECORD | KP_GATE_WARM };

/* What torch says about the op goes into the slot; all but the time. */
static inline void describe(struct kp_torch_slot *s, struct kp_thread *t, const uint8_t *rf)
{
    const struct kp_torch_layout *l = &kp_torch.layout;
    uint32_t dropped = l->dropped, flags = 0;
    uint64_t seq = UINT64_MAX, fwd = 0, handle = 0;
    uint32_t scope = dropped & KP_TORCH_NO_SCOPE ? 0 : rf[l->rf_scope];
    uint64_t thread = dropped & KP_TORCH_NO_THREAD ? 0 : kp_torch_word(rf, l->rf_thread);
    if (!(dropped & KP_TORCH_NO_SEQ)) seq = kp_torch_word(rf, l->rf_seq);
    if (!(dropped & KP_TORCH_NO_FWD)) {
        fwd = kp_torch_word(rf, l->rf_fwd);
        handle = kp_torch_word(rf, l->rf_handle);
    }
    if ((int64_t)seq >= 0) flags |= KP_OP_SEQ;
    if (handle) flags |= KP_OP_HANDLE;
    if (!(dropped & KP_TORCH_NO_ASYNC) && rf[l->rf_async]) flags |= KP_OP_ASYNC;
    kp_store_relaxed(&s->seq, seq);
    kp_store_relaxed(&s->fwd, fwd);
    kp_store_relaxed(&s->handle, handle);
    kp_store_relaxed(&s->rt_scope, (uint32_t)thread << 8 | scope);
    kp_store_relaxed(&s->flags, flags);
    kp_store_relaxed(&s->tid, t->tid);
    kp_store_relaxed(&s->thread_no, t->thread_no);
    kp_store_relaxed(&s->name, kp_torch_name_id(t, rf));
}

/* Without proved scopes every name is looked at as if it were a user's. */
static inline bool is_user_range(const uint8_t *rf)
{
    return (kp_torch.layout.dropped & KP_TORCH_NO_SCOPE) || rf[kp_torch.layout.rf_scope] == KP_TORCH_USER_SCOPE;
}

static inline uint32_t mark_get(uint64_t gate, const uint8_t *rf)
{
    bool user = is_user_range(rf);
    if (!(gate & KP_GATE_STEPS) || !(user || kp_torch.marks_ops)) return 0;
    return kp_torch_step_mark(rf, user);
}

static inline struct kp_torch_slot *start_record(struct kp_thread *t, uint64_t gate, const uint8_t *rf)
{
    struct kp_torch_slot *s = kp_torch_slot_take(t);
    if (!s) return NULL;
    describe(s, t, rf);
    kp_store_relaxed(&s->gate, gate);
    s->mark = mark_get(gate, rf);
    if ((gate & KP_GATE_SHAPES) && !(kp_torch.layout.dropped & KP_TORCH_NO_INPUTS) &&
        kp_torch_word(rf, kp_torch.layout.rf_inputs + 8u))
        kp_torch_inputs_put(t, gate, rf, s);
    else
        kp_store_relaxed(&s->start, kp_ticks());
    if (gate & KP_GATE_RECORD) {
        uint64_t live = (uint64_t)++s->generation << 32 | (kp_gate_cycle(gate) & (KP_TORCH_LATE - 1));
        /* pairs with: slots.c:slot_collect */
        kp_store_release(&s->live, live);
    }
    return s;
}

void **kp_torch_op_start(void **context, const uint8_t *rf)
{
    struct kp_guard guard;
    *context = NULL;
    if (!KP_HOOK_ENTER(&guard, KEEPING)) return context;
    if (guard.gate & KEEPING) *context = start_record(guard.thread, guard.gate, rf);
    KP_HOOK_LEAVE(&guard);
    return context;
}

/* Fills what follows the fixed part, in the order of the flag bits. */
static uint32_t op_tail(uint64_t *tail, const struct kp_torch_slot *s, uint32_t flags, uint64_t ticks)
{
    uint32_t n = 0;
    if (flags & KP_OP_LONG) tail[n++] = ticks;
    if (flags & KP_OP_SEQ) {
        tail[n++] = kp_load_relaxed(&s->seq);
        tail[n++] = kp_load_relaxed(&s->fwd);
    }
    if (flags & KP_OP_HANDLE) tail[n++] = kp_load_relaxed(&s->handle);
    if (flags & KP_OP_OTHER)
        tail[n++] = (uint64_t)kp_load_relaxed(&s->thread_no) << 32 | kp_load_relaxed(&s->tid);
    return n * 8;
}

static void put_op(struct kp_thread *t, uint64_t gate, const struct kp_torch_slot *s, uint64_t end, uint32_t extra)
{
    uint64_t start = kp_load_relaxed(&s->start), ticks = end > start ? end - start : 0;
    uint32_t flags = kp_load_relaxed(&s->flags) | extra;
    if (ticks > UINT32_MAX) flags |= KP_OP_LONG;
    if (kp_load_relaxed(&s->thread_no) != t->thread_no) flags |= KP_OP_OTHER;
    struct kp_rec_op *rec = kp_put_reserve(t, gate, sizeof *rec + 5 * 8, KP_KIND_OP);
    if (!rec) return;
    uint32_t bytes = (uint32_t)sizeof *rec + op_tail((uint64_t *)(rec + 1), s, flags, ticks);
    rec->head = (struct kp_rec){
        .kind = KP_KIND_OP,
        .flags = (uint8_t)flags,
        .size = (uint16_t)bytes,
        .name = kp_load_relaxed(&s->name),
    };
    rec->start = start;
    rec->ticks = flags & KP_OP_LONG ? 0 : (uint32_t)ticks;
    rec->rt_scope = kp_load_relaxed(&s->rt_scope);
    kp_put_commit(t, bytes);
}

/* An op belongs to the window it began in: one that outlives it is collected as unfinished, not put here. */
static inline void end_record(struct kp_thread *t, uint64_t gate, struct kp_torch_slot *s, uint64_t now)
{
    uint64_t began = kp_load_relaxed(&s->gate);
    if (kp_gate_cycle(gate) == kp_gate_cycle(began) && (gate & began & KEEPING)) {
        put_op(t, gate, s, now, 0);
        /* pairs with: slots.c:slot_delete, slot_collect */
        kp_store_release(&s->live, 0);
    }
    if (__builtin_expect(s->mark != 0, 0) && kp_steps_range_end(s->mark)) kp_boot_step(t, now);
}

void kp_torch_op_end(const uint8_t *rf, struct kp_torch_slot *slot)
{
    uint64_t now = kp_ticks();
    struct kp_guard guard;
    (void)rf;
    if (!slot || !KP_HOOK_ENTER(&guard, KP_GATE_ON)) return;
    end_record(guard.thread, guard.gate, slot, now);
    KP_HOOK_LEAVE(&guard);
}

void **kp_torch_step_start(void **context, const uint8_t *rf)
{
    (void)rf;
    *context = NULL;
    return context;
}

/* While nothing is recorded only the ends of user ranges matter, and only their names. */
void kp_torch_step_end(const uint8_t *rf, struct kp_torch_slot *slot)
{
    uint64_t now = kp_ticks();
    struct kp_guard guard;
    (void)slot;
    if (!KP_HOOK_ENTER(&guard, KP_GATE_STEPS)) return;
    uint32_t mark = kp_torch_step_mark(rf, is_user_range(rf));
    if (mark && kp_steps_range_end(mark)) kp_boot_step(guard.thread, now);
    KP_HOOK_LEAVE(&guard);
}

struct open_window {
    struct kp_thread *thread;
    uint64_t gate, begin, end;
};

static void put_unfinished(void *context, const struct kp_torch_slot *slot)
{
    const struct open_window *w = context;
    uint64_t start = kp_load_relaxed(&slot->start);
    if (start >= w->begin && start <= w->end) put_op(w->thread, w->gate, slot, w->end, KP_OP_UNFINISHED);
}

void kp_torch_put_open(uint32_t cycle, uint64_t begin_ticks, uint64_t end_ticks)
{
    struct kp_thread *t = kp_thread_get();
    if (!t) return;
    struct open_window w = {t, kp_gate_make(cycle, KP_GATE_ON | KP_GATE_RECORD), begin_ticks, end_ticks};
    kp_torch_slots_collect(cycle, put_unfinished, &w);
}
