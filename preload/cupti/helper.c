// SPDX-License-Identifier: Apache-2.0
/*
 * helper.c - starts the thread kprof-cuda, passes it requests, and notices a CUPTI call that takes too long
 *
 * Called by: cupti_source.c (wanted, drained), cuda_inject.c, control.c, cuda_thread.c, aside.c; tee.c inside the
 *            program's
 *            CUPTI calls; the host's exit
 * Owns:      the thread. It starts when a window wants GPU records and ends when nothing is enabled.
 * Locks:     control (watchdog.c)
 * On fail:   without the thread GPU work is not recorded. A CUPTI call that takes too long sets STALLED and is
 *            logged; no thread waits for it or makes another.
 * Safe in:   signal handlers no; not called after fork (the gate is shut)
 *
 * cuda_thread.c has what the thread does in a turn. It calls this file, so this file calls it through a pointer.
 */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_gate.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/cupti/cupti_internal.h"
#include "collector/base/kp_poison.h"

enum {
    MOMENT_MS = 300,
    ALONE_MS = 400,
    REST_MS = 200,
    POLL_FAST_MS = 1,
    CLOCK_TRIES = 250,
    CLOCK_NAP_NS = 200000,
    STALLED_POLL_MS = 100,
    EXIT_WAIT_MS = 3500,
    EXIT_NAP_NS = 1000000
};

struct kp_cupti_helper kp_cupti_helper;
static const struct kp_cupti_helper_turns *turns; /* NULL: not set up, so there is no work */
static _Atomic uint32_t wake, is_running, wanted;
static pid_t pid_of_arming;

/* ---- watching ---- */

bool kp_cupti_helper_has_stalled(void) { return kp_load_relaxed(&kp_cupti_helper.stalls) != 0; }

/* Is an older window still being drained? Then the stalled call was made for that one. */
static bool is_for_an_older_window(void)
{
    return kp_load_acquire(&kp_cupti_helper.drain_asked) >
           kp_load_acquire(&kp_cupti_helper.drain_done); /* pairs with: cuda_thread.c:drain_end */
}

static void stall(uint64_t since)
{
    char text[24];
    if (kp_load_acquire(&kp_watchdog.call_since_ms) != since || !kp_cupti_stall())
        return; /* pairs with: watchdog.c:kp_watchdog_call_begins */
    uint32_t n = kp_add_acq_rel(&kp_cupti_helper.stalls, 1) + 1;
    kp_store_relaxed(&kp_cupti_helper.stalled_cycle, is_for_an_older_window() ? 0 : kp_gate_cycle(kp_gate_get()));
    kp_log(n <= KP_CUPTI_HELPER_STALLS_SAID ? 0 : 1,
           "a CUPTI call has not returned for %d s: GPU work is not recorded until it does",
           KP_CUPTI_HELPER_HANG_MS / 1000);
    kp_fmt(text, sizeof text, "%u", (unsigned)n);
    kp_cupti_note("gpu_stalls", text);
    kp_cupti_helper_wake(); /* the call may have returned just now */
}

/* While the process is stopped (job control, a frozen container) a call ages too, so it gets MOMENT_MS more. */
static bool is_overdue(uint64_t since, uint64_t now)
{
    static _Atomic uint64_t overdue, overdue_ms; /* the call, and when it was first seen to be overdue */
    if (now - since <= KP_CUPTI_HELPER_HANG_MS) return false;
    if (kp_load_acquire(&overdue) != since) { /* pairs with: itself */
        kp_store_relaxed(&overdue_ms, now);
        kp_store_release(&overdue, since);
    }
    return (int64_t)(now - kp_load_relaxed(&overdue_ms)) >= MOMENT_MS;
}

bool kp_cupti_helper_check(void)
{
    uint64_t since = kp_load_acquire(&kp_watchdog.call_since_ms); /* pairs with: watchdog.c:kp_watchdog_call_begins */
    if (kp_cupti_may_call() && since && is_overdue(since, kp_clock_ms())) stall(since);
    return kp_cupti_state() == KP_CUPTI_STATE_STALLED || kp_cupti_state() == KP_CUPTI_STATE_DEAD;
}

/* ---- the thread ---- */

void kp_cupti_helper_set_turns(const struct kp_cupti_helper_turns *what) { turns = what; }

static bool has_work(void) { return turns && turns->has_work(); }

static void nap_until_poked(int ms)
{
    if (ms > 0) kp_io_wait(&wake, 0, (uint64_t)ms * 1000000);
    (void)kp_exchange_acq_rel(&wake, 0); /* pairs with: kp_cupti_helper_wake */
}

static bool is_alone(void)
{
    static uint64_t asked_ms;
    uint64_t now = kp_clock_ms();
    if (now - asked_ms < ALONE_MS) return false;
    asked_ms = now;
    return kp_io_helpers_alone();
}

static void *helper_main(void *unused)
{
    (void)unused;
    kp_forward_hide_this_thread();
    for (;;) {
        if (!(kp_gate_get() & KP_GATE_ON) || is_alone()) break;
        int nap = kp_cupti_state() == KP_CUPTI_STATE_STALLED ? STALLED_POLL_MS : POLL_FAST_MS;
        if (kp_watchdog_take_control()) {
            nap = turns->turn();
            kp_watchdog_give_control();
        }
        if (nap != KP_CUPTI_HELPER_END) {
            nap_until_poked(nap);
            continue;
        }
        kp_store_release(&is_running, 0); /* pairs with: kp_cupti_helper_wake */
        /* kp_cupti_helper_wake exchanges it too: the later of the two exchanges sees what the other side stored. */
        (void)kp_exchange_acq_rel(&wake, 0);
        if (!has_work() || kp_exchange_acq_rel(&is_running, 1)) return NULL;
    }
    kp_store_release(&is_running, 0); /* pairs with: kp_cupti_helper_wake */
    return NULL;
}

/* ---- requests ---- */

void kp_cupti_helper_ask_drain(uint64_t end)
{
    uint64_t seen = kp_load_relaxed(&kp_cupti_helper.drain_asked);
    while (seen < end && !kp_cas_acq_rel(&kp_cupti_helper.drain_asked, &seen, end)) {
    } /* pairs with: cuda_thread.c:armed_turn */
}

bool kp_cupti_helper_comes(void)
{
    if (!kp_load_relaxed(&is_running) || !(kp_gate_get() & KP_GATE_ON)) return false;
    return kp_cupti_state() != KP_CUPTI_STATE_STALLED && kp_cupti_state() != KP_CUPTI_STATE_DEAD;
}

void kp_cupti_helper_wake(void)
{
    int saved = errno;
    /* pairs with: nap_until_poked */
    if (kp_exchange_acq_rel(&wake, 1) == 0) kp_io_wake(&wake);
    if (has_work() && !kp_exchange_acq_rel(&is_running, 1) && kp_io_thread(helper_main, NULL, "kprof-cuda") != 0) {
        kp_store_release(&is_running, 0);
        KP_LOG_ONCE(0, "no thread for CUPTI: GPU work is not recorded");
    }
    errno = saved;
}

/* The rest after cuptiFinalize lets CUDA calls under way end before we arm again. Finalize runs inside one of them. */
void kp_cupti_helper_rest(bool begins)
{
    if (!begins && !kp_load_relaxed(&kp_cupti_helper.rest_until_ms)) return;
    kp_store_relaxed(&kp_cupti_helper.rest_cycle, 0);
    kp_store_relaxed(&kp_cupti_helper.rest_until_ms, begins ? kp_clock_ms() + REST_MS : 0);
    kp_cupti_helper_wake();
}

bool kp_cupti_helper_is_wanted(void)
{
    const uint32_t limited = kp_load_acquire(&kp_cupti_helper.limited_cycle); /* pairs with: cuda_thread.c:limit_look */
    if (limited && limited == kp_gate_cycle(kp_gate_get())) return false;
    return kp_load_acquire(&wanted) != 0; /* pairs with: kp_cupti_helper_want */
}

void kp_cupti_helper_cut(void)
{
    uint32_t seen = KP_CUPTI_HELPER_ON;
    if (kp_cupti_state() != KP_CUPTI_STATE_ARMED) return;
    (void)kp_cas_acq_rel(&kp_cupti_helper.off, &seen, KP_CUPTI_HELPER_CUT); /* pairs with: cuda_thread.c:armed_turn */
}

bool kp_cupti_helper_is_turning(void)
{
    const uint32_t off = kp_load_acquire(&kp_cupti_helper.off); /* pairs with: cuda_thread.c:armed_turn */
    if (kp_cupti_state() != KP_CUPTI_STATE_ARMED && kp_cupti_state() != KP_CUPTI_STATE_FOUND) return false;
    return off == KP_CUPTI_HELPER_CUT || (off == KP_CUPTI_HELPER_OFF && kp_cupti_helper_is_wanted());
}

void kp_cupti_helper_want(bool armed)
{
    uint32_t cut = KP_CUPTI_HELPER_CUT;
    if (armed) (void)kp_cas_acq_rel(&kp_cupti_helper.off, &cut, KP_CUPTI_HELPER_ON); /* it was not done yet */
    if (!armed && kp_cupti_state() == KP_CUPTI_STATE_ARMED) kp_cupti_helper_ask_drain(kp_ticks());
    if (armed) kp_store_relaxed(&kp_cupti_helper.poll_is_over, 0);
    kp_store_release(&wanted, armed); /* pairs with: kp_cupti_helper_is_wanted */
    kp_cupti_helper_wake();
}

bool kp_cupti_helper_is_drained(uint64_t end_ticks)
{
    if (kp_cupti_helper_check() || kp_cupti_state() != KP_CUPTI_STATE_ARMED) return true;
    if (kp_load_acquire(&kp_cupti_helper.drain_done) >= end_ticks)
        return true; /* pairs with: cuda_thread.c:drain_end */
    if (kp_load_relaxed(&kp_cupti_helper.drain_asked) < end_ticks) {
        kp_cupti_helper_ask_drain(end_ticks);
        kp_cupti_helper_wake();
    }
    return false;
}

/* ---- exit ---- */

extern int __cxa_atexit(void (*fn)(void *), void *arg, void *dso);

/* Sets DEAD if nothing is enabled and we are in no CUPTI call. false: kprof-cuda is busy, or the state is ARMED. */
static bool is_left_alone(void)
{
    if (!kp_watchdog_take_control()) return false;
    bool is_idle = kp_cupti_state() != KP_CUPTI_STATE_ARMED;
    if (is_idle) kp_cupti_set_state(KP_CUPTI_STATE_DEAD);
    kp_watchdog_give_control();
    return is_idle;
}

/* No CUPTI call may run while the driver shuts down. So this waits for the call under way and for
 * cuda_thread.c:exit_turn. It waits EXIT_WAIT_MS at most, and for no call longer than KP_CUPTI_HELPER_HANG_MS. */
static void wait_for_last_call(void)
{
    uint64_t end = kp_clock_ms() + EXIT_WAIT_MS;
    kp_cupti_helper_wake();
    while (!is_left_alone() && kp_cupti_state() != KP_CUPTI_STATE_DEAD && kp_clock_ms() < end &&
           kp_watchdog_call_ms() <= KP_CUPTI_HELPER_HANG_MS)
        kp_io_nap(EXIT_NAP_NS);
    if (kp_cupti_state() == KP_CUPTI_STATE_DEAD) return;
    kp_log(0, "CUPTI did not hand over the last records in time: the program ends without them");
    kp_cupti_note("gpu_cupti", "hung: the last records are missing");
}

/* Runs before the exit handlers of the driver and cudart, which registered theirs earlier. Does not wait for a stalled
 * call. */
static void at_exit(void *unused)
{
    (void)unused;
    if (!(kp_gate_get() & KP_GATE_ON) || getpid() != pid_of_arming) return;
    if (kp_cupti_state() == KP_CUPTI_STATE_REFUSED || kp_cupti_state() == KP_CUPTI_STATE_DEAD) return;
    int saved = errno;
    const bool is_stalled = kp_cupti_helper_check();
    kp_store_release(&kp_cupti_exit_asked, 1); /* pairs with: cuda_thread.c:turn, watchdog.c:kp_watchdog_call_begins */
    if (is_stalled) kp_cupti_count_cut(kp_gate_cycle(kp_gate_get()));
    else wait_for_last_call();
    kp_cupti_set_state(KP_CUPTI_STATE_DEAD);
    errno = saved;
}

/* Called twice. Before our first CUPTI call, so that no exit() can come in between without the handler. Once armed, so
 * that the handler runs before those of CUPTI. */
bool kp_cupti_helper_register_exit(bool is_armed)
{
    static bool is_registered[2];
    pid_of_arming = getpid();
    if (!is_registered[is_armed]) is_registered[is_armed] = __cxa_atexit(at_exit, NULL, NULL) == 0;
    return is_registered[is_armed] && (kp_gate_get() & KP_GATE_ON);
}

/* ---- called by tee.c ---- */

/* Tries to take control for 50 ms, since another thread may keep it for a whole flush. */
static void sample_now(void)
{
    if (kp_cupti_state() != KP_CUPTI_STATE_ARMED) return;
    for (int i = 0; i < CLOCK_TRIES; i++) {
        if (kp_watchdog_take_control()) {
            kp_domain_sample();
            kp_watchdog_give_control();
            return;
        }
        kp_io_nap(CLOCK_NAP_NS);
    }
    kp_cupti_helper_wake();
}

/* Takes the old clock's last sample. */
void kp_cupti_clock_changing(void) { sample_now(); }

/* Samples the new clock at once, since records with its times may arrive now. */
void kp_cupti_clock_changed(void)
{
    kp_domain_next();
    sample_now();
}

/* Nothing is enabled any more; the next window, or the helper's next turn, arms again. */
void kp_cupti_finalized(void)
{
    kp_kinds_forget();
    kp_domain_forget();
    kp_rules_finalized();
    if (kp_cupti_disarm_finalized()) kp_cupti_helper_rest(true);
}
