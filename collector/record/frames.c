// SPDX-License-Identifier: Apache-2.0
/*
 * frames.c - puts frames of machine code stacks into the file
 *
 * Called by: any host thread inside a hook, for a frame it did not meet before
 * Owns:      the current chunk of frames
 * Locks:     none
 * On fail:   0, counted
 * Safe in:   signal handlers yes; after fork no (kp_frame_forget first)
 */
#include "collector/base/kp_gate.h"
#include "collector/record/record_internal.h"

#include "collector/base/kp_poison.h"

static struct kp_cells cells = {.kind = KP_CHUNK_FRAMES};

/* A child reads a gate that is off, however it was made. So an open gate spares a call of getpid for each frame. */
static bool may_put(void)
{
    if (kp_gate_get() & KP_GATE_ON) return kp_load_acquire(&kp_spool.state) == KP_SPOOL_OPEN; /* pairs with: spool.c */
    return kp_spool_is_ours();
}

static uint32_t frame_put(uint32_t module, uint64_t offset, uint32_t around, uint8_t flags)
{
    uint32_t cell = may_put() ? kp_cells_cut(&cells, sizeof(struct kp_rec_frame)) : 0;
    if (cell == 0) {
        kp_loss_count(KP_KIND_FRAME, kp_load_relaxed(&kp_spool.grow_error));
        return 0;
    }
    struct kp_rec_frame *f = kp_spool_cell(cell);
    *f = (struct kp_rec_frame){.head = {.kind = KP_KIND_FRAME, .flags = flags, .size = sizeof *f, .name = module},
                               .offset = offset,
                               .around = around};
    kp_store_release(&f->check, kp_frame_check(f)); /* pairs with: the readers' look at it */
    return cell;
}

uint32_t kp_frame_put(uint32_t module, uint64_t offset, uint32_t around)
{
    return frame_put(module, offset, around, 0);
}

uint32_t kp_frame_put_python(uint32_t python, uint32_t native) { return frame_put(0, python, native, KP_FRAME_PYTHON); }

void kp_frame_forget(void) { kp_cells_forget(&cells); }
