// SPDX-License-Identifier: Apache-2.0
/*
 * cycle.c - turns steps into windows: warm up, record, hand over
 *
 * Called by: a source at a step (inside its hook, cold: once a step), kprof_* functions, the writer's tick, exit
 * Owns:      the current window and the ring of windows that wait to be closed
 * Locks:     cycle_lock, rank 1 (above record's); held for microseconds, only at steps, never while exporting
 * On fail:   a spool that cannot be opened ends recording for this process (one line was logged)
 * Safe in:   signal handlers no; after fork no (the gate reads 0 there, nobody comes here)
 *
 *   step N ends: kp_steps_advance says (before, after)
 *     before recorded -> the STEP record of N
 *     window must end -> end stamped, gate moved on, window queued for the writer (finish.c)
 *     window must open -> spool opened if needed, sources installed, gate set
 */
#include "preload/cycle.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "collector/base/kp_clock.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/boot.h"
#include "collector/base/kp_poison.h"

enum { WAITING_MAX = 256 };

static pthread_mutex_t cycle_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kp_schedule schedule;
static const struct kp_source *const *sources;
static uint32_t wanted_bits;
static bool started, stopped;
static struct kp_window current;   /* number 0: none open */
static uint32_t last_number;
static uint64_t step_begin;        /* ticks at which the step in progress began */
static uint64_t step_number;
static struct kp_rec_step *open_step; /* in the current window's chunks */
static struct kp_window waiting[WAITING_MAX];
static uint32_t waiting_head, waiting_count;
static uint64_t skipped;
static bool ever_recorded;

void kp_cycle_setup(const struct kp_config *config, const struct kp_schedule *wanted,
                    const struct kp_source *const *list)
{
    schedule = *wanted;
    sources = list;
    wanted_bits = KP_GATE_ON | (config->record_shapes ? KP_GATE_SHAPES : 0) | (schedule.set ? KP_GATE_STEPS : 0);
}

static void set_sources(enum kp_source_mode mode)
{
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

/* Enters the phase of `action`; the window of the phase before is closed already. */
static void enter(enum kp_action action, uint64_t now)
{
    if (action == KP_ACTION_NONE) {
        kp_gate_set(kp_gate_make(last_number, wanted_bits));
        set_sources(KP_SOURCE_STEPS);
        return;
    }
    if (!current.number && !open_window(now)) {
        kp_gate_set(kp_gate_make(last_number, wanted_bits));
        set_sources(KP_SOURCE_STEPS);
        return;
    }
    if (is_recording(action)) {
        if (!current.begin) activate_window(now);
    } else {
        kp_gate_set(kp_gate_make(current.number, wanted_bits | KP_GATE_WARM));
    }
    set_sources(KP_SOURCE_FULL);
}

static void close_window(uint64_t now, bool cut)
{
    if (!current.number) return;
    if (current.begin) {
        current.end = now;
        current.cut = cut;
        current.lost = kp_loss_total() - current.lost; /* the next window may begin, and lose, before the writer closes this one */
        waiting[(waiting_head + waiting_count++) % WAITING_MAX] = current;
    }
    current.number = 0;
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
    /* pairs with: collector/read, which takes 0 for still open */
    kp_store_release(&open_step->ticks, now > step_begin ? now - step_begin : 1);
    open_step = NULL;
    current.steps++;
}

void kp_boot_step(struct kp_thread *thread, uint64_t now)
{
    struct kp_transition turn;
    int kept = errno; /* the host's: we are inside one of its calls */
    bool turned = false;
    pthread_mutex_lock(&cycle_lock);
    if (started && !stopped && kp_steps_advance(&turn)) {
        end_step(now);
        step_number = turn.step;
        step_begin = now;
        bool save = turn.before == KP_ACTION_RECORD_AND_SAVE;
        if (save) close_window(now, false);
        if (save || turn.before != turn.after) enter(turn.after, now);
        begin_step(thread);
        turned = save || turn.before != turn.after;
    }
    pthread_mutex_unlock(&cycle_lock);
    if (turned) kp_record_poke(); /* the writer closes a window, or prepares one */
    errno = kept;
}

void kp_cycle_begin_run(void)
{
    pthread_mutex_lock(&cycle_lock);
    if (!started && !stopped) {
        started = true;
        step_begin = kp_ticks();
        enter(kp_schedule_action(&schedule, 0), step_begin);
        begin_step(kp_thread_get());
    }
    pthread_mutex_unlock(&cycle_lock);
}

int kp_cycle_force_open(void)
{
    pthread_mutex_lock(&cycle_lock);
    started = true;
    stopped = false;
    uint64_t now = kp_ticks();
    bool open = current.number && current.begin;
    if (!open) enter(KP_ACTION_RECORD, now);
    int err = current.number ? 0 : -EIO;
    pthread_mutex_unlock(&cycle_lock);
    return open ? -EALREADY : err;
}

void kp_cycle_end_run(void)
{
    uint64_t now = kp_ticks();
    pthread_mutex_lock(&cycle_lock);
    if (started && !stopped) {
        stopped = true;
        end_step(now);
        kp_gate_set(kp_gate_make(last_number, KP_GATE_ON));
        close_window(now, true);
        set_sources(KP_SOURCE_OFF);
    }
    pthread_mutex_unlock(&cycle_lock);
}

bool kp_cycle_is_running(void)
{
    return started && !stopped;
}

bool kp_cycle_ever_recorded(void)
{
    return ever_recorded;
}

bool kp_cycle_take_closed(struct kp_window *out)
{
    pthread_mutex_lock(&cycle_lock);
    bool have = waiting_count > 0;
    if (have) {
        *out = waiting[waiting_head];
        waiting_head = (waiting_head + 1) % WAITING_MAX;
        waiting_count--;
    }
    pthread_mutex_unlock(&cycle_lock);
    return have;
}

uint64_t kp_cycle_skipped(void)
{
    return skipped;
}
