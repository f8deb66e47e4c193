// SPDX-License-Identifier: Apache-2.0
/*
 * cycle.c - turns steps into windows: warm up, record, hand over
 *
 * Called by: a source at a step (inside its hook, cold: once a step), kprof_* functions, the writer's tick, exit
 * Owns:      the current window and the ring of windows that wait to be closed
 * Locks:     cycle_lock, rank 1 (above record's); held for microseconds, only at steps, never while exporting. Its
 *            holder cannot be cancelled; exit and fork wait for it for a bounded time only.
 * On fail:   a spool that cannot be opened ends recording for this process (one line was logged)
 * Safe in:   signal handlers no; after fork no (the gate reads 0 there, nobody comes here)
 *
 *   step N ends: kp_steps_advance says (before, after)
 *     before recorded -> the STEP record of N
 *     window must end -> end stamped, gate moved on, window queued for the writer (finish.c)
 *     window must open -> spool opened if needed, sources installed, gate set
 *   kprof_start opens a window at any time; the schedule counts on and its next save, or kprof_stop, ends it
 */
#include "preload/cycle.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/kp_clock.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/boot.h"
#include "collector/base/kp_poison.h"

enum { WAITING_MAX = 256, LOCK_WAIT_MS = 200 };

static pthread_mutex_t cycle_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kp_schedule schedule;
static const struct kp_source *const *sources;
static enum kp_source_mode source_mode; /* what the sources were told last, for those that attach later */
static uint32_t wanted_bits;
static bool started, ended;
static bool is_phase_left; /* kprof_stop: what is left of the schedule's active steps is not recorded */
static struct kp_window current;   /* number 0: none open; begin 0: warming up */
static uint32_t last_number;
static uint64_t step_begin;        /* ticks at which the step in progress began */
static uint64_t step_number;
static struct kp_rec_step *open_step; /* in the current window's chunks */
static struct kp_window waiting[WAITING_MAX];
static uint32_t waiting_head, waiting_count;
static uint64_t skipped;
static bool ever_recorded;

/* The host's thread must not be cancelled in our open() while it holds the lock. */
static int lock_take(void)
{
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&cycle_lock);
    return cancel;
}

static void lock_give(int cancel)
{
    pthread_mutex_unlock(&cycle_lock);
    pthread_setcancelstate(cancel, NULL);
}

/* For exit and fork, which a signal handler may call on the very thread that holds the lock. */
static bool lock_try(void)
{
    struct timespec ms = {.tv_nsec = 1000000};
    for (int i = 0; i < LOCK_WAIT_MS; i++) {
        if (pthread_mutex_trylock(&cycle_lock) == 0) return true;
        syscall(SYS_nanosleep, &ms, NULL);
    }
    return false;
}

void kp_cycle_setup(const struct kp_config *config, const struct kp_schedule *wanted,
                    const struct kp_source *const *list)
{
    schedule = *wanted;
    sources = list;
    wanted_bits = KP_GATE_ON | KP_GATE_STEPS | (config->record_shapes ? KP_GATE_SHAPES : 0);
}

static void set_sources(enum kp_source_mode mode)
{
    source_mode = mode;
    for (const struct kp_source *const *s = sources; *s; s++) (*s)->set_mode(mode);
}

static bool is_recording(enum kp_action action)
{
    return action == KP_ACTION_RECORD || action == KP_ACTION_RECORD_AND_SAVE;
}

/* The window is known to a reader from here on, also when the process is killed before it closes. */
static void announce_window(void)
{
    struct kp_rec_cycle rec = {
        .head = {.kind = KP_KIND_CYCLE, .size = sizeof rec},
        .cycle = current.number,
        .begin = current.begin,
        .warm_begin = current.warm_begin,
        .first_step = current.first_step,
    };
    if (kp_record_meta(&rec, sizeof rec) != 0) KP_LOG_ONCE(1, "a window could not be announced in the spool");
    kp_record_clock();
}

static bool open_window(uint64_t now)
{
    if (waiting_count == WAITING_MAX) {
        skipped++;
        KP_LOG_ONCE(0, "the exporter is %d windows behind: windows are left out until it has caught up", WAITING_MAX);
        return false;
    }
    if (kp_boot_open_spool() != 0) return false;
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
    announce_window();
    kp_gate_set(kp_gate_make(current.number, wanted_bits | KP_GATE_RECORD));
}

/* Nothing is recorded: only steps are looked for. */
static void rest(void)
{
    kp_gate_set(kp_gate_make(last_number, wanted_bits));
    set_sources(KP_SOURCE_STEPS);
}

/* Enters the phase of `action`. A window of the phase before is closed already, unless kprof_start opened it. */
static void enter(enum kp_action action, uint64_t now)
{
    if (current.begin) return;
    if (action == KP_ACTION_NONE || is_phase_left || (!current.number && !open_window(now))) {
        rest();
        return;
    }
    if (is_recording(action))
        activate_window(now);
    else
        kp_gate_set(kp_gate_make(current.number, wanted_bits | KP_GATE_WARM));
    set_sources(KP_SOURCE_FULL);
}

static void close_window(uint64_t now, bool cut)
{
    if (current.begin) {
        current.end = now;
        current.cut = cut;
        current.lost = kp_loss_total() - current.lost; /* the next window may begin, and lose, before the writer closes this one */
        waiting[(waiting_head + waiting_count++) % WAITING_MAX] = current;
    }
    memset(&current, 0, sizeof current);
}

/* The ProfilerStep# range of the step that begins, on the thread that steps; its end is filled in by the next step. */
static void begin_step(struct kp_thread *thread)
{
    if (!schedule.set || !current.number || !current.begin || !thread) return;
    uint64_t gate = kp_gate_make(current.number, KP_GATE_ON | KP_GATE_RECORD);
    struct kp_rec_step *rec = kp_put_reserve(thread, gate, sizeof *rec, KP_KIND_STEP);
    if (!rec) return;
    rec->head = (struct kp_rec){.kind = KP_KIND_STEP, .flags = (uint8_t)kp_steps_source(), .size = sizeof *rec};
    rec->start = step_begin;
    kp_store_relaxed(&rec->ticks, 0);
    rec->number = step_number;
    kp_put_commit(thread, sizeof *rec);
    open_step = rec;
}

static void end_step(uint64_t now)
{
    if (!open_step) return;
    kp_put_end(&open_step->ticks, step_begin, now);
    open_step = NULL;
    current.steps++;
}

/* True when a window began or ended. */
static bool turn_to(const struct kp_transition *turn, struct kp_thread *thread, uint64_t now)
{
    bool save = turn->before == KP_ACTION_RECORD_AND_SAVE;
    end_step(now);
    step_number = turn->step;
    step_begin = now;
    if (save || turn->after == KP_ACTION_NONE) is_phase_left = false;
    if (save) close_window(now, false);
    if (save || turn->before != turn->after) enter(turn->after, now);
    begin_step(thread);
    return save || turn->before != turn->after;
}

void kp_boot_step(struct kp_thread *thread, uint64_t now)
{
    struct kp_transition turn;
    int kept = errno; /* the host's: we are inside one of its calls */
    bool turned = false;
    int cancel = lock_take();
    if (started && !ended && kp_steps_advance(&turn)) turned = turn_to(&turn, thread, now);
    lock_give(cancel);
    if (turned) kp_record_poke(); /* the writer closes a window, or prepares one */
    errno = kept;
}

void kp_cycle_begin_run(void)
{
    int cancel = lock_take();
    if (!ended && started) {
        set_sources(source_mode); /* for the source that attached just now */
    } else if (!ended) {
        started = true;
        step_begin = kp_ticks();
        enter(kp_schedule_action(&schedule, 0), step_begin);
        begin_step(kp_thread_get());
    }
    lock_give(cancel);
}

int kp_cycle_start(void)
{
    int cancel = lock_take(), err = 0;
    if (ended) {
        err = -ESHUTDOWN;
    } else if (current.begin) {
        err = -EALREADY;
    } else {
        started = true;
        is_phase_left = false;
        enter(KP_ACTION_RECORD, kp_ticks());
        if (!current.begin) err = -EIO;
    }
    lock_give(cancel);
    return err;
}

int kp_cycle_stop(void)
{
    uint64_t now = kp_ticks();
    int cancel = lock_take(), err = -EALREADY;
    if (!ended && current.begin) {
        end_step(now);
        close_window(now, false);
        is_phase_left = schedule.set && kp_schedule_action(&schedule, step_number) != KP_ACTION_NONE;
        rest();
        err = 0;
    }
    lock_give(cancel);
    return err;
}

/* The sources stay as they are: at exit the objects of a C++ library may be destroyed already. */
bool kp_cycle_end_run(void)
{
    uint64_t now = kp_ticks();
    if (!lock_try()) return false;
    ended = true;
    end_step(now);
    kp_gate_set(kp_gate_make(last_number, KP_GATE_ON));
    close_window(now, true);
    pthread_mutex_unlock(&cycle_lock);
    return true;
}

bool kp_cycle_before_fork(void)
{
    return lock_try();
}

void kp_cycle_after_fork(void)
{
    pthread_mutex_unlock(&cycle_lock);
}

bool kp_cycle_ever_recorded(void)
{
    return ever_recorded;
}

bool kp_cycle_take_closed(struct kp_window *out)
{
    int cancel = lock_take();
    bool have = waiting_count > 0;
    if (have) {
        *out = waiting[waiting_head];
        waiting_head = (waiting_head + 1) % WAITING_MAX;
        waiting_count--;
    }
    lock_give(cancel);
    return have;
}

uint64_t kp_cycle_skipped(void)
{
    return skipped;
}
