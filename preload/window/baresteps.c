// SPDX-License-Identifier: Apache-2.0
/*
 * baresteps.c - notes in the spool how long steps lasted before a window: their median, and those that are far longer
 *
 * Called by: window.c, at the end of a step and where a window opens
 * Owns:      the lengths of the last 32 of these steps, and sums of all
 * Locks:     none of its own: window_lock is held
 * On fail:   the report does not say what recording adds
 * Safe in:   signal handlers no; after fork yes: kp_baresteps_forget
 *
 * The first step has the program's start in it, and is left out. So are three behind a window: a trace is written
 * beside them, and CUPTI is not yet disabled. A step with an evaluation, or a checkpoint, is long: three times the
 * median of the steps before it. That median is renewed each eighth step. Page faults of the steps are counted, too.
 */
#include "preload/window/baresteps.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/procfacts/faultcount.h"
#include "preload/procfacts/procfacts.h"
#include "preload/summary/steplines.h"
#include "collector/base/kp_poison.h"

enum { STEPS = 32, STEPS_LEAST = 3, STEPS_TO_SETTLE = 3, MEDIAN_EACH = 8, LONG_TIMES = 3 };
static struct {
    uint64_t ns[STEPS]; /* a ring */
    uint64_t count;     /* ever */
    uint64_t all_ns;    /* of these */
    uint64_t median_ns; /* of the last ones; 0: not known yet */
    uint64_t long_count, long_ns;
    uint64_t begin_ns;  /* of the step in progress; 0: not known */
    uint32_t unsettled; /* so many are to be left out */
} bare;

void kp_baresteps_forget(void)
{
    memset(&bare, 0, sizeof bare);
    kp_faultcount_forget();
}

uint64_t kp_baresteps_all(uint64_t *ns)
{
    *ns = bare.all_ns;
    return bare.count;
}

static size_t kept(void) { return bare.count < STEPS ? (size_t)bare.count : STEPS; }

static void length_add(uint64_t ns)
{
    if (bare.median_ns && ns > LONG_TIMES * bare.median_ns) {
        bare.long_count++;
        bare.long_ns += ns;
    }
    bare.all_ns += ns;
    bare.ns[bare.count++ % STEPS] = ns;
    if (bare.count % MEDIAN_EACH == 0) bare.median_ns = kp_faultcount_median(bare.ns, kept());
}

void kp_baresteps_end(bool is_bare, uint64_t step)
{
    const uint64_t now = kp_clock_ns(CLOCK_MONOTONIC);
    if (!is_bare) kp_procfacts_core_step(now, !bare.begin_ns, step);
    if (!is_bare) bare.unsettled = STEPS_TO_SETTLE;
    else if (bare.unsettled) bare.unsettled--;
    else if (bare.begin_ns) length_add(now - bare.begin_ns);
    kp_steplines_step(step, now, bare.begin_ns ? now - bare.begin_ns : 0, !is_bare);
    bare.begin_ns = now;
    kp_faultcount_step(is_bare);
}

void kp_baresteps_note(uint32_t window)
{
    const size_t count = kept();
    char key[24], value[128];
    if (count < STEPS_LEAST) return;
    kp_fmt(key, sizeof key, "bare.%u", window);
    const unsigned long median_us = (unsigned long)(kp_faultcount_median(bare.ns, count) / 1000);
    if (bare.long_count)
        kp_fmt(value, sizeof value, "%lu,%lu,%lu,%lu,%lu,%lu", (unsigned long)count, median_us,
               (unsigned long)bare.count, (unsigned long)(bare.all_ns / 1000), (unsigned long)bare.long_count,
               (unsigned long)(bare.long_ns / 1000));
    else kp_fmt(value, sizeof value, "%lu,%lu", (unsigned long)count, median_us);
    (void)kp_record_note(key, value); /* on failure the report says less */
}
