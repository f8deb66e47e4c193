// SPDX-License-Identifier: Apache-2.0
/*
 * put.c - the slow half of putting a record: the chunk is full, of another cycle, or missing
 *
 * Called by: any host thread inside a hook, once in some thousand records
 * Locks:     none; at most one futex wake, when few free chunks remain
 * On fail:   NULL, and the record is counted by kind and reason
 * Safe in:   signal handlers yes (the guard turned away a handler that came inside a hook)
 */
#include "collector/record/record_internal.h"

#include <string.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_poison.h"

#define KP_PUT_NAP_NS 200000u
#define KP_PUT_SPARE 8u /* chunks left for host threads, which cannot wait */

static void chunk_set(struct kp_thread *t, struct kp_chunk_head *chunk, uint32_t cycle)
{
    t->chunk_cycle = 0; /* no chunk while half done: a signal handler may abandon the hook here (longjmp.c) */
    kp_signal_fence();
    t->chunk = chunk;
    t->at = (uint8_t *)chunk + kp_load_relaxed(&chunk->used);
    t->end = (uint8_t *)chunk + KP_CHUNK_BYTES;
    kp_signal_fence();
    t->chunk_cycle = cycle;
}

static void thread_record_put(struct kp_thread *t)
{
    struct kp_rec_thread *r = (struct kp_rec_thread *)t->at;
    r->head = (struct kp_rec){.kind = KP_KIND_THREAD, .size = sizeof *r};
    r->tid = kp_load_relaxed(&t->tid);
    r->thread_no = t->thread_no;
    r->order = kp_order_next();
    memcpy(r->name, t->name, sizeof r->name);
    kp_put_commit(t, sizeof *r);
}

/* For a thread's first chunk of a cycle: goes on in a half-used chunk of a dead thread. False: there is none. */
static bool orphan_continue(struct kp_thread *t, uint32_t cycle, uint32_t bytes)
{
    struct kp_chunk_head *chunk = kp_chunk_adopt(cycle);
    if (chunk == NULL) return false;
    uint32_t used = kp_load_acquire(&chunk->used); /* pairs with: kp_record.h:kp_put_commit of the dead thread */
    if (KP_CHUNK_BYTES - used < sizeof(struct kp_rec_thread) + bytes) {
        kp_chunk_orphan(chunk, cycle); /* too small for this record: another will fit */
        return false;
    }
    chunk_set(t, chunk, cycle);
    thread_record_put(t);
    return true;
}

static bool room_wait(const struct kp_thread *t, uint64_t gate, uint32_t bytes, uint32_t timeout_ms)
{
    for (uint64_t naps = 0;; naps++) {
        if (kp_put_has_room(t, gate, bytes)) return true;
        if ((gate & KP_GATE_RECORD) && kp_gate_get() != gate)
            return false; /* the closing thread waits for this hook to end */
        if (kp_chunk_ready() > KP_PUT_SPARE) return true;
        if (kp_load_relaxed(&kp_spool.grow_error) != KP_LOSS_NO_CHUNK) return kp_chunk_ready() > 0;
        if (naps * KP_PUT_NAP_NS >= (uint64_t)timeout_ms * 1000000u) return kp_chunk_ready() > 0;
        kp_chunk_ask();
        kp_writer_wake();
        kp_io_nap(KP_PUT_NAP_NS);
    }
}

bool kp_put_wait(const struct kp_thread *t, uint64_t gate, uint32_t bytes, uint32_t timeout_ms)
{
    if (kp_put_has_room(t, gate, bytes) || kp_chunk_ready() > KP_PUT_SPARE) return true;
    const uint64_t begin = kp_clock_ns(CLOCK_MONOTONIC);
    const bool has_room = room_wait(t, gate, bytes, timeout_ms);
    kp_loss_wait_add(kp_clock_ns(CLOCK_MONOTONIC) - begin);
    return has_room;
}

void *kp_put_slow(struct kp_thread *t, uint64_t gate, uint32_t bytes, enum kp_kind kind)
{
    uint32_t cycle = kp_gate_cycle(gate);
    if (bytes > KP_MAX_RECORD) {
        kp_loss_count(kind, KP_LOSS_TOO_BIG);
        return NULL;
    }
    struct kp_chunk_head *const before = t->chunk_cycle ? t->chunk : NULL;
    const uint32_t before_cycle = t->chunk_cycle;
    const bool is_first = before == NULL || before_cycle != cycle;
    if (before && is_first) kp_chunk_quit(before, before_cycle);
    if (cycle && is_first && !t->is_lane && orphan_continue(t, cycle, bytes)) return t->at;
    struct kp_chunk_head *chunk = cycle ? kp_chunk_take(t, cycle) : NULL;
    if (chunk == NULL) {
        kp_loss_count(kind, kp_load_relaxed(&kp_spool.grow_error));
        return NULL; /* a smaller record may still find room in the chunk before */
    }
    if (!is_first) kp_chunk_quit(before, cycle);
    chunk_set(t, chunk, cycle);
    return t->at;
}

struct kp_rec_op *kp_put_range(struct kp_thread *t, uint64_t gate, uint32_t name, uint8_t scope, uint32_t stack)
{
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
