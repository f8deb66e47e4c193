// SPDX-License-Identifier: Apache-2.0
/*
 * torch_state.c - the room's shared facts about torch, and safe reads of its memory
 *
 * Called by: every file of the room; torch_source.c fills kp_torch when it attaches
 * Owns:      kp_torch, constant once attached
 * Locks:     none
 * On fail:   false if memory cannot be read
 */
#include <errno.h>
#include <string.h>

#include "collector/base/sys/kp_io.h"
#include "preload/torch/torch.h"
#include "collector/base/kp_poison.h"

KP_HOT_TABLE struct kp_torch kp_torch;
KP_HOT_DATA bool kp_torch_marks_ops;

bool kp_torch_peek(const void *from, void *to, size_t bytes)
{
    if ((uintptr_t)from < 4096) return false;
    int err = kp_io_peek(from, to, bytes);
    if (err == 0) return true;
    /* seccomp refuses process_vm_readv: plain loads are safe with a known version's layout only. */
    bool denied = err == -EPERM || err == -ENOSYS;
    if (!denied || (kp_torch.layout.version && !kp_torch_is_known(kp_torch.layout.version))) return false;
    memcpy(to, from, bytes);
    return true;
}
