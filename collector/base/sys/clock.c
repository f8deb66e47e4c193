// SPDX-License-Identifier: Apache-2.0
/*
 * clock.c - chooses the source of ticks, and takes samples that tie ticks to time
 *
 * The library uses the TSC where it is the kernel's clocksource and the CPU keeps its rate in sleep states.
 * Otherwise it reads CLOCK_MONOTONIC, which costs about 24 ns and is always right.
 */
#include "collector/base/sys/kp_clock.h"

#include <fcntl.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "collector/base/sys/kp_fail.h"
#include "collector/base/kp_hot.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_poison.h"

#define KP_CLOCK_SOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define KP_CLOCK_TRIES 8
#define KP_CLOCK_ASK_MS 60000 /* how often the kernel's clock source is looked at */

_Alignas(1024) KP_HOT_DATA _Atomic bool kp_clock_is_tsc; /* the first of its section: no page ends in the next KB */
_Atomic bool kp_clock_is_forbidden;

#if defined(__x86_64__)
static bool is_tsc_invariant(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & 1u << 8);
}

static enum { SOURCE_UNKNOWN, SOURCE_TSC, SOURCE_OTHER } kernel_clock(void)
{
    char text[16];
    const ssize_t n = kp_io_text(KP_CLOCK_SOURCE, text, sizeof text);
    if (n < 3) return SOURCE_UNKNOWN;
    return memcmp(text, "tsc", 3) == 0 && (n == 3 || text[3] == '\n') ? SOURCE_TSC : SOURCE_OTHER;
}
#endif

void kp_clock_init(void)
{
#if defined(__x86_64__)
    kp_store_relaxed(&kp_clock_is_tsc, is_tsc_invariant() && kernel_clock() == SOURCE_TSC);
#endif
}

bool kp_clock_was_left(uint64_t now_ms)
{
    static uint64_t asked_ms;
    static bool was_left;
    if (was_left || !kp_load_relaxed(&kp_clock_is_tsc)) return false;
    const bool is_test = kp_fail_point("clocksource") < 0;
    if (!asked_ms) asked_ms = now_ms;
    if (!is_test && now_ms - asked_ms < KP_CLOCK_ASK_MS) return false;
    asked_ms = now_ms;
#if defined(__x86_64__)
    was_left = is_test || kernel_clock() == SOURCE_OTHER;
#endif
    return was_left;
}

void kp_clock_forbid(void)
{
    kp_store_relaxed(&kp_clock_is_forbidden, true);
    kp_store_relaxed(&kp_clock_is_tsc, false);
}

void kp_clock_sample(struct kp_clock_pair *out)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < KP_CLOCK_TRIES; i++) {
        uint64_t before = kp_ticks();
        uint64_t real = kp_clock_ns(CLOCK_REALTIME);
        uint64_t middle = kp_ticks();
        uint64_t mono = kp_clock_ns(CLOCK_MONOTONIC);
        uint64_t after = kp_ticks();
        if (after - before >= best) continue; /* preempted in between: this sample is less exact */
        best = after - before;
        out->ticks = middle;
        out->real_ns = real;
        out->mono_ns = mono;
    }
}
