// SPDX-License-Identifier: Apache-2.0
/*
 * limit.c - decides when CUPTI is disabled before its window ends
 *
 * Called by: control.c when it armed, cuda_thread.c in each turn; on the thread kprof-cuda
 * Owns:      the counts from when the window began
 * Locks:     none
 *
 * A run without a schedule is one window from start to exit, which may last for days. The longer CUPTI records, the
 * more processor time it takes, and in some releases GPU memory. So such runs have limits in records and in minutes. In
 * all runs recording ends when the spool is full, or when kernels have no times.
 */
#include "preload/cupti/limit.h"

#include "collector/base/sys/kp_clock.h"
#include "collector/base/elf/kp_cuptirule.h"
#include "collector/base/sys/kp_fail.h"
#include "collector/base/kp_gate.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/cupti/cupti_internal.h"
#include "collector/base/kp_poison.h"

enum { MINUTES = 240, MINUTES_SHORT = 60, MILLIONS = 100, MILLIONS_FEW = 20, BURST = 256, FULL_MS = 1000 };
enum { MS = 60000, MILLION = 1000000 };

uint64_t kp_limit_minutes(uint32_t rules) { return rules & KP_CUPTI_SHORT ? MINUTES_SHORT : MINUTES; }

uint64_t kp_limit_millions(uint32_t rules) { return rules & KP_CUPTI_FEW ? MILLIONS_FEW : MILLIONS; }

enum kp_limit kp_limit_of(const struct kp_limit_seen *now, uint32_t rules, bool has_schedule)
{
    if (now->timeless >= BURST && 2 * now->timeless >= now->kernels) return KP_LIMIT_TIMES;
    if (now->full_ms >= FULL_MS) return KP_LIMIT_SPOOL;
    if (has_schedule) return KP_LIMIT_NONE;
    if (now->records >= kp_limit_millions(rules) * MILLION) return KP_LIMIT_RECORDS;
    return now->ms >= kp_limit_minutes(rules) * MS ? KP_LIMIT_MINUTES : KP_LIMIT_NONE;
}

/* ---- counting ---- */

static struct {
    uint32_t cycle;
    uint64_t ms, records;       /* time and record count when the cycle began */
    uint64_t kernels, timeless; /* at the last look */
    uint64_t full_since_ms;     /* 0: there is room */
} begun;

void kp_limit_begin(void)
{
    const uint32_t cycle = kp_gate_cycle(kp_gate_get());
    begun.kernels = kp_lane_kernels();
    begun.timeless = kp_lane_timeless();
    begun.full_since_ms = 0;
    if (cycle && cycle == begun.cycle) return; /* armed again in the same window: it keeps counting */
    begun.cycle = cycle;
    begun.ms = kp_clock_ms();
    begun.records = kp_lane_records();
}

/* Compares the present counts with those of the begin. For kernels it starts again after each 2 * BURST. */
static struct kp_limit_seen look(uint64_t now)
{
    struct kp_limit_seen seen = {.records = kp_lane_records() - begun.records, .ms = now - begun.ms};
    if (!kp_record_is_full()) begun.full_since_ms = 0;
    else if (!begun.full_since_ms) begun.full_since_ms = now;
    seen.full_ms = begun.full_since_ms ? now - begun.full_since_ms : 0;
    seen.kernels = kp_lane_kernels() - begun.kernels;
    seen.timeless = kp_lane_timeless() - begun.timeless;
    if (seen.kernels >= 2 * BURST) {
        begun.kernels += seen.kernels;
        begun.timeless += seen.timeless;
    }
    return seen;
}

enum kp_limit kp_limit_reached(void)
{
    const bool has_schedule = kp_cupti_has_schedule();
    const struct kp_limit_seen seen = look(kp_clock_ms());
    const enum kp_limit limit = kp_limit_of(&seen, kp_rules_all(), has_schedule);
    if (limit != KP_LIMIT_NONE || has_schedule) return limit;
    if (kp_fail_point("gpu_records") != 0) return KP_LIMIT_RECORDS; /* a test's limit */
    return kp_fail_point("gpu_minutes") != 0 ? KP_LIMIT_MINUTES : KP_LIMIT_NONE;
}

/* ---- log line and note ---- */

#define BY_SCHEDULE "without a schedule (KPROF_SCHEDULE says when, and sets no limit)"

void kp_limit_tell(enum kp_limit limit)
{
    static const char *const names[] = {
        [KP_LIMIT_RECORDS] = "records",
        [KP_LIMIT_MINUTES] = "minutes",
        [KP_LIMIT_TIMES] = "times",
        [KP_LIMIT_SPOOL] = "spool",
    };
    static uint32_t said;
    const int level = said >> limit & 1;
    char why[160];
    said |= 1u << limit;
    switch (limit) {
    case KP_LIMIT_RECORDS:
        kp_fmt(why, sizeof why, "%u million records " BY_SCHEDULE, (unsigned)kp_limit_millions(kp_rules_all()));
        break;
    case KP_LIMIT_MINUTES:
        kp_fmt(why, sizeof why, "%u minutes " BY_SCHEDULE, (unsigned)kp_limit_minutes(kp_rules_all()));
        break;
    case KP_LIMIT_TIMES:
        kp_fmt(why, sizeof why, "CUPTI gives kernels without times (its buffers on the GPU are used up)");
        break;
    default: kp_fmt(why, sizeof why, "there is no room in the spool (KPROF_MAX_MB, or the disk)"); break;
    }
    kp_cupti_note("gpu_limit", names[limit]);
    kp_log(level, "GPU work is not recorded %s: %s",
           kp_cupti_has_schedule() ? "for the rest of this window" : "any more", why);
}
