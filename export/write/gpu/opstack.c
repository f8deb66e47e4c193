// SPDX-License-Identifier: Apache-2.0
/*
 * opstack.c - keeps each thread's ops that are open at the current time of a walk
 *
 * Called by: cuda_calls.c and toplevel.c, for every event (hot)
 * Memory:    a place for each thread, and 56 bytes for each open op. A thread's ops nest, so the last to open is the
 *            first to end.
 */
#include "export/write/gpu/gpu.h"

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_poison.h"

static struct kp_op_thread *place_find(struct kp_op_thread *of, uint32_t cap, uint32_t tid)
{
    for (uint32_t at = tid * 0x9e3779b1u >> 7;; at++)
        if (!of[at & (cap - 1)].tid || of[at & (cap - 1)].tid == tid) return &of[at & (cap - 1)];
}

static bool grow(struct kp_opstack *s)
{
    uint32_t cap = s->cap ? s->cap * 2 : 128;
    struct kp_op_thread *of = kp_map_alloc(cap * sizeof *of);
    if (!of) return false;
    for (uint32_t i = 0; i < s->cap; i++)
        if (s->threads[i].tid) *place_find(of, cap, s->threads[i].tid) = s->threads[i];
    if (s->threads) kp_map_free(s->threads, s->cap * sizeof *of);
    s->threads = of, s->cap = cap;
    return true;
}

struct kp_op_thread *kp_opstack_thread(struct kp_opstack *s, uint32_t tid)
{
    if (!tid || (s->n * 2 >= s->cap && !grow(s))) return NULL;
    struct kp_op_thread *place = place_find(s->threads, s->cap, tid);
    if (!place->tid) s->n++, place->tid = tid;
    return place;
}

void kp_opstack_close(struct kp_op_thread *thread, uint64_t now_ns)
{
    while (thread->n && thread->of[thread->n - 1].end_ns <= now_ns)
        thread->last_end_ns = thread->of[--thread->n].end_ns;
}

struct kp_open_op *kp_opstack_open(struct kp_op_thread *thread, uint64_t start_ns, uint64_t end_ns)
{
    if (!kp_map_room(&thread->of, thread->n, &thread->cap, sizeof *thread->of, 64)) return NULL;
    struct kp_open_op *around = thread->n ? &thread->of[thread->n - 1] : NULL, *op = &thread->of[thread->n++];
    *op = (struct kp_open_op){.start_ns = start_ns,
                              .end_ns = end_ns,
                              .external = around ? around->external : 0,
                              .annotation = around ? around->annotation : 0};
    return op;
}

void kp_opstack_fini(struct kp_opstack *s)
{
    for (uint32_t i = 0; i < s->cap; i++)
        if (s->threads[i].of) kp_map_free(s->threads[i].of, s->threads[i].cap * sizeof *s->threads[i].of);
    if (s->threads) kp_map_free(s->threads, s->cap * sizeof *s->threads);
    *s = (struct kp_opstack){0};
}
