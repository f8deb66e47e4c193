// SPDX-License-Identifier: Apache-2.0
/*
 * writer.c - the helper thread kprof-writer: keeps free chunks ready, samples the clock, runs boot's tick
 *
 * Called by: record.c (open, close); hooks only wake it (wakeup.c)
 * Owns:      the number of chunks to keep ready: half a second's use, within fixed limits
 * Locks:     none; sleeps in a futex for at most one tick
 * Safe in:   signal handlers no; after fork the thread does not exist (kp_writer_after_fork)
 */
#include "collector/record/record_internal.h"

#include <time.h>
#include <unistd.h>

#include "collector/base/kp_clock.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_helper_pause.h"
#include "collector/base/kp_poison.h"

#define KP_WRITER_TICK_NS 50000000
#define KP_WRITER_CLOCK_NS 1000000000u
#define KP_WRITER_NICE 1            /* it needs little, but a starved writer drops events */
#define KP_WRITER_STOCK 256u        /* chunks ready at least: 16 MB */
#define KP_WRITER_STOCK_MAX 4096u   /* and at most: 256 MB */
#define KP_WRITER_SEGMENT 64u       /* chunks added at once (1-2 ms): small steps let a rush use the first ones early */
#define KP_WRITER_RATE_NS 10000000u /* shorter spans tell nothing about the rate */
#define KP_WRITER_STOP_MS 1000
#define KP_WRITER_ROUNDS 8u /* ticks between two checks whether host threads are left */

enum { NOT_RUNNING, RUNNING, STOPPING, STOPPED };

static _Atomic uint32_t stage;
static _Atomic uint32_t writer_tid;
static void (*tick_fn)(void);

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
    return want > KP_WRITER_STOCK_MAX ? KP_WRITER_STOCK_MAX : (uint32_t)want;
}

/*
 * A process that ends at once or only imports torch (a launcher, a compile worker) uses the first segment only. The
 * stock grows once a quarter of that is taken, which wakes the writer.
 */
static bool is_small(void)
{
    uint32_t asked = kp_chunk_demand(), ready = kp_chunk_ready();
    if (asked >= KP_CHUNK_DEMAND_MAX) return false;
    if (asked && (ready < KP_WRITER_SEGMENT / 2 || ready < 2 * kp_thread_count())) return false;
    kp_chunk_set_mark(asked ? ready - (KP_CHUNK_DEMAND_MAX - asked) + 1 : ready);
    return true;
}

static void stock_refill(uint64_t now_ns)
{
    uint32_t want = stock_wanted(now_ns);
    if (is_small()) return;
    kp_chunk_set_mark(want - want / 4);
    while (kp_chunk_ready() < want && kp_load_relaxed(&stage) == RUNNING) /* kp_writer_close waits for this thread */
        if (kp_chunk_grow(KP_WRITER_SEGMENT) == 0) break;                 /* after a grow error the tick retries */
}

static void clock_keep(uint64_t now_ns)
{
    if ((kp_gate_get() & (KP_GATE_WARM | KP_GATE_RECORD)) == 0 || now_ns - pace.clock_ns < KP_WRITER_CLOCK_NS) return;
    pace.clock_ns = now_ns;
    kp_record_clock();
}

/* A window warms up or begins: touch its first chunks, so that hooks take no page faults. */
static void cycle_prepare(void)
{
    static uint32_t prepared;
    uint64_t gate = kp_gate_get();
    if (!(gate & (KP_GATE_WARM | KP_GATE_RECORD)) || kp_gate_cycle(gate) == prepared) return;
    prepared = kp_gate_cycle(gate);
    kp_chunk_touch_free(KP_WRITER_STOCK);
}

/* All host threads have ended: no more records come, and the process waits for this thread. */
static bool is_left_alone(void)
{
    static uint32_t rounds;
    return ++rounds % KP_WRITER_ROUNDS == 0 && kp_io_helpers_alone();
}

static void *writer_main(void *arg)
{
    (void)arg;
    kp_store_relaxed(&writer_tid, kp_io_tid());
    while (kp_load_acquire(&stage) == RUNNING && !is_left_alone()) { /* pairs with: writer.c:kp_writer_close */
        if (kp_helpers_pause_wanted()) return NULL;                  /* kp_helpers_resume starts it again */
        uint64_t now_ns = kp_clock_ns(CLOCK_MONOTONIC);
        stock_refill(now_ns);
        cycle_prepare();
        clock_keep(now_ns);
        if (tick_fn) tick_fn();
        kp_wakeup_wait(KP_WRITER_TICK_NS);
    }
    kp_store_release(&stage, STOPPED); /* pairs with: writer.c:kp_writer_close */
    return NULL;
}

int kp_writer_open(void (*tick)(void))
{
    tick_fn = tick;
    pace.at_ns = pace.clock_ns = kp_clock_ns(CLOCK_MONOTONIC);
    pace.taken = kp_chunk_taken();
    pace.per_second = 0;
    kp_store_release(&stage, RUNNING);
    int rc = kp_helpers_start(writer_main, "kprof-writer", KP_WRITER_NICE, kp_writer_wake);
    if (rc < 0) kp_store_release(&stage, NOT_RUNNING);
    return rc;
}

void kp_writer_close(void)
{
    if (kp_load_acquire(&stage) != RUNNING) return;
    kp_store_release(&stage, STOPPING);                      /* pairs with: writer.c:writer_main */
    if (kp_load_relaxed(&writer_tid) == kp_io_tid()) return; /* the tick itself closes */
    kp_writer_wake();
    for (int i = 0; i < KP_WRITER_STOP_MS && kp_load_acquire(&stage) != STOPPED; i++) {
        if (kp_io_is_thread_gone(kp_load_relaxed(&writer_tid)))
            return; /* it was paused and could not be started again */
        kp_io_nap(1000000);
    }
}

void kp_writer_after_fork(void)
{
    kp_store_relaxed(&stage, NOT_RUNNING);
    kp_store_relaxed(&writer_tid, 0);
    tick_fn = NULL;
}
