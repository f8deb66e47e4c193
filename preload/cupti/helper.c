// SPDX-License-Identifier: Apache-2.0
/*
 * helper.c - the thread kprof-cuda: what is asked of it, when it runs, whether a call of its takes too long
 *
 * Called by: cupti_source.c (wanted or not, drained or not), cuda_inject.c, control.c, aside.c; tee.c inside calls of
 *            the program; the host's exit
 * Owns:      the thread (made when a window wants GPU records, gone when nothing is enabled)
 * Locks:     control (watchdog.c)
 * On fail:   no thread: GPU work is not recorded. A call into CUPTI that takes too long: STALLED, one line, nobody
 *            waits or calls
 * Safe in:   signal handlers no; after fork nobody comes here (the gate is shut)
 *
 * What the thread does in a turn is turns.c's. That file calls this one, so it is called through a pointer.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/kp_clock.h"
#include "collector/base/kp_gate.h"
#include "collector/base/kp_io.h"
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

/* Whether some window before the present one is still being drained: that is the one which the call was for. */
static bool is_for_an_older_window(void)
{
    return kp_load_acquire(&kp_cupti_helper.drain_asked) >
           kp_load_acquire(&kp_cupti_helper.drain_done); /* pairs with: turns.c:drain_end */
}

static void stall(uint64_t since)
{
    char text[24];
    if (kp_load_acquire(&kp_watchdog.call_since_ms) != since || !kp_cupti_stall())
        return; /* pairs with: watchdog.c:kp_watchdog_call_begins */
    uint32_t n = kp_add_acq_rel(&kp_cupti_helper.stalls, 1) + 1;
    kp_store_relaxed(&kp_cupti_helper.stalled_cycle, is_for_an_older_window() ? 0 : kp_gate_cycle(kp_gate_get()));
    kp_log(n <= KP_CUPTI_HELPER_STALLS_SAID ? 0 : 1,
           "a call into CUPTI takes longer than %d s: what the GPU does until it returns is not recorded",
           KP_CUPTI_HELPER_HANG_MS / 1000);
    kp_fmt(text, sizeof text, "%u", (unsigned)n);
    kp_cupti_note("gpu_stalls", text);
    kp_cupti_helper_wake(); /* it may have returned right now */
}

/* A process that was stopped (job control, a frozen container) finds a call old that is not: it gets a moment more. */
static bool is_overdue(uint64_t since, uint64_t now)
{
    static _Atomic uint64_t overdue, overdue_ms; /* which call, and when that was seen first */
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
        (void)kp_exchange_acq_rel(
            &wake, 0); /* who pokes exchanges it, too: whichever comes second sees what the other stored before */
        if (!has_work() || kp_exchange_acq_rel(&is_running, 1)) return NULL;
    }
    kp_store_release(&is_running, 0); /* pairs with: kp_cupti_helper_wake */
    return NULL;
}

/* ---- from outside ---- */

void kp_cupti_helper_ask_drain(uint64_t end)
{
    uint64_t seen = kp_load_relaxed(&kp_cupti_helper.drain_asked);
    while (seen < end && !kp_cas_acq_rel(&kp_cupti_helper.drain_asked, &seen, end)) {
    } /* pairs with: turns.c:armed_turn */
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

/* Somebody's cuptiFinalize returns inside a CUDA call of the program: that call, and others under way, come to their
 * end first. */
void kp_cupti_helper_rest(bool begins)
{
    if (!begins && !kp_load_relaxed(&kp_cupti_helper.rest_until_ms)) return;
    kp_store_relaxed(&kp_cupti_helper.rest_cycle, 0);
    kp_store_relaxed(&kp_cupti_helper.rest_until_ms, begins ? kp_clock_ms() + REST_MS : 0);
    kp_cupti_helper_wake();
}

bool kp_cupti_helper_is_wanted(void)
{
    const uint32_t limited = kp_load_acquire(&kp_cupti_helper.limited_cycle); /* pairs with: turns.c:limit_look */
    if (limited && limited == kp_gate_cycle(kp_gate_get())) return false;
    return kp_load_acquire(&wanted) != 0; /* pairs with: kp_cupti_helper_want */
}

void kp_cupti_helper_want(bool armed)
{
    if (!armed && kp_cupti_state() == KP_CUPTI_STATE_ARMED) kp_cupti_helper_ask_drain(kp_ticks());
    if (armed) kp_store_relaxed(&kp_cupti_helper.poll_is_over, 0);
    kp_store_release(&wanted, armed); /* pairs with: kp_cupti_helper_is_wanted */
    kp_cupti_helper_wake();
}

bool kp_cupti_helper_is_drained(uint64_t end_ticks)
{
    if (kp_cupti_helper_check() || kp_cupti_state() != KP_CUPTI_STATE_ARMED) return true;
    if (kp_load_acquire(&kp_cupti_helper.drain_done) >= end_ticks) return true; /* pairs with: turns.c:drain_end */
    if (kp_load_relaxed(&kp_cupti_helper.drain_asked) < end_ticks) {
        kp_cupti_helper_ask_drain(end_ticks);
        kp_cupti_helper_wake();
    }
    return false;
}

/* ---- exit ---- */

extern int __cxa_atexit(void (*fn)(void *), void *arg, void *dso);

/* Nothing is enabled and nobody is about to: CUPTI is left alone from here on. false: kprof-cuda is at it. */
static bool is_left_alone(void)
{
    if (!kp_watchdog_take_control()) return false;
    bool is_idle = kp_cupti_state() != KP_CUPTI_STATE_ARMED;
    if (is_idle) kp_cupti_set_state(KP_CUPTI_STATE_DEAD);
    kp_watchdog_give_control();
    return is_idle;
}

/* CUPTI must not be called while the driver takes itself down: a call under way is waited for, and exit_turn. Until
 * DEAD, or so long; for no call longer than anywhere else. */
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

/* Registered after the driver and cudart registered theirs: so it runs before them. A call that is STALLED is not
 * waited for again. */
static void at_exit(void *unused)
{
    (void)unused;
    if (!(kp_gate_get() & KP_GATE_ON) || getpid() != pid_of_arming) return;
    if (kp_cupti_state() == KP_CUPTI_STATE_REFUSED || kp_cupti_state() == KP_CUPTI_STATE_DEAD) return;
    int saved = errno;
    const bool is_stalled = kp_cupti_helper_check();
    kp_store_release(&kp_cupti_exit_asked, 1); /* pairs with: turns.c:turn, watchdog.c:kp_watchdog_call_begins */
    if (is_stalled) kp_cupti_count_cut(kp_gate_cycle(kp_gate_get()));
    else wait_for_last_call();
    kp_cupti_set_state(KP_CUPTI_STATE_DEAD);
    errno = saved;
}

/* Twice: before the first call into CUPTI, so that no exit comes in between, and once armed, so as to be before what
 * CUPTI registers. */
bool kp_cupti_helper_register_exit(bool is_armed)
{
    static bool is_registered[2];
    pid_of_arming = getpid();
    if (!is_registered[is_armed]) is_registered[is_armed] = __cxa_atexit(at_exit, NULL, NULL) == 0;
    return is_registered[is_armed] && (kp_gate_get() & KP_GATE_ON);
}

/* ---- what tee.c tells ---- */

/* Whoever has control has it for moments, or for the length of a flush. */
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

/* The old clock's last sample. */
void kp_cupti_clock_changing(void) { sample_now(); }

/* Stamps of the new clock may arrive at once: it must be known by then. */
void kp_cupti_clock_changed(void)
{
    kp_domain_next();
    sample_now();
}

/* Nothing is enabled any more; the next window, or the helper's next turn, arms from the beginning. */
void kp_cupti_finalized(void)
{
    kp_kinds_forget();
    kp_domain_forget();
    kp_rules_finalized();
    if (kp_cupti_disarm_finalized()) kp_cupti_helper_rest(true);
}
