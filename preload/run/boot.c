// SPDX-License-Identifier: Apache-2.0
/*
 * boot.c - starts the library in the host: the constructor, the wiring of the rooms, fork and exit
 *
 * Called by: the loader (constructor, destructor), fork (its three handlers), hook/dlfollow.c (modules changed),
 *            kprof-tick (tick)
 * Owns:      the frozen configuration, the list of sources, the calls that run.c passes on
 * Locks:     `attaching` (an atomic flag, never waited for)
 * On fail:   a failed step of start-up logs a line, and the host runs as without the library
 * Safe in:   after fork: the child records nothing, since its gate page is wiped. With KPROF_CHILDREN=1 it begins a run
 *            of its own at its first op. A program that it executes starts from the beginning.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/base/kp_arena.h"
#include "collector/base/kp_clock.h"
#include "collector/base/kp_config.h"
#include "collector/base/kp_gate.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_otherlibc.h"
#include "collector/base/kp_helper_pause.h"
#include "collector/record/kp_record.h"
#include "preload/run/children.h"
#include "preload/run/cycle.h"
#include "preload/hook/hook.h"
#include "preload/hook/getenv.h"
#include "preload/run/locks.h"
#include "preload/run/procfacts.h"
#include "preload/unwind/kp_unwind.h"
#include "preload/run/solo.h"
#include "preload/run.h"
#include "preload/source.h"
#include "preload/run/spools.h"
#include "preload/run/threadcount.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

#define SECOND_NS UINT64_C(1000000000)

static const struct kp_source *const sources[] = {&kp_torch_source,
                                                  &kp_python_source,
                                                  &kp_markers_source,
                                                  &kp_nvtx_source,
                                                  &kp_cupti_source,
                                                  &kp_cuda_hooks_source,
                                                  &kp_driver_source,
                                                  &kp_heap_source,
                                                  &kp_calltrace_source,
                                                  &kp_stepcalls_source,
                                                  NULL};
static bool attached[sizeof sources / sizeof sources[0]];
static const struct kp_source
    *child_sources[sizeof sources / sizeof sources[0]]; /* in a child: those that record there */
static bool is_out[sizeof sources / sizeof sources[0]]; /* in a child: those that do not record there */
static _Atomic uint32_t attaching;
static struct kp_config *config; /* read-only after the constructor */
static struct kp_schedule schedule;
static struct kp_step_rule step_rule;

/* Whether a source saw activity, recorded or not. */
static bool had_activity(void)
{
    for (size_t i = 0; sources[i]; i++)
        if (attached[i] && sources[i]->had_activity && sources[i]->had_activity()) return true;
    return false;
}

/* Whether a source saw activity since the last call. torch's answer comes first: CUDA only knows that it was used. */
static bool had_activity_since(void)
{
    for (size_t i = 0; sources[i]; i++)
        if (attached[i] && sources[i]->had_activity_since && sources[i]->had_activity())
            return sources[i]->had_activity_since();
    return had_activity();
}

static void gpu_changed(void)
{
    for (size_t i = 0; sources[i]; i++)
        if (sources[i]->gpu_changed) sources[i]->gpu_changed();
}

/* Writes the launcher's variables, by which a reader tells the rank. The environment is read once. */
static size_t launcher_lines(char *buf, size_t size)
{
    static const char *const names[] = {"RANK",
                                        "LOCAL_RANK",
                                        "WORLD_SIZE",
                                        "SLURM_PROCID",
                                        "SLURM_NTASKS",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "PMIX_RANK",
                                        "PT_PROFILER_JOB_NAME",
                                        "PT_PROFILER_JOB_VERSION",
                                        "PT_PROFILER_JOB_ATTEMPT_INDEX",
                                        NULL};
    size_t used = 0;
    for (char **e = environ; e && *e; e++)
        for (const char *const *n = names; *n; n++) {
            size_t len = strlen(*n);
            if (strncmp(*e, *n, len) != 0 || (*e)[len] != '=' || used + strlen(*e) + 8 >= size) continue;
            used += kp_fmt(buf + used, size - used, "env.%s\n", *e);
        }
    return used;
}

enum { LAUNCHER_BYTES = 8192 };
static char header_text[LAUNCHER_BYTES + sizeof((struct kp_config *)0)->store + sizeof((struct kp_config *)0)->lines];
static char log_path[4096];

/* Sets the log's target, before the first line. */
static void fix_log(void)
{
    kp_log_hold_stderr();
    if (strcmp(config->log, "stderr") != 0 && strcmp(config->log, "none") != 0) {
        kp_path_make_absolute(log_path, sizeof log_path, config->log);
        if (strlen(log_path) < sizeof log_path - 1) kp_log_set_target(log_path);
        else kp_config_refuse(config, KP_SET_log, "is too long", "using stderr");
        return;
    }
    kp_log_set_target(config->log);
}

static void tick(void)
{
    if (!kp_run_is_active()) return;
    kp_log_follow_stderr();
    kp_hook_scan();
    kp_finish_tick();
}

int __cxa_atexit(void (*fn)(void *), void *arg, void *object); /* libc's; it may allocate, once for many handlers */

static void exit_begins(void *unused)
{
    int saved = errno;
    (void)unused;
    kp_run_turn_close();
    errno = saved;
}

/*
 * The thread kprof-clock counts steps by time, where the rule or a program without steps asks for it. The ticker
 * cannot: it does not run while the schedule waits. The thread ends when anything else counts steps.
 */
static void *clock_thread(void *unused)
{
    uint64_t period;
    (void)unused;
    while (kp_run_is_active() && !kp_io_helpers_alone() && (period = kp_steps_time_period_ns()) != 0) {
        if (period > SECOND_NS) period = SECOND_NS; /* wakes to see whether the process ends */
        kp_helpers_sleep(period);
        if (kp_helpers_pause_wanted()) break;
        if (!kp_run_turn_begin()) continue;
        if (had_activity() && kp_steps_time(kp_clock_ns(CLOCK_MONOTONIC), had_activity_since())) {
            struct kp_thread *self = kp_thread_get();
            if (self) kp_run_step(self, kp_ticks());
        }
        kp_run_turn_end();
    }
    return NULL;
}

static void start_clock(void)
{
    if (!schedule.set || !kp_steps_time_period_ns()) return;
    if (kp_helpers_start(clock_thread, "kprof-clock", KP_IO_NICE, NULL) != 0)
        kp_log(0, "no thread for steps by time: only the program's own steps count");
}

static void note_worker(void)
{
    char pid[16];
    kp_fmt(pid, sizeof pid, "%d", (int)kp_run_parent_pid());
    kp_record_note("parent_pid", pid);
    kp_children_register(kp_record_path());
}

static int open_spool(void)
{
    struct kp_record_options options = {
        .dir = kp_run_spool_dir(),
        .max_bytes = config->max_mb << 20,
        .text = header_text,
        .tick = tick,
    };
    if (kp_record_is_open()) return 0;
    int err = kp_record_open(&options);
    if (!err) kp_spools_note_process();
    if (!err) kp_procfacts_note_begin();
    if (!err && kp_run_is_worker()) note_worker();
    return err;
}

static bool is_run_begun;
static _Atomic bool is_asked; /* a thread wants the sources to attach */
static bool is_forked;        /* a child that records */

/* Registers the exit handler. A forked child has its parent's, so it registers none. It may begin inside libc
 * with the handlers' list locked, and registering allocates. */
static void watch_exit(void)
{
    static bool is_watched;
    if (!is_watched && kp_fail_point("atexit") == 0) __cxa_atexit(exit_begins, NULL, NULL);
    is_watched = true;
}

/* Ends recording before it begins: the host forbade this thread to read the processor's clock. */
static void give_up(void)
{
    kp_gate_set(0);
    kp_run_set_active(false);
    kp_log(0, "nothing is recorded: the program forbade itself the processor's clock (PR_SET_TSC)");
}

static void begin_run(void)
{
    if (!is_run_begun && kp_io_is_tsc_refused()) {
        give_up();
        return;
    }
    if (!is_run_begun) {
        kp_log_keep();
        kp_config_complain(config);
        kp_config_log(config);
        kp_run_own();
        kp_solo_install();
        kp_threadcount_install();
    }
    kp_cycle_begin_run(false);
    if (!is_run_begun && schedule.set) watch_exit();
    if (!is_run_begun && kp_run_is_worker() && schedule.set) kp_children_follow();
    else if (!is_run_begun) start_clock();
    is_run_begun = true;
}

/* Attaches sources. The first that attaches begins the run; begin_run() tells a later one the run's state. */
static void attach_sources(void)
{
    bool is_news = false, works = false;
    for (size_t i = 0; sources[i]; i++) {
        if (is_forked && is_out[i]) continue;
        if (attached[i] && sources[i]->modules_changed) sources[i]->modules_changed();
        if (attached[i] || !sources[i]->attach()) continue;
        attached[i] = is_news = true;
        works |= sources[i]->starts_active;
    }
    if (is_news) begin_run();
    if (works) kp_run_saw_activity();
}

/* Begins the run of a forked child. In other processes it began when a source attached. */
static void first_activity(void)
{
    kp_children_worked();
    if (is_forked) begin_run();
}

/*
 * Never waits: a thread that finds another attaching sets is_asked, and the other looks again. Both change `attaching`
 * by an exchange. If the asking thread comes first, the other reads its value there, and so sees is_asked. A plain
 * store of 0 would not do.
 */
static void modules_changed(void)
{
    if (!kp_run_is_active()) return;
    int saved = errno;
    (void)kp_exchange_acq_rel(&is_asked, true);
    while (!kp_exchange_acq_rel(&attaching, 1)) { /* pairs with: below */
        while (kp_exchange_acq_rel(&is_asked, false)) attach_sources();
        (void)kp_exchange_acq_rel(&attaching, 0); /* pairs with: above */
        if (!kp_load_acquire(&is_asked)) break;
    }
    errno = saved;
}

/*
 * Nothing resets the loader's list lock and torch's callback lock in a child. So at a fork no thread of this library
 * holds the first, and the forking thread holds the second. Host threads that hold the loader's lock are the host's
 * concern. The wait for each is bounded. It fails only if a signal handler forks on the thread that holds the lock.
 * What needs the lock then stays out of the child.
 */
static _Thread_local bool holds_scan __attribute__((tls_model("initial-exec")));
static _Thread_local bool holds_cycle __attribute__((tls_model("initial-exec")));
static _Thread_local uint32_t held_sources
    __attribute__((tls_model("initial-exec"))); /* a bit each: before_fork() took its locks */
static _Thread_local uint32_t lost_sources
    __attribute__((tls_model("initial-exec"))); /* a bit each: before_fork() could not */

static void before_fork(void)
{
    holds_scan = holds_cycle = false;
    held_sources = lost_sources = 0;
    if (!kp_run_is_active()) return;
    int saved = errno;
    holds_scan = kp_hook_before_fork();
    holds_cycle = kp_cycle_before_fork();
    for (uint32_t i = 0; sources[i]; i++) {
        if (!attached[i] || !sources[i]->before_fork) continue;
        if (sources[i]->before_fork()) held_sources |= 1u << i;
        else lost_sources |= 1u << i;
    }
    errno = saved;
}

static void give_sources(bool is_child)
{
    for (uint32_t i = 0; sources[i]; i++)
        if (held_sources >> i & 1) sources[i]->after_fork(is_child);
}

static void after_fork_in_parent(void)
{
    give_sources(false);
    if (holds_cycle) kp_cycle_after_fork();
    if (holds_scan) kp_hook_after_fork();
}

/* Resets all state inherited from the parent, and begins recording. */
static void begin_in_child(void)
{
    const bool was_worker = kp_run_is_worker();
    uint32_t n = 0;
    kp_children_forked();
    if (!was_worker && kp_run_is_worker()) kp_run_move_to_children();
    kp_io_after_fork();
    kp_helpers_after_fork();
    kp_hook_begin_in_child();
    kp_unwind_begin_in_child(); /* frames kept so far are in the parent's file */
    kp_run_begin_in_child();
    kp_store_relaxed(&is_asked, false);
    is_forked = true;
    kp_store_relaxed(&attaching, 0);
    is_run_begun = false;
    for (size_t i = 0; sources[i]; i++) {
        is_out[i] = !sources[i]->begin_in_child || lost_sources >> i & 1;
        if (!is_out[i]) child_sources[n++] = sources[i];
        else attached[i] = false;
    }
    child_sources[n] = NULL;
    kp_steps_start_over(&schedule);
    kp_cycle_begin_in_child(&schedule, child_sources);
    kp_finish_begin_in_child();
    kp_gate_set(kp_gate_make(0, KP_GATE_ON));
    kp_run_set_active(true);
    for (size_t i = 0; i < n; i++) child_sources[i]->begin_in_child();
}

static void after_fork_in_child(void)
{
    bool goes_on = kp_children_are_wanted() && holds_cycle;
    int saved = errno;
    give_sources(true);
    kp_gate_set(0); /* already wiped, unless a test turned that off (gate.c) */
    goes_on &= kp_run_set_active(false);
    kp_log_release();
    kp_record_after_fork();
    if (goes_on) begin_in_child();
    errno = saved;
}

/* Logs why nothing will be recorded. */
static int refuse(const char *why, int err)
{
    kp_log(0, "nothing is recorded: %s (%s)", why, kp_log_error_text(err));
    return err;
}

/* Logs that there is no memory for the settings. Reads only KPROF_LOG, the log's target. */
static int refuse_early(void)
{
    if (getauxval(AT_SECURE)) return -ECANCELED;
    for (char **e = environ; e && *e; e++)
        if (strncmp(*e, "KPROF_LOG=", 10) == 0 && (*e)[10]) {
            kp_log_set_target(*e + 10);
            break;
        }
    return refuse("no memory", -ENOMEM);
}

static int read_settings(void)
{
    config = kp_map_alloc(sizeof *config);
    if (!config) return refuse_early();
    kp_config_read(config, environ);
    if (!config->on) return -ECANCELED;
    kp_run_set_folders(config->dir, config->spool_dir ? config->spool_dir : config->dir);
    fix_log();
    kp_schedule_from_config(config, &schedule, &step_rule);
    size_t used =
        launcher_lines(header_text, LAUNCHER_BYTES); /* first, so that a long KPROF_METADATA cannot push the rank out */
    kp_config_text(config, header_text + used, sizeof header_text - used);
    return 0;
}

static void attach_first(void)
{
    int err = kp_hook_start();
    if (err)
        kp_log(0,
               "not all modules could be tapped (%s): what runs in them, and libraries opened later, may not be "
               "recorded",
               kp_log_error_text(err));
    if (!err) err = kp_getenv_start(config->activities & KP_ACTIVITY_CUDA, kp_locks_rows, KP_LOCKS_ROWS);
    if (err) kp_log(0, "NVTX ranges cannot be recorded (%s)", kp_log_error_text(err));
    modules_changed();
}

static void end_early(void);
static const struct kp_run_calls calls = {
    .modules_changed = modules_changed,
    .step = kp_cycle_step,
    .first_activity = first_activity,
    .gpu_changed = gpu_changed,
    .open_spool = open_spool,
    .end = end_early,
};

static int start(void)
{
    int err = read_settings();
    if (err) return err;
    kp_run_set_calls(&calls);
    kp_log_set_level((int)config->verbose);
    kp_fail_set(config->test_fail);
    kp_clock_init();
    err = kp_gate_init();
    if (err) return refuse("there is no page that is wiped at a fork", err);
    err = kp_steps_init(&schedule, &step_rule);
    if (err) return refuse("what marks a step cannot be looked for", err);
    kp_cycle_setup(config, &schedule, sources);
    for (size_t i = 0; sources[i]; i++)
        if (sources[i]->setup) sources[i]->setup(config);
    kp_finish_setup(config, &schedule, had_activity);
    kp_spools_setup(config);
    kp_children_setup(config);
    if (kp_run_is_worker()) kp_run_move_to_children();
    (void)kp_io_mprotect(config, sizeof *config, PROT_READ);
    if (kp_fail_point("atfork") != 0 ||
        __register_atfork(before_fork, after_fork_in_parent, after_fork_in_child, &__dso_handle) != 0)
        return refuse("no memory to follow forks", -ENOMEM);
    kp_gate_set(kp_gate_make(0, KP_GATE_ON));
    kp_run_set_active(true);
    attach_first();
    return 0;
}

__attribute__((constructor)) static void kprof_begin(void)
{
    if (!kp_libc_is_glibc()) return;
    int saved = errno;
    start();
    errno = saved;
}

__attribute__((destructor)) static void kprof_end(void)
{
    if (!kp_run_is_active()) return;
    int saved = errno;
    /* exit() may run in a signal handler: the code it interrupted never goes on. If that is a step that holds its lock,
     * the user runs kprof recover. */
    bool is_ended = kp_cycle_end_run();
    if (kp_thread_self) kp_store_release(&kp_thread_self->inside, 0); /* pairs with: quiesce.c:is_quiet */
    if (is_ended) kp_finish_exit();
    else kp_log(0, "exit() was called during a step: no trace was written; run: kprof recover %s", kp_record_path());
    kp_gate_set(0);
    kp_run_set_active(false);
    errno = saved;
}

static void end_early(void)
{
    exit_begins(NULL);
    kprof_end();
}
