// SPDX-License-Identifier: Apache-2.0
/*
 * window.c - opens and closes windows at steps: warm up, record, hand over to kprof-tick
 *
 * Called by: a source at a step (inside its hook, cold: once a step), kprof_* functions, the tick, exit
 * Owns:      the current window and the ring of windows that wait to be closed
 * Locks:     window_lock, rank 1 (above record's); held for microseconds, only at steps, never while exporting. Its
 *            holder cannot be cancelled; exit and fork wait for it for a bounded time only.
 * On fail:   a spool that cannot be opened ends recording for this process (one line was logged)
 * Safe in:   signal handlers no; after fork no (the gate reads 0 there, so no hook comes here)
 *
 *   step N ends: kp_steps_advance returns (before, after)
 *     before recorded -> the STEP record of N ends
 *     window must end -> end time set, gate changed, window queued for the ticker (finish.c)
 *     window must open -> spool opened if needed, sources installed, gate set, lock released; then sources settle
 *     a recorded step begins -> its STEP record, after the records that sources make of earlier events
 *   Another phase begins (KPROF_PHASES): the window of the last one ends, and the schedule of the other goes on.
 *   kprof_start opens a window at any time. The schedule goes on; its next save, or kprof_stop, ends that window.
 */
#include "preload/window/window.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_sigblock.h"
#include "collector/record/kp_record.h"
#include "preload/run.h"
#include "preload/window/baresteps.h"
#include "preload/window/phaserun.h"
#include "preload/procfacts/procfacts.h"
#include "preload/window/window_sources.h"
#include "collector/base/kp_poison.h"

enum { WAITING_MAX = 256, LOCK_WAIT_MS = 200, FORK_WAIT_MS = 5000, SETTLE_MS = 1000 };

/*
 * Distance between the end of a step's last op, the end of the step and the begin of the next one. Readers that keep
 * microseconds as doubles (Perfetto) round to a nanosecond. One of two ranges that touch may then reach past the other
 * and is dropped. These ticks are more than a nanosecond on any clock. They are less than this code takes, so no later
 * event of the thread has an earlier time.
 */
enum { APART_TICKS = 8 };

static pthread_mutex_t window_lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool is_holder __attribute__((tls_model("initial-exec")));
static struct kp_schedule schedule, outside; /* of the phase; of what is in none */
static uint64_t phase_from, skipped;         /* the step in which the phase was entered; windows left out */
static bool is_phase_met, ever_recorded;     /* a phase has begun; a window has */
static bool is_step_unseen, is_startup;      /* the step in progress counts without a range; began with the run */
static bool started, ended;
static bool is_cycle_left;               /* after kprof_stop: the schedule's remaining active steps are not recorded */
static struct kp_window current;         /* number 0: none open; begin 0: warming up */
static uint64_t step_begin, step_number; /* of the step in progress: the ticks at which it began */
static struct kp_rec_step *open_step;    /* in the current window's chunks */
static struct kp_window waiting[WAITING_MAX];
static uint32_t waiting_head, waiting_count, phase, wanted_bits, last_number;
/* The window that kp_window_ask asked for. */
static struct {
    bool is_waiting, is_warming; /* for its step; in the step before it */
    uint64_t at, steps, id;
    uint32_t phase;  /* in which its steps count */
    uint32_t number; /* of the window that it opened and that ends at step `until`; 0: none */
    uint64_t until;
} asked;
static uint64_t undecided; /* id of the wish whose window is not closed before kp_window_decide; 0: none */
/* State at the last kp_window_begin_run of a caller that may wait: the gate, and attached_count. */
static _Atomic uint64_t done_gate;
static _Atomic uint32_t done_attached, attached_count, unseen;
static _Atomic uint32_t *shown = &unseen; /* number of the window that records, 0: none */

/*
 * A host thread that holds the lock must not be cancelled in our open(), nor leave by a jump out of a signal handler:
 * the next step would wait for ever. So cancellation is disabled and signals are blocked.
 */
struct held {
    int cancel;
    struct kp_sigblock_all stay;
};

static void lock_take(struct held *held)
{
    kp_sigblock_all_begin(&held->stay);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &held->cancel);
    is_holder = true; /* set before the lock is taken: a signal handler in between then waits a bounded time only */
    pthread_mutex_lock(&window_lock);
}

static void lock_give(const struct held *held)
{
    pthread_mutex_unlock(&window_lock);
    is_holder = false;
    pthread_setcancelstate(held->cancel, NULL);
    kp_sigblock_all_end(&held->stay); /* last: the handler of a pending signal may jump out of here */
}

/* For exit and fork: a signal handler may call them on the thread that holds the lock. */
static bool lock_try(int wait_ms)
{
    for (int i = 0; i < (is_holder ? 1 : wait_ms); i++) {
        if (pthread_mutex_trylock(&window_lock) == 0) return true;
        kp_io_nap(1000000);
    }
    return false;
}

void kp_window_setup(const struct kp_config *config, const struct kp_schedule *wanted,
                     const struct kp_source *const *list)
{
    schedule = outside = *wanted;
    phase = KP_PHASE_NONE;
    phase_from = 0;
    kp_window_sources_setup(list, config->activities);
    wanted_bits = KP_GATE_ON | KP_GATE_STEPS | (config->record_shapes || config->with_flops ? KP_GATE_SHAPES : 0) |
                  (config->profile_memory ? KP_GATE_MEMORY : 0) | (config->with_modules ? KP_GATE_MODULES : 0) |
                  (config->with_stack & (KP_STACK_OPS | KP_STACK_NATIVE) ? KP_GATE_STACKS : 0) |
                  (config->with_stack & KP_STACK_NATIVE ? KP_GATE_NATIVE : 0) |
                  (config->with_stack == KP_STACK_CALLS ? KP_GATE_LINES : 0);
}

/* Window numbers go on, so that a record that was open at the fork belongs to none of the child's windows. */
void kp_window_forget(const struct kp_schedule *wanted, const struct kp_source *const *list)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    window_lock = fresh;
    schedule = outside = *wanted;
    phase = KP_PHASE_NONE;
    kp_baresteps_forget();
    kp_phaserun_forget();
    kp_window_sources_forget(list);
    wanted_bits |= KP_GATE_CHILD;
    shown = &unseen;
    kp_store_relaxed(&done_gate, 0);
    started = ended = is_cycle_left = ever_recorded = false;
    memset(&current, 0, sizeof current);
    step_begin = step_number = skipped = 0;
    open_step = NULL;
    waiting_head = waiting_count = 0;
    memset(&asked, 0, sizeof asked);
    undecided = 0;
    is_step_unseen = is_startup = false;
}

static bool is_recording(enum kp_action action)
{
    return action == KP_ACTION_RECORD || action == KP_ACTION_RECORD_AND_SAVE;
}

/* Writes the window to the spool, so that a reader knows it even if the process is killed before it closes. */
static void announce_window(void)
{
    struct kp_rec_cycle rec = {
        .head = {.kind = KP_KIND_CYCLE, .size = sizeof rec},
        .cycle = current.number,
        .begin = current.begin,
        .warm_begin = current.warm_begin,
        .first_step = current.first_step,
    };
    if (kp_record_meta(&rec, sizeof rec) != 0)
        KP_LOG_ONCE(1, "the start of a window could not be written to the spool: kprof recover would not find it");
    kp_phaserun_note_phase(current.number, phase);
    kp_baresteps_note(current.number);
    kp_procfacts_window_begin(current.number, !is_startup);
    kp_record_clock();
}

/* Publishes the recording window's number; workers read it without a lock. */
static void show_window(uint32_t number) { kp_store_release(shown, number); /* pairs with: children.c:follow */ }

void kp_window_show(_Atomic uint32_t *word)
{
    struct held held;
    lock_take(&held);
    shown = word;
    show_window(current.begin ? current.number : 0);
    lock_give(&held);
}

static bool open_window(uint64_t now)
{
    if (waiting_count == WAITING_MAX) {
        skipped++;
        KP_LOG_ONCE(0, "the exporter is %d windows behind: windows are left out until it has caught up", WAITING_MAX);
        return false;
    }
    if (kp_run_open_spool() != 0) return false;
    memset(&current, 0, sizeof current);
    current.number = ++last_number;
    current.warm_begin = now;
    return true;
}

static void activate_window(uint64_t now)
{
    current.begin = now;
    current.lost = kp_loss_total();
    current.first_step = step_number;
    ever_recorded = true;
    show_window(current.number);
    announce_window();
    kp_gate_set(kp_gate_make(current.number, wanted_bits | KP_GATE_RECORD));
}

/* Ends recording: sources look for steps only. */
static void rest(void)
{
    kp_phaserun_gap();
    kp_gate_set(kp_gate_make(last_number, wanted_bits));
    kp_window_sources_mode(KP_SOURCE_STEPS);
}

/* Enters what `action` says. The window before it is closed already, unless kprof_start opened it. */
static void enter(enum kp_action action, uint64_t now)
{
    if (current.begin) return;
    if (action == KP_ACTION_NONE || is_cycle_left || (!current.number && !open_window(now))) {
        rest();
        return;
    }
    if (is_recording(action)) activate_window(now);
    else kp_gate_set(kp_gate_make(current.number, wanted_bits | KP_GATE_WARM));
    if (!is_recording(action)) kp_phaserun_gap();
    kp_window_sources_mode(KP_SOURCE_FULL);
}

static void close_window_as(uint64_t now, bool cut, enum kp_phaserun_leaving leaving)
{
    if (current.begin) {
        if (!current.is_void) kp_phaserun_note(current.number, phase, leaving, current.steps);
        show_window(0);
        current.end = now;
        current.cut = cut;
        current.lost = kp_loss_total() - current.lost; /* now: the next window may lose some before the close */
        kp_procfacts_window_note(current.number);
        waiting[(waiting_head + waiting_count++) % WAITING_MAX] = current;
    }
    memset(&current, 0, sizeof current);
}

static void close_window(uint64_t now, bool cut) { close_window_as(now, cut, KP_RUN_GOES_ON); }

/* Writes the ProfilerStep# range of the step that begins, on the thread that steps; end_step fills in its end. */
static void begin_step(struct kp_thread *thread)
{
    if (!kp_steps_are_marked(&schedule) || !current.number || !current.begin || !thread) return;
    is_step_unseen = kp_window_sources_are_off(KP_ACTIVITY_CPU);
    if (is_step_unseen) return;
    const uint64_t gate = kp_gate_make(current.number, KP_GATE_ON | KP_GATE_RECORD);
    struct kp_rec_step *rec = kp_put_reserve(thread, gate, sizeof *rec, KP_KIND_STEP);
    if (!rec) return;
    current.source = kp_steps_source();
    const uint8_t flags = (uint8_t)(current.source | (is_startup ? KP_STEP_STARTUP : 0));
    rec->head = (struct kp_rec){.kind = KP_KIND_STEP, .flags = flags, .size = sizeof *rec};
    rec->start = step_begin;
    kp_store_relaxed(&rec->ticks, 0);
    rec->number = step_number;
    kp_put_commit(thread, sizeof *rec);
    open_step = rec;
    kp_window_sources_step(true, step_number);
}

/* Ends the step in progress just after `now`. Returns the time at which the next one may begin. */
static uint64_t end_step(uint64_t now)
{
    const uint64_t end = now + APART_TICKS;
    if (open_step) {
        kp_window_sources_step(false, step_number);
        kp_put_end(&open_step->ticks, step_begin, end);
        open_step = NULL;
        current.steps++;
    }
    current.steps += is_step_unseen;
    is_step_unseen = is_startup = false;
    return end + APART_TICKS;
}

/* Begins the step after the sources have settled: their records of earlier events come first in the window. */
static void settle_and_begin_step(struct kp_thread *thread, uint64_t step, uint64_t begin, uint32_t timeout_ms)
{
    kp_window_sources_settle(begin, timeout_ms);
    struct held held;
    lock_take(&held);
    if (!ended && !open_step && step_number == step) begin_step(thread);
    lock_give(&held);
}

/* After a window was ended before its schedule's end: what is left of the active steps is not recorded. */
static void cycle_leave(void)
{
    is_cycle_left = schedule.set && kp_schedule_action(&schedule, step_number) != KP_ACTION_NONE;
    rest();
}

/* Opens and closes the window that kp_window_ask asked for. True: one of both, or it warms up. */
static bool asked_turn(uint64_t now)
{
    if (asked.phase != phase) return false;
    if (asked.number && asked.number == current.number && step_number >= asked.until) {
        asked.number = 0;
        close_window(now, false);
        cycle_leave();
        return true;
    }
    if (!asked.is_waiting || current.begin || step_number + 1 < asked.at) return false;
    const bool is_now = step_number >= asked.at;
    if (!is_now && current.number) return false; /* the schedule warms up by itself */
    is_cycle_left = false;
    asked.is_waiting = !is_now;
    asked.is_warming = !is_now;
    enter(is_now ? KP_ACTION_RECORD : KP_ACTION_WARMUP, now);
    current.wish = current.number ? asked.id : 0;
    asked.number = is_now && asked.steps ? current.number : 0;
    asked.until = step_number + asked.steps;
    return true;
}

/* True when a window began or ended. */
static bool turn_to(const struct kp_transition *turn, struct kp_thread *thread, uint64_t now)
{
    const bool is_own = current.begin && is_recording(turn->before); /* false for a window of kprof_start */
    bool save = turn->before == KP_ACTION_RECORD_AND_SAVE || (turn->starts_over && (is_own || !current.begin));
    kp_baresteps_end(!current.number, step_number);
    now = end_step(now);
    step_number = turn->step;
    step_begin = now;
    if (save || turn->after == KP_ACTION_NONE) is_cycle_left = false;
    if (turn->starts_over) kp_baresteps_forget(), kp_window_sources_guessed(last_number, turn->source);
    if (save) close_window(now, false);
    if (save || turn->before != turn->after) enter(turn->after, now);
    bool has_turned = save || turn->before != turn->after;
    has_turned |= asked_turn(now);
    if (!has_turned) begin_step(thread);
    return has_turned;
}

/* Steps go by, and no phase begins: a misspelt one would cost the whole run. The lock is held. */
enum { STEPS_WITHOUT_PHASE = 3 };
static bool is_phase_missed(void)
{
    const bool is_none = !is_phase_met && phase == KP_PHASE_NONE && kp_phases_are_set();
    return is_none && step_number == STEPS_WITHOUT_PHASE && !outside.active; /* else KPROF_SCHEDULE records them */
}

void kp_window_step(struct kp_thread *thread, uint64_t now)
{
    struct kp_transition turn;
    int kept = errno; /* errno of the host, as this runs inside one of its calls */
    bool turned = false;
    struct held held;
    lock_take(&held);
    const bool is_on = started && !ended;
    if (is_on && kp_steps_advance(&turn)) turned = turn_to(&turn, thread, now);
    const bool is_missed = is_phase_missed();
    const uint64_t begin = current.begin;
    lock_give(&held);
    if (is_missed) kp_phaserun_say_missed(STEPS_WITHOUT_PHASE);
    if (turned) {
        settle_and_begin_step(thread, turn.step, begin, SETTLE_MS);
        kp_writer_wake(); /* prepares a window */
        kp_ticker_wake(); /* closes one */
    } else if (is_on) {
        kp_window_sources_step_ended();
    }
    errno = kept;
}

/*
 * A phase ends after steps of its own, so the step in progress has only begun. It gets its range when the phase comes
 * back: readers leave out a record that starts outside of its window. A window that opened with that step is dropped.
 */
static void tail_cut(void)
{
    current.is_void = !current.steps && step_number > phase_from;
    if (open_step) open_step->start = 0;
    open_step = NULL;
}

/* How a phase changes: the last one has ended or will go on, and the next begins or goes on. */
struct turn {
    uint32_t to;
    bool is_end, is_new;
};

/* Ends the window of the phase that is left. Windows of kprof_start and kp_window_ask stay open. */
static uint64_t phase_leave(bool is_end, uint64_t now)
{
    bool is_own = !current.begin || is_recording(kp_schedule_action(&schedule, step_number));
    is_own &= !asked.number || asked.number != current.number;
    if (is_own && step_number) tail_cut(); /* 0: it may be a phase without steps */
    if (started) now = end_step(now);
    if (is_own) close_window_as(now, false, is_end ? KP_RUN_ENDS : KP_RUN_PAUSES);
    return now;
}

/* The program is in phase `turn->to`. True when it was in another. */
static bool phase_turn(const struct turn *turn, uint64_t now)
{
    const uint32_t to = turn->to;
    if (to == phase || ended) return false;
    now = phase_leave(turn->is_end, now);
    if (!current.number) asked.is_warming = false;
    kp_phaserun_enter(to, turn->is_new);
    kp_baresteps_forget();
    phase = to;
    is_phase_met |= to != KP_PHASE_NONE;
    schedule = *kp_phases_schedule(to, &outside);
    kp_steps_phase(to);
    is_cycle_left = false;
    step_number = phase_from = kp_steps_seen();
    step_begin = now;
    const bool is_open = current.begin;
    if (started) enter(kp_schedule_action(&schedule, step_number), now);
    kp_phaserun_recorded(!is_open && current.begin);
    return started;
}

/* Gives the lock. After a change of phase the step that goes on there begins a range, on the thread that made it. */
static void phase_change(struct kp_thread *thread, struct held *held, const struct turn *turn)
{
    const bool has_turned = phase_turn(turn, kp_ticks());
    const uint64_t step = step_number, begin = current.begin;
    lock_give(held);
    if (!has_turned) return;
    settle_and_begin_step(thread, step, begin, SETTLE_MS);
    kp_writer_wake();
    kp_ticker_wake();
}

void kp_window_phase_set(struct kp_thread *thread, uint32_t to)
{
    struct held held;
    lock_take(&held);
    const bool was_set = kp_phases_are_named();
    phase_change(thread, &held,
                 &(struct turn){.to = kp_phases_set(to), .is_end = was_set, .is_new = to != KP_PHASE_NONE});
}

void kp_window_phase_begin(struct kp_thread *thread, uint32_t to, uint32_t *depth)
{
    struct held held;
    lock_take(&held);
    phase_change(thread, &held, &(struct turn){.to = kp_phases_begin(to, depth), .is_new = true});
}

void kp_window_phase_end(struct kp_thread *thread, uint32_t depth)
{
    struct held held;
    lock_take(&held);
    phase_change(thread, &held, &(struct turn){.to = kp_phases_end(depth), .is_end = true});
}

/* True when nothing changed since the last full begin_run: a fast path for kprof_range_push. */
static bool is_done(void)
{
    const uint64_t gate = kp_load_acquire(&done_gate); /* pairs with: done_keep */
    return gate && gate == kp_gate_get() &&
           kp_load_relaxed(&done_attached) == kp_load_acquire(&attached_count); /* pairs with: done_keep */
}

static void done_keep(bool may_wait, uint64_t gate, uint32_t attached)
{
    if (!may_wait) {
        kp_add_acq_rel(&attached_count, 1); /* pairs with: is_done */
        return;
    }
    kp_store_relaxed(&done_attached, attached);
    kp_store_release(&done_gate, gate); /* pairs with: is_done */
}

void kp_window_begin_run(bool may_wait)
{
    if (may_wait && is_done()) return;
    const uint64_t gate = kp_gate_get();
    const uint32_t attached = kp_load_acquire(&attached_count); /* pairs with: done_keep */
    const uint32_t timeout_ms = may_wait ? SETTLE_MS : 0;
    struct held held;
    lock_take(&held);
    bool begins = !ended && !started;
    if (!ended && started) kp_window_sources_again(); /* for a source that has just attached */
    if (begins) {
        started = is_startup = true;
        step_begin = kp_ticks();
        enter(kp_schedule_action(&schedule, step_number), step_begin);
    }
    const uint64_t begin = current.begin, step = step_number;
    lock_give(&held);
    if (begins) settle_and_begin_step(kp_thread_get(), step, begin, timeout_ms);
    else kp_window_sources_settle(begin, timeout_ms);
    done_keep(may_wait, gate, attached);
}

int kp_window_start(void)
{
    uint64_t begins;
    return kp_window_ask(&(struct kp_window_wish){.when = KP_WISH_NOW}, &begins);
}

static bool wish_take_back(uint64_t now)
{
    if (!asked.is_waiting) return false;
    if (asked.is_warming && !current.begin) {
        close_window(now, false);
        rest();
    }
    asked.is_waiting = asked.is_warming = false;
    return true;
}

int kp_window_stop(void)
{
    uint64_t now = kp_ticks();
    struct held held;
    int err = -EALREADY;
    lock_take(&held);
    if (!ended && current.begin) {
        close_window(end_step(now), false);
        cycle_leave();
        err = 0;
    }
    if (!ended && wish_take_back(now)) err = 0;
    lock_give(&held);
    return err;
}

/* Whether the schedule records that step by itself. */
static bool is_scheduled(uint64_t step) { return schedule.set && is_recording(kp_schedule_action(&schedule, step)); }

static int wish_check(const struct kp_window_wish *wish, uint64_t begins)
{
    const bool is_now = wish->when == KP_WISH_NOW;
    if (ended) return -ESHUTDOWN;
    if (kp_run_is_left_out()) return -EACCES;
    if (current.begin) return -EALREADY;
    if (asked.is_waiting && (!is_now || wish->id)) return -EBUSY;
    if (wish->phase && strcmp(wish->phase, kp_phases_name(phase)) != 0) return -EAGAIN;
    if (!is_now && begins <= step_number) return -ERANGE;
    return wish->id && !is_now && is_scheduled(begins) ? -EALREADY : 0;
}

static int wish_begin_now(const struct kp_window_wish *wish)
{
    started = true;
    is_cycle_left = false;
    enter(KP_ACTION_RECORD, kp_ticks());
    current.wish = wish->id;
    return current.begin ? 0 : -EIO;
}

static void wish_keep(const struct kp_window_wish *wish, uint64_t begins)
{
    asked.is_waiting = true;
    asked.phase = phase;
    asked.at = begins;
    asked.steps = wish->steps;
    asked.id = wish->id;
}

int kp_window_ask(const struct kp_window_wish *wish, uint64_t *begins)
{
    const bool is_now = wish->when == KP_WISH_NOW;
    struct held held;
    lock_take(&held);
    *begins = wish->when == KP_WISH_AT ? wish->at : step_number + !is_now;
    int err = wish_check(wish, *begins);
    if (!err && is_now) err = wish_begin_now(wish);
    else if (!err) wish_keep(wish, *begins);
    if (!err && wish->id) undecided = wish->id;
    const uint64_t begin = err || !is_now ? 0 : current.begin;
    lock_give(&held);
    if (!err && !is_now) (void)kp_run_open_spool(); /* here, as it would make that step milliseconds longer */
    kp_window_sources_settle(begin, SETTLE_MS);
    if (begin) kp_writer_wake(); /* prepares it */
    return err;
}

/* Drops the window of a wish, wherever it is by now. */
static void wish_drop(uint64_t id)
{
    const uint64_t now = kp_ticks();
    if (asked.id == id) (void)wish_take_back(now);
    if (current.begin && current.wish == id) {
        const uint64_t end = end_step(now);
        current.is_void = true;
        current.steps = 0;
        asked.number = 0;
        close_window(end, false);
        cycle_leave();
    }
    for (uint32_t i = 0; i < waiting_count; i++) {
        struct kp_window *const w = &waiting[(waiting_head + i) % WAITING_MAX];
        if (w->wish != id) continue;
        w->is_void = true;
        w->steps = 0;
    }
}

void kp_window_decide(uint64_t id, bool is_kept)
{
    struct held held;
    lock_take(&held);
    if (undecided == id) undecided = 0;
    if (!is_kept && !ended) wish_drop(id);
    lock_give(&held);
    kp_ticker_wake();
}

/* Whether the window that waits longest may be closed. */
static bool has_ready(bool at_exit)
{
    if (!waiting_count) return false;
    const uint64_t wish = waiting[waiting_head].wish;
    return at_exit || !wish || wish != undecided;
}

int kp_window_toggle(uint32_t activities, bool on)
{
    struct held held;
    lock_take(&held);
    const int err = ended ? -ESHUTDOWN : kp_window_sources_switch(activities, on);
    const uint64_t begin = err ? 0 : current.begin;
    lock_give(&held);
    kp_window_sources_switched(activities, begin, SETTLE_MS); /* waits until CUPTI has what it was told */
    return err;
}

void kp_window_look(struct kp_window_state *out)
{
    struct held held;
    lock_take(&held);
    *out = (struct kp_window_state){
        .state = current.begin      ? "recording"
                 : current.number   ? "warming up"
                 : asked.is_waiting ? "asked for"
                 : ended            ? "over"
                                    : "waiting",
        .number = current.number,
        .asked_at = asked.is_waiting ? asked.at : 0,
        .step = step_number,
        .phase = kp_phases_name(phase),
        .lost = current.begin ? kp_loss_total() - current.lost : 0,
    };
    lock_give(&held);
}

/* Does not change the sources' mode: at exit the objects of a C++ library may be destroyed already. */
bool kp_window_end_run(void)
{
    if (!lock_try(LOCK_WAIT_MS)) return false;
    ended = true;
    const uint64_t whole = current.steps;
    if (open_step) open_step->head.flags |= KP_STEP_CUT;
    const uint64_t now =
        started ? end_step(kp_ticks()) : 0; /* no run: no clock is read: the host may have disabled the TSC */
    current.has_part = current.steps > whole;
    current.steps = whole;
    kp_gate_set(kp_gate_make(last_number, KP_GATE_ON));
    close_window_as(now, true, KP_RUN_IS_OPEN);
    pthread_mutex_unlock(&window_lock);
    return true;
}

bool kp_window_before_fork(void) { return lock_try(FORK_WAIT_MS); }
void kp_window_after_fork(void) { pthread_mutex_unlock(&window_lock); }

bool kp_window_marks_steps(void) { return kp_steps_are_marked(&schedule); }
bool kp_window_ever_recorded(void) { return ever_recorded; }

bool kp_window_schedule_is_over(void)
{
    struct held held;
    lock_take(&held);
    const bool is_over =
        !kp_phases_are_set() && !current.number && !waiting_count && kp_schedule_is_over(&schedule, step_number);
    lock_give(&held);
    return is_over;
}

bool kp_window_take_drained(struct kp_window *out, bool at_exit)
{
    struct held held;
    lock_take(&held);
    bool have = has_ready(at_exit);
    uint64_t end = have ? waiting[waiting_head].end : 0;
    lock_give(&held);
    if (!have || (!at_exit && !kp_window_sources_are_drained(end))) return false;
    lock_take(&held); /* one thread takes windows, so this is still the oldest */
    have = has_ready(at_exit);
    if (have) {
        *out = waiting[waiting_head];
        waiting_head = (waiting_head + 1) % WAITING_MAX;
        waiting_count--;
    }
    lock_give(&held);
    return have;
}

uint64_t kp_window_skipped(void) { return skipped; }
