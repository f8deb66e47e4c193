// SPDX-License-Identifier: Apache-2.0
/*
 * helper_threads.c - pauses our helper threads while the host makes a call that requires a single-threaded process
 *
 * Called by: begin.c, ctl.c, disk.c, stepnote.c, ticker.c, writer.c (start threads); single_thread.c (around a call)
 * Owns:      the table of helper threads, the word `wanted`
 * Locks:     `turn`, an atomic flag, for a whole pause. A caller that waited TURN_MS for it goes on without a pause.
 * Memory:    none
 * On fail:   a thread that does not end in time keeps running. A thread that cannot be started again is logged once.
 * Safe in:   signal handlers yes, if the host's own call is. In a forked child kp_helpers_forget comes first.
 */
#include "collector/base/kp_helper_threads.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_poison.h"

enum { NAP_NS = 100000, NAPS_IN_MS = 10, TURN_MS = 500 };

static struct paused_helper {
    void *(*body)(void *);
    void (*wake)(void);
    const char *name;
    int nice;
    _Atomic uint32_t tid;      /* 0: it does not run */
    _Atomic uint32_t was_sent; /* in a pause SENT until it ends, then GONE; otherwise 0 */
} rows[KP_HELPERS_MAX];
static _Atomic uint32_t row_count, wanted;
static atomic_flag turn = ATOMIC_FLAG_INIT;

enum { SENT = 1, GONE };
static _Thread_local bool saw_pause __attribute__((tls_model("initial-exec")));

bool kp_helpers_pause_wanted(void)
{
    const bool is = kp_load_acquire(&wanted) != 0; /* pairs with: kp_helpers_pause */
    if (is) saw_pause = true;
    return is;
}

void kp_helpers_sleep(uint64_t ns) { kp_io_wait(&wanted, 0, ns); }

static void *row_main(void *arg)
{
    struct paused_helper *row = arg;
    kp_store_release(&row->tid, kp_io_tid()); /* pairs with: kp_helpers_pause */
    for (;;) {
        uint32_t sent = SENT;
        saw_pause = false;
        void *result = row->body(NULL);
        if (kp_cas_acq_rel(&row->was_sent, &sent, GONE)) return result; /* pairs with: kp_helpers_resume */
        if (saw_pause) continue; /* it ended so late that the pause is over: kp_helpers_resume did not start it again */
        kp_store_release(&row->tid, 0);
        return result;
    }
}

static int row_start(struct paused_helper *row)
{
    kp_store_relaxed(&row->tid, UINT32_MAX); /* it is starting */
    int rc = kp_io_thread_nice(row_main, row, row->name, row->nice);
    if (rc) kp_store_relaxed(&row->tid, 0);
    return rc;
}

int kp_helpers_start(void *(*body)(void *), const char *name, int nice, void (*wake)(void))
{
    uint32_t i = 0, n = kp_load_acquire(&row_count);
    while (i < n && rows[i].body != body) i++;
    if (i == KP_HELPERS_MAX) return -ENOSPC;
    struct paused_helper *row = &rows[i];
    row->body = body, row->wake = wake, row->name = name, row->nice = nice;
    kp_store_relaxed(&row->was_sent, 0);
    if (i == n) kp_store_release(&row_count, n + 1);
    return row_start(row);
}

static bool turn_take(void)
{
    for (uint32_t i = 0; i < TURN_MS * NAPS_IN_MS; i++) {
        if (!atomic_flag_test_and_set_explicit(&turn, memory_order_acquire)) return true;
        kp_io_nap(NAP_NS);
    }
    return false;
}

static bool is_gone(struct paused_helper *row)
{
    const uint32_t tid = kp_load_acquire(&row->tid); /* pairs with: row_main */
    return tid == 0 || (tid != UINT32_MAX && kp_io_is_thread_gone(tid));
}

static uint32_t rows_send(void)
{
    uint32_t sent = 0;
    for (uint32_t i = 0, n = kp_load_acquire(&row_count); i < n; i++) {
        const uint32_t runs = kp_load_acquire(&rows[i].tid) != 0;
        kp_store_release(&rows[i].was_sent, runs ? SENT : 0); /* pairs with: row_main */
        sent += runs;
    }
    if (!sent) return 0;
    kp_store_release(&wanted, 1); /* pairs with: kp_helpers_pause_wanted */
    kp_io_wake(&wanted);
    for (uint32_t i = 0, n = kp_load_acquire(&row_count); i < n; i++)
        if (kp_load_relaxed(&rows[i].was_sent) && rows[i].wake) rows[i].wake();
    return sent;
}

bool kp_helpers_pause(uint32_t timeout_ms)
{
    if (kp_load_acquire(&row_count) == 0 || !turn_take()) return false;
    if (!rows_send()) {
        atomic_flag_clear_explicit(&turn, memory_order_release);
        return false;
    }
    for (uint32_t naps = 0; naps < timeout_ms * NAPS_IN_MS; naps++) {
        bool all = true;
        for (uint32_t i = 0, n = kp_load_acquire(&row_count); i < n; i++)
            all &= !kp_load_relaxed(&rows[i].was_sent) || is_gone(&rows[i]);
        if (all && kp_io_helpers() == 0) break;
        kp_io_nap(NAP_NS);
    }
    return true;
}

void kp_helpers_resume(void)
{
    kp_store_release(&wanted, 0); /* pairs with: kp_helpers_pause_wanted */
    for (uint32_t i = 0, n = kp_load_acquire(&row_count); i < n; i++) {
        struct paused_helper *row = &rows[i];
        uint32_t sent = SENT;
        if (kp_cas_acq_rel(&row->was_sent, &sent, 0) || sent != GONE)
            continue; /* pairs with: row_main. It still runs */
        kp_store_release(&row->was_sent, 0);
        if (row_start(row) != 0)
            KP_LOG_ONCE(
                0,
                "%s could not be started again after the program changed its user or namespace: records may be dropped",
                row->name);
    }
    atomic_flag_clear_explicit(&turn, memory_order_release);
}

void kp_helpers_forget(void)
{
    kp_store_relaxed(&row_count, 0);
    kp_store_relaxed(&wanted, 0);
    atomic_flag_clear_explicit(&turn, memory_order_relaxed);
}
