// SPDX-License-Identifier: Apache-2.0
/*
 * stepnote.c - the thread kprof-summary: takes each step's line once a second, and writes what was asked for
 *
 * Called by: boot.c, begin.c, exit.c, fork.c; the thread kprof-summary
 * Owns:      KPROF_DIR/HOST_PID.TIME.steps, the file of KPROF_PROM, the state of KPROF_TRIGGER; it writes the files of
 *            KPROF_ON_OOM
 * Locks:     none. While it asks for a window it has the run's turn.
 * Memory:    one mapping, made when the run begins
 * On fail:   a line is logged once; steps without a line are counted
 * Safe in:   signal handlers no; after fork: kp_stepnote_forget comes first
 */
#include "preload/run/stepnote.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/kp_atomic.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_helper_threads.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/text/kp_units.h"
#include "collector/record/kp_record.h"
#include "preload/procfacts/procfacts.h"
#include "preload/run.h"
#include "preload/blackbox/oomfile.h"
#include "preload/torch_bridge.h"
#include "preload/finish/finish.h"
#include "preload/window/window.h"
#include "preload/summary/steplines.h"
#include "schedule/trigger.h"
#include "collector/base/kp_poison.h"

#define SECOND_NS UINT64_C(1000000000)
#define BEAT_NS (10 * SECOND_NS) /* the file says so often that the process lives */
#define PROM_NS (30 * SECOND_NS)
#define BEHIND_NS (15 * SECOND_NS)
enum { END_MS = 1000, RECORD_STEPS = 3, LINES = 64, PROM_BYTES = 8192 };
enum { ENDING_NO, ENDING_WANTED, ENDING_DONE };

static const struct kp_config *config;
static struct kp_trigger trigger;
static bool has_trigger;
static _Atomic uint32_t bell, ending;
static _Atomic bool is_running;
static struct summary {
    struct kp_stepfile file;
    struct kp_promtext prom;
    uint64_t written_ns, prom_ns; /* when the file, and the metrics, were last written */
    uint64_t others_ns;           /* when the other ranks were last looked at */
    uint64_t lost;                /* steps that found no room so far */
    struct kp_stepline lines[LINES];
    char prom_path[4300], prom_new[4310], text[PROM_BYTES];
} * s; /* NULL: nothing was asked for */

void kp_stepnote_setup(struct kp_config *settings)
{
    char why[100];
    config = settings;
    has_trigger = settings->trigger && kp_trigger_parse(settings->trigger, &trigger, why, sizeof why) == 0;
    if (settings->trigger && !has_trigger) kp_config_refuse(settings, KP_SET_trigger, why, "none");
    if (trigger.is_of_oom) settings->on_oom = KP_OOM_DUMP;
    if (!trigger.is_of_behind) return;
    settings->summary = true;
    kp_torch_collectives_watch();
}

bool kp_stepnote_is_trigger(void) { return has_trigger; }

static bool has_lines(void) { return config->summary || config->prom || kp_trigger_is_of_steps(&trigger); }

/* ---- the file ---- */

static void head_fill(struct kp_stephead *head)
{
    const struct kp_rank place = kp_run_rank();
    char host[KP_IO_HOST_BYTES];
    memcpy(head->magic, KP_STEPLINE_MAGIC, sizeof head->magic);
    head->head_bytes = sizeof *head;
    head->line_bytes = sizeof(struct kp_stepline);
    head->pid = (int32_t)getpid();
    head->rank = place.rank;
    head->ranks = place.size;
    head->process_start = kp_io_process_start(0);
    head->begin_ns = kp_clock_ns(CLOCK_REALTIME);
    kp_io_host_name(host);
    kp_fmt(head->host, sizeof head->host, "%s", host);
    kp_procfacts_own_script(head->script, sizeof head->script);
    kp_fmt(head->job, sizeof head->job, "%s", kp_run_job());
}

static void file_write(uint64_t now_ns, bool is_last)
{
    struct kp_stepfile *const file = &s->file;
    if (!config->summary || (!file->at && !file->out_count)) return;
    if (!file->out_count && !is_last && now_ns - s->written_ns < BEAT_NS) return;
    const struct kp_rank place = kp_run_rank(); /* a process group may have said it later */
    file->head.rank = place.rank;
    file->head.ranks = place.size;
    s->written_ns = now_ns;
    int rc = is_last ? kp_stepfile_end(file, now_ns) : kp_stepfile_flush(file, now_ns);
    if (rc == -ENOENT) { /* the folder is not there, and what refuses it is the cause */
        const int made = kp_io_mkdirs(kp_run_out_dir(), KP_IO_FOLDER_MODE);
        if (made < 0) rc = made;
    }
    if (rc < 0)
        KP_LOG_ONCE(0, "the lines of KPROF_SUMMARY cannot be written to %s: %s", file->path, kp_log_error_text(rc));
}

/* ---- metrics ---- */

static int prom_put(size_t bytes)
{
    const int fd = kp_io_open(s->prom_new, O_WRONLY | O_CREAT | O_TRUNC, KP_IO_FILE_MODE);
    if (fd < 0) return fd;
    ssize_t rc = kp_io_pwrite_all(fd, s->text, bytes, 0);
    kp_io_close(fd);
    if (rc >= 0) rc = kp_io_rename(s->prom_new, s->prom_path);
    if (rc < 0) (void)kp_io_unlink(s->prom_new);
    return rc < 0 ? (int)rc : 0;
}

/* A reader sees a whole file: it is renamed into its place. */
static void prom_write(uint64_t now_ns, bool is_last)
{
    if (!config->prom || !s->prom.steps || (!is_last && now_ns - s->prom_ns < PROM_NS)) return;
    struct kp_finish_totals totals;
    kp_finish_look(&totals);
    s->prom.traces = totals.traces;
    s->prom.lost = kp_loss_total();
    s->prom_ns = now_ns;
    kp_promtext_path(config->prom, &s->file.head, s->prom_path, sizeof s->prom_path);
    kp_fmt(s->prom_new, sizeof s->prom_new, "%s.new", s->prom_path);
    const size_t bytes = kp_promtext_write(&s->prom, &s->file.head, s->text, sizeof s->text);
    const int rc = bytes < sizeof s->text ? prom_put(bytes) : -EOVERFLOW;
    if (rc < 0) KP_LOG_ONCE(0, "KPROF_PROM=%s cannot be written: %s", s->prom_path, kp_log_error_text(rc));
}

/* ---- what to record next ---- */

/* Exit that has begun, or another thread's turn: the next long step may do as well. */
static bool window_ask(uint64_t *begins)
{
    const struct kp_window_wish wish = {.when = KP_WISH_NEXT, .steps = RECORD_STEPS};
    if (!kp_run_turn_begin()) return false;
    const int rc = kp_window_ask(&wish, begins);
    kp_run_turn_end();
    return rc == 0;
}

static void trigger_look(const struct kp_stepline *line)
{
    uint64_t median_ns = 0, period = 0, begins = 0;
    if (!kp_trigger_is_of_steps(&trigger) || line->recorded || !line->dur_ns) return;
    const enum kp_trigger_verdict verdict =
        kp_trigger_step(&trigger, line->step, line->dur_ns, kp_clock_ns(CLOCK_MONOTONIC), &median_ns, &period);
    const unsigned long step = line->step, ms = line->dur_ns / 1000000, median_ms = median_ns / 1000000;
    if (verdict == KP_TRIGGER_PERIODIC)
        kp_log(0, "each %luth step is long (step %lu took %lu ms, the median is %lu ms): KPROF_TRIGGER leaves them out",
               (unsigned long)period, step, ms, median_ms);
    if (verdict != KP_TRIGGER_LONG || !window_ask(&begins)) return;
    kp_log(0, "step %lu took %lu ms, the median is %lu ms: steps %lu to %lu are recorded (KPROF_TRIGGER)", step, ms,
           median_ms, (unsigned long)begins, (unsigned long)(begins + RECORD_STEPS - 1));
}

static void oom_look(void)
{
    uint64_t begins = 0;
    if (!kp_oomfile_turn() || !kp_trigger_oom(&trigger, kp_clock_ns(CLOCK_MONOTONIC)) || !window_ask(&begins)) return;
    kp_log(0, "out of memory: steps %lu to %lu are recorded (KPROF_TRIGGER)", (unsigned long)begins,
           (unsigned long)(begins + RECORD_STEPS - 1));
}

/* In each step the other ranks wait in a collective, and this one hardly does. */
static void behind_look(uint64_t now_ns)
{
    struct kp_stephead head;
    uint64_t own, others[KP_OTHERRANKS_MOST], median, begins = 0;
    if (!trigger.is_of_behind || s->file.head.ranks < 2 || now_ns - s->others_ns < BEHIND_NS) return;
    s->others_ns = now_ns;
    if (kp_otherranks_share(s->file.path, &head, &own) != 0) return;
    const size_t count = kp_otherranks_shares(kp_run_out_dir(), &head, now_ns, others);
    const uint64_t at_ns = kp_clock_ns(CLOCK_MONOTONIC);
    if (!kp_trigger_behind(&trigger, own, others, count, at_ns, &median) || !window_ask(&begins)) return;
    kp_log(0,
           "rank %u is behind: a collective is open for %lu %% of its steps, and for %lu %% of those of %lu other "
           "rank%s: steps %lu to %lu are recorded (KPROF_TRIGGER)",
           head.rank, own / 10, median / 10, (unsigned long)count, kp_units_s(count), (unsigned long)begins,
           (unsigned long)(begins + RECORD_STEPS - 1));
}

/* ---- the thread ---- */

static void lines_take(void)
{
    size_t count;
    while ((count = kp_steplines_take(s->lines, LINES)) != 0) {
        if (config->summary && !s->file.at) (void)kp_io_mkdirs(kp_run_out_dir(), KP_IO_FOLDER_MODE);
        for (size_t i = 0; i < count; i++) {
            if (config->summary) kp_stepfile_add(&s->file, &s->lines[i]);
            if (config->prom) kp_promtext_add(&s->prom, &s->lines[i]);
            trigger_look(&s->lines[i]);
        }
    }
}

static void beat(bool is_last)
{
    const uint64_t now_ns = kp_clock_ns(CLOCK_REALTIME);
    oom_look();
    lines_take();
    const uint64_t lost = kp_steplines_lost();
    s->file.head.lost += lost - s->lost;
    s->lost = lost;
    file_write(now_ns, is_last);
    prom_write(now_ns, is_last);
    if (!is_last) behind_look(now_ns);
}

static void bell_ring(void)
{
    kp_add_relaxed(&bell, 1);
    kp_io_wake(&bell);
}

void kp_stepnote_out_of_memory(const struct kp_run_oom *oom)
{
    const int saved = errno;
    const bool is_made = kp_oomfile_make(oom);
    const bool is_there = kp_load_acquire(&is_running) && !kp_helpers_pause_wanted(); /* pairs with: summary_thread */
    if (is_made && is_there) bell_ring();
    if (is_made && is_there) kp_oomfile_wait();
    else if (is_made) (void)kp_oomfile_turn();
    errno = saved;
}

static void *summary_thread(void *unused)
{
    (void)unused;
    kp_io_apart(true);                   /* the folder may stand */
    kp_store_release(&is_running, true); /* pairs with: kp_stepnote_end */
    while (kp_run_is_active() && !kp_helpers_pause_wanted() && !kp_io_helpers_alone()) {
        const uint32_t seen = kp_load_acquire(&bell);                   /* pairs with: bell_ring */
        const bool is_last = kp_load_acquire(&ending) == ENDING_WANTED; /* pairs with: kp_stepnote_end */
        beat(is_last);
        if (is_last) break;
        kp_io_wait(&bell, seen, SECOND_NS);
    }
    uint32_t wanted = ENDING_WANTED;
    (void)kp_exchange_acq_rel(&is_running, false);       /* pairs with: kp_stepnote_end */
    (void)kp_cas_acq_rel(&ending, &wanted, ENDING_DONE); /* pairs with: kp_stepnote_end; not in a pause */
    kp_io_wake(&ending);
    return NULL;
}

/* ---- begin and end ---- */

static int made(void)
{
    if (!s) s = kp_map_alloc(sizeof *s);
    if (!s) return -ENOMEM;
    head_fill(&s->file.head);
    const struct kp_stephead *const head = &s->file.head;
    char rank[16] = "";
    if (head->ranks > 1) kp_fmt(rank, sizeof rank, "_r%u", head->rank);
    kp_fmt(s->file.path, sizeof s->file.path, "%s/%s%s_%d.%lu.steps", kp_run_out_dir(), head->host, rank,
           (int)head->pid, (unsigned long)head->begin_ns);
    return has_lines() ? kp_steplines_begin(kp_torch_collectives_ns) : 0;
}

void kp_stepnote_begin(void)
{
    if ((!has_lines() && !kp_config_dumps_oom(config)) || kp_run_is_worker()) return;
    int rc = made();
    if (rc == 0) rc = kp_helpers_start(summary_thread, "kprof-summary", KP_IO_NICE, bell_ring);
    if (rc < 0) kp_log(0, "no line a step, and no trigger: %s", kp_log_error_text(rc));
}

void kp_stepnote_end(void)
{
    uint32_t none = ENDING_NO;
    if (!kp_load_acquire(&is_running)) return;                  /* pairs with: summary_thread */
    if (!kp_cas_acq_rel(&ending, &none, ENDING_WANTED)) return; /* pairs with: summary_thread */
    bell_ring();
    const uint64_t until_ms = kp_clock_ms() + END_MS;
    while (kp_load_acquire(&ending) == ENDING_WANTED && kp_clock_ms() < until_ms) /* pairs with: summary_thread */
        kp_io_wait(&ending, ENDING_WANTED, SECOND_NS / 20);
}

void kp_stepnote_forget(void)
{
    s = NULL;
    kp_store_relaxed(&is_running, false);
    kp_store_relaxed(&ending, ENDING_NO);
    kp_steplines_forget();
}
