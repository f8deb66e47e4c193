// SPDX-License-Identifier: Apache-2.0
/*
 * state.c - what the files of this room know of torch, and how they read its memory
 *
 * Called by: every file of the room; source.c fills kp_torch when it attaches
 * Owns:      kp_torch, constant once attached
 * Locks:     none
 * On fail:   memory that cannot be read is not there: false
 */
#include <errno.h>
#include <string.h>

#include "collector/base/kp_io.h"
#include "preload/torch/torch.h"
#include "collector/base/kp_poison.h"

struct kp_torch kp_torch;

bool kp_torch_peek(const void *from, void *to, size_t bytes)
{
    if ((uintptr_t)from < 4096) return false;
    int err = kp_io_peek(from, to, bytes);
    if (err == 0) return true;
    /* Not allowed here (seccomp): a known version's layout may be followed plainly, an unknown one may not. */
    bool denied = err == -EPERM || err == -ENOSYS;
    if (!denied || (kp_torch.layout.version && !kp_torch_is_known(kp_torch.layout.version))) return false;
    memcpy(to, from, bytes);
    return true;
}
