// SPDX-License-Identifier: Apache-2.0
/*
 * forwardline.c - whose forward op autograd allocates for: it has no frames of Python on its own threads
 *
 * Called by: ops.c at both ends of an op that is recorded; memory.c at each block (hot)
 * Owns:      by forward thread and sequence number the call site of the last block of that op; the op that is open
 * Locks:     none; a key and its site are one word
 * Memory:    512 KB mapped once
 * On fail:   an op whose word another one has taken has no site
 * Safe in:   after fork yes
 *
 * A node that adds up gradients (AccumulateGrad) has no number. The engine runs it behind the node that made them.
 */
#include "preload/torch/forwardline.h"

#include "collector/base/sys/kp_arena.h"
#include "preload/python_bridge.h"
#include "preload/torch/torch.h"
#include "collector/base/kp_poison.h"

enum { OPS = 65536, SITE_BITS = 16, IS_BACKWARD = 1, IS_OPEN = 2, FLAGS = 3 };

KP_HOT_DATA _Atomic uint32_t kp_torch_forwards;
static _Atomic uint64_t *sites; /* a key's upper bits, and the site */
static _Thread_local struct {
    uint64_t open, node; /* a key and flags: of the op that has a number and is open; of the last node of autograd */
} mine __attribute__((tls_model("initial-exec")));

void kp_torch_forwards_setup(void)
{
    const uint32_t needed = KP_TORCH_NO_SEQ | KP_TORCH_NO_FWD | KP_TORCH_NO_SCOPE | KP_TORCH_NO_THREAD;
    if (kp_torch.layout.dropped & needed) return;
    if (!sites) sites = kp_map_alloc(OPS * sizeof *sites);
    kp_store_relaxed(&kp_torch_forwards, sites != NULL);
}

static uint64_t key_of(uint64_t sequence, uint64_t thread)
{
    uint64_t key = (sequence + (thread << 48)) * UINT64_C(0x9e3779b97f4a7c15);
    key = (key ^ key >> 32) * UINT64_C(0xd6e8feb86659fd93);
    return key & ~(uint64_t)FLAGS;
}

uint64_t kp_torch_forward_begin(const uint8_t *rf)
{
    const struct kp_torch_layout *const l = &kp_torch.layout;
    const uint64_t around = mine.open, sequence = kp_torch_word(rf, l->rf_seq);
    const bool is_backward = rf[l->rf_scope] == KP_TORCH_BACKWARD_SCOPE;
    if ((int64_t)sequence < 0) {
        if (is_backward) mine.open = mine.node;
        return around;
    }
    const uint64_t thread = is_backward ? kp_torch_word(rf, l->rf_fwd) : (uint32_t)kp_torch_word(rf, l->rf_thread);
    mine.open = key_of(sequence, thread) | IS_OPEN | (is_backward ? IS_BACKWARD : 0);
    if (is_backward) mine.node = mine.open;
    return around;
}

/* The end of an asynchronous op may come on another thread. */
void kp_torch_forward_end(const uint8_t *rf, uint64_t around)
{
    const struct kp_torch_layout *const l = &kp_torch.layout;
    if ((l->dropped & KP_TORCH_NO_ASYNC) || !rf[l->rf_async]) mine.open = around;
}

uint32_t kp_torch_forward_site(uint32_t site)
{
    const uint64_t open = mine.open, key = open & ~(uint64_t)FLAGS;
    if (!open || !kp_load_relaxed(&kp_torch_forwards)) return site;
    _Atomic uint64_t *const word = &sites[(key >> SITE_BITS) % OPS];
    const uint64_t seen = kp_load_relaxed(word), told = (key >> SITE_BITS << SITE_BITS) | site;
    if (!(open & IS_BACKWARD)) { /* the last counts: one that made no node left its number to the next op */
        if (site && seen != told) kp_store_relaxed(word, told);
        return site;
    }
    const bool is_same = seen && !((seen ^ key) >> SITE_BITS);
    const uint32_t forward = is_same ? kp_callsite_gradient((uint32_t)seen & ((1u << SITE_BITS) - 1)) : 0;
    return forward ? forward : site;
}
