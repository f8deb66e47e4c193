// SPDX-License-Identifier: Apache-2.0
/*
 * clock.c - time as CUPTI tells it
 *
 * Without a callback everything is CLOCK_REALTIME: the host's CLOCK_MONOTONIC and an offset measured once. With one,
 * records of the CPU call it when the thing happens, and times of the GPU are mapped through samples (host time,
 * callback) by linear interpolation, taken while the records are finished.
 */
#include "test/doubles/simgpu/cupti/simcupti.h"

#include <time.h>
#include <unistd.h>

enum { SAMPLES = 64, SAMPLE_APART_NS = 1000000, TRIES = 8 };

static struct sample {
    uint64_t host, client;
} samples[SAMPLES];
static unsigned sample_count; /* all that were ever taken */
static pthread_mutex_t clock_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t last_gpu_end, stale_until;

static uint64_t read_clock(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t offset_ns;
static pthread_once_t offset_once = PTHREAD_ONCE_INIT;

static void measure_offset(void)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 20; i++) {
        uint64_t before = read_clock(CLOCK_MONOTONIC), real = read_clock(CLOCK_REALTIME),
                 after = read_clock(CLOCK_MONOTONIC);
        if (after - before >= best) continue;
        best = after - before;
        offset_ns = real - (before + best / 2);
    }
}

static uint64_t realtime(uint64_t host_ns)
{
    pthread_once(&offset_once, measure_offset);
    return host_ns + offset_ns;
}

static uint64_t ask_client(simcupti_time_fn clock)
{
    simcupti_in_client++;
    uint64_t time = clock();
    simcupti_in_client--;
    return time;
}

uint64_t simcupti_now(void)
{
    simcupti_time_fn clock = simcupti.clock;
    return clock ? ask_client(clock) : realtime(read_clock(CLOCK_MONOTONIC));
}

uint64_t simcupti_host(uint64_t host_ns)
{
    simcupti_time_fn clock = simcupti.clock;
    return clock ? ask_client(clock) : realtime(host_ns);
}

static void take_sample(simcupti_time_fn clock)
{
    struct sample best = {0, 0};
    uint64_t width = UINT64_MAX;
    for (int i = 0; i < TRIES; i++) {
        uint64_t before = read_clock(CLOCK_MONOTONIC), client = ask_client(clock), after = read_clock(CLOCK_MONOTONIC);
        if (after - before >= width) continue;
        width = after - before;
        best = (struct sample){before + width / 2, client};
    }
    samples[sample_count++ % SAMPLES] = best;
}

void simcupti_clock_sample(void)
{
    simcupti_time_fn clock = simcupti.clock;
    if (!clock) return;
    pthread_mutex_lock(&clock_lock);
    uint64_t now = read_clock(CLOCK_MONOTONIC);
    if (!sample_count || now > samples[(sample_count - 1) % SAMPLES].host + SAMPLE_APART_NS) take_sample(clock);
    pthread_mutex_unlock(&clock_lock);
}

void simcupti_clock_set(simcupti_time_fn clock)
{
    pthread_mutex_lock(&clock_lock);
    sample_count = 0;
    last_gpu_end = stale_until = 0;
    if (simcupti_set.latch && simcupti.clock) simcupti.spoiled++;
    simcupti.clock = clock;
    pthread_mutex_unlock(&clock_lock);
    simcupti_clock_sample();
}

/* The two samples around host_ns, or the two next to it. */
static void find_samples(uint64_t host_ns, struct sample *low, struct sample *high)
{
    unsigned last = sample_count - 1, first = sample_count > SAMPLES ? sample_count - SAMPLES : 0;
    unsigned i = last;
    while (i > first + 1 && samples[(i - 1) % SAMPLES].host > host_ns) i--;
    *low = samples[(i - 1) % SAMPLES];
    *high = samples[i % SAMPLES];
}

static uint64_t interpolate(uint64_t host_ns)
{
    struct sample low, high;
    find_samples(host_ns, &low, &high);
    if (high.host == low.host) return low.client;
    long double slope = (long double)(int64_t)(high.client - low.client) / (long double)(high.host - low.host);
    return low.client + (uint64_t)(int64_t)(slope * (long double)(int64_t)(host_ns - low.host));
}

/* Told to: the first work after an idle time is mapped as if the clock had run on wrongly meanwhile. */
static uint64_t stale_shift(uint64_t host_ns)
{
    if (!simcupti_set.stale_ns) return 0;
    if (last_gpu_end && host_ns > last_gpu_end + 100000000) stale_until = host_ns + 10000000;
    if (host_ns > last_gpu_end) last_gpu_end = host_ns;
    return host_ns < stale_until ? simcupti_set.stale_ns : 0;
}

void simcupti_clock_latch(void)
{
    if (simcupti.is_latched) return;
    simcupti.is_latched = true;
    simcupti.first_clock = simcupti.clock;
}

uint64_t simcupti_spoiled(uint64_t host_ns) { return realtime(host_ns); }

uint64_t simcupti_gpu(uint64_t host_ns)
{
    simcupti_time_fn clock = simcupti_set.latch && simcupti.is_latched && !simcupti.first_clock ? NULL : simcupti.clock;
    if (!clock) return realtime(host_ns);
    simcupti_clock_sample();
    pthread_mutex_lock(&clock_lock);
    while (sample_count < 2) take_sample(clock);
    uint64_t time = interpolate(host_ns) - stale_shift(host_ns);
    pthread_mutex_unlock(&clock_lock);
    return time;
}

uint32_t simcupti_thread_id(void)
{
    return simcupti.thread_id_type == 1 ? (uint32_t)gettid() : (uint32_t)(uintptr_t)pthread_self();
}
