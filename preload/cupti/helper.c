// SPDX-License-Identifier: Apache-2.0
/*
 * helper.c - the thread kprof-cuda: waits for cuInit, arms, flushes, drains, disarms; and who watches it
 *
 * Called by: source.c (wanted or not, drained or not), inject.c, tee.c inside calls of the program, the host's exit
 * Owns:      the thread (made when a window wants GPU records, gone when nothing is enabled)
 * Locks:     control (watchdog.c)
 * On fail:   no thread: GPU work is not recorded. A call into CUPTI that takes too long: STALLED, one line, nobody
 *            waits or calls
 * Safe in:   signal handlers no; after fork nobody comes here (the gate is shut)
 *
 * A window has drained when all buffers handed out before its end came back, and as many kernels ran as were launched
 * by then. Kinds stay enabled meanwhile, so that nothing in flight is lost. What does not come when no kernel arrived
 * for a second (or after four) may be held back by what the program goes on to launch: then they are disabled, and the
 * same time is waited again. What never comes (a launch into a captured graph we did not see captured, a record CUPTI
 * lost) is given up.
 *
 * Slow is not dead: Enable, Disable and flushes may wait for the device, and that for the slowest rank of a job. The
 * call costs the windows it lasts through. When it returns all that may be enabled is disabled, and the next window is
 * armed for as ever; within the same window (a run without a schedule has but one) only after a rest eight times as
 * long as the call.
 */
#include <errno.h>
#include <limits.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/kp_clock.h"
#include "collector/base/kp_gate.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/cupti/limit.h"
#include "preload/cupti/room.h"
#include "collector/base/kp_poison.h"

enum {
    END = -1,
    FLUSH_MS = 1000,
    DRAIN_MS = 20,
    DRAIN_IDLE_MS = 1000,
    DRAIN_MOST_MS = 4000,
    MOMENT_MS = 300,
    POLL_MS = 20,
    POLL_FAST_MS = 1,
    POLL_FAST_FOR_MS = 2000,
    POLL_FOR_MS = 60000,
    ALONE_MS = 400,
    REST_MS = 200,
    NAP_MOST_MS = 1000,
    CLOCK_TRIES = 250,
    CLOCK_NAP_NS = 200000,
    STALLS_SAID = 3,
    STALL_RESTS = 8,
    STALLED_POLL_MS = 100,
    EXIT_IDLE_MS = 500,
    EXIT_DRAIN_MS = 2000,
    EXIT_CALLS_MS = 2300,
    EXIT_WAIT_MS = 3500,
    EXIT_NAP_NS = 1000000
};

static _Atomic uint32_t wake, is_running, wanted, poll_is_over;
static _Atomic uint64_t rest_until_ms;           /* not armed before */
static _Atomic uint32_t rest_cycle;              /* in this window; 0: in any */
static _Atomic uint32_t stalls, stalled_cycle;   /* how many calls took too long; which window the last one began in */
static _Atomic uint64_t drain_asked, drain_done; /* ends of windows, ticks */
static _Atomic uint32_t limited_cycle;           /* the window that had its limit; 0: none */
static pid_t pid_of_arming;

/* ---- watching ---- */

bool kp_helper_has_stalled(void) { return kp_load_relaxed(&stalls) != 0; }

/* Whether some window before the present one is still being drained: that is the one which the call was for. */
static bool is_for_an_older_window(void)
{
    return kp_load_acquire(&drain_asked) > kp_load_acquire(&drain_done); /* pairs with: drain_end */
}

static void stall(uint64_t since)
{
    char text[24];
    if (kp_load_acquire(&kp_watchdog.call_since_ms) != since || !kp_cuda_stall())
        return; /* pairs with: watchdog.c:kp_helper_call_begins */
    uint32_t n = kp_add_acq_rel(&stalls, 1) + 1;
    kp_store_relaxed(&stalled_cycle, is_for_an_older_window() ? 0 : kp_gate_cycle(kp_gate_get()));
    kp_log(n <= STALLS_SAID ? 0 : 1,
           "a call into CUPTI takes longer than %d s: what the GPU does until it returns is not recorded",
           KP_HELPER_HANG_MS / 1000);
    kp_fmt(text, sizeof text, "%u", (unsigned)n);
    kp_cuda_note("gpu_stalls", text);
    kp_helper_wake(); /* it may have returned right now */
}

/* A process that was stopped (job control, a frozen container) finds a call old that is not: it gets a moment more. */
static bool is_overdue(uint64_t since, uint64_t now)
{
    static _Atomic uint64_t overdue, overdue_ms; /* which call, and when that was seen first */
    if (now - since <= KP_HELPER_HANG_MS) return false;
    if (kp_load_acquire(&overdue) != since) { /* pairs with: itself */
        kp_store_relaxed(&overdue_ms, now);
        kp_store_release(&overdue, since);
    }
    return (int64_t)(now - kp_load_relaxed(&overdue_ms)) >= MOMENT_MS;
}

bool kp_helper_check(void)
{
    uint64_t since = kp_load_acquire(&kp_watchdog.call_since_ms); /* pairs with: watchdog.c:kp_helper_call_begins */
    if (kp_helper_may_call() && since && is_overdue(since, kp_clock_ms())) stall(since);
    return kp_cuda_state() == KP_CUDA_STALLED || kp_cuda_state() == KP_CUDA_DEAD;
}

/* ---- one drain at a time ---- */

static struct {
    bool is_on, is_given_up;
    bool is_cut;             /* nothing is enabled any more */
    uint64_t end;            /* what is drained: windows up to these ticks */
    uint64_t mark, launched; /* buffers older than this; launches among them */
    bool are_buffers_back;
    uint32_t clean_rounds;
    uint64_t began_ms, moved_ms, kernels;
} drain;

static void drain_begin(uint64_t end)
{
    drain.is_on = true;
    drain.are_buffers_back = drain.is_cut = false;
    drain.clean_rounds = 0;
    drain.end = end;
    drain.mark = kp_buffer_mark();
    drain.began_ms = drain.moved_ms = kp_clock_ms();
    drain.kernels = kp_lane_kernels();
}

static void drain_end(bool is_given_up)
{
    drain.is_on = false;
    drain.is_given_up = is_given_up;
    if (is_given_up) kp_lane_forget_work();
    kp_store_release(&drain_done, drain.end); /* pairs with: kp_helper_is_drained */
}

static void drain_look(uint64_t idle_ms, uint64_t most_ms)
{
    uint64_t now = kp_clock_ms(), kernels = kp_lane_kernels();
    if (kernels != drain.kernels) drain.moved_ms = now;
    drain.kernels = kernels;
    if (!drain.are_buffers_back && !kp_buffer_is_older_out(drain.mark)) {
        drain.are_buffers_back = true; /* so all launches of the window were decoded */
        drain.launched = kp_lane_launched();
    }
    if (drain.are_buffers_back && kp_lane_has_run(drain.launched)) {
        if (++drain.clean_rounds > 1) drain_end(false);
    } else if (now - drain.moved_ms <= idle_ms && now - drain.began_ms <= most_ms) {
        return;
    } else if (drain.is_cut || kp_helper_is_wanted()) {
        drain_end(true);
        /* the program launches on, and CUPTI keeps a buffer back as long as one of its records is unfinished: no more
     * records */
    } else {
        drain.is_cut = true;
        drain.moved_ms = drain.began_ms = now;
        kp_control_stop();
    }
}

/* ---- what the thread does ---- */

static bool shall_arm(void) { return kp_helper_is_wanted() || kp_rules_want_touch(); }

static int poll_turn(void)
{
    static uint64_t began_ms;
    if (kp_cuda_see_cuinit()) return 0;
    if (kp_cuda_state() != KP_CUDA_DRIVER_LOADED) return END;
    uint64_t now = kp_clock_ms();
    if (!began_ms) began_ms = now;
    if (now - began_ms > POLL_FOR_MS) {
        began_ms = 0;
        kp_store_relaxed(&poll_is_over, 1); /* the driver's own word, or the next window, wakes us again */
        return END;
    }
    return now - began_ms < POLL_FAST_FOR_MS ? POLL_FAST_MS : POLL_MS;
}

static const char doubt[] = "its records of kernels do not look like kernels";

/* For the rest of the run. */
static bool has_ended(void)
{
    const bool is_doubtful = kp_lane_is_doubtful(false);
    if (!is_doubtful && !kp_rules_forbid_more()) return false;
    kp_control_disarm(false);
    if (is_doubtful) kp_cuda_refuse(doubt);
    else kp_rules_tell_end();
    return true;
}

static void ask_drain(uint64_t end)
{
    uint64_t seen = kp_load_relaxed(&drain_asked);
    while (seen < end && !kp_cas_acq_rel(&drain_asked, &seen, end)) {} /* pairs with: armed_turn */
}

/* For the rest of the window: it ends for CUPTI now. */
static void limit_look(void)
{
    const uint32_t cycle = kp_gate_cycle(kp_gate_get());
    const enum kp_limit limit = kp_helper_is_wanted() ? kp_limit_reached() : KP_LIMIT_NONE;
    if (limit == KP_LIMIT_NONE) return;
    kp_store_release(&limited_cycle, cycle); /* pairs with: kp_helper_is_wanted */
    kp_cuda_count_cut(cycle);
    kp_limit_tell(limit);
    ask_drain(kp_ticks());
}

static int armed_turn(void)
{
    static uint64_t flushed_ms;
    if (has_ended()) return END;
    limit_look();
    uint64_t asked = kp_load_acquire(&drain_asked); /* pairs with: ask_drain */
    if (!drain.is_on && asked > kp_load_relaxed(&drain_done)) drain_begin(asked);
    if (drain.is_on || kp_clock_ms() - flushed_ms >= FLUSH_MS) {
        kp_control_flush(false);
        flushed_ms = kp_clock_ms();
    }
    if (drain.is_on) drain_look(DRAIN_IDLE_MS, DRAIN_MOST_MS);
    if (kp_cuda_state() != KP_CUDA_ARMED) return END;
    if (drain.is_cut &&
        kp_helper_is_wanted()) { /* the next window begins: what is missing of the last one is given up */
        if (drain.is_on) drain_end(true);
        drain.is_cut = false;
        kp_control_disarm(false);
        return 0;
    }
    if (drain.is_on) return DRAIN_MS;
    if (kp_helper_is_wanted() || kp_load_acquire(&drain_asked) > kp_load_relaxed(&drain_done)) {
        uint64_t since = kp_clock_ms() - flushed_ms;
        return since < FLUSH_MS ? (int)(FLUSH_MS - since) : 0;
    }
    drain.is_cut = false;
    kp_control_disarm(drain.is_given_up);
    return 0;
}

/*
 * Nothing is disabled: that may wait for the device, and of a process that ends nothing is left enabled. Flushes do
 * not. The forced one, which gives what a kernel that never ends holds back, comes last, and only where CUPTI never was
 * slow. See decisions/045.
 */
static void exit_turn(void)
{
    kp_watchdog.exit_calls_until_ms = kp_clock_ms() + EXIT_CALLS_MS;
    if (kp_cuda_state() == KP_CUDA_ARMED) {
        drain_begin(kp_ticks());
        drain.is_cut = true; /* what does not come now is given up */
        while (drain.is_on && kp_cuda_state() == KP_CUDA_ARMED) {
            kp_control_flush(false);
            drain_look(EXIT_IDLE_MS, EXIT_DRAIN_MS);
            if (drain.is_on) kp_io_nap(5000000);
        }
        if (drain.is_given_up && !kp_helper_has_stalled()) kp_control_flush(true);
        if (kp_lane_is_doubtful(true))
            kp_log(0, "no kernels from CUPTI: %s", doubt); /* of a program too short for a turn */
    }
    kp_cuda_set_state(KP_CUDA_DEAD);
}

/* The call has returned. */
static int recover_turn(void)
{
    const uint64_t took_ms = kp_watchdog.stalled_ms;
    const uint32_t cycle = kp_load_relaxed(&stalled_cycle), n = kp_load_relaxed(&stalls);
    drain.is_on = drain.is_cut = drain.is_given_up = false;
    kp_store_release(&drain_done, kp_load_relaxed(&drain_asked)); /* pairs with: kp_helper_is_drained */
    kp_watchdog.is_recovering = true;
    kp_control_recover();
    kp_watchdog.is_recovering = false;
    kp_store_relaxed(&rest_cycle, cycle);
    kp_store_relaxed(&rest_until_ms, cycle ? kp_clock_ms() + STALL_RESTS * took_ms : 0);
    if (kp_gate_get() & KP_GATE_RECORD) kp_cuda_count_cut(kp_gate_cycle(kp_gate_get()));
    kp_log(n <= STALLS_SAID ? 0 : 1,
           "CUPTI has answered after %lu s: GPU work is recorded again from the next window on",
           (unsigned long)(took_ms + 500) / 1000);
    kp_cuda_unstall();
    return 0;
}

static bool is_resting(uint64_t now)
{
    const uint32_t cycle = kp_load_relaxed(&rest_cycle);
    return now < kp_load_relaxed(&rest_until_ms) && (!cycle || cycle == kp_gate_cycle(kp_gate_get()));
}

static int idle_turn(void)
{
    const uint64_t now = kp_clock_ms(), until = kp_load_relaxed(&rest_until_ms);
    if (!shall_arm()) return END;
    if (is_resting(now)) return until - now < NAP_MOST_MS ? (int)(until - now) : NAP_MOST_MS;
    return kp_control_arm() == -EAGAIN ? POLL_MS : 0;
}

/* The program profiles itself, and comes first. */
static int aside_turn(int left_ms)
{
    if (kp_cuda_state() == KP_CUDA_ARMED) kp_control_disarm(false);
    bool begins = kp_cuda_state() == KP_CUDA_CUPTI_FOUND || kp_cuda_state() == KP_CUDA_CUINIT_OK;
    if (begins) kp_cuda_set_state(KP_CUDA_SHARED);
    if (kp_cuda_state() != KP_CUDA_SHARED) return END;
    kp_aside_say(begins);
    if (left_ms == INT_MAX || !kp_helper_is_wanted()) return END;
    return left_ms < ALONE_MS ? left_ms : ALONE_MS;
}

/* What there is to do now; for how long to sleep then, or END. With control. */
static int turn(void)
{
    if (kp_load_acquire(&kp_cuda_exit_asked)) { /* pairs with: at_exit */
        exit_turn();
        return END;
    }
    if (kp_cuda_state() == KP_CUDA_STALLED) return recover_turn();
    int left_ms = kp_aside_left_ms();
    if (left_ms) return aside_turn(left_ms);
    if (kp_cuda_state() == KP_CUDA_SHARED) kp_cuda_set_state(KP_CUDA_CUPTI_FOUND);
    switch (kp_cuda_state()) {
    case KP_CUDA_DRIVER_LOADED: return shall_arm() ? poll_turn() : END;
    case KP_CUDA_CUINIT_OK:
    case KP_CUDA_CUPTI_FOUND: return idle_turn();
    case KP_CUDA_ARMED: return armed_turn();
    default: return END;
    }
}

static bool has_work(void)
{
    enum kp_cuda_state state = kp_cuda_state();
    int left_ms = kp_aside_left_ms();
    if (state == KP_CUDA_ARMED || state == KP_CUDA_STALLED) return true;
    if (state == KP_CUDA_SHARED) return kp_helper_is_wanted() && left_ms != INT_MAX;
    if (state == KP_CUDA_DRIVER_LOADED && (left_ms || kp_load_relaxed(&poll_is_over))) return false;
    return shall_arm() &&
           (state == KP_CUDA_DRIVER_LOADED || state == KP_CUDA_CUINIT_OK || state == KP_CUDA_CUPTI_FOUND);
}

static void nap_until_poked(int ms)
{
    if (ms > 0) kp_io_wait(&wake, 0, (uint64_t)ms * 1000000);
    (void)kp_exchange_acq_rel(&wake, 0); /* pairs with: kp_helper_wake */
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
        int nap = kp_cuda_state() == KP_CUDA_STALLED ? STALLED_POLL_MS : POLL_FAST_MS;
        if (kp_helper_take_control()) {
            nap = turn();
            kp_helper_give_control();
        }
        if (nap != END) {
            nap_until_poked(nap);
            continue;
        }
        kp_store_release(&is_running, 0); /* pairs with: kp_helper_wake */
        (void)kp_exchange_acq_rel(
            &wake, 0); /* who pokes exchanges it, too: whichever comes second sees what the other stored before */
        if (!has_work() || kp_exchange_acq_rel(&is_running, 1)) return NULL;
    }
    kp_store_release(&is_running, 0); /* pairs with: kp_helper_wake */
    return NULL;
}

/* ---- from outside ---- */

void kp_helper_wake(void)
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
void kp_helper_rest(bool begins)
{
    if (!begins && !kp_load_relaxed(&rest_until_ms)) return;
    kp_store_relaxed(&rest_cycle, 0);
    kp_store_relaxed(&rest_until_ms, begins ? kp_clock_ms() + REST_MS : 0);
    kp_helper_wake();
}

bool kp_helper_is_wanted(void)
{
    const uint32_t limited = kp_load_acquire(&limited_cycle); /* pairs with: limit_look */
    if (limited && limited == kp_gate_cycle(kp_gate_get())) return false;
    return kp_load_acquire(&wanted) != 0; /* pairs with: kp_helper_want */
}

void kp_helper_want(bool armed)
{
    if (!armed && kp_cuda_state() == KP_CUDA_ARMED) ask_drain(kp_ticks());
    if (armed) kp_store_relaxed(&poll_is_over, 0);
    kp_store_release(&wanted, armed); /* pairs with: kp_helper_is_wanted */
    kp_helper_wake();
}

bool kp_helper_is_drained(uint64_t end_ticks)
{
    if (kp_helper_check() || kp_cuda_state() != KP_CUDA_ARMED) return true;
    if (kp_load_acquire(&drain_done) >= end_ticks) return true; /* pairs with: drain_end */
    if (kp_load_relaxed(&drain_asked) < end_ticks) {
        ask_drain(end_ticks);
        kp_helper_wake();
    }
    return false;
}

/* ---- exit ---- */

extern int __cxa_atexit(void (*fn)(void *), void *arg, void *dso);

/* Nothing is enabled and nobody is about to: CUPTI is left alone from here on. false: kprof-cuda is at it. */
static bool is_left_alone(void)
{
    if (!kp_helper_take_control()) return false;
    bool is_idle = kp_cuda_state() != KP_CUDA_ARMED;
    if (is_idle) kp_cuda_set_state(KP_CUDA_DEAD);
    kp_helper_give_control();
    return is_idle;
}

/* CUPTI must not be called while the driver takes itself down: a call under way is waited for, and exit_turn. Until
 * DEAD, or so long; for no call longer than anywhere else. */
static void wait_for_last_call(void)
{
    uint64_t end = kp_clock_ms() + EXIT_WAIT_MS;
    kp_helper_wake();
    while (!is_left_alone() && kp_cuda_state() != KP_CUDA_DEAD && kp_clock_ms() < end &&
           kp_helper_call_ms() <= KP_HELPER_HANG_MS)
        kp_io_nap(EXIT_NAP_NS);
    if (kp_cuda_state() == KP_CUDA_DEAD) return;
    kp_log(0, "CUPTI did not hand over the last records in time: the program ends without them");
    kp_cuda_note("gpu_cupti", "hung: the last records are missing");
}

/* Registered after the driver and cudart registered theirs: so it runs before them. A call that is STALLED is not
 * waited for again. */
static void at_exit(void *unused)
{
    (void)unused;
    if (!(kp_gate_get() & KP_GATE_ON) || getpid() != pid_of_arming) return;
    if (kp_cuda_state() == KP_CUDA_REFUSED || kp_cuda_state() == KP_CUDA_DEAD) return;
    int saved = errno;
    const bool is_stalled = kp_helper_check();
    kp_store_release(&kp_cuda_exit_asked, 1); /* pairs with: turn, kp_helper_call_begins */
    if (is_stalled) kp_cuda_count_cut(kp_gate_cycle(kp_gate_get()));
    else wait_for_last_call();
    kp_cuda_set_state(KP_CUDA_DEAD);
    errno = saved;
}

/* Twice: before the first call into CUPTI, so that no exit comes in between, and once armed, so as to be before what
 * CUPTI registers. */
bool kp_helper_register_exit(bool is_armed)
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
    if (kp_cuda_state() != KP_CUDA_ARMED) return;
    for (int i = 0; i < CLOCK_TRIES; i++) {
        if (kp_helper_take_control()) {
            kp_domain_sample();
            kp_helper_give_control();
            return;
        }
        kp_io_nap(CLOCK_NAP_NS);
    }
    kp_helper_wake();
}

/* The old clock's last sample. */
void kp_cuda_clock_changing(void) { sample_now(); }

/* Stamps of the new clock may arrive at once: it must be known by then. */
void kp_cuda_clock_changed(void)
{
    kp_domain_next();
    sample_now();
}

/* Nothing is enabled any more; the next window, or the helper's next turn, arms from the beginning. */
void kp_cuda_finalized(void)
{
    kp_kinds_forget();
    kp_domain_forget();
    kp_rules_finalized();
    if (kp_cuda_disarm_finalized()) kp_helper_rest(true);
}
