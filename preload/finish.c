// SPDX-License-Identifier: Apache-2.0
/*
 * finish.c - from a closed window to a file on disk, behind the host's back; and the closing line
 *
 * Called by: the writer thread each tick (close windows), the export thread (write traces), exit (whatever is left)
 * Owns:      the queue of windows to export, the export thread, the totals of the closing line
 * Locks:     finish_lock, rank 0 (before cycle_lock); never held while a trace is being written
 * On fail:   a trace that cannot be written stays in the spool, which then is not removed; one line says so
 * Safe in:   signal handlers no; after fork no
 */
#include "preload/cycle.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "collector/base/kp_clock.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/read/kp_read.h"
#include "collector/record/kp_record.h"
#include "export/kp_export.h"
#include "preload/boot.h"
#include "collector/base/kp_poison.h"

enum { EXPORTS_MAX = 512, QUIESCE_MS = 200, PROGRESS_AFTER_MS = 1000, EXPORT_NICE = 10 };

static pthread_mutex_t finish_lock = PTHREAD_MUTEX_INITIALIZER;
static const struct kp_config *config;
static uint32_t to_export[EXPORTS_MAX];
static uint32_t export_head, export_count;
static bool exporting, exiting;

/* Totals of the closing line, under finish_lock. */
static struct {
    uint64_t traces, failed, steps, events, lost, kept;
    bool cut;
    char last[4096];
} total;

void kp_finish_setup(const struct kp_config *settings)
{
    config = settings;
}

/* Everything of the window is in the spool and its chunks are quiet: say so in the file, and queue it. */
static void close_one(const struct kp_window *window)
{
    static bool is_late; /* one thread that stays inside is not waited for again at each of many windows; under finish_lock */
    is_late = kp_record_quiesce(window->number, is_late ? 0 : QUIESCE_MS) != 0;
    if (is_late)
        KP_LOG_ONCE(1, "a thread stayed inside a hook for %d ms: its last record may miss the trace", QUIESCE_MS);
    struct kp_rec_cycle rec = {
        .head = {.kind = KP_KIND_CYCLE, .flags = window->cut ? 2 : 1, .size = sizeof rec},
        .cycle = window->number,
        .steps = (uint32_t)window->steps,
        .begin = window->begin,
        .end = window->end,
        .warm_begin = window->warm_begin,
        .first_step = window->first_step,
        .last_step = window->first_step + (window->steps ? window->steps - 1 : 0),
        .lost = window->lost,
    };
    kp_record_clock();
    if (kp_record_meta(&rec, sizeof rec) != 0) KP_LOG_ONCE(0, "the end of a window could not be written to the spool");
    total.steps += window->steps;
    total.cut |= window->cut;
    if ((config->exports & KP_EXPORTS_TRACE) && export_count < EXPORTS_MAX) {
        to_export[(export_head + export_count++) % EXPORTS_MAX] = window->number;
    } else {
        total.kept++;
        total.events += kp_record_events(window->number);
        total.lost += rec.lost;
    }
}

static bool pop_export(uint32_t *number)
{
    pthread_mutex_lock(&finish_lock);
    bool have = export_count > 0;
    if (have) {
        *number = to_export[export_head];
        export_head = (export_head + 1) % EXPORTS_MAX;
        export_count--;
    } else {
        exporting = false;
    }
    pthread_mutex_unlock(&finish_lock);
    return have;
}

struct progress {
    uint64_t began_ms;
    bool said, on_terminal;
};

/* One line, on a terminal, when the host already waits and it takes over a second. */
static int show_progress(void *context, uint64_t events)
{
    struct progress *p = context;
    if (p->said || !p->on_terminal) return 0;
    if (kp_clock_ns(CLOCK_MONOTONIC) / 1000000 - p->began_ms < PROGRESS_AFTER_MS) return 0;
    p->said = true;
    kp_log(0, "writing the trace, %lu events so far", (unsigned long)events);
    return 0;
}

static void account(uint32_t number, int err, const struct kp_export_result *result)
{
    pthread_mutex_lock(&finish_lock);
    if (err == 0) {
        total.traces++;
        total.events += result->events;
        kp_fmt(total.last, sizeof total.last, "%s", result->path);
    } else if (err != -ENODATA) {
        total.failed++;
    }
    total.lost += result->lost; /* also where so much was dropped that there is no trace */
    pthread_mutex_unlock(&finish_lock);
    if (err == 0 || err == -ENODATA) kp_record_recycle(number);
}

static int spool_open(struct kp_reader **reader, char *why, size_t why_bytes)
{
    char path[1024];
    int err = kp_record_reach(path, sizeof path);
    if (err == 0) return kp_reader_open(reader, path, why, why_bytes);
    kp_fmt(why, why_bytes, "the spool was removed");
    return err;
}

static void say_failed(int err, const char *why)
{
    char path[1024];
    bool is_kept = kp_record_reach(path, sizeof path) == 0 && strcmp(path, kp_record_path()) == 0;
    kp_log(0, "no trace written to %s: %s (error %d); the records %s %s%s", kp_boot_out_dir(), why[0] ? why : "export failed",
           -err, is_kept ? "stay in" : "are lost with", kp_record_path(), is_kept ? ", see: kprof recover" : ", which was removed");
}

static void export_one(uint32_t number, bool host_waits)
{
    struct progress progress = {.began_ms = kp_clock_ns(CLOCK_MONOTONIC) / 1000000,
                                .on_terminal = host_waits && isatty(STDERR_FILENO)};
    struct kp_export_options options = {
        .dir = kp_boot_out_dir(),
        .worker_name = config->worker_name,
        .gzip = config->gzip,
        .metadata = config->metadata,
        .progress = show_progress,
        .context = &progress,
    };
    struct kp_export_result result = {.events = 0};
    char why[256] = "";
    struct kp_reader *reader = NULL;
    int err = spool_open(&reader, why, sizeof why);
    if (err == 0) {
        err = kp_export_trace(reader, number, &options, &result);
        kp_reader_close(reader);
    }
    if (err && err != -ENODATA) say_failed(err, why);
    account(number, err, &result);
}

static void *export_thread(void *unused)
{
    uint32_t number;
    (void)unused;
    while (pop_export(&number)) export_one(number, false);
    return NULL;
}

static void close_all(void)
{
    struct kp_window window;
    while (kp_cycle_take_closed(&window)) close_one(&window);
}

void kp_finish_tick(void)
{
    pthread_mutex_lock(&finish_lock);
    if (!exiting) {
        close_all();
        if (export_count && !exporting) {
            exporting = true;
            if (kp_io_thread_nice(export_thread, NULL, "kprof-export", EXPORT_NICE) != 0) exporting = false; /* left for exit */
        }
    }
    pthread_mutex_unlock(&finish_lock);
}

/* The export thread may be in the middle of a trace: wait for that one only. */
static void wait_for_export_thread(void)
{
    struct timespec nap = {.tv_nsec = 2000000};
    for (uint64_t naps = 0;; naps++) {
        pthread_mutex_lock(&finish_lock);
        bool busy = exporting;
        pthread_mutex_unlock(&finish_lock);
        if (!busy) return;
        if (naps == PROGRESS_AFTER_MS / 2 && isatty(STDERR_FILENO)) kp_log(0, "waiting for the trace being written");
        nanosleep(&nap, NULL);
    }
}

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void say_totals(const char *head, const char *path)
{
    char steps[64] = "";
    enum kp_step_source source = kp_steps_source();
    uint64_t n = kp_boot_schedule()->set ? total.steps : kp_steps_seen(); /* without one they mark nothing, see decisions/003 */
    if (source != KP_STEP_NONE)
        kp_fmt(steps, sizeof steps, "%lu step%s by %s, ", (unsigned long)n, plural(n), kp_step_source_name(source));
    kp_log(0, "%s%s (%s%lu op%s, %lu dropped%s)", head, path, steps, (unsigned long)total.events, plural(total.events),
           (unsigned long)total.lost, total.cut && total.steps ? ", cut short by exit" : "");
}

/* Started by Python's multiprocessing (spawn, forkserver): a DataLoader worker runs ops, but owes nobody a step. */
static bool is_spawned_worker(void)
{
    char line[4096];
    int fd = kp_io_open("/proc/self/cmdline", O_RDONLY, 0);
    if (fd < 0) return false;
    ssize_t n = kp_io_read(fd, line, sizeof line);
    kp_io_close(fd);
    return n > 0 && memmem(line, (size_t)n, "--multiprocessing-fork", 22);
}

static void say_nothing_written(const struct kp_schedule *schedule)
{
    uint64_t seen = kp_steps_seen();
    if (!schedule->set || total.failed || kp_cycle_ever_recorded()) return;
    if (kp_boot_cannot_record()) return; /* that was the reason, and it was said */
    if (!seen && (!kp_boot_saw_work() || is_spawned_worker())) return;
    uint64_t needed = kp_schedule_steps_needed(schedule);
    kp_log(0, "no trace: saw %lu step%s, the schedule needs %lu", (unsigned long)seen, plural(seen), (unsigned long)needed);
}

static void say_closing_line(void)
{
    char head[64];
    if (total.traces == 1) {
        say_totals("wrote ", kp_boot_shown(total.last));
    } else if (total.traces) {
        kp_fmt(head, sizeof head, "wrote %lu traces, the last is ", (unsigned long)total.traces);
        say_totals(head, kp_boot_shown(total.last));
    } else if (total.kept && total.events) {
        say_totals("kept ", kp_boot_shown(kp_record_path()));
    }
    if (total.traces && total.kept)
        kp_log(0, "the exporter was behind: %lu more window%s stay%s in %s, see: kprof export", (unsigned long)total.kept,
               plural(total.kept), total.kept == 1 ? "s" : "", kp_boot_shown(kp_record_path()));
    if (kp_cycle_skipped())
        kp_log(0, "%lu windows were left out: the exporter was behind", (unsigned long)kp_cycle_skipped());
}

void kp_finish_exit(void)
{
    pthread_mutex_lock(&finish_lock);
    exiting = true;
    close_all();
    pthread_mutex_unlock(&finish_lock);
    wait_for_export_thread();
    uint32_t number;
    while (pop_export(&number)) export_one(number, true);
    say_closing_line();
    say_nothing_written(kp_boot_schedule());
    if (kp_record_is_open()) kp_record_close(!total.failed && !(total.kept && total.events));
}
