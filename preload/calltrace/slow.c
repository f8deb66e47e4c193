// SPDX-License-Identifier: Apache-2.0
/*
 * slow.c - the slow path of a hooked call: a thread's first call, a new name, chunk or stack, longjmp, throw
 *
 * Called by: the entry stub, on any host thread, with the argument registers saved
 * Owns:      the blocks of call entries that each thread has
 * Locks:     none. Memory: arena, 250 bytes a thread, kept for the next thread.
 * On fail:   the call is not recorded, and counted as lost
 * Safe in:   signal handlers yes; after fork yes
 */
#include <cpuid.h>
#include <errno.h>
#include <string.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_io.h"
#include "preload/guard.h"
#include "preload/unwind/kp_unwind.h"
#include "preload/run.h"
#include "preload/calltrace/calltrace.h"
#include "collector/base/kp_poison.h"

enum {
    GRANULE = 16384,
    BLOCKS = KP_CALLTRACE_CALLS / KP_CALLTRACE_BLOCK,
    BLOCKS_IN_PAGE = KP_CALLTRACE_PAGE / KP_CALLTRACE_BLOCK,
    LINE = 64,
    ARENA_ALIGNS = 16
};

uint32_t kp_calltrace_vectors;
static _Atomic uint32_t blocks_taken;

/* The vector registers that the processor has and the kernel saves: bits 1, 2 and 5 to 7 of XCR0. */
uint32_t kp_calltrace_vector_kind(void)
{
    unsigned a, b, c, d, lo, hi;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
    __asm__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (lo & 0xe6) == 0xe6 ? 2 : (lo & 6) == 6;
}

/* ---- a thread's call entries ---- */

bool kp_calltrace_calls_make(void)
{
    if (!kp_calltrace_open) kp_calltrace_open = kp_map_alloc(KP_CALLTRACE_CALLS * sizeof *kp_calltrace_open);
    return kp_calltrace_open != NULL;
}

static bool block_take(struct kp_calltrace_calls *c)
{
    const uint32_t have = c->room / KP_CALLTRACE_BLOCK;
    uint32_t block;
    if (have == KP_CALLTRACE_BLOCKS) return false;
    do {
        if (kp_load_relaxed(&blocks_taken) >= BLOCKS) return false;
        block = kp_add_relaxed(&blocks_taken, 1);
        if (block >= BLOCKS) return false;
    } while (block % BLOCKS_IN_PAGE == 0); /* the first entry of a page is no stub but a distance */
    c->block[have] = (uint16_t)(block * KP_CALLTRACE_BLOCK);
    c->room += KP_CALLTRACE_BLOCK;
    return true;
}

/* Allocates it at the beginning of a cache line. */
static struct kp_calltrace_calls *calls_make(void)
{
    const uintptr_t at = (uintptr_t)kp_arena_alloc(sizeof(struct kp_calltrace_calls) + LINE - ARENA_ALIGNS);
    return (struct kp_calltrace_calls *)((at + LINE - 1) / LINE * LINE);
}

/* A dead thread's entries are used again, unless a call is still open: it may be on a stack that still exists. */
static struct kp_calltrace_calls *calls_get(struct kp_thread *t)
{
    struct kp_calltrace_calls *c = t->source_state[KP_STATE_SYMBOLS];
    if (c && c->thread_no == t->thread_no) return c;
    if (c) kp_calltrace_pop(c);
    if (!c || c->n) c = calls_make();
    if (!c) return NULL;
    t->source_state[KP_STATE_SYMBOLS] = c;
    c->lo = c->hi = c->foreign = c->under = 0;
    c->noted = KP_NOTED_NONE;
    c->unbound = NULL;
    c->left_ticks = 0;
    c->thread_no = t->thread_no;
    return c;
}

static bool is_on_own_stack(struct kp_calltrace_calls *c, uintptr_t at)
{
    if (at >= c->lo && at < c->hi) return true;
    if (c->foreign && at / GRANULE == c->foreign / GRANULE) return false;
    const bool is = kp_unwind_own_stack(at, &c->lo, &c->hi);
    if (!is) c->foreign = at;
    return is;
}

/* ---- longjmp, throw and the end of a thread ---- */

/* Notes the calls around a longjmp or throw; if that runs on a signal stack, all of the thread's own stack. A call
 * whose slot holds something else is skipped: its stack was copied away. */
static void note(struct kp_calltrace_calls *c, uintptr_t slot, bool is_own, uint64_t now, uint8_t what)
{
    c->left_ticks = now;
    c->settled = 0;
    for (uint32_t i = c->n; i-- > 0;) {
        const uint32_t number = kp_calltrace_number(c, i);
        struct kp_calltrace_call *call = &kp_calltrace_open[number];
        if (call->is_foreign || (is_own && call->slot <= slot) ||
            *(const uintptr_t *)call->slot != kp_calltrace_exit_of(number))
            continue;
        call->is_noted = true;
        c->noted = what;
    }
}

static void end_all(struct kp_calltrace_calls *c, uint64_t gate, uint64_t now)
{
    for (uint32_t i = c->n; i-- > 0;) {
        struct kp_calltrace_call *call = &kp_calltrace_open[kp_calltrace_number(c, i)];
        if (!call->is_foreign) kp_calltrace_end(call, gate, now);
    }
}

/* The thread ends: frees its calls, except those on other stacks. Its state is not yet another thread's. */
void kp_calltrace_thread_dies(struct kp_thread *t)
{
    struct kp_calltrace_calls *c = t->source_state[KP_STATE_SYMBOLS];
    if (!c || c->thread_no != t->thread_no) return;
    end_all(c, kp_gate_get(), kp_ticks());
    for (uint32_t i = 0; i < c->n; i++) {
        struct kp_calltrace_call *call = &kp_calltrace_open[kp_calltrace_number(c, i)];
        if (!call->is_foreign) kp_store_relaxed(&call->state, KP_CALL_DONE);
    }
    kp_calltrace_pop(c);
    c->under = 0;
}

/* The slot's module may be unmapped by now, so the slot is read by the kernel first. */
static void bind_late(struct kp_calltrace_calls *c)
{
    struct kp_calltrace_row *row = c->unbound;
    uintptr_t holds;
    c->unbound = NULL;
    if (kp_io_peek((const void *)kp_load_relaxed(&row->word), &holds, sizeof holds) == 0) kp_calltrace_bound(row);
}

/* ---- a call ---- */

static void name_get(struct kp_thread *t, struct kp_calltrace_row *row)
{
    enum { OBJECT_MAX = 256 };
    char text[KP_CALLTRACE_NAME_MAX + OBJECT_MAX];
    size_t name = strlen(row->name), object = strlen(row->object);
    if (kp_load_relaxed(&row->id)) return;
    if (name >= KP_CALLTRACE_NAME_MAX) name = KP_CALLTRACE_NAME_MAX - 1;
    if (object > OBJECT_MAX) object = OBJECT_MAX;
    memcpy(text, row->name, name);
    text[name] = 0;
    memcpy(text + name + 1, row->object, object);
    kp_store_relaxed(&row->id, kp_name_intern(t, text, (uint32_t)(name + 1 + object)));
}

/* The hooked function makes a tail call to another one: its call ends, and the new one takes its return address. */
static void tail_call(struct kp_calltrace_calls *c, struct kp_thread *t, uint64_t gate, struct kp_calltrace_row *row,
                      uintptr_t *slot, bool is_foreign)
{
    if (!c->n) return;
    const uint32_t number = kp_calltrace_number(c, c->n - 1);
    struct kp_calltrace_call *call = &kp_calltrace_open[number];
    if (*slot != kp_calltrace_exit_of(number) || call->slot != (uintptr_t)slot) return;
    kp_calltrace_end(call, gate, kp_ticks());
    if (call->lazy) kp_calltrace_bound(call->lazy);
    *slot = kp_calltrace_returns[number];
    kp_signal_fence();
    c->n--;
    c->under = call->under;
    kp_calltrace_push(c, t, gate, row, slot, is_foreign);
}

static uintptr_t call(struct kp_calltrace_calls *c, const struct kp_guard *g, struct kp_calltrace_row *row,
                      uintptr_t *slot, bool is_own)
{
    struct kp_thread *t = g->thread;
    name_get(t, row);
    if (c->n == c->room && !block_take(c)) {
        kp_loss_count(KP_KIND_SYMBOL, KP_LOSS_NO_SLOT);
        return KP_CALLTRACE_GOES_ON;
    }
    if (!kp_put_reserve(t, g->gate, sizeof(struct kp_rec_symbol), KP_KIND_SYMBOL)) return KP_CALLTRACE_GOES_ON;
    if (!kp_calltrace_is_exit(*slot)) return kp_calltrace_push(c, t, g->gate, row, slot, !is_own);
    tail_call(c, t, g->gate, row, slot, !is_own);
    return KP_CALLTRACE_GOES_ON; /* the processor's return predictor already has this exit stub */
}

static uintptr_t enter(const struct kp_guard *g, struct kp_calltrace_row *row, uintptr_t *slot)
{
    struct kp_calltrace_calls *c = calls_get(g->thread);
    uintptr_t next = KP_CALLTRACE_GOES_ON;
    if (!c) return next;
    const bool is_own = is_on_own_stack(c, (uintptr_t)slot);
    const uint64_t now = kp_ticks();
    if (row->does == KP_CALLTRACE_LANDS && c->noted) c->noted = KP_NOTED_JUMP; /* unwinding is over, as after longjmp */
    if (is_own) kp_calltrace_settle(c, (uintptr_t)slot, g->gate, now);
    else kp_calltrace_pop(c);
    if (c->unbound) bind_late(c);
    kp_calltrace_under_find(c);
    if (row->does == KP_CALLTRACE_CALL) next = call(c, g, row, slot, is_own);
    else if (row->does == KP_CALLTRACE_JUMPS) note(c, (uintptr_t)slot, is_own, now, KP_NOTED_JUMP);
    else if (row->does == KP_CALLTRACE_THROWS) note(c, (uintptr_t)slot, is_own, now, KP_NOTED_THROW);
    else if (row->does == KP_CALLTRACE_ENDS && is_own) end_all(c, g->gate, now);
    if (c->noted) c->under = 0;
    return next;
}

uintptr_t kp_calltrace_enter_slow(struct kp_calltrace_row *row, uintptr_t *slot)
{
    struct kp_guard guard;
    const int saved = errno;
    uintptr_t next = KP_CALLTRACE_GOES_ON;
    if (kp_in_profiler) return next;
    if (kp_gate_get() & KP_GATE_CHILD_PENDING) kp_run_saw_activity(); /* a child's first call */
    if (!kp_guard_try(&guard, KP_GATE_RECORD)) return next;
    if (guard.gate & KP_GATE_RECORD) next = enter(&guard, row, slot);
    KP_HOOK_LEAVE(&guard);
    errno = saved;
    return next;
}

/* The child's spool is new, so names get new ids. Calls that were open at the fork still return by their exit stubs. */
void kp_calltrace_forget(void)
{
    for (uint32_t i = 0; i < kp_calltrace_rows_used(); i++) kp_store_relaxed(&kp_calltrace_rows[i].id, 0);
}
