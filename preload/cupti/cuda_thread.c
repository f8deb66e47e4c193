// SPDX-License-Identifier: Apache-2.0
/*
 * cuda_thread.c - what the thread kprof-cuda does: it waits for cuInit, arms, flushes, drains and disarms
 *
 * Called by: helper.c on the thread kprof-cuda, with control; kp_cupti_helper_wake on any thread (is there work?)
 * Owns:      the drain under way
 * Locks:     none of its own
 * On fail:   a call into CUPTI that takes too long ends the turn; the next one recovers
 * Safe in:   signal handlers no; not called after fork (the gate is shut)
 *
 * A window has drained when all buffers handed out before its end came back and were decoded, and as many kernels ran
 * as were launched by then. Until then kinds stay enabled, so that no record in flight is lost. If no kernel arrives
 * for a second, or after four seconds, the program's new launches may hold records back. Then the kinds are disabled,
 * and the drain waits the same time again. The kinds of a next window stay enabled: then it waits four seconds,
 * whatever arrives. After that it gives up: a forced flush delivers what is finished of the buffers that are held back.
 * Some records never come: CUPTI lost them, or the launch went into a graph whose capture we did not see.
 *
 * A thread that calls CUDA while a kind is disabled may keep one correlation for all that it does later, so that the
 * next window's kernels have no launch of their own. So kinds are disabled while the thread that steps waits at the end
 * of a step, or where no step ends for OFF_WAIT_MS (decisions/115).
 *
 * Enable, Disable and flushes may wait for the device, which may wait for the slowest rank of a job. A call that takes
 * too long (STALLED) costs the windows that it lasts through. When it returns, all that may be enabled is disabled, and
 * we arm for the next window. For the same window we arm only after a rest of eight times the call's length.
 */
#include <errno.h>
#include <limits.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_gate.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "preload/cupti/limit.h"
#include "preload/cupti/cupti_internal.h"
#include "collector/base/kp_poison.h"

enum {
    END = KP_CUPTI_HELPER_END,
    FLUSH_MS = 1000,
    DRAIN_MS = 20,
    DRAIN_IDLE_MS = 1000,
    DRAIN_MOST_MS = 4000,
    POLL_MS = 20,
    POLL_FAST_MS = 1,
    POLL_FAST_FOR_MS = 2000,
    POLL_FOR_MS = 60000,
    ALONE_MS = 400,
    NAP_MOST_MS = 1000,
    STALL_RESTS = 8,
    EXIT_IDLE_MS = 500,
    EXIT_DRAIN_MS = 2000,
    EXIT_CALLS_MS = 2300,
    OFF_WAIT_MS = 3000,
    OFF_POLL_MS = 50,
    WORK_MS = 100
};

/* ---- one drain at a time ---- */

static struct {
    bool is_on, is_given_up;
    bool is_cut;             /* nothing is enabled any more */
    uint64_t end;            /* drains windows that ended by these ticks */
    uint64_t mark, launched; /* buffers older than this mark are drained, and so many launches */
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
    kp_store_release(&kp_cupti_helper.drain_done, drain.end); /* pairs with: helper.c:kp_cupti_helper_is_drained */
}

/* Records that a forced flush delivers belong to the window, which is closed only afterwards. */
static void drain_give_up(bool is_next)
{
    if (!kp_cupti_helper_has_stalled()) kp_control_flush(true);
    const bool has_run = is_next || kp_lane_has_run(kp_lane_launched()); /* launches of the next window are under way */
    if (!has_run || kp_buffer_is_older_left(drain.mark)) kp_cupti_count_cut(kp_lane_recorded());
    drain_end(true);
}

/* Kinds should be disabled: is now the time? */
static bool may_disable(void)
{
    const uint64_t now = kp_clock_ms(), due = kp_load_relaxed(&kp_cupti_helper.off_due_ms);
    if (!due) kp_store_release(&kp_cupti_helper.off_due_ms, now); /* pairs with: cupti_source.c:step_ended */
    /* pairs with: cupti_source.c:step_ended */
    return kp_load_acquire(&kp_cupti_helper.at_step) || (due && now - due >= OFF_WAIT_MS);
}

static bool is_off(void) { return kp_load_relaxed(&kp_cupti_helper.off) == KP_CUPTI_HELPER_OFF; }

static void drain_look(uint64_t idle_ms, uint64_t most_ms)
{
    const bool is_next = kp_cupti_helper_is_wanted() && !drain.is_cut;
    uint64_t now = kp_clock_ms(), kernels = kp_lane_kernels();
    if (kernels != drain.kernels) drain.moved_ms = now;
    drain.kernels = kernels;
    if (!drain.are_buffers_back && !kp_buffer_is_older_left(drain.mark)) {
        drain.are_buffers_back = true; /* so all launches of the window were decoded */
        drain.launched = kp_lane_launched();
    }
    if (drain.are_buffers_back && kp_lane_has_run(drain.launched)) {
        if (++drain.clean_rounds > 1) drain_end(false);
    } else if ((is_next || now - drain.moved_ms <= idle_ms) && now - drain.began_ms <= most_ms) {
        return;
    } else if (drain.is_cut || is_off() || is_next) {
        drain_give_up(is_next);
    } else if (may_disable()) {
        /* CUPTI keeps a buffer while one of its records is unfinished, and the program launches on */
        drain.is_cut = true;
        drain.moved_ms = drain.began_ms = now;
        kp_control_stop();
    }
}

/* ---- what the thread does ---- */

/* kprof_toggle(): disables what is enabled, before the drain that was asked for begins. */
static void cut_look(void)
{
    uint32_t cut = KP_CUPTI_HELPER_CUT;
    if (kp_load_acquire(&kp_cupti_helper.off) != cut) return; /* pairs with: helper.c:kp_cupti_helper_cut */
    kp_control_stop();
    (void)kp_cas_acq_rel(&kp_cupti_helper.off, &cut, KP_CUPTI_HELPER_OFF); /* pairs with: kp_cupti_helper_is_turning */
}

static bool shall_arm(void) { return kp_cupti_helper_is_wanted() || kp_rules_want_touch(); }

static int poll_turn(void)
{
    static uint64_t began_ms;
    if (kp_cupti_see_cuinit()) return 0;
    if (kp_cupti_state() != KP_CUPTI_STATE_DRIVER_LOADED) return END;
    uint64_t now = kp_clock_ms();
    if (!began_ms) began_ms = now;
    if (now - began_ms > POLL_FOR_MS) {
        began_ms = 0;
        kp_store_relaxed(&kp_cupti_helper.poll_is_over, 1); /* InitializeInjection or the next window wakes us */
        return END;
    }
    return now - began_ms < POLL_FAST_FOR_MS ? POLL_FAST_MS : POLL_MS;
}

static const char doubt[] = "its records of kernels do not look like kernels";

/* Ends GPU recording for the rest of the run, if it must. */
static bool has_ended(void)
{
    const bool is_doubtful = kp_lane_is_doubtful(false);
    if (!is_doubtful && !kp_rules_forbid_more()) return false;
    kp_control_disarm(false);
    if (is_doubtful) kp_cupti_refuse(doubt);
    else kp_rules_tell_end();
    return true;
}

/* Ends GPU recording for the rest of the window, if a limit is reached. */
static void limit_look(void)
{
    const uint32_t cycle = kp_gate_cycle(kp_gate_get());
    const enum kp_limit limit = kp_cupti_helper_is_wanted() ? kp_limit_reached() : KP_LIMIT_NONE;
    if (limit == KP_LIMIT_NONE) return;
    kp_store_release(&kp_cupti_helper.limited_cycle, cycle); /* pairs with: helper.c:kp_cupti_helper_is_wanted */
    kp_cupti_count_cut(cycle);
    kp_limit_tell(limit);
    kp_cupti_helper_ask_drain(kp_ticks());
}

static int armed_turn(void)
{
    static uint64_t flushed_ms;
    if (has_ended()) return END;
    limit_look();
    cut_look();
    if (kp_cupti_helper_is_wanted()) kp_store_relaxed(&kp_cupti_helper.off_due_ms, 0);
    uint64_t asked = kp_load_acquire(&kp_cupti_helper.drain_asked); /* pairs with: helper.c:kp_cupti_helper_ask_drain */
    if (!drain.is_on && asked > kp_load_relaxed(&kp_cupti_helper.drain_done)) drain_begin(asked);
    if (drain.is_on || kp_clock_ms() - flushed_ms >= FLUSH_MS) {
        kp_control_flush(false);
        flushed_ms = kp_clock_ms();
    }
    if (drain.is_on) drain_look(DRAIN_IDLE_MS, DRAIN_MOST_MS);
    if (kp_cupti_state() != KP_CUPTI_STATE_ARMED) return END;
    if ((drain.is_cut || is_off()) && kp_cupti_helper_is_wanted()) { /* wanted again: give up what is not there yet */
        if (drain.is_on && drain.is_cut) drain_give_up(false);
        else if (drain.is_on) drain_end(true); /* a toggle: what is queued comes later, and is the same window's */
        drain.is_cut = false;
        kp_control_disarm(false);
        return 0;
    }
    if (drain.is_on) return DRAIN_MS;
    if (kp_cupti_helper_is_wanted() ||
        kp_load_acquire(&kp_cupti_helper.drain_asked) > kp_load_relaxed(&kp_cupti_helper.drain_done)) {
        uint64_t since = kp_clock_ms() - flushed_ms;
        return since < FLUSH_MS ? (int)(FLUSH_MS - since) : 0;
    }
    if (!drain.is_cut && !is_off() && !may_disable()) return OFF_POLL_MS;
    drain.is_cut = false;
    kp_control_disarm(drain.is_given_up);
    return 0;
}

/*
 * Flushes the last records at the host's exit. Disables nothing: a Disable may wait for the device, and the process
 * ends anyway. A forced flush delivers the records that an endless kernel holds back. It comes last, and only if no
 * call has stalled. See decisions/045.
 */
static void exit_turn(void)
{
    kp_watchdog.exit_calls_until_ms = kp_clock_ms() + EXIT_CALLS_MS;
    if (kp_cupti_state() == KP_CUPTI_STATE_ARMED) {
        drain_begin(kp_ticks());
        drain.is_cut = true; /* so drain_look gives up instead of disabling */
        while (drain.is_on && kp_cupti_state() == KP_CUPTI_STATE_ARMED) {
            kp_control_flush(false);
            drain_look(EXIT_IDLE_MS, EXIT_DRAIN_MS);
            if (drain.is_on) kp_io_nap(5000000);
        }
        if (kp_lane_is_doubtful(true))
            kp_log(0, "no kernels from CUPTI: %s", doubt); /* for a program that ended before a turn */
    }
    kp_cupti_set_state(KP_CUPTI_STATE_DEAD);
}

/* Runs after the stalled call has returned. */
static int recover_turn(void)
{
    const uint64_t took_ms = kp_watchdog.stalled_ms;
    const uint32_t cycle = kp_load_relaxed(&kp_cupti_helper.stalled_cycle),
                   n = kp_load_relaxed(&kp_cupti_helper.stalls);
    drain.is_on = drain.is_cut = drain.is_given_up = false;
    kp_store_release(&kp_cupti_helper.off, KP_CUPTI_HELPER_ON); /* pairs with: kp_cupti_helper_is_turning */
    kp_store_release(
        &kp_cupti_helper.drain_done,
        kp_load_relaxed(&kp_cupti_helper.drain_asked)); /* pairs with: helper.c:kp_cupti_helper_is_drained */
    kp_watchdog.is_recovering = true;
    kp_control_recover();
    kp_watchdog.is_recovering = false;
    kp_store_relaxed(&kp_cupti_helper.rest_cycle, cycle);
    kp_store_relaxed(&kp_cupti_helper.rest_until_ms, cycle ? kp_clock_ms() + STALL_RESTS * took_ms : 0);
    if (kp_gate_get() & KP_GATE_RECORD) kp_cupti_count_cut(kp_gate_cycle(kp_gate_get()));
    kp_log(n <= KP_CUPTI_HELPER_STALLS_SAID ? 0 : 1,
           "CUPTI has answered after %lu s: GPU work is recorded again from the next window on",
           (unsigned long)(took_ms + 500) / 1000);
    kp_cupti_unstall();
    return 0;
}

static bool is_resting(uint64_t now)
{
    const uint32_t cycle = kp_load_relaxed(&kp_cupti_helper.rest_cycle);
    return now < kp_load_relaxed(&kp_cupti_helper.rest_until_ms) && (!cycle || cycle == kp_gate_cycle(kp_gate_get()));
}

static int idle_turn(void)
{
    kp_store_release(&kp_cupti_helper.off, KP_CUPTI_HELPER_ON); /* pairs with: kp_cupti_helper_is_turning */
    const uint64_t now = kp_clock_ms(), until = kp_load_relaxed(&kp_cupti_helper.rest_until_ms);
    if (!shall_arm()) return END;
    if (is_resting(now)) return until - now < NAP_MOST_MS ? (int)(until - now) : NAP_MOST_MS;
    return kp_control_arm() == -EAGAIN ? POLL_MS : 0;
}

/* Disarms while the program has CUPTI to itself. */
static int aside_turn(int left_ms)
{
    if (kp_cupti_state() == KP_CUPTI_STATE_ARMED) kp_control_disarm(false);
    bool begins = kp_cupti_state() == KP_CUPTI_STATE_FOUND || kp_cupti_state() == KP_CUPTI_STATE_CUINIT_OK;
    if (begins) kp_cupti_set_state(KP_CUPTI_STATE_SHARED);
    if (kp_cupti_state() != KP_CUPTI_STATE_SHARED) return END;
    kp_aside_say(begins);
    if (left_ms == INT_MAX || !kp_cupti_helper_is_wanted()) return END;
    return left_ms < ALONE_MS ? left_ms : ALONE_MS;
}

static int turn_of_state(void)
{
    if (kp_cupti_state() == KP_CUPTI_STATE_STALLED) return recover_turn();
    int left_ms = kp_aside_left_ms();
    if (left_ms) return aside_turn(left_ms);
    if (kp_cupti_state() == KP_CUPTI_STATE_SHARED) kp_cupti_set_state(KP_CUPTI_STATE_FOUND);
    switch (kp_cupti_state()) {
    case KP_CUPTI_STATE_DRIVER_LOADED: return shall_arm() ? poll_turn() : END;
    case KP_CUPTI_STATE_CUINIT_OK:
    case KP_CUPTI_STATE_FOUND: return idle_turn();
    case KP_CUPTI_STATE_ARMED: return armed_turn();
    default: return END;
    }
}

/* Does what is due now, with control. Returns ms to sleep, or END. */
static int turn(void)
{
    kp_buffer_work(WORK_MS);
    if (kp_load_acquire(&kp_cupti_exit_asked)) { /* pairs with: helper.c:at_exit */
        exit_turn();
        return END;
    }
    const int nap = turn_of_state();
    return kp_buffer_has_work() ? 0 : nap;
}

static bool has_work(void)
{
    if (kp_buffer_has_work()) return true;
    enum kp_cupti_state state = kp_cupti_state();
    int left_ms = kp_aside_left_ms();
    if (state == KP_CUPTI_STATE_ARMED || state == KP_CUPTI_STATE_STALLED) return true;
    if (state == KP_CUPTI_STATE_SHARED) return kp_cupti_helper_is_wanted() && left_ms != INT_MAX;
    if (state == KP_CUPTI_STATE_DRIVER_LOADED && (left_ms || kp_load_relaxed(&kp_cupti_helper.poll_is_over)))
        return false;
    return shall_arm() && (state == KP_CUPTI_STATE_DRIVER_LOADED || state == KP_CUPTI_STATE_CUINIT_OK ||
                           state == KP_CUPTI_STATE_FOUND);
}

const struct kp_cupti_helper_turns kp_turns = {.turn = turn, .has_work = has_work};
