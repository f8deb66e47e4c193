// SPDX-License-Identifier: Apache-2.0
/*
 * occupancy.c - how many blocks of a kernel fit on a multiprocessor at once, by CUDA's public rules
 *
 * Pure. As in Kineto, a block has its default shared memory only, so a kernel that uses more has occupancy 0. Default
 * carve-out, no barriers. The float arithmetic is Kineto's, step for step.
 */
#include "export/write/gpu/gpu.h"

#include <math.h>

#define NO_LIMIT INT32_MAX
enum { REGS_UNIT = 256, REGS_MOST = 65536, WARP = 32 };

static int64_t round_up(int64_t v, int64_t unit) { return (v + unit - 1) / unit * unit; }

static int32_t blocks_of(const struct kp_rec_device *d)
{
    switch (d->major) {
    case 3: return 16;
    case 7: return d->minor == 5 ? 16 : 32;
    case 8: return d->minor == 0 ? 32 : d->minor == 9 ? 24 : 16;
    case 10: return d->minor == 1 ? 24 : 32;
    case 11: return d->minor == 0 ? 24 : 32;
    case 12: return 24;
    default: return 32;
    }
}

/* A warp gets registers in units of 256, from a single part of the multiprocessor. */
static int32_t by_registers(const struct kp_rec_device *d, uint32_t registers, int64_t warps, int parts, int32_t *given)
{
    if (registers > REGS_MOST) { /* damage */
        *given = 0;
        return 0;
    }
    int64_t a_warp = round_up((int64_t)registers * WARP, REGS_UNIT);
    *given = (int32_t)(a_warp * warps);
    if (d->regs_per_block < a_warp * round_up(warps, parts) || registers > (d->major < 7 ? 255u : 256u)) return 0;
    return a_warp ? (int32_t)(d->regs_per_sm / parts / a_warp * parts / warps) : NO_LIMIT;
}

static int32_t by_shared_memory(const struct kp_rec_device *d, uint32_t bytes, int32_t *given)
{
    uint32_t reserved = d->major >= 8 ? 1024 : 0;
    *given = (int32_t)round_up((int64_t)bytes + reserved, d->major >= 8 ? 128 : 256);
    if ((uint32_t)*given > d->smem_per_block + reserved) return 0;
    return *given ? (int32_t)(d->smem_per_sm / (uint32_t)*given) : NO_LIMIT;
}

/* False: the device's numbers are impossible, and the trace has no occupancy. */
static int limits_find(struct kp_occupancy *o, const struct kp_rec_device *d, const struct kp_rec_kernel *k,
                       int32_t threads)
{
    int64_t warps = ((int64_t)threads + WARP - 1) / WARP;
    if (threads <= 0 || !d->max_threads_per_block || !d->max_threads_per_sm || !d->regs_per_block || !d->regs_per_sm ||
        !d->smem_per_block || !d->smem_per_sm || !d->sms)
        return 0;
    o->by_regs = by_registers(d, k->registers, warps, d->major == 6 && !d->minor ? 2 : 4, &o->registers);
    if (d->major == 6 && !d->minor && !by_registers(d, k->registers, warps, 4, &o->registers)) o->by_regs = 0;
    o->by_warps =
        (uint32_t)threads > d->max_threads_per_block ? 0 : (int32_t)(d->max_threads_per_sm / WARP / (uint64_t)warps);
    o->by_blocks = blocks_of(d);
    o->by_smem = by_shared_memory(d, k->static_smem + k->dynamic_smem, &o->smem);
    o->active = o->by_regs < o->by_smem ? o->by_regs : o->by_smem;
    if (o->by_warps < o->active) o->active = o->by_warps;
    if (o->by_blocks < o->active) o->active = o->by_blocks;
    o->limits = (o->active == o->by_warps ? KP_LIMIT_WARPS : 0) | (o->active == o->by_regs ? KP_LIMIT_REGS : 0) |
                (o->active == o->by_smem ? KP_LIMIT_SMEM : 0) | (o->active == o->by_blocks ? KP_LIMIT_BLOCKS : 0);
    return 1;
}

void kp_occupancy_make(struct kp_occupancy *o, const struct kp_rec_device *device, const struct kp_rec_kernel *k)
{
    int32_t blocks = (int32_t)(k->grid[0] * k->grid[1] * k->grid[2]),
            threads = (int32_t)(k->block[0] * k->block[1] * k->block[2]);
    *o = (struct kp_occupancy){.blocks_per_sm = INFINITY};
    if (device && device->sms) o->blocks_per_sm = (float)blocks / (float)device->sms;
    o->warps_per_sm = o->blocks_per_sm * (float)threads / (float)WARP;
    if (!device || !limits_find(o, device, k, threads)) return;
    float effective = (float)o->active < o->blocks_per_sm ? (float)o->active : o->blocks_per_sm;
    float occupancy = effective * (float)threads / (float)(int32_t)device->max_threads_per_sm;
    double percent = (double)occupancy * 100.0;
    if (!(percent > -1e9 && percent < 1e9)) return; /* numbers of a damaged file: no int holds them */
    o->percent = (int32_t)(percent < 0 ? percent - 0.5 : percent + 0.5); /* as lround, which is in libm */
}
