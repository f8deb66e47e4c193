// SPDX-License-Identifier: Apache-2.0
/*
 * kp_clock.h - time stamps for hooks: raw ticks, which the reader converts to time
 *
 * Ticks are the TSC when the kernel uses it as clocksource and the CPU calls it invariant (KP_CLOCK_TSC).
 * Otherwise they are CLOCK_MONOTONIC in ns (KP_CLOCK_MONO). They never go backwards on a thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "collector/base/kp_atomic.h"

enum { KP_CLOCK_TSC = 1, KP_CLOCK_MONO = 2 };

extern _Atomic bool kp_clock_is_tsc; /* set once by kp_clock_init; only kp_clock_forbid changes it later */
extern _Atomic bool kp_clock_is_forbidden;

static inline uint64_t kp_clock_ns(clockid_t id)
{
    struct timespec t;
    if (__builtin_expect(kp_load_relaxed(&kp_clock_is_forbidden), 0)) return 0;
    clock_gettime(id, &t); /* usually no system call, but a read of the TSC */
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* CLOCK_MONOTONIC */
static inline uint64_t kp_clock_ms(void) { return kp_clock_ns(CLOCK_MONOTONIC) / 1000000; }

static inline uint64_t kp_ticks(void)
{
#if defined(__x86_64__)
    if (kp_load_relaxed(&kp_clock_is_tsc)) return __builtin_ia32_rdtsc();
#endif
    return kp_clock_ns(CLOCK_MONOTONIC);
}

/* A sample that ties ticks to wall time, the most exact of several tries. */
struct kp_clock_pair {
    uint64_t ticks;
    uint64_t real_ns; /* CLOCK_REALTIME, ns since the Unix epoch */
    uint64_t mono_ns; /* CLOCK_MONOTONIC, ns */
};

void kp_clock_init(void);
/*
 * Whether the kernel has left the TSC for another clock source, because it found it unstable: true once. Reads a file
 * once a minute. One thread at a time.
 */
bool kp_clock_was_left(uint64_t now_ms);
/*
 * Makes each stamp 0, before the host asks the kernel for SIGSEGV at each read of the TSC. Recording has ended, but
 * hooks that still run may ask for a stamp.
 */
void kp_clock_forbid(void);
void kp_clock_sample(struct kp_clock_pair *out);
