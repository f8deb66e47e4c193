// SPDX-License-Identifier: Apache-2.0
/* gpu_spool.h - for tests of the GPU side of a trace: CUDA calls and device work in the window of window_spool.h */
#pragma once

#include "test/unit/trace/window_spool.h"

static uint32_t lane;

static void spool_begin(void)
{
    window_begin();
    lane = test_spool_chunk(&spool, KP_CHUNK_DEVICE, 1, 0, 9, "lane");
}

static void call(const char *s, uint64_t from, uint64_t to, uint32_t correlation, uint32_t cbid, uint8_t flags)
{
    struct kp_rec_api r = {
        .head = {.kind = KP_KIND_API, .flags = flags | KP_DEV_TICKS, .size = sizeof r, .name = name(s)},
        .start = AT(from),
        .end = AT(to),
        .correlation = correlation,
        .cbid = cbid,
        .tid = 4242,
        .stream = KP_DEV_NONE};
    assert_true(test_spool_put(&spool, lane, &r, sizeof r));
}

static struct kp_rec_kernel *kernel(const char *s, uint64_t from, uint64_t to, uint32_t correlation, uint32_t device,
                                    uint32_t stream)
{
    struct kp_chunk_head *c = test_spool_at(&spool, lane);
    struct kp_rec_kernel r = {.head = {.kind = KP_KIND_KERNEL, .flags = KP_DEV_TICKS, .size = sizeof r},
                              .start = AT(from),
                              .end = AT(to),
                              .correlation = correlation,
                              .device = device,
                              .context = 1,
                              .stream = stream};
    uint32_t id = name(s); /* may move the chunks */
    r.head.name = id;
    assert_true(test_spool_put(&spool, lane, &r, sizeof r));
    c = test_spool_at(&spool, lane);
    return (void *)((uint8_t *)c + c->used - sizeof r);
}

__attribute__((unused)) static struct kp_rec_copy *copy(uint8_t kind, uint64_t from, uint64_t to, uint32_t correlation,
                                                        uint64_t bytes)
{
    struct kp_rec_copy r = {.head = {.kind = kind, .flags = KP_DEV_TICKS, .size = sizeof r},
                            .start = AT(from),
                            .end = AT(to),
                            .correlation = correlation,
                            .bytes = bytes,
                            .context = 1,
                            .stream = 7,
                            .kind = 1,
                            .src_kind = 1,
                            .dst_kind = 3};
    struct kp_chunk_head *c = test_spool_at(&spool, lane);
    assert_true(test_spool_put(&spool, lane, &r, sizeof r));
    return (void *)((uint8_t *)c + c->used - sizeof r);
}

__attribute__((unused)) static struct kp_rec_sync *wait_for(uint32_t type, uint64_t from, uint64_t to,
                                                            uint32_t correlation, uint32_t stream, uint32_t event)
{
    struct kp_rec_sync r = {.head = {.kind = KP_KIND_SYNC, .flags = KP_DEV_TICKS, .size = sizeof r},
                            .start = AT(from),
                            .end = AT(to),
                            .correlation = correlation,
                            .type = type,
                            .context = 1,
                            .stream = stream,
                            .event = event};
    struct kp_chunk_head *c = test_spool_at(&spool, lane);
    assert_true(test_spool_put(&spool, lane, &r, sizeof r));
    return (void *)((uint8_t *)c + c->used - sizeof r);
}

__attribute__((unused)) static void recorded(uint32_t correlation, uint32_t stream, uint32_t event)
{
    struct kp_rec_cudaevent r = {.head = {.kind = KP_KIND_CUDAEVENT, .size = sizeof r},
                                 .correlation = correlation,
                                 .context = 1,
                                 .stream = stream,
                                 .event = event};
    assert_true(test_spool_put(&spool, lane, &r, sizeof r));
}

__attribute__((unused)) static void device(void)
{
    struct kp_rec_device d = {.head = {.kind = KP_KIND_DEVICE, .size = sizeof d, .name = name("NVIDIA A100")},
                              .id = 0,
                              .major = 8,
                              .warp_size = 32,
                              .total_memory = 42314694656u,
                              .max_threads_per_block = 1024,
                              .max_threads_per_sm = 2048,
                              .regs_per_block = 65536,
                              .regs_per_sm = 65536,
                              .smem_per_block = 49152,
                              .smem_per_block_optin = 166912,
                              .smem_per_sm = 167936,
                              .sms = 108};
    assert_true(test_spool_put(&spool, meta, &d, sizeof d));
}

static void assert_not(const char *where, const char *part)
{
    if (strstr(where, part)) fail_msg("%s\nis in: %.6000s", part, where);
}

__attribute__((unused)) static const char *us(uint64_t ns) /* as a trace prints a time of the window */
{
    static char out[8][32];
    static int next;
    char *o = out[next++ % 8];
    uint64_t t = AT(ns) - BASE;
    snprintf(o, 32, "\"ts\":%llu.%03llu", (unsigned long long)(t / 1000), (unsigned long long)(t % 1000));
    return o;
}
