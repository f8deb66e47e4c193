// SPDX-License-Identifier: Apache-2.0
/* clock.c - host time, the device's own clock, and how long each piece of work lasts */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "test/doubles/simgpu/core/core.h"

uint64_t sim_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Drift in integers: host times do not fit the mantissa of a double. */
uint64_t sim_device_ns(uint64_t host_ns)
{
    const struct sim_settings *s = sim_settings();
    if (host_ns == SIM_NEVER) return SIM_NEVER;
    int64_t parts_per_billion = (int64_t)(s->drift_ppm * 1000.0);
    int64_t drift = (int64_t)((__int128)host_ns * parts_per_billion / 1000000000);
    return host_ns + (uint64_t)drift + (uint64_t)s->offset_ns;
}

void sim_sleep_until(uint64_t host_ns)
{
    if (host_ns == SIM_NEVER)
        for (;;) pause();
    struct timespec t = {(time_t)(host_ns / 1000000000u), (long)(host_ns % 1000000000u)};
    while (sim_now() < host_ns && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {}
}

/* xorshift64*: the same seed gives the same durations. Called with the lock held. */
static double jitter(void)
{
    static uint64_t state;
    if (state == 0) state = sim_settings()->seed * 0x9e3779b97f4a7c15u + 1;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    uint64_t random = state * 0x2545f4914f6cdd1du;
    double unit = (double)(random >> 11) / (double)(1ull << 53);
    return 1.0 + (2.0 * unit - 1.0) * sim_settings()->jitter_percent / 100.0;
}

/* SIMGPU_RULES is "part=ns;part=ns"; 0 when no part is in the name. */
static uint64_t by_rule(const char *rules, const char *name)
{
    char part[128];
    while (rules != NULL && *rules) {
        size_t length = strcspn(rules, "=;");
        if (rules[length] == '=' && length > 0 && length < sizeof part) {
            memcpy(part, rules, length);
            part[length] = '\0';
            if (strstr(name, part)) return (uint64_t)strtod(rules + length + 1, NULL);
        }
        rules += strcspn(rules, ";");
        if (*rules == ';') rules++;
    }
    return 0;
}

static double kernel_ns(const struct simgpu_work *work, const struct simgpu_device *device)
{
    const struct sim_settings *s = sim_settings();
    uint64_t fixed = work->name ? by_rule(s->rules, work->name) : 0;
    if (fixed) return (double)fixed;
    uint64_t blocks = (uint64_t)work->grid[0] * work->grid[1] * work->grid[2];
    uint64_t waves = (blocks + device->sms - 1) / device->sms;
    return (double)s->kernel_ns + (double)(waves * s->block_ns);
}

static double data_ns(const struct simgpu_work *work, const struct simgpu_device *device)
{
    bool is_inside = work->kind == SIMGPU_MEMSET || (work->copy_kind == 8 && !work->is_peer);
    double bytes_per_ns = is_inside ? (double)device->bandwidth_kb / 1e6 / 2 : sim_settings()->copy_gbs;
    return 1000.0 + (double)work->bytes / bytes_per_ns;
}

uint64_t sim_duration(const struct sim_op *op, const struct simgpu_device *device)
{
    double ns = (double)op->duration_ns;
    if (ns == 0) {
        switch (op->work.kind) {
        case SIMGPU_KERNEL: ns = kernel_ns(&op->work, device); break;
        case SIMGPU_MEMCPY:
        case SIMGPU_MEMSET: ns = data_ns(&op->work, device); break;
        case SIMGPU_HOST_FUNCTION: return 1000;
        default: return 0;
        }
    }
    ns *= jitter();
    return ns < 1 ? 1 : (uint64_t)ns;
}
