// SPDX-License-Identifier: Apache-2.0
/*
 * finish.c - makes a trace file of each closed window, beside the host or at exit, and logs the closing line
 *
 * Called by: kprof-tick each tick (closes windows), the export thread (writes traces), exit (does what is left)
 * Owns:      the queue of windows to export, the export thread, the totals of the closing line
 * Locks:     finish_lock, rank 0 (before window_lock); never held while a trace is written
 * On fail:   a trace that cannot be written stays in the spool, which is kept; a log line says so
 * Safe in:   signal handlers no; after fork no
 */
#include "preload/window/window.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/kp_clock.h"
#include "collector/base/kp_fail.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_rank.h"
#include "collector/base/kp_room.h"
#include "collector/base/kp_units.h"
#include "collector/record/kp_record.h"
#include "export/kp_export.h"
#include "preload/run.h"
#include "preload/finish/childends.h"
#include "preload/finish/children.h"
#include "preload/finish/finish.h"
#include "preload/window/phaserun.h"
#include "preload/finish/spools.h"
#include "preload/finish/tracewrite.h"
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
static unsigned exit_took; /* windows taken out of the queue since then */
static bool is_command;    /* the process that `kprof run` became: its user waits for a line */
static bool is_watched;    /* its child: kprof run waits for it, and says how it ended */
static uint64_t began_ns;
static _Atomic uint64_t progress_count; /* grows while files are written */
static _Atomic bool is_rest_done;

static void made_progress(void) { kp_add_relaxed(&progress_count, 1); }

/* Totals of the closing line, under finish_lock. */
static struct {
    uint64_t traces, failed, steps, whole_steps, events, gpu_events, allocations, calls, lost, kept;
    uint64_t steps_by[KP_STEP_API + 1]; /* what counted them */
    /* whole_steps: of those seen, how many were over at the last tick before a record was lost */
    bool cut;
    char last[4096];
} total;

/* Whether `kprof run` executed this process: it left its pid in this variable. Called by the constructor. */
static bool is_run_of_kprof(const char *variable)
{
    char pid[16];
    const char *const said = kp_config_variable(environ, variable);
    kp_fmt(pid, sizeof pid, "%d", (int)getpid());
    return said && strcmp(said, pid) == 0;
}

void kp_finish_setup(const struct kp_config *settings, const struct kp_schedule *wanted, bool (*asked)(void))
{
    config = settings;
    schedule = wanted;
    had_activity = asked;
    began_ns = kp_clock_ns(CLOCK_REALTIME);
    is_command = is_run_of_kprof("KPROF_RUN_PID");
    is_watched = is_run_of_kprof("KPROF_RUN_STAYS");
    if (is_command) kp_log_keep(); /* programs such as ls close their standard error before they exit */
}

void kp_finish_forget(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    finish_lock = fresh;
    export_head = export_count = 0;
    exporting = exiting = children_wait = false;
    kp_store_relaxed(&keep_wanted, false);
    exit_took = 0;
    kp_store_relaxed(&is_rest_done, false);
    kp_newest_forget();
    memset(&total, 0, sizeof total);
}

void kp_finish_look(struct kp_finish_totals *out)
{
    pthread_mutex_lock(&finish_lock);
    *out = (struct kp_finish_totals){.traces = total.traces, .events = total.events};
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
    total.steps += window->steps;
    total.steps_by[window->source] += window->steps;
    total.cut |= window->cut && (window->steps || window->has_part);
    if (!(config->exports & KP_EXPORTS_NONE) && !kp_run_is_worker() && export_count < EXPORTS_MAX) {
        to_export[(export_head + export_count++) % EXPORTS_MAX] = rec;
    } else if (!is_void) {
        total.kept++;
        total.events += kp_record_events(window->number);
        total.lost += rec.lost;
    }
}

/* The host's exit waits no longer: what is in the queue stays in the spool, for kprof recover. Under finish_lock. */
static void keep_rest(void)
{
    for (; export_count; export_count--, export_head = (export_head + 1) % EXPORTS_MAX) {
        const struct kp_rec_cycle *rec = &to_export[export_head];
        if (rec->head.flags & KP_CYCLE_EXPORTED) continue;
        total.kept++;
        total.events += kp_record_events(rec->cycle);
        total.lost += rec->lost;
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

/* What is left to do beside windows. At exit the ring is the trace, and children are left for later. */
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
        kp_fmt(total.last, sizeof total.last, "%s", result->path);
    } else if (err != -ENODATA) {
        total.failed++;
    }
    total.lost += result->lost; /* also when the drops left nothing to export */
    pthread_mutex_unlock(&finish_lock);
    if (err == 0) kp_newest_note(result->path, config->keep);
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

static bool is_exiting(void)
{
    pthread_mutex_lock(&finish_lock);
    const bool is_so = exiting;
    pthread_mutex_unlock(&finish_lock);
    return is_so;
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
    options.goes_on = !is_exiting() && !(cycle->head.flags & KP_CYCLE_CUT_SHORT); /* an exit cuts before it says so */
    report_sources();
    const int err = kp_tracewrite(cycle->cycle, &options, &result);
    account(cycle, err, &result);
    spool_forgo();
}

static void kept_note(const struct kp_export_result *result)
{
    pthread_mutex_lock(&finish_lock);
    total.traces++;
    kp_fmt(total.last, sizeof total.last, "%s", result->path);
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

/* The first recorded step then carries what recording takes to begin, as torch.profiler warns. */
static bool lacks_warmup(void)
{
    return schedule->active && !kp_phases_are_set() && !schedule->warmup && total.traces && total.steps;
}

/* Writes the command that shows the result: kprof report or memory FOLDER, or kprof export SPOOL. It shows all ranks of
 * a job, so that rank 0 alone names it. */
static void next_command(char *out, size_t bytes)
{
    const char *const folder = kp_path_display(kp_run_out_dir());
    const bool is_default = strcmp(folder, "kprof") == 0;
    const bool is_heap = total.allocations && (!total.events || config->heap == KP_HEAP_TRACE);
    out[0] = 0;
    const bool is_of_calls = !is_heap && schedule->set && !kp_phases_are_set() && kp_steps_model_calls();
    if (!total.traces) kp_fmt(out, bytes, "; next: kprof export %s", kp_path_display(kp_record_path()));
    else if (!kp_run_rank().rank || config->ranks)
        kp_fmt(out, bytes, "; next: kprof %s%s%s%s", is_heap ? "memory" : "report",
               is_of_calls ? " --within '" KP_MODEL_RANGE "'" : "", is_default ? "" : " ", is_default ? "" : folder);
}

/* A program without an optimizer has no steps, as its calls count with a schedule alone (decisions/110). */
static const char *steps_lead(void)
{
    const bool is_user_there = is_command || is_watched;
    const bool has_none = !schedule->set && !kp_phases_are_set() && kp_steps_source() == KP_STEP_NONE;
    const bool is_read = total.traces && had_activity();
    if (!is_user_there || !has_none || !is_read || config->heap == KP_HEAP_TRACE || kp_run_rank().rank) return "";
    return "; no steps: --schedule active=1000 makes each generate(), or call of a model, a step";
}

/* Steps that are marked are counted as they are recorded. Others are all that were seen, also behind a full spool. */
static void steps_missed_tell(uint64_t steps, char *out, size_t bytes)
{
    out[0] = 0;
    if (total.lost && total.whole_steps && total.whole_steps < steps)
        kp_fmt(out, bytes, " (%lu before records were dropped)", (unsigned long)total.whole_steps);
}

/* "3 steps by optimizer, and 2 by calls of a model before its first, ": a schedule may start over. */
static void steps_tell(char *out, size_t bytes)
{
    static const char *const guesses[KP_STEP_API + 1] = {
        [KP_STEP_TIME] = "seconds", [KP_STEP_MODULE] = "calls of a model", [KP_STEP_DATALOADER] = "batches"};
    const enum kp_step_source source = kp_steps_source();
    const bool are_marked = kp_steps_are_marked(schedule); /* else none lies in the trace: decisions/003 */
    uint64_t steps = are_marked ? total.steps : kp_steps_seen();
    char by[200], before[200] = "", missed[64] = "";
    size_t n = 0;
    if (!are_marked) steps_missed_tell(steps, missed, sizeof missed);
    for (unsigned i = KP_STEP_TIME; schedule->set && i < source; i++) {
        if (!total.steps_by[i] || n >= sizeof before) continue;
        n += kp_fmt(before + n, sizeof before - n, "%s%lu by %s", n ? ", " : ", and ", (unsigned long)total.steps_by[i],
                    guesses[i] ? guesses[i] : kp_step_source_name((enum kp_step_source)i));
        steps -= total.steps_by[i];
    }
    kp_steps_source_text(by, sizeof by);
    kp_fmt(out, bytes, "%lu step%s by %s%s%s%s, ", (unsigned long)steps, kp_units_s(steps), by, missed, before,
           n ? " before its first" : "");
}

static void phases_tell(char *out, size_t bytes)
{
    kp_phaserun_steps(out, bytes - 2, schedule->set ? total.steps : kp_steps_seen());
    memcpy(out + strlen(out), ", ", 3);
}

/* A ring has the last seconds of a run that was longer. */
static void last_part_tell(char *out, size_t bytes)
{
    if (!config->ring) return;
    const uint64_t ring_ns = kp_config_time_ms(config->ring) * 1000000;
    if (kp_clock_ns(CLOCK_REALTIME) - began_ns > ring_ns) kp_fmt(out, bytes, " of the last %s", config->ring);
}

static void say_totals(const char *head, const char *path)
{
    char next[512];
    char last[64] = "";
    char load[160], others[160] = "", missed[700], steps[768] = "", gpu[64] = "", heap[64] = "", calls[64] = "";
    enum kp_step_source source = kp_steps_source();
    if (kp_phases_are_set()) phases_tell(steps, sizeof steps);
    if (!kp_phases_are_set() && source != KP_STEP_NONE) steps_tell(steps, sizeof steps);
    else if (!kp_phases_are_set() && kp_steps_unmatched(missed, sizeof missed))
        kp_fmt(steps, sizeof steps, "0 steps: %s; ", missed);
    if (!kp_phases_are_set() && schedule->set) kp_steps_others(others, sizeof others);
    if (total.gpu_events) kp_fmt(gpu, sizeof gpu, "%lu on GPUs, ", (unsigned long)total.gpu_events);
    if (total.allocations)
        kp_fmt(heap, sizeof heap, "%lu allocation%s, ", (unsigned long)total.allocations,
               kp_units_s(total.allocations));
    if (total.calls)
        kp_fmt(calls, sizeof calls, "%lu call%s of functions, ", (unsigned long)total.calls, kp_units_s(total.calls));
    next_command(next, sizeof next);
    last_part_tell(last, sizeof last);
    kp_losstext_write(load, sizeof load, total.lost);
    const char *what = total.traces ? "op" : "event"; /* in a spool kinds are not told apart */
    kp_log(0, "%s%s (%s%lu %s%s%s, %s%s%s%s%lu dropped%s%s%s%s%s)%s%s", head, path, steps, (unsigned long)total.events,
           what, kp_units_s(total.events), last, gpu, heap, calls, kp_run_is_lost_at_least() ? "at least " : "",
           (unsigned long)total.lost, load,
           schedule->set && total.cut && !kp_steps_are_calls() ? ", until the program's end" : "",
           lacks_warmup() ? ", no warmup: the first step contains the start of recording" : "",
           others[0] ? "; not taken as steps: " : "", others, next, steps_lead());
}

static void say_left_out(void)
{
    const uint32_t ranks = kp_run_all_left_out();
    if (ranks && had_activity() && !kp_filetext_has_new(began_ns)) /* else it started the ranks that recorded */
        kp_log(0, "no trace: KPROF_RANKS=%s names no rank of this job, which has %u", config->ranks, ranks);
}

/* All ranks of a job have the same phases, so that rank 0 alone says it. */
static void say_phases_missed(void)
{
    if (total.traces && kp_phases_are_set() && !kp_run_rank().rank) kp_phaserun_say_never_begun();
}

static void say_nothing_written(void)
{
    uint64_t seen = kp_steps_seen();
    const bool is_due = schedule->set && (schedule->active || kp_phases_are_set());
    if (!is_due || total.failed || kp_window_ever_recorded() || kp_run_is_worker()) return;
    if (kp_run_cannot_record()) return; /* that was the reason, and it was logged */
    if (!seen && (!had_activity() || kp_children_is_multiprocessing())) return;
    uint64_t needed = kp_schedule_steps_needed(schedule);
    char why[1024], others[160] = "";
    if (kp_phases_are_set()) {
        kp_steps_explain_phases(why, sizeof why);
        kp_log(0,
               "no trace: %s. Name phases with kprof_phase(), or a range of record_function by NAME~REGEX: "
               "KPROF_PHASES='val~^my_range$=active=2'. A function needs no phase: kprof run --with-stack 1, then "
               "kprof report --within validate",
               why);
        return;
    }
    kp_steps_explain(why, sizeof why);
    if (seen) kp_steps_others(others, sizeof others);
    kp_log(0, "no trace: saw %lu step%s%s%s%s%s%s, the schedule needs %lu: %s", (unsigned long)seen, kp_units_s(seen),
           seen ? " by " : "", seen ? kp_step_source_name(kp_steps_source()) : "",
           others[0] ? " (not taken as steps: " : "", others, others[0] ? ")" : "", (unsigned long)needed, why);
}

/* `kprof run` tells of a program that ran no op, LD_PRELOAD does not. A schedule that was not met is told apart. */
static void say_nothing_recorded(void)
{
    const bool is_told = had_activity() && !kp_window_ever_recorded(), is_ring = had_activity() && config->ring;
    if (!(is_command || is_ring) || is_told || total.traces || total.kept || total.failed || total.lost) return;
    if (kp_run_cannot_record() || kp_run_is_worker() || kp_filetext_has_new(began_ns)) return;
    if (is_ring) kp_log(0, "no trace: nothing was recorded in the last %s of the program (KPROF_RING)", config->ring);
    if (is_ring) return;
    kp_log(0,
           "nothing was recorded: %s ran no PyTorch op and no CUDA call%s; KPROF_MALLOC and KPROF_SYMBOLS record any "
           "program, and nothing records the time of its Python lines",
           program_invocation_short_name, had_activity() && schedule->set ? " in a window" : "");
}

static void say_closing_line(void)
{
    char head[64];
    if (total.traces == 1) {
        say_totals("wrote ", kp_path_display(total.last));
    } else if (total.traces) {
        kp_fmt(head, sizeof head, "wrote %lu traces, the last is ", (unsigned long)total.traces);
        say_totals(head, kp_path_display(total.last));
    } else if (total.kept && total.events) {
        say_totals("kept ", kp_path_display(kp_record_path()));
    }
    if (total.traces && total.kept)
        kp_log(0, "writing the traces took too long: %lu more recording%s stay%s in %s. Next: kprof export",
               (unsigned long)total.kept, kp_units_s(total.kept), total.kept == 1 ? "s" : "",
               kp_path_display(kp_record_path()));
    if (total.traces) kp_filetext_say_beside(config->exports);
    if (total.failed > 1)
        kp_log(0, "%lu recordings have no trace yet, and stay in %s. Next: kprof recover", (unsigned long)total.failed,
               kp_path_display(kp_record_path()));
    if (kp_window_skipped())
        kp_log(0, "%lu recordings were left out: writing the traces took too long", (unsigned long)kp_window_skipped());
}

void kp_finish_say_signal(int number)
{
    const char *const name = number == SIGINT ? "Interrupt: Ctrl-C" : number == SIGHUP ? "Hangup" : "Terminated";
    const char *const folder = kp_path_display(kp_run_spool_dir());
    const bool is_default = strcmp(folder, "kprof") == 0;
    if (kp_record_is_open()) /* a handler may have interrupted a thread with its lock: then nothing is noted */
        (void)kp_record_note_try("ended_by", number == SIGINT ? "SIGINT" : number == SIGHUP ? "SIGHUP" : "SIGTERM");
    if (is_watched || !kp_record_is_open() || !kp_run_may_log()) return;
    kp_log(0, "killed by signal %d (%s). %s until then is kept. Next: kprof %s%s%s", number, name,
           config->ring ? "The ring of the last seconds" : "The recording",
           config->heap == KP_HEAP_TRACE ? "memory" : "report", is_default ? "" : " ", is_default ? "" : folder);
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
        say_phases_missed();
        say_closing_line();
    }
    kp_childends_write();
    kp_children_collect(EXIT_LEAST, EXIT_MS);
    say_left_out();
    say_nothing_written();
    say_nothing_recorded();
    made_progress();
    if (!kp_record_is_open()) return;
    kp_spools_replaced();
    kp_join_dead(kp_run_spool_dir(), true); /* what killed ones left in memory */
    const bool is_wanted = total.failed || (total.kept && total.events);
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
