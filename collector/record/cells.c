// SPDX-License-Identifier: Apache-2.0
/*
 * cells.c - cuts cells off chunks that are never recycled: for names and frames
 *
 * Called by: strings.c and frames.c, on any host thread inside a hook
 * Owns:      the current chunk of each kind
 * Locks:     none. An atomic add cuts a cell off, a compare-and-swap puts a new chunk in place.
 * On fail:   0: there is no free chunk
 * Safe in:   signal handlers yes; after fork no
 */
#include "collector/record/record_internal.h"

#include "collector/base/kp_poison.h"

static struct kp_cells *_Atomic current[KP_CHUNK_KINDS];

uint32_t kp_cells_used(uint32_t chunk)
{
    for (int kind = 0; kind < KP_CHUNK_KINDS; kind++) {
        struct kp_cells *const cells = kp_load_relaxed(&current[kind]);
        const uint64_t at = cells ? kp_load_relaxed(&cells->room_at) : 0;
        if (at >> 32 == chunk) return (uint32_t)at;
    }
    return 0;
}

void kp_cells_forget(struct kp_cells *cells)
{
    kp_store_relaxed(&cells->room_at, 0);
    kp_store_relaxed(&current[cells->kind], NULL);
}

/* Makes a new chunk the current one, unless another thread did so first. */
static bool room_replace(struct kp_cells *cells, uint32_t old_index)
{
    struct kp_chunk_head *chunk = kp_chunk_take_kept(cells->kind);
    if (chunk == NULL) return false;
    uint64_t index = kp_spool_index(chunk);
    uint64_t seen = kp_load_relaxed(&cells->room_at);
    while (seen >> 32 == old_index)
        if (kp_cas_acq_rel(&cells->room_at, &seen, index << 32 | sizeof *chunk)) { /* pairs with: kp_cells_cut */
            kp_store_relaxed(&current[cells->kind], cells);
            return true;
        }
    kp_chunk_give_kept(chunk);
    return true;
}

uint32_t kp_cells_cut(struct kp_cells *cells, uint32_t bytes)
{
    for (;;) {
        uint64_t seen = kp_load_acquire(&cells->room_at); /* pairs with: cells.c:room_replace */
        if (seen >> 32 && (uint32_t)seen + bytes <= KP_CHUNK_BYTES) {
            seen = kp_add_acq_rel(&cells->room_at, bytes);
            if (seen >> 32 && (uint32_t)seen + bytes <= KP_CHUNK_BYTES)
                return (uint32_t)(((seen >> 32) * KP_CHUNK_BYTES + (uint32_t)seen) / KP_STR_CELL);
        }
        if (!room_replace(cells, (uint32_t)(seen >> 32))) return 0;
    }
}
