// SPDX-License-Identifier: Apache-2.0
/*
 * closingline.c - says at the end which traces were written, what lacks in them, or why there is none
 *
 * Called by: finish.c (the exiting thread or kprof-tick); selfsignal.c (a thread that ends the program)
 * Locks:     none: the totals change no more
 * Safe in:   signal handlers no, but kp_closingline_say_signal yes; after fork yes
 */
#include "preload/finish/closingline.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/text/kp_digits.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/sys/kp_path.h"
#include "collector/base/text/kp_units.h"
#include "collector/record/kp_record.h"
#include "preload/run.h"
#include "preload/finish/children.h"
#include "preload/procfacts/procfacts.h"
#include "preload/window/phaserun.h"
#include "preload/window/sources.h"
#include "preload/window/window.h"
#include "collector/base/kp_poison.h"

static const struct kp_config *config;
static const struct kp_schedule *schedule;
static bool (*had_activity)(void);
static bool is_command; /* the process that `kprof run` became: its user waits for a line */
static bool is_watched; /* its child: kprof run waits for it, and says how it ended */
static uint64_t began_ns;

/* Whether `kprof run` executed this process: it left its pid in this variable. Called by the constructor. */
static bool is_run_of_kprof(const char *variable)
{
    char pid[16];
    const char *const said = kp_config_variable(environ, variable);
    kp_fmt(pid, sizeof pid, "%d", (int)getpid());
    return said && strcmp(said, pid) == 0;
}

void kp_closingline_setup(const struct kp_config *settings, const struct kp_schedule *wanted, bool (*asked)(void))
{
    config = settings;
    schedule = wanted;
    had_activity = asked;
    began_ns = kp_clock_ns(CLOCK_REALTIME);
    is_command = is_run_of_kprof("KPROF_RUN_PID");
    is_watched = is_run_of_kprof("KPROF_RUN_STAYS");
    if (is_command) kp_log_keep(); /* programs such as ls close their standard error before they exit */
}

/* ", 5 of them over KPROF_MAX_MB: ..." of `lost` records, and how long threads waited for room; or "". */
static void losses_tell(char *out, size_t bytes, uint64_t lost)
{
    static const char *const why[KP_LOSS_N] = {
        [KP_LOSS_NO_CHUNK] = "came faster than room for them: record fewer at once (docs/reference/messages.md)",
        [KP_LOSS_CAP] = "over KPROF_MAX_MB: raise it, or set KPROF_SCHEDULE",
        [KP_LOSS_DISK] = "the disk is full: set KPROF_SPOOL_DIR to one with room",
        [KP_LOSS_NO_SLOT] = "no memory",
        [KP_LOSS_TOO_BIG] = "longer than a record may be",
        [KP_LOSS_NAME] = "names beyond the 4 million that are kept",
        [KP_LOSS_REENTRY] = "in signal handlers that interrupted us",
        [KP_LOSS_QUOTA] = "over the disk quota: set KPROF_SPOOL_DIR to a disk with room",
        [KP_LOSS_LIMIT] = "over the largest size of a file here (ulimit -f): raise it",
        [KP_LOSS_STANDS] = "the disk did not keep up: set KPROF_SPOOL_DIR to a faster one",
        [KP_LOSS_RESERVE] = "left free for the program: set KPROF_SPOOL_DIR to a disk with room",
    };
    const uint64_t waited_ms = kp_loss_waited_ms();
    uint64_t count = 0;
    const enum kp_loss most = lost ? kp_loss_most(&count) : KP_LOSS_N;
    size_t n = 0;
    out[0] = 0;
    if (most < KP_LOSS_N && count > lost) count = lost; /* others were lost outside of windows */
    if (most < KP_LOSS_N) n = kp_fmt(out, bytes, ", %lu of them %s", (unsigned long)count, why[most]);
    if (waited_ms && n < bytes)
        kp_fmt(out + n, bytes - n, ", threads waited %lu ms for room", (unsigned long)waited_ms);
}

/* `kprof run` makes the others of each trace, and leaves a variable for all that its program starts. */
static void say_beside(unsigned exports)
{
    if (exports & KP_EXPORTS_BESIDE && !kp_config_variable(environ, "KPROF_RUN_BESIDE"))
        kp_log(0, "KPROF_EXPORT: only traces are written here, and `kprof run` makes the others; of a trace: kprof "
                  "report --torch, kprof stacks --torch, kprof memory --html");
}

struct new_files {
    uint64_t since_ns;
    bool any;
};

/* A name with the time at which its file began, "HOST_PID.NANOSECONDS.kprof", that is not the own spool's. */
static void file_visit(void *context, const char *name)
{
    struct new_files *const files = context;
    uint64_t at_ns = 0;
    for (const char *dot = strchr(name, '.'); dot && at_ns <= files->since_ns; dot = strchr(dot + 1, '.'))
        at_ns = kp_digits(dot + 1);
    if (at_ns > files->since_ns && strcmp(kp_path_base(kp_record_path()), name) != 0) files->any = true;
}

/* Whether another process has recorded into the folder since this one began: the ranks of a launcher, for example. */
static bool has_new_files(void)
{
    struct new_files files = {.since_ns = began_ns};
    return kp_io_each_name(kp_run_out_dir(), file_visit, &files) == 0 && files.any;
}

/* The first recorded step then carries what recording takes to begin, as torch.profiler warns. */
static bool lacks_warmup(const struct kp_finish_totals *total)
{
    return schedule->active && !kp_phases_are_set() && !schedule->warmup && total->traces && total->steps;
}

/* Writes the command that shows the result: kprof report or memory FOLDER, or kprof export SPOOL. It shows all ranks of
 * a job, so that rank 0 alone names it. */
static void next_command(char *out, size_t bytes, const struct kp_finish_totals *total)
{
    const char *const folder = kp_path_display(kp_run_out_dir());
    const bool is_default = strcmp(folder, "kprof") == 0;
    const bool is_heap = total->allocations && (!total->events || config->heap == KP_HEAP_TRACE);
    out[0] = 0;
    const bool is_of_calls = !is_heap && schedule->set && !kp_phases_are_set() && kp_steps_model_calls();
    if (!total->traces) kp_fmt(out, bytes, "; next: kprof export %s", kp_path_display(kp_record_path()));
    else if (!kp_run_rank().rank || config->ranks)
        kp_fmt(out, bytes, "; next: kprof %s%s%s%s", is_heap ? "memory" : "report",
               is_of_calls ? " --within '" KP_MODEL_RANGE "'" : "", is_default ? "" : " ", is_default ? "" : folder);
}

/* A program without an optimizer has no steps, as its calls count with a schedule alone (decisions/110). */
static const char *steps_lead(const struct kp_finish_totals *total)
{
    const bool is_user_there = is_command || is_watched;
    const bool has_none = !schedule->set && !kp_phases_are_set() && kp_steps_source() == KP_STEP_NONE;
    const bool is_read = total->traces && had_activity();
    if (!is_user_there || !has_none || !is_read || config->heap == KP_HEAP_TRACE || kp_run_rank().rank) return "";
    return "; no steps: --schedule active=1000 makes each call of a model, or generate() of transformers, a step";
}

/* Steps that are marked are counted as they are recorded. Others are all that were seen, also behind a full spool. */
static void steps_missed_tell(char *out, size_t bytes, uint64_t steps, const struct kp_finish_totals *total)
{
    out[0] = 0;
    if (total->lost && total->whole_steps && total->whole_steps < steps)
        kp_fmt(out, bytes, " (%lu before records were dropped)", (unsigned long)total->whole_steps);
}

/* "3 steps by optimizer, and 2 by calls of a model before its first, ": a schedule may start over. */
static void steps_tell(char *out, size_t bytes, const struct kp_finish_totals *total)
{
    static const char *const guesses[KP_STEP_API + 1] = {
        [KP_STEP_TIME] = "seconds", [KP_STEP_MODULE] = "calls of a model", [KP_STEP_DATALOADER] = "batches"};
    const enum kp_step_source source = kp_steps_source();
    const bool are_marked = kp_steps_are_marked(schedule); /* else none lies in the trace: decisions/003 */
    uint64_t steps = are_marked ? total->steps : kp_steps_seen();
    char by[200], before[200] = "", missed[64] = "";
    size_t n = 0;
    if (!are_marked) steps_missed_tell(missed, sizeof missed, steps, total);
    for (unsigned i = KP_STEP_TIME; schedule->set && i < source; i++) {
        if (!total->steps_by[i] || n >= sizeof before) continue;
        n +=
            kp_fmt(before + n, sizeof before - n, "%s%lu by %s", n ? ", " : ", and ", (unsigned long)total->steps_by[i],
                   guesses[i] ? guesses[i] : kp_step_source_name((enum kp_step_source)i));
        steps -= total->steps_by[i];
    }
    kp_steps_source_text(by, sizeof by);
    kp_fmt(out, bytes, "%lu step%s by %s%s%s%s, ", (unsigned long)steps, kp_units_s(steps), by, missed, before,
           n ? " before its first" : "");
}

static void phases_tell(char *out, size_t bytes, const struct kp_finish_totals *total)
{
    kp_phaserun_steps(out, bytes - 2, schedule->set ? total->steps : kp_steps_seen());
    memcpy(out + strlen(out), ", ", 3);
}

/* A ring has the last seconds of a run that was longer. */
static void last_part_tell(char *out, size_t bytes)
{
    if (!config->ring) return;
    const uint64_t ring_ns = kp_config_time_ms(config->ring) * 1000000;
    if (kp_clock_ns(CLOCK_REALTIME) - began_ns > ring_ns) kp_fmt(out, bytes, " of the last %s", config->ring);
}

static void say_totals(const char *head, const char *path, const struct kp_finish_totals *total)
{
    char next[512];
    char last[64] = "";
    char load[160], others[160] = "", missed[700], steps[768] = "", gpu[64] = "", heap[64] = "", calls[64] = "";
    enum kp_step_source source = kp_steps_source();
    if (kp_phases_are_set()) phases_tell(steps, sizeof steps, total);
    if (!kp_phases_are_set() && source != KP_STEP_NONE) steps_tell(steps, sizeof steps, total);
    else if (!kp_phases_are_set() && kp_steps_unmatched(missed, sizeof missed))
        kp_fmt(steps, sizeof steps, "0 steps: %s; ", missed);
    if (!kp_phases_are_set() && schedule->set) kp_steps_others(others, sizeof others);
    if (total->gpu_events) kp_fmt(gpu, sizeof gpu, "%lu on GPUs, ", (unsigned long)total->gpu_events);
    if (total->allocations)
        kp_fmt(heap, sizeof heap, "%lu allocation%s, ", (unsigned long)total->allocations,
               kp_units_s(total->allocations));
    if (total->calls)
        kp_fmt(calls, sizeof calls, "%lu call%s of functions, ", (unsigned long)total->calls, kp_units_s(total->calls));
    next_command(next, sizeof next, total);
    last_part_tell(last, sizeof last);
    losses_tell(load, sizeof load, total->lost);
    const char *what = total->traces ? "op" : "event"; /* in a spool kinds are not told apart */
    const uint64_t events = total->traces ? total->events : total->kept_events;
    kp_log(0, "%s%s (%s%lu %s%s%s, %s%s%s%s%lu dropped%s%s%s%s%s)%s%s", head, path, steps, (unsigned long)events, what,
           kp_units_s(events), last, gpu, heap, calls, kp_run_is_lost_at_least() ? "at least " : "",
           (unsigned long)total->lost, load,
           schedule->set && total->cut && !kp_steps_are_calls() ? ", until the program's end" : "",
           lacks_warmup(total) ? ", no warmup: the first step contains the start of recording" : "",
           others[0] ? "; not taken as steps: " : "", others, next, steps_lead(total));
}

static void say_left_out(void)
{
    const uint32_t ranks = kp_run_all_left_out();
    if (ranks && had_activity() && !has_new_files()) /* else it started the ranks that recorded */
        kp_log(0, "no trace: KPROF_RANKS=%s names no rank of this job, which has %u", config->ranks, ranks);
}

/* All ranks of a job have the same phases, so that rank 0 alone says it. */
static void say_phases_missed(const struct kp_finish_totals *total)
{
    if (total->traces && kp_phases_are_set() && !kp_run_rank().rank) kp_phaserun_say_never_begun();
}

/* Shells and their like are recorded, too, where the heap or calls by name are, and have no steps. */
static bool is_helper_program(void) { return !kp_sources_had_work() && (!is_command || has_new_files()); }

static void say_nothing_written(const struct kp_finish_totals *total)
{
    uint64_t seen = kp_steps_seen();
    const bool is_due = schedule->set && (schedule->active || kp_phases_are_set());
    if (!is_due || total->failed || kp_window_ever_recorded() || kp_run_is_worker()) return;
    if (kp_run_cannot_record()) return; /* that was the reason, and it was logged */
    if (!seen && (!had_activity() || kp_children_is_multiprocessing() || is_helper_program())) return;
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

/* With --schedule none, or where a launcher's ranks say themselves that the schedule was not met. */
static bool is_silence_meant(void)
{
    if (!schedule->set || config->ring) return false;
    return kp_procfacts_is_launcher() || (!schedule->active && !kp_phases_are_set() && config->control);
}

/* `kprof run` tells of a program that ran no op, LD_PRELOAD does not. A schedule that was not met is told apart. */
static void say_nothing_recorded(const struct kp_finish_totals *total)
{
    const bool is_told = had_activity() && !kp_window_ever_recorded(), is_ring = had_activity() && config->ring;
    if (!(is_command || is_ring) || is_told || total->traces || total->kept || total->failed || total->lost) return;
    if (kp_run_cannot_record() || kp_run_is_worker() || has_new_files() || is_silence_meant()) return;
    if (is_ring) kp_log(0, "no trace: nothing was recorded in the last %s of the program (KPROF_RING)", config->ring);
    if (is_ring) return;
    kp_log(0,
           "nothing was recorded: %s ran no PyTorch op and no CUDA call%s. kprof does not time lines of plain Python. "
           "kprof run --malloc trace records the heap of any program, --symbols its calls of C functions",
           program_invocation_short_name, had_activity() && schedule->set ? " in a window" : "");
}

void kp_closingline_say(const struct kp_finish_totals *total, const char *last)
{
    char head[64];
    say_phases_missed(total);
    if (total->traces == 1) {
        say_totals("wrote ", kp_path_display(last), total);
    } else if (total->traces) {
        kp_fmt(head, sizeof head, "wrote %lu traces, the last is ", (unsigned long)total->traces);
        say_totals(head, kp_path_display(last), total);
    } else if (total->kept_events) {
        say_totals("kept ", kp_path_display(kp_record_path()), total);
    }
    if (total->traces && total->kept)
        kp_log(0, "writing the traces took too long: %lu more recording%s stay%s in %s. Next: kprof export",
               (unsigned long)total->kept, kp_units_s(total->kept), total->kept == 1 ? "s" : "",
               kp_path_display(kp_record_path()));
    if (total->traces) say_beside(config->exports);
    if (total->failed > 1)
        kp_log(0, "%lu recordings have no trace yet, and stay in %s. Next: kprof recover", (unsigned long)total->failed,
               kp_path_display(kp_record_path()));
    if (kp_window_skipped())
        kp_log(0, "%lu recordings were left out: writing the traces took too long", (unsigned long)kp_window_skipped());
}

void kp_closingline_say_missing(const struct kp_finish_totals *total)
{
    say_left_out();
    say_nothing_written(total);
    say_nothing_recorded(total);
}

void kp_closingline_say_signal(int number)
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
