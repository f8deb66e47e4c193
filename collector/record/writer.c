// SPDX-License-Identifier: Apache-2.0
/*
 * writer.c - the helper thread kprof-writer: keeps free chunks ready, has full ones moved, samples the clock
 *
 * Called by: record.c (open, close); hooks only wake it (wakeup.c)
 * Owns:      the number of chunks to keep ready: half a second's use, within fixed limits
 * Locks:     none; sleeps in a futex for at most one tick. Host threads wait for chunks with any lock held, the
 *            loader's too, so it takes none that a host thread may hold (docs/internals/concurrency.md). It enters no
 *            call on a disk: disk.c does
 * Safe in:   signal handlers no; after fork the thread does not exist (kp_writer_forget)
 */
#include "collector/record/record_internal.h"

#include <time.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_helper_threads.h"
#include "collector/base/kp_poison.h"

#define KP_WRITER_CLOCK_NS 1000000000u
#define KP_WRITER_STOCK 256u        /* chunks ready at least: 16 MB */
#define KP_WRITER_SEGMENT 64u       /* chunks added at once (1-2 ms): small steps let a rush use the first ones early */
#define KP_WRITER_RATE_NS 10000000u /* shorter spans tell nothing about the rate */

static struct kp_life life;

static struct {
    uint64_t at_ns, taken, per_second;
    uint64_t clock_ns;
} pace;

/* How many free chunks to keep: rises at once with the use, falls slowly. */
static uint32_t stock_wanted(uint64_t now_ns)
{
    uint64_t span = now_ns - pace.at_ns, taken = kp_chunk_taken();
    if (span >= KP_WRITER_RATE_NS) {
        uint64_t rate = (taken - pace.taken) * 1000000000u / span;
        pace.per_second = rate > pace.per_second ? rate : pace.per_second - pace.per_second / 16;
        pace.at_ns = now_ns;
        pace.taken = taken;
    }
    uint64_t want = pace.per_second / 2, threads = 2 * (uint64_t)kp_thread_count();
    if (want < threads) want = threads;
    if (want < KP_WRITER_STOCK) want = KP_WRITER_STOCK;
    const uint32_t half = kp_spool.budget / 2; /* the other half holds what is full */
    return want > half ? half : (uint32_t)want;
}

/*
 * A process that ends at once or only imports torch (a launcher, a compile worker) uses the first segment only. The
 * stock grows once a quarter of that is taken, which wakes the writer.
 */
static bool is_small(void)
{
    uint32_t asked = kp_chunk_demand(), ready = kp_chunk_ready();
    if (asked >= KP_CHUNK_DEMAND_MAX) return false;
    if (ready < KP_WRITER_SEGMENT / 2 || (asked && ready < 2 * kp_thread_count()))
        return false; /* names take them, too */
    kp_chunk_set_mark(asked ? ready - (KP_CHUNK_DEMAND_MAX - asked) + 1 : ready);
    return true;
}

static void stock_refill(uint64_t now_ns)
{
    uint32_t want = stock_wanted(now_ns);
    if (is_small()) return;
    kp_chunk_set_mark(want - want / 4);
    while (kp_chunk_ready() < want && kp_life_is_wanted(&life)) /* kp_writer_close waits for this thread */
        if (kp_chunk_grow(KP_WRITER_SEGMENT) == 0) break;       /* after a grow error the next round retries */
}

/* A worker may live for a second only, and where it spends its time is of interest (kp_format.h: busy_ns). */
static void clock_keep(uint64_t now_ns)
{
    const uint64_t often = kp_spool.share ? KP_WRITER_CLOCK_NS / 10 : KP_WRITER_CLOCK_NS;
    if ((kp_gate_get() & (KP_GATE_WARM | KP_GATE_RECORD)) == 0 || now_ns - pace.clock_ns < often) return;
    if (kp_meta_clock_try()) pace.clock_ns = now_ns;
}

static void *writer_main(void *arg)
{
    (void)arg;
    kp_life_enter(&life);
    while (kp_life_goes_on(&life)) {
        if (kp_helpers_pause_wanted()) return NULL; /* kp_helpers_resume starts it again */
        uint64_t now_ns = kp_clock_ns(CLOCK_MONOTONIC);
        kp_ring_round(now_ns);
        kp_carry_round();
        stock_refill(now_ns);
        kp_disk_beat();
        clock_keep(now_ns);
        kp_ticker_beat();
        kp_wakeup_wait(KP_WAKEUP_WRITER, KP_TICK_NS);
    }
    if (kp_life_is_wanted(&life)) kp_disk_end(); /* the host's threads have all ended */
    kp_life_end(&life);
    return NULL;
}

int kp_writer_open(void (*tick)(void))
{
    pace.at_ns = pace.clock_ns = kp_clock_ns(CLOCK_MONOTONIC);
    pace.taken = kp_chunk_taken();
    pace.per_second = 0;
    kp_life_begin(&life);
    int rc = kp_helpers_start(writer_main, "kprof-writer", KP_WRITER_NICE, kp_writer_wake);
    if (rc < 0) kp_life_none(&life);
    else kp_ticker_open(tick);
    return rc;
}

/* The ticker first: until it is out of whatever lock it waits for, there are chunks for those that hold it. */
void kp_writer_close(void)
{
    kp_ticker_close();
    kp_life_close(&life, kp_writer_wake);
}

void kp_writer_forget(void)
{
    kp_life_none(&life);
    kp_ticker_forget();
}
