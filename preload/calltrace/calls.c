// SPDX-License-Identifier: Apache-2.0
/*
 * calls.c - entry and exit of a call of a hooked function
 *
 * Called by: the stubs (stubs_x86_64.S), on any host thread, around every call of a hooked function while a window
 *            records (hot)
 * Owns:      the open calls, a stack of them for each thread
 * Locks:     none. Memory: none; slow.c allocates a thread's state.
 * On fail:   the call keeps its own return address and is counted as lost
 * Safe in:   signal handlers yes; after fork yes (calls begun before the fork still return)
 *
 * This file is compiled without vector registers, since they hold arguments and results. Code that may use them is in
 * slow.c.
 *
 * A call's entry is freed when the call returns, or when it can never return. That is so if longjmp or throw was called
 * inside it and its frame is gone afterwards, or if its thread ends. A frame that is gone proves nothing by itself,
 * since programs copy stacks away and back (greenlets). Such a call keeps its entry, and its record gets an end.
 */
#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_io.h"
#include "preload/guard.h"
#include "preload/calltrace/calltrace.h"
#include "collector/base/kp_poison.h"

/* The fast path makes only tail calls, so it needs no frame and saves no registers. The variant that must call the
 * clock is a copy of it. */
#define FRAME \
    ((const uintptr_t *)__builtin_dwarf_cfa() - 2) /* equals __builtin_frame_address(0) of a function with a frame */
#define HOT inline __attribute__((always_inline))
#define COLD __attribute__((noinline, cold))

struct kp_calltrace_call *kp_calltrace_open;
_Atomic uint32_t kp_calltrace_armed;

static HOT void end(const struct kp_calltrace_call *call, uint64_t gate, uint64_t now)
{
    if (__builtin_expect((gate & KP_GATE_RECORD) && call->cycle == kp_gate_cycle(gate), 1))
        kp_put_end(&call->rec->ticks, call->rec->start, now);
}

void kp_calltrace_end(struct kp_calltrace_call *call, uint64_t gate, uint64_t now)
{
    if (!call->is_ended) end(call, gate, now);
    call->is_ended = true;
}

/* Returns the exit stub that calls the function. */
static HOT uintptr_t push(struct kp_calltrace_calls *c, struct kp_thread *t, uint64_t gate,
                          const struct kp_calltrace_row *row, uintptr_t *slot, struct kp_calltrace_row *lazy,
                          bool is_foreign, bool is_tsc)
{
    struct kp_rec_symbol *rec = (struct kp_rec_symbol *)(void *)t->at;
    const uint32_t number = kp_calltrace_number(c, c->n);
    struct kp_calltrace_call *call = &kp_calltrace_open[number];
    rec->head = (struct kp_rec){.kind = KP_KIND_SYMBOL, .size = sizeof *rec, .name = kp_load_relaxed(&row->id)};
    kp_store_relaxed(&rec->ticks, 0);
    call->slot = (uintptr_t)slot;
    call->rec = rec;
    call->owner = c;
    call->cycle = kp_gate_cycle(gate);
    call->is_foreign = is_foreign;
    call->is_noted = call->is_left = call->is_ended = false;
    call->lazy = lazy;
    call->under = c->under;
    call->place = c->n;
    kp_calltrace_returns[number] = *slot;
    kp_store_relaxed(&call->state, KP_CALL_OPEN);
    kp_signal_fence(); /* a signal handler may jump out of here: the call is complete before it counts as open */
    c->n++;
    c->under = is_foreign ? 0 : (uintptr_t)slot;
    kp_signal_fence();
    *slot = kp_calltrace_exit_of(number);
    rec->start = is_tsc ? __builtin_ia32_rdtsc() : kp_ticks();
    kp_put_commit(t, sizeof *rec);
    return kp_calltrace_exit_of(number) - KP_CALLTRACE_CALL_BYTES;
}

uintptr_t kp_calltrace_push(struct kp_calltrace_calls *c, struct kp_thread *t, uint64_t gate,
                            struct kp_calltrace_row *row, uintptr_t *slot, bool is_foreign)
{
    return push(c, t, gate, row, slot, kp_load_relaxed(&row->word) ? row : NULL, is_foreign, false);
}

static inline uintptr_t without_push(uint64_t gate)
{
    return (gate & (KP_GATE_RECORD | KP_GATE_CHILD_PENDING)) ? KP_CALLTRACE_IS_SLOW : KP_CALLTRACE_GOES_ON;
}

static HOT uintptr_t enter(struct kp_calltrace_row *row, uintptr_t *slot, bool is_tsc)
{
    const uintptr_t at = (uintptr_t)slot;
    struct kp_thread *t = kp_thread_self;
    if (__builtin_expect(kp_in_profiler, 0)) return KP_CALLTRACE_GOES_ON;
    if (__builtin_expect(!t, 0)) return without_push(kp_gate_get());
    if (__builtin_expect(kp_load_relaxed(&t->inside) != 0, 0)) /* the slow path checks for an abandoned hook */
        return (kp_gate_get() & KP_GATE_RECORD) ? KP_CALLTRACE_IS_SLOW : KP_CALLTRACE_GOES_ON;
    kp_store_relaxed(&t->inside, kp_inside_tag(FRAME));
    kp_signal_fence();
    const uint64_t gate = kp_gate_get();
    struct kp_calltrace_calls *c = t->source_state[KP_STATE_SYMBOLS];
    uintptr_t next;
    /* The fast path: the call nests in the last one, on the thread's own stack; there is room; the slot is bound. */
    if (__builtin_expect((gate & KP_GATE_RECORD) && c && at < c->under && at >= c->lo && c->n < c->room &&
                             kp_load_relaxed(&row->id) && !kp_load_relaxed(&row->word) &&
                             t->chunk_cycle == kp_gate_cycle(gate) &&
                             (uintptr_t)(t->end - t->at) >= sizeof(struct kp_rec_symbol),
                         1))
        next = push(c, t, gate, row, slot, NULL, false, is_tsc);
    else next = without_push(gate);
    kp_signal_fence();
    kp_store_release(&t->inside, 0); /* pairs with: kp_record_quiesce */
    return next;
}

static COLD uintptr_t enter_by_clock(struct kp_calltrace_row *row, uintptr_t *slot) { return enter(row, slot, false); }

uintptr_t kp_calltrace_enter(struct kp_calltrace_row *row, uintptr_t *slot)
{
    return __builtin_expect(kp_load_relaxed(&kp_clock_is_tsc), 1) ? enter(row, slot, true) : enter_by_clock(row, slot);
}

void kp_calltrace_pop(struct kp_calltrace_calls *c)
{
    while (c->n && kp_load_relaxed(&kp_calltrace_open[kp_calltrace_number(c, c->n - 1)].state) == KP_CALL_DONE) c->n--;
}

/* Computes `under` again, after anything but a call that ends in the order it began. */
void kp_calltrace_under_find(struct kp_calltrace_calls *c)
{
    c->under = c->hi;
    if (c->noted || c->unbound) c->under = 0;
    for (uint32_t i = c->n; c->under && i-- > 0;) {
        const struct kp_calltrace_call *call = &kp_calltrace_open[kp_calltrace_number(c, i)];
        if (call->is_left) continue;
        c->under = call->is_foreign || kp_load_relaxed(&call->state) == KP_CALL_DONE ? 0 : call->slot;
        break;
    }
}

/* The loader has bound the slot at the first call. Makes the stub jump to the function, and puts the stub in the slot
 * again. */
void kp_calltrace_bound(struct kp_calltrace_row *row)
{
    const uintptr_t stub = kp_calltrace_stub_of(row), at = kp_load_relaxed(&row->word);
    if (!at) return;
    uintptr_t holds = kp_load_relaxed((_Atomic uintptr_t *)at);
    if (holds == stub || kp_calltrace_row_of(holds)) return;
    kp_store_relaxed(&row->target, holds);
    kp_store_relaxed(&row->word, 0);
    kp_cas_acq_rel((_Atomic uintptr_t *)at, &holds, stub);
}

/* For a call whose frame is gone: above it is the stack's top, or its slot holds something else. */
static void left_behind(struct kp_calltrace_calls *c, struct kp_calltrace_call *call, uint64_t gate, uint64_t now)
{
    if (!call->is_left)
        kp_calltrace_end(call, gate, !call->is_ended && c->left_ticks > call->rec->start ? c->left_ticks : now);
    call->is_left = true;
    if (call->lazy) c->unbound = call->lazy;
    if (call->is_noted) kp_store_relaxed(&call->state, KP_CALL_DONE);
}

/* While an exception unwinds, cleanups make calls in frames that it unwinds afterwards. So calls stay noted until a
 * handler begins. */
static bool is_landed(struct kp_calltrace_calls *c)
{
    if (c->noted != KP_NOTED_THROW) return true;
    return ++c->settled > KP_CALLTRACE_LANDS_LATE;
}

void kp_calltrace_settle(struct kp_calltrace_calls *c, uintptr_t slot, uint64_t gate, uint64_t now)
{
    const bool has_noted = c->noted != KP_NOTED_NONE, lands = is_landed(c);
    bool is_top = true;
    for (uint32_t i = c->n; i-- > 0;) {
        struct kp_calltrace_call *call = &kp_calltrace_open[kp_calltrace_number(c, i)];
        if (call->is_foreign || kp_load_relaxed(&call->state) == KP_CALL_DONE) continue;
        const bool is_there =
            call->slot >= slot && *(const uintptr_t *)call->slot == kp_calltrace_exit_of(kp_calltrace_number(c, i));
        if (call->slot > slot && (is_there || !call->is_noted)) {
            if (lands) call->is_noted = false; /* the longjmp or exception did not unwind it */
            is_top = false;
            if (!has_noted) break;
        } else if (is_top && is_there) {
            break; /* a tail call */
        } else {
            left_behind(c, call, gate, now);
        }
    }
    if (lands) c->noted = KP_NOTED_NONE;
    kp_calltrace_pop(c);
}

/* A call has ended: leaves the hook. */
static HOT void left(struct kp_thread *t)
{
    t->ended++;
    kp_signal_fence();
    kp_store_release(&t->inside, 0); /* pairs with: kp_record_quiesce */
}

static COLD void leave_oddly(struct kp_calltrace_call *call, struct kp_thread *t, uint64_t gate, uint64_t now)
{
    struct kp_calltrace_calls *c = call->owner;
    kp_calltrace_end(call, gate, now);
    kp_store_release(&call->state, KP_CALL_DONE); /* pairs with: kp_calltrace_pop, on the thread it belongs to */
    if (c == t->source_state[KP_STATE_SYMBOLS]) { /* else the owner's thread pops it later */
        if (!call->is_foreign && !call->is_left) kp_calltrace_settle(c, call->slot, gate, now);
        kp_calltrace_pop(c);
        kp_calltrace_under_find(c);
    }
    left(t);
}

static HOT void leave(struct kp_calltrace_call *call, struct kp_thread *t, uint64_t now)
{
    kp_store_relaxed(&t->inside, kp_inside_tag(FRAME));
    kp_signal_fence();
    const uint64_t gate = kp_gate_get();
    struct kp_calltrace_calls *c = t->source_state[KP_STATE_SYMBOLS];
    if (__builtin_expect(c != call->owner || call->place + 1 != c->n || call->is_left || call->is_ended, 0)) {
        leave_oddly(call, t, gate, now);
        return;
    }
    end(call, gate, now);
    kp_signal_fence();
    c->under = call->under;
    c->n--;
    left(t);
}

/* Ends the first call through an unbound slot, or one that returns inside a hook or on a thread without state. In the
 * latter cases the owner's thread pops it later. */
static COLD void leave_rarely(struct kp_calltrace_call *call, struct kp_thread *t, uint64_t now)
{
    if (call->lazy) kp_calltrace_bound(call->lazy);
    if (t && !kp_load_relaxed(&t->inside)) leave(call, t, now);
    else kp_store_release(&call->state, KP_CALL_DONE); /* pairs with: kp_calltrace_pop, on the thread it belongs to */
}

static HOT void out(uintptr_t stub, uint64_t now)
{
    struct kp_calltrace_call *call = &kp_calltrace_open[(uint32_t)((stub - (uintptr_t)&kp_calltrace_exits) / 8)];
    struct kp_thread *t = kp_thread_self;
    if (__builtin_expect(!t || kp_load_relaxed(&t->inside) || call->lazy, 0)) leave_rarely(call, t, now);
    else leave(call, t, now);
}

static COLD void exit_by_clock(uintptr_t stub) { out(stub, kp_ticks()); }

/* Called by the exit code, which has read kp_calltrace_returns already: the entry may be used again. */
void kp_calltrace_exit(uintptr_t stub)
{
    if (__builtin_expect(kp_load_relaxed(&kp_clock_is_tsc), 1)) out(stub, __builtin_ia32_rdtsc());
    else exit_by_clock(stub);
}
