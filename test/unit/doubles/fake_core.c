// SPDX-License-Identifier: Apache-2.0
/* fake_core.c - a libcuda.so.1 that is nothing but simgpu_core(): the test plays the driver by hand */
#include "test/doubles/simgpu/simgpu.h"

#include <time.h>

#define EXPORTED __attribute__((visibility("default")))

static const struct simgpu_observer *observer;
static bool is_up;

static void observe(const struct simgpu_observer *who) { observer = who; }
static bool is_initialised(void) { return is_up; }
static int device_count(void) { return 1; }
static const struct simgpu_device *device(int index)
{
    static const struct simgpu_device only = {.name = "Fake",
                                              .major = 9,
                                              .sms = 132,
                                              .warp_size = 32,
                                              .max_threads_per_sm = 2048,
                                              .total_memory = 1ull << 30};
    return index == 0 ? &only : NULL;
}
static uint64_t host_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static uint64_t device_ns(uint64_t ns) { return ns; }
static uint32_t context_of(int index) { return index == 0; }
static void each_context(void (*fn)(void *, uint32_t, uint32_t, uint32_t), void *arg) { fn(arg, 1, 0, 7); }
static void each_stream(void (*fn)(void *, uint32_t, uint32_t, int32_t), void *arg)
{
    fn(arg, 1, 7, 0);
    fn(arg, 1, 13, -1);
}
static uint64_t stream_id(void *stream, uint32_t *context) { return *context = 1, stream ? 13 : 7; }

EXPORTED const struct simgpu_core *simgpu_core(void)
{
    static const struct simgpu_core core = {.size = sizeof core,
                                            .observe = observe,
                                            .is_initialised = is_initialised,
                                            .device_count = device_count,
                                            .device = device,
                                            .host_ns = host_ns,
                                            .device_ns = device_ns,
                                            .context_of = context_of,
                                            .each_context = each_context,
                                            .each_stream = each_stream,
                                            .stream_id = stream_id};
    return &core;
}
EXPORTED const struct simgpu_observer *fake_observer(void) { return observer; }
EXPORTED void fake_set_up(bool is) { is_up = is; }
