// SPDX-License-Identifier: Apache-2.0
/*
 * finish.c - makes a trace file of each closed window, beside the host or at exit
 *
 * Called by: kprof-tick each tick (closes windows), the export thread (writes traces), exit (does what is left)
 * Owns:      the queue of windows to export, the export thread, the totals for the closing line
 * Locks:     finish_lock, rank 0 (before window_lock); never held while a trace is written
 * On fail:   a trace that cannot be written stays in the spool, which is kept; a log line says so
 * Safe in:   signal handlers no; after fork no
 */
#include "preload/finish/finish.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/sys/kp_fail.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_rank.h"
#include "collector/record/kp_record.h"
#include "export/kp_export.h"
#include "preload/run.h"
#include "preload/finish/childends.h"
#include "preload/finish/children.h"
#include "preload/finish/closingline.h"
#include "preload/finish/spools.h"
#include "preload/window/window.h"
#include "preload/window/window_sources.h"
#include "collector/base/kp_poison.h"

enum { EXPORTS_MAX = 512, QUIESCE_MS = 200, PROGRESS_AFTER_MS = 1000, EXPORT_NICE = 10, CHILDREN_TICKS = 20 };
enum { EXIT_START_MS = 200, EXIT_LATE_MS = 500 };
enum { EXIT_LEAST = 8, EXIT_MS = 30000 }; /* exit writes so many windows, and more for so long; the rest stays */

static pthread_mutex_t finish_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct kp_config *config;
static const struct kp_schedule *schedule;
static bool (*had_activity)(void);
static struct kp_rec_cycle to_export[EXPORTS_MAX]; /* as the spool has them */
static uint32_t export_head, export_count;
static bool exporting, exiting;
static _Atomic bool keep_wanted; /* kprof_keep() */
static bool children_wait;       /* workers have ended, and their spools wait for the export thread */
static uint64_t exit_began_ms;
static unsigned exit_took;              /* windows taken out of the queue since then */
static bool is_end_told;                /* the last window was cut short by the end, so that its trace tells it */
static _Atomic uint64_t progress_count; /* grows while files are written */
static _Atomic bool is_rest_done;

static void made_progress(void) { kp_add_relaxed(&progress_count, 1); }

/* The closing line's, under finish_lock. */
static struct kp_finish_totals total;
static char last_trace[4096];

void kp_finish_setup(const struct kp_config *settings, const struct kp_schedule *wanted, bool (*asked)(void))
{
    config = settings;
    schedule = wanted;
    had_activity = asked;
    kp_closingline_setup(settings, wanted, asked);
}

void kp_finish_forget(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    finish_lock = fresh;
    export_head = export_count = 0;
    exporting = exiting = children_wait = is_end_told = false;
    kp_store_relaxed(&keep_wanted, false);
    exit_took = 0;
    kp_store_relaxed(&is_rest_done, false);
    kp_newest_forget();
    memset(&total, 0, sizeof total);
}

void kp_finish_look(struct kp_finish_totals *out)
{
    pthread_mutex_lock(&finish_lock);
    *out = total;
    pthread_mutex_unlock(&finish_lock);
}

/* KPROF_RANKS of a process that no launcher started, by the rank of its process group: its windows become no traces. */
static bool is_left_out(void)
{
    const struct kp_rank place = kp_run_rank();
    if (!config->ranks || kp_run_is_left_out()) return kp_run_is_left_out();
    if (place.is_launched || kp_run_is_worker() || kp_ranks_name(config->ranks, &place)) return false;
    kp_run_leave_out(place.rank == 0 && !kp_ranks_name_any(config->ranks, place.size) ? place.size : 0);
    return true;
}

/* It stays in the spool. Under finish_lock. */
static void kept_count(const struct kp_rec_cycle *rec)
{
    total.kept++;
    total.kept_events += kp_record_events(rec->cycle);
    total.lost += rec->lost;
}

/*
 * Waits until no hook writes to the window, notes its end in the spool and queues it for export. A worker queues none:
 * workers may be killed or call _exit in the middle of a trace. The process with the steps exports their windows.
 */
static void close_one(const struct kp_window *window)
{
    kp_window_sources_close(window->number);
    static bool is_late; /* after a timeout the next window does not wait again; under finish_lock */
    is_late = kp_record_quiesce(window->number, is_late ? 0 : QUIESCE_MS) != 0;
    if (is_late)
        KP_LOG_ONCE(1, "a thread did not leave the profiler within %d ms: the trace may lack its last record",
                    QUIESCE_MS);
    struct kp_rec_cycle rec = {
        .head = {.kind = KP_KIND_CYCLE, .flags = window->cut ? KP_CYCLE_CUT_SHORT : KP_CYCLE_SAVED, .size = sizeof rec},
        .cycle = window->number,
        .steps = (uint32_t)window->steps,
        .begin = window->begin,
        .end = window->end,
        .warm_begin = window->warm_begin,
        .first_step = window->first_step,
        .last_step = window->first_step + (window->steps ? window->steps - 1 : 0),
        .lost = window->lost,
    };
    const bool is_void = window->is_void || is_left_out();
    if (is_void) rec.head.flags |= KP_CYCLE_EXPORTED;
    kp_record_clock();
    if (kp_record_meta(&rec, sizeof rec) != 0)
        KP_LOG_ONCE(0, "the end of a window could not be written to the spool: its trace may be missing");
    if (kp_run_is_left_out()) return;
    is_end_told = window->cut;
    total.steps += window->steps;
    total.steps_by[window->source] += window->steps;
    total.cut |= window->cut && (window->steps || window->has_part);
    if (!(config->exports & KP_EXPORTS_NONE) && !kp_run_is_worker() && export_count < EXPORTS_MAX) {
        to_export[(export_head + export_count++) % EXPORTS_MAX] = rec;
    } else if (!is_void) {
        kept_count(&rec);
    }
}

/* The host's exit waits no longer: what is in the queue stays in the spool, for kprof recover. Under finish_lock. */
static void keep_rest(void)
{
    for (; export_count; export_count--, export_head = (export_head + 1) % EXPORTS_MAX) {
        const struct kp_rec_cycle *rec = &to_export[export_head];
        if (!(rec->head.flags & KP_CYCLE_EXPORTED)) kept_count(rec);
    }
}

/*
 * Whether exit has written its share. Its time begins with its first window: a program that has none may have forbidden
 * itself the clock. Under finish_lock.
 */
static bool exit_is_late(void)
{
    if (!exiting || !export_count) return false;
    if (!exit_took++) exit_began_ms = kp_clock_ms();
    return exit_took > EXIT_LEAST && (kp_clock_ms() - exit_began_ms > EXIT_MS || kp_fail_point("late"));
}

enum task { NOTHING, WINDOW, KEEP, CHILD };

/* The work that is left beside windows. At exit the ring is the trace, and children are left for later. */
static enum task other_task(void)
{
    if (exiting) return NOTHING;
    if (kp_load_relaxed(&keep_wanted)) return KEEP;
    return children_wait ? CHILD : NOTHING;
}

/* Own windows come first. The spools of children are left to exit once it has begun. */
static enum task next_task(struct kp_rec_cycle *cycle)
{
    pthread_mutex_lock(&finish_lock);
    if (exit_is_late()) keep_rest();
    const enum task task = export_count ? WINDOW : other_task();
    if (task == WINDOW) {
        *cycle = to_export[export_head];
        export_head = (export_head + 1) % EXPORTS_MAX;
        export_count--;
    } else if (task == NOTHING) {
        exporting = false;
    }
    pthread_mutex_unlock(&finish_lock);
    made_progress();
    return task;
}

struct progress {
    struct kp_rec_cycle *cycle;
    uint64_t began_ms;
    bool said, on_terminal;
};

/*
 * Marks the window as exported, so that kprof recover makes no second trace of it. The mark comes before the window's
 * chunks are recycled: after that the spool has only a part of it.
 */
static void exported_note(struct kp_rec_cycle *cycle)
{
    if (cycle->head.flags & KP_CYCLE_EXPORTED) return;
    cycle->head.flags |= KP_CYCLE_EXPORTED;
    if (kp_record_meta(cycle, sizeof *cycle) != 0)
        KP_LOG_ONCE(1,
                    "window %u could not be marked as exported in the spool: kprof recover may write its trace again",
                    cycle->cycle);
}

static void is_written(void *context)
{
    const struct progress *p = context;
    exported_note(p->cycle);
}

/* Logs one line on a terminal, when the host has waited for over a second. */
static int show_progress(void *context, uint64_t events)
{
    struct progress *p = context;
    made_progress();
    if (p->said || !p->on_terminal) return 0;
    if (kp_clock_ms() - p->began_ms < PROGRESS_AFTER_MS) return 0;
    p->said = true;
    kp_log(0, "writing the trace, %lu events so far", (unsigned long)events);
    return 0;
}

static void account(struct kp_rec_cycle *cycle, int err, const struct kp_export_result *result)
{
    pthread_mutex_lock(&finish_lock);
    if (err == 0) {
        total.traces++;
        total.events += result->events;
        total.gpu_events += result->gpu_events;
        total.allocations += result->allocations;
        total.calls += result->calls;
        kp_fmt(last_trace, sizeof last_trace, "%s", result->path);
    } else if (err != -ENODATA) {
        total.failed++;
    } else if (!result->lost && config->control && had_activity()) { /* a user asked for it, and waits */
        KP_LOG_ONCE(0, "a window has no trace: nothing ran in it that is recorded");
    }
    total.lost += result->lost; /* also when the drops left nothing to export */
    pthread_mutex_unlock(&finish_lock);
    if (err == 0) kp_newest_note(result->path, config->keep);
    if (err == 0 && !(cycle->head.flags & KP_CYCLE_CUT_SHORT)) kp_childends_await();
    if (err != 0 && err != -ENODATA) return;
    exported_note(cycle);
    kp_record_recycle(cycle->cycle);
}

/*
 * Once the last window of a schedule with `repeat` is written, the spool's name goes: a process that is killed later
 * (an actor of Ray) leaves no file. The open file serves a window of kprof_start() until the process ends.
 */
static void spool_forgo(void)
{
    pthread_mutex_lock(&finish_lock);
    const bool is_done = !exiting && !export_count && !total.failed && !total.kept && kp_window_schedule_is_over();
    pthread_mutex_unlock(&finish_lock);
    if (is_done) kp_record_forgo();
}

/* Before the spool is read: what sources note gets into the trace. */
static void report_sources(void)
{
    pthread_mutex_lock(&finish_lock);
    kp_window_sources_note();
    pthread_mutex_unlock(&finish_lock);
    kp_window_sources_report();
}

static void export_one(struct kp_rec_cycle *cycle, bool host_waits)
{
    if (cycle->head.flags & KP_CYCLE_EXPORTED) { /* the tail of a phase */
        kp_record_recycle(cycle->cycle);
        return;
    }
    struct progress progress = {
        .cycle = cycle, .began_ms = kp_clock_ms(), .on_terminal = host_waits && kp_log_is_on_terminal()};
    struct kp_export_options options = kp_tracewrite_options(config, host_waits);
    struct kp_export_result result = {.events = 0};
    options.progress = show_progress;
    options.written = is_written;
    options.context = &progress;
    report_sources();
    const int err = kp_tracewrite(cycle->cycle, &options, &result);
    account(cycle, err, &result);
    spool_forgo();
}

static void kept_note(const struct kp_export_result *result)
{
    pthread_mutex_lock(&finish_lock);
    total.traces++;
    kp_fmt(last_trace, sizeof last_trace, "%s", result->path);
    pthread_mutex_unlock(&finish_lock);
    kp_newest_note(result->path, config->keep);
}

/* Writes a trace of the ring, while it goes on. */
static void keep(void)
{
    struct progress progress = {.began_ms = kp_clock_ms()};
    struct kp_export_options options = kp_tracewrite_options(config, false);
    struct kp_export_result result = {.events = 0};
    kp_store_relaxed(&keep_wanted, false); /* first: who asks now wants what comes until then, too */
    const uint64_t gate = kp_gate_get();
    if (!(gate & KP_GATE_RECORD)) return;
    options.is_kept = true;
    options.progress = show_progress;
    options.context = &progress;
    report_sources();
    kp_ring_hold();
    kp_record_clock();
    const int err = kp_tracewrite(kp_gate_cycle(gate), &options, &result);
    if (kp_ring_release()) {
        if (err == 0) kept_note(&result);
        return;
    }
    if (err == 0) (void)kp_io_unlink(result.path);
    KP_LOG_ONCE(0, "no trace of the ring: it had no room to wait for it (KPROF_MAX_MB, KPROF_BUFFER_MB, a full disk)");
}

int kp_finish_keep(void)
{
    if (!config->ring) return -ENODATA;
    if (config->exports & KP_EXPORTS_NONE) return -EPERM;
    if (kp_run_is_worker() || kp_run_is_left_out()) return -EACCES;
    if (!(kp_gate_get() & KP_GATE_RECORD)) return -EALREADY;
    kp_store_relaxed(&keep_wanted, true);
    kp_ticker_wake();
    return 0;
}

static void collect_child(void)
{
    const bool more = kp_children_collect_one();
    pthread_mutex_lock(&finish_lock);
    children_wait = more;
    pthread_mutex_unlock(&finish_lock);
}

static void *export_thread(void *unused)
{
    struct kp_rec_cycle cycle;
    enum task task;
    (void)unused;
    kp_io_apart(true);
    while ((task = next_task(&cycle)) != NOTHING)
        if (task == WINDOW) export_one(&cycle, false);
        else if (task == KEEP) keep();
        else collect_child();
    return NULL;
}

static void close_all(bool at_exit)
{
    struct kp_window window;
    while (kp_window_take_drained(&window, at_exit)) close_one(&window);
}

/* Once a second, since it makes a system call for each child. */
static bool have_children_ended(void)
{
    static unsigned ticks; /* of the one thread that ticks */
    return ticks++ % CHILDREN_TICKS == 0 && kp_children_have_ended();
}

void kp_finish_tick(void)
{
    const bool have_ended = have_children_ended();
    pthread_mutex_lock(&finish_lock);
    if (!exiting) {
        close_all(false);
        kp_window_sources_note();
        children_wait |= have_ended;
        if (!kp_loss_total()) total.whole_steps = kp_steps_seen();
        if ((export_count || other_task() != NOTHING) && !exporting &&
            kp_tracewrite_is_due(export_count == 1 && !children_wait)) {
            exporting = true;
            if (kp_io_thread_nice(export_thread, NULL, "kprof-export", EXPORT_NICE) != 0)
                exporting = false; /* left for exit */
        }
    }
    pthread_mutex_unlock(&finish_lock);
}

/* Waits until the export thread has emptied the queue and ended. */
static void wait_for_export_thread(void)
{
    for (uint64_t naps = 0;; naps++) {
        pthread_mutex_lock(&finish_lock);
        bool busy = exporting;
        pthread_mutex_unlock(&finish_lock);
        if (!busy) return;
        if (naps == PROGRESS_AFTER_MS / 2 && kp_log_is_on_terminal()) kp_log(0, "waiting for the trace being written");
        kp_io_nap(2000000);
    }
}

/* The half in memory stays where it is, if it has a name. */
static void say_not_kept(void)
{
    const char *const memory = kp_record_memory();
    kp_log(0, "the disk of %s did not take all that was recorded: %s%s%s", kp_path_display(kp_run_spool_dir()),
           memory[0] ? "the rest stays in " : "the rest is lost", memory,
           memory[0] ? ", which kprof recover brings over" : "");
}

/* All that is left to do for files. It waits for disks. */
static void rest_do(void)
{
    struct kp_rec_cycle cycle;
    wait_for_export_thread();
    while (next_task(&cycle) == WINDOW) export_one(&cycle, true);
    if (total.kept) report_sources();
    if (kp_run_may_log()) {
        kp_closingline_say(&total, last_trace);
    }
    kp_childends_write(is_end_told, total.traces);
    kp_children_collect(EXIT_LEAST, EXIT_MS);
    kp_closingline_say_missing(&total);
    made_progress();
    if (!kp_record_is_open()) return;
    kp_spools_replaced();
    kp_join_dead(kp_run_spool_dir(), true); /* processes that were killed left some in memory */
    const bool is_wanted = total.failed || total.kept_events;
    if (!kp_record_close(!is_wanted, (uint32_t)config->exit_s * 1000) && is_wanted) say_not_kept();
}

static void rest_job(void)
{
    kp_io_apart(true);
    rest_do();
    kp_store_release(&is_rest_done, true); /* pairs with: finish.c:rest_wait */
}

static void say_disk_stands(void)
{
    const char *const memory = kp_record_memory();
    kp_log(0,
           "a disk has not answered for %lu s (KPROF_EXIT_S): the program's exit waits no longer; what was recorded "
           "stays in %s%s%s; next: kprof recover",
           (unsigned long)config->exit_s, kp_path_display(kp_run_spool_dir()), memory[0] ? " and " : "", memory);
}

/* The host waits for as long as there is progress. */
static void rest_wait(void)
{
    uint64_t seen = kp_load_relaxed(&progress_count), since_ms = kp_clock_ms();
    while (!kp_load_acquire(&is_rest_done)) { /* pairs with: finish.c:rest_job */
        const uint64_t now = kp_load_relaxed(&progress_count);
        if (now != seen) since_ms = kp_clock_ms();
        seen = now;
        if (kp_clock_ms() - since_ms > config->exit_s * 1000 + EXIT_LATE_MS) {
            say_disk_stands();
            return;
        }
        kp_io_nap(200000);
    }
}

/* On kprof-tick, so that a disk that stands does not hold the program. */
void kp_finish_exit(void)
{
    pthread_mutex_lock(&finish_lock);
    exiting = true;
    close_all(true);
    pthread_mutex_unlock(&finish_lock);
    kp_record_drop_pages();
    if (kp_ticker_do(rest_job, EXIT_START_MS)) rest_wait();
    else rest_do();
}
