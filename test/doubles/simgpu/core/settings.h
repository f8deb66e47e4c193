// SPDX-License-Identifier: Apache-2.0
/* settings.h - what the environment asks of the simulated GPU, read once */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sim_settings {
    int devices, driver_version, kernel_slots;
    uint64_t memory_bytes, latency_ns, kernel_ns, block_ns, seed;
    int64_t offset_ns;
    double drift_ppm, copy_gbs, jitter_percent;
    uint64_t hang_at;  /* the n-th kernel never ends; 0: none */
    const char *rules; /* durations by kernel name */
    const char *fail, *log;
    bool is_stub, has_no_device, has_nested_calls, log_calls;
};

const struct sim_settings *sim_settings(void);
