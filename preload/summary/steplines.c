// SPDX-License-Identifier: Apache-2.0
/*
 * steplines.c - a line for each step, from the thread that steps to the one that writes them
 *
 * Called by: baresteps.c at a step's end (kp_steplines_step); run/stepnote.c (the others)
 * Owns:      a ring of lines, with one writer and one reader
 * Locks:     none of its own: the writer holds window_lock
 * Memory:    192 KB, mapped once KPROF_SUMMARY asks for it
 * On fail:   steps that find no room are counted
 * Safe in:   signal handlers no; after fork: kp_steplines_forget comes first
 */
#include "preload/summary/steplines.h"

#include <errno.h>
#include <pthread.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_io.h"
#include "preload/procfacts/procfacts.h"
#include "collector/base/kp_poison.h"

enum { LINES = 2048 };
#define LOOK_NS UINT64_C(20000000) /* between two looks at the kernel's counts: a thousandth of the time at most */

static struct kp_stepline *ring;        /* NULL: nobody asked for lines */
static _Atomic uint32_t written, taken; /* ever; modulo LINES a place in the ring */
static _Atomic uint64_t lost;
static struct {
    pthread_t thread;
    struct kp_io_faults faults;
    uint64_t at_ns, had_ns, waited_ns; /* at_ns 0: no look yet */
    uint32_t resident_kb;
} look;
static uint64_t (*collectives_fn)(void);
static uint64_t collectives_ns; /* at the end of the step before */

int kp_steplines_begin(uint64_t (*collectives)(void))
{
    collectives_fn = collectives;
    if (!ring) ring = kp_map_alloc(LINES * sizeof *ring);
    return ring ? 0 : -ENOMEM;
}

void kp_steplines_forget(void)
{
    ring = NULL; /* the parent's pages stay the parent's */
    look.at_ns = 0;
    kp_store_relaxed(&written, 0);
    kp_store_relaxed(&taken, 0);
    kp_store_relaxed(&lost, 0);
}

/* Puts what the kernel counted since the last look into the line. Another thread begins anew. */
static void counts_add(struct kp_stepline *line, uint64_t now_ns)
{
    const bool is_same = look.at_ns && pthread_equal(look.thread, pthread_self());
    if (is_same && now_ns - look.at_ns < LOOK_NS) return;
    struct kp_io_faults faults = {0, 0};
    uint64_t had_ns = 0, waited_ns = 0;
    const bool is_known = kp_procfacts_thread(&had_ns, &waited_ns) && kp_io_faults(&faults) == 0;
    look.resident_kb = (uint32_t)(kp_io_resident(NULL) / 1024);
    if (is_same && is_known) {
        line->had_us = (uint32_t)((had_ns - look.had_ns) / 1000);
        line->waited_us = (uint32_t)((waited_ns - look.waited_ns) / 1000);
        line->looked_us = (uint32_t)((now_ns - look.at_ns) / 1000);
        line->faults_minor = (uint32_t)(faults.minor - look.faults.minor);
        line->faults_major = (uint32_t)(faults.major - look.faults.major);
    }
    look.thread = pthread_self();
    look.at_ns = is_known ? now_ns : 0;
    look.had_ns = had_ns, look.waited_ns = waited_ns, look.faults = faults;
}

void kp_steplines_step(uint64_t step, uint64_t now_ns, uint64_t dur_ns, bool is_recorded)
{
    if (!ring) return;
    const uint32_t at = kp_load_relaxed(&written);
    if (at - kp_load_acquire(&taken) == LINES) { /* pairs with: kp_steplines_take */
        kp_add_relaxed(&lost, 1);
        return;
    }
    struct kp_stepline *const line = &ring[at % LINES];
    *line = (struct kp_stepline){.step = step,
                                 .end_ns = kp_clock_ns(CLOCK_REALTIME),
                                 .dur_ns = dur_ns,
                                 .min_ns = dur_ns,
                                 .median_ns = dur_ns,
                                 .p99_ns = dur_ns,
                                 .max_ns = dur_ns,
                                 .count = 1,
                                 .recorded = is_recorded};
    counts_add(line, now_ns);
    const int64_t open_ns = (int64_t)(collectives_fn() - collectives_ns);
    collectives_ns += (uint64_t)open_ns;
    if (open_ns > 0 && dur_ns) line->collectives_us = (uint32_t)(open_ns / 1000);
    line->resident_kb = look.resident_kb;
    kp_store_release(&written, at + 1); /* pairs with: kp_steplines_take */
}

size_t kp_steplines_take(struct kp_stepline *out, size_t most)
{
    const uint32_t from = kp_load_relaxed(&taken), to = kp_load_acquire(&written); /* pairs with: kp_steplines_step */
    const size_t count = to - from < most ? to - from : most;
    for (size_t i = 0; ring && i < count; i++) out[i] = ring[(from + i) % LINES];
    kp_store_release(&taken, from + (uint32_t)count); /* pairs with: kp_steplines_step */
    return count;
}

uint64_t kp_steplines_lost(void) { return kp_load_relaxed(&lost); }
