// SPDX-License-Identifier: Apache-2.0
/*
 * ids.c - numbers of streams and contexts, in place of their addresses
 *
 * Called by: work.c, call.c on host threads (hot)
 * Owns:      the two tables; entries are never removed
 * Locks:     none; an entry is made by one compare-and-swap
 * Memory:    fixed
 * On fail:   no number
 *
 * If CUDA reuses the handle of a destroyed stream, the new stream keeps the number.
 */

#include "preload/cuda_hooks/cuda_hooks.h"
#include "collector/base/kp_poison.h"

enum { STREAMS = 1024, PROBES = 32, NUMBER_DEFAULT = 7, NUMBER_FIRST = 13 };
enum { LEGACY = 1, PER_THREAD = 2 }; /* handles of the legacy default stream and of the thread's default stream */

static _Atomic uint64_t streams[STREAMS]; /* 48 bits of address, 16 of number */
static _Atomic uint32_t stream_last = NUMBER_FIRST - 1;
struct kp_context kp_contexts[KP_CONTEXTS];

uint32_t kp_stream_number(void *stream, uint32_t tid)
{
    uint64_t key = (uint64_t)(uintptr_t)stream;
    if (key <= LEGACY) return NUMBER_DEFAULT;
    if (key == KP_DEV_NONE) return KP_DEV_NONE;
    if (key == PER_THREAD) key = UINT64_C(1) << 47 | tid; /* bit 47 is never set in a user-space address */
    uint32_t mine = 0;
    for (uint32_t i = 0; i < PROBES; i++) {
        _Atomic uint64_t *slot = &streams[((key >> 4 ^ key >> 12) + i) % STREAMS];
        uint64_t seen = kp_load_relaxed(slot);
        if (!seen) {
            if (!mine) mine = kp_add_relaxed(&stream_last, 1) + 1;
            if (mine > UINT16_MAX) return KP_DEV_NONE;
            if (kp_cas_acq_rel(slot, &seen, key << 16 | mine)) return mine;
        }
        if (seen >> 16 == (key & 0xffffffffffff)) return (uint32_t)(seen & UINT16_MAX);
    }
    return KP_DEV_NONE;
}

/* Needs the context current. If two threads come first at once, one makes the entry and the other gets NULL. */
static struct kp_context *context_make(struct kp_context *c, void *handle)
{
    static atomic_flag making = ATOMIC_FLAG_INIT;
    struct kp_context *made = NULL;
    int device = 0;
    if (kp_cudrv.cuCtxGetDevice(&device) != 0) return NULL;
    if (atomic_flag_test_and_set_explicit(&making, memory_order_acquire)) return NULL;
    if (!kp_load_relaxed(&c->handle)) {
        c->number = (uint32_t)(c - kp_contexts) + 1;
        c->device = device;
        kp_store_release(&c->handle, handle); /* pairs with: context_of, resolve.c */
        made = c;
    }
    atomic_flag_clear_explicit(&making, memory_order_release);
    return made;
}

static struct kp_context *context_of(void *handle)
{
    for (uint32_t i = 0; i < KP_CONTEXTS; i++) {
        struct kp_context *c = &kp_contexts[i];
        if (kp_load_acquire(&c->is_gone)) continue; /* pairs with: resolve.c:kp_contexts_forget */
        void *seen = kp_load_acquire(&c->handle);   /* pairs with: context_make */
        if (seen == handle) return c;
        if (!seen) return context_make(c, handle);
    }
    return NULL;
}

struct kp_context *kp_context_current(void)
{
    void *handle = NULL;
    if (kp_cudrv.cuCtxGetCurrent(&handle) != 0 || !handle) return NULL;
    return context_of(handle);
}
