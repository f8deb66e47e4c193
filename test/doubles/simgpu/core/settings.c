// SPDX-License-Identifier: Apache-2.0
/* settings.c - the environment variables of the simulated GPU, each with its default */
#include "test/doubles/simgpu/core/settings.h"

#include <pthread.h>
#include <stdlib.h>

static struct sim_settings settings;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static double number(const char *name, double fallback)
{
    const char *text = getenv(name);
    char *end = NULL;
    if (text == NULL || *text == '\0') return fallback;
    double value = strtod(text, &end);
    return end == text ? fallback : value;
}

static bool flag(const char *name) { return number(name, 0) != 0; }

static void read_environment(void)
{
    settings = (struct sim_settings){
        .devices = (int)number("SIMGPU_DEVICES", 1),
        .memory_bytes = (uint64_t)number("SIMGPU_MEMORY_MB", 81559) << 20,
        .driver_version = (int)number("SIMGPU_DRIVER_VERSION", 13020),
        .latency_ns = (uint64_t)number("SIMGPU_LATENCY_NS", 3000), /* from the call to the earliest start */
        .drift_ppm = number("SIMGPU_DRIFT_PPM", 20),
        .offset_ns = (int64_t)number("SIMGPU_OFFSET_NS", 1e15), /* of the device's own clock */
        .seed = (uint64_t)number("SIMGPU_SEED", 1),
        .jitter_percent = number("SIMGPU_JITTER_PERCENT", 5), /* of every duration, from the seed */
        .kernel_ns = (uint64_t)number("SIMGPU_KERNEL_NS", 2000),
        .block_ns = (uint64_t)number("SIMGPU_BLOCK_NS", 20),    /* on top, for each wave of a block on every SM */
        .kernel_slots = (int)number("SIMGPU_KERNEL_SLOTS", 32), /* kernels that run side by side */
        .rules = getenv("SIMGPU_RULES"), /* "gemm=50000;softmax=4000": part of a name = ns, first match counts */
        .copy_gbs = number("SIMGPU_COPY_GBS", 25),
        .hang_at = (uint64_t)number("SIMGPU_HANG", 0),
        .fail =
            getenv("SIMGPU_FAIL"), /* "cuMemAlloc_v2:3:2,kernel:5:719": call or "kernel" (asynchronous), count, error */
        .log = getenv("SIMGPU_LOG"),
        .log_calls = flag("SIMGPU_LOG_CALLS"),            /* the calls too, not only the work */
        .has_nested_calls = flag("SIMGPU_NESTED_DRIVER"), /* CUPTI also hears of cu* calls that a cuda* call makes */
        .is_stub = flag("SIMGPU_STUB"),
        .has_no_device = flag("SIMGPU_NO_DEVICE"),
    };
    if (settings.devices < 1) settings.has_no_device = true;
    if (settings.devices > 16) settings.devices = 16;
    if (settings.kernel_slots < 1) settings.kernel_slots = 1;
    if (settings.kernel_slots > 128) settings.kernel_slots = 128;
    if (settings.copy_gbs <= 0) settings.copy_gbs = 25;
}

const struct sim_settings *sim_settings(void)
{
    pthread_once(&once, read_environment);
    return &settings;
}
