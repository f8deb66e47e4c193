// SPDX-License-Identifier: Apache-2.0
/*
 * losstext.c - says why records were lost, and what to set, for the closing line
 *
 * Called by: finish.c
 * Safe in:   signal handlers no; after fork yes
 */
#include "preload/finish/finish.h"

#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "collector/base/kp_poison.h"

void kp_losstext_write(char *out, size_t bytes, uint64_t lost)
{
    static const char *const why[KP_LOSS_N] = {
        [KP_LOSS_NO_CHUNK] = "came faster than room for them: record fewer at once (docs/reference/messages.md)",
        [KP_LOSS_CAP] = "over KPROF_MAX_MB: raise it, or set KPROF_SCHEDULE",
        [KP_LOSS_DISK] = "the disk is full: set KPROF_SPOOL_DIR to one with room",
        [KP_LOSS_NO_SLOT] = "no memory",
        [KP_LOSS_TOO_BIG] = "longer than a record may be",
        [KP_LOSS_NAME] = "names beyond the 4 million that are kept",
        [KP_LOSS_REENTRY] = "in signal handlers that interrupted us",
        [KP_LOSS_QUOTA] = "over the disk quota: set KPROF_SPOOL_DIR to a disk with room",
        [KP_LOSS_LIMIT] = "over the largest size of a file here (ulimit -f): raise it",
        [KP_LOSS_STANDS] = "the disk did not keep up: set KPROF_SPOOL_DIR to a faster one",
        [KP_LOSS_RESERVE] = "left free for the program: set KPROF_SPOOL_DIR to a disk with room",
    };
    const uint64_t waited_ms = kp_loss_waited_ms();
    uint64_t count = 0;
    const enum kp_loss most = lost ? kp_loss_most(&count) : KP_LOSS_N;
    size_t n = 0;
    out[0] = 0;
    if (most < KP_LOSS_N && count > lost) count = lost; /* others were lost outside of windows */
    if (most < KP_LOSS_N) n = kp_fmt(out, bytes, ", %lu of them %s", (unsigned long)count, why[most]);
    if (waited_ms && n < bytes)
        kp_fmt(out + n, bytes - n, ", threads waited %lu ms for room", (unsigned long)waited_ms);
}
