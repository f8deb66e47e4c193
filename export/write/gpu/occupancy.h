// SPDX-License-Identifier: Apache-2.0
/* occupancy.h - how many blocks of a kernel fit on a multiprocessor at once, by CUDA's public rules */
#pragma once

#include <stdint.h>

#include "collector/format/kp_device.h"

enum { KP_LIMIT_WARPS = 1, KP_LIMIT_REGS = 2, KP_LIMIT_SMEM = 4, KP_LIMIT_BLOCKS = 8 };
struct kp_occupancy {
    int32_t active;                                /* blocks on a multiprocessor: the least of the limits */
    int32_t by_regs, by_smem, by_warps, by_blocks; /* INT32_MAX: no limit */
    int32_t registers, smem;                       /* what a block gets */
    uint32_t limits;                               /* KP_LIMIT_*: those that bind */
    int32_t percent;                               /* est. achieved occupancy, as Kineto rounds it */
    float blocks_per_sm, warps_per_sm;             /* infinite when the device is not known */
};
void kp_occupancy_make(struct kp_occupancy *o, const struct kp_rec_device *device /* NULL: not known */,
                       const struct kp_rec_kernel *kernel);
