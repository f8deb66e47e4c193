// SPDX-License-Identifier: Apache-2.0
/*
 * ticker.c - the helper thread kprof-tick: runs boot's tick, which may wait, so that the writer never does
 *
 * Called by: writer.c (open, beat, close); any thread wakes it (kp_ticker_wake)
 * Owns:      boot's tick
 * Locks:     none; sleeps in a futex for at most one tick. The tick takes locks of the loader and of finish.c
 * On fail:   where no second thread can be had, the writer runs the tick, as it runs all else
 * Safe in:   signal handlers only kp_ticker_wake; after fork the thread does not exist (kp_ticker_forget)
 */
#include "collector/record/record_internal.h"

#include "collector/base/kp_helper_threads.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

static struct kp_life life;
static _Atomic bool is_writers; /* there is no thread for it: the writer runs the tick */
static void (*tick_fn)(void);

enum { NO_JOB, ASKED, TAKEN };
static _Atomic uint32_t job_stage;
static void (*job_fn)(void);

static void job_do(void)
{
    uint32_t asked = ASKED;
    if (kp_cas_acq_rel(&job_stage, &asked, TAKEN)) job_fn(); /* pairs with: kp_ticker_do */
}

static void *ticker_main(void *arg)
{
    (void)arg;
    kp_life_enter(&life);
    while (kp_life_goes_on(&life)) {
        if (kp_helpers_pause_wanted()) return NULL; /* kp_helpers_resume starts it again */
        tick_fn();
        job_do();
        kp_wakeup_wait(KP_WAKEUP_TICKER, KP_TICK_NS);
    }
    kp_life_end(&life);
    return NULL;
}

void kp_ticker_open(void (*tick)(void))
{
    if (!tick) return;
    tick_fn = tick;
    kp_life_begin(&life);
    if (kp_helpers_start(ticker_main, "kprof-tick", KP_WRITER_NICE, kp_ticker_wake) == 0) return;
    kp_life_none(&life);
    kp_log(1, "no thread kprof-tick: the writer also closes windows, and may wait for the loader's lock");
    kp_store_release(&is_writers, true); /* pairs with: kp_ticker_beat */
    kp_writer_wake();
}

void kp_ticker_beat(void)
{
    if (kp_load_acquire(&is_writers)) tick_fn(); /* pairs with: kp_ticker_open */
}

void kp_ticker_wake(void)
{
    if (kp_load_relaxed(&is_writers)) kp_writer_wake();
    else kp_wakeup_wake(KP_WAKEUP_TICKER);
}

bool kp_ticker_do(void (*job)(void), uint32_t most_ms)
{
    uint32_t asked = ASKED;
    if (!tick_fn || kp_load_relaxed(&is_writers) || !kp_life_is_wanted(&life)) return false;
    job_fn = job;
    kp_store_release(&job_stage, ASKED); /* pairs with: ticker.c:job_do */
    kp_ticker_wake();
    for (uint32_t i = 0; i < most_ms * 10 && kp_load_relaxed(&job_stage) == ASKED; i++) kp_io_nap(100000);
    return !kp_cas_acq_rel(&job_stage, &asked, NO_JOB); /* it waits for something of the host's: it is left alone */
}

void kp_ticker_close(void)
{
    kp_store_relaxed(&is_writers, false);
    kp_life_close(&life, kp_ticker_wake);
}

void kp_ticker_forget(void)
{
    kp_life_none(&life);
    kp_store_relaxed(&is_writers, false);
    kp_store_relaxed(&job_stage, NO_JOB);
    tick_fn = NULL;
}
