// SPDX-License-Identifier: Apache-2.0
/*
 * boot.c - composition root: the constructor, the wiring of the rooms, fork and exit
 *
 * Called by: the loader (constructor, destructor), fork (child handler), hook/dlfollow.c (modules changed),
 *            the writer thread (tick)
 * Owns:      the frozen configuration, the list of sources
 * Locks:     attach_lock (an atomic flag, never waited for)
 * On fail:   any step of start-up that fails leaves the process as if we were not there
 * Safe in:   after fork: the child is inert (its gate page is wiped), or, with KPROF_CHILDREN=1, begins anew at its first op; a
 *            program it executes starts anew
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
#include "collector/base/kp_rest.h"
#include "collector/record/kp_record.h"
#include "preload/run/boot.h"
#include "preload/run/children.h"
#include "preload/run/cycle.h"
#include "preload/hook/hook.h"
#include "preload/hook/getenv.h"
#include "preload/run/locks.h"
#include "preload/unwind/kp_unwind.h"
#include "preload/run/solo.h"
#include "preload/source.h"
#include "preload/run/spools.h"
#include "preload/run/threadcount.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

#define SECOND_NS UINT64_C(1000000000)

static const struct kp_source *const sources[] = {&kp_torch_source, &kp_python_source, &kp_markers_source, &kp_nvtx_source, &kp_cuda_source,
                                                 &kp_cudart_source, &kp_driver_source, &kp_heap_source, &kp_symbols_source, NULL};
static bool attached[sizeof sources / sizeof sources[0]];
static const struct kp_source *child_sources[sizeof sources / sizeof sources[0]]; /* in a child: those that go on there */
static bool is_out[sizeof sources / sizeof sources[0]]; /* in a child: those that stay out of it */
static _Atomic uint32_t attaching;
static struct kp_config *config; /* read-only once the constructor is through */
static struct kp_schedule schedule;
static struct kp_step_rule step_rule;
static _Atomic bool alive;

bool kp_run_is_active(void)
{
    return kp_load_acquire(&alive) && (kp_gate_get() & KP_GATE_ON);
}

const struct kp_schedule *kp_boot_schedule(void)
{
    return &schedule;
}

bool kp_boot_saw_work(void)
{
    for (size_t i = 0; sources[i]; i++)
        if (attached[i] && sources[i]->saw_work && sources[i]->saw_work()) return true;
    return false;
}

/* As kp_boot_saw_work, since this was last asked. torch's word goes before that of CUDA, which knows only that it was used. */
static bool worked_again(void)
{
    for (size_t i = 0; sources[i]; i++)
        if (attached[i] && sources[i]->worked_again && sources[i]->saw_work()) return sources[i]->worked_again();
    return kp_boot_saw_work();
}

static _Atomic uint32_t gpu = KP_GPU_OPEN;

enum kp_gpu kp_run_gpu(void)
{
    return (enum kp_gpu)kp_load_acquire(&gpu); /* pairs with: kp_run_set_gpu */
}

void kp_run_set_gpu(enum kp_gpu now)
{
    if (kp_exchange_acq_rel(&gpu, (uint32_t)now) == (uint32_t)now) return; /* pairs with: kp_run_gpu */
    for (size_t i = 0; sources[i]; i++)
        if (sources[i]->gpu_changed) sources[i]->gpu_changed();
}

/* Launcher variables a reader needs to tell the rank; read once, like all of the environment. */
static size_t launcher_lines(char *buf, size_t size)
{
    static const char *const names[] = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS",
                                        "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
                                        "PMIX_RANK", "PT_PROFILER_JOB_NAME", "PT_PROFILER_JOB_VERSION",
                                        "PT_PROFILER_JOB_ATTEMPT_INDEX", NULL};
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
static char start_dir[2048], out_dir[4096], spool_dir[4096], log_path[4096];

/* Absolute, since the host may change its folder before anything is written. */
static void absolute(char *out, size_t size, const char *dir)
{
    if (dir[0] == '/' || !start_dir[0])
        kp_fmt(out, size, "%s", dir);
    else
        kp_fmt(out, size, "%s/%s", start_dir, dir);
}

/* A worker's files must not lie where a reader takes each trace for a rank. */
static void move_to_children(void)
{
    const size_t out = strlen(out_dir), spool = strlen(spool_dir);
    kp_fmt(out_dir + out, sizeof out_dir - out, "/children");
    kp_fmt(spool_dir + spool, sizeof spool_dir - spool, "/children");
}

static void fix_folders(void)
{
    if (kp_io_getcwd(start_dir, sizeof start_dir) != 0) start_dir[0] = 0;
    absolute(out_dir, sizeof out_dir, config->dir);
    absolute(spool_dir, sizeof spool_dir, config->spool_dir ? config->spool_dir : config->dir);
}

/* Before anything is said. */
static void fix_log(void)
{
    kp_log_hold_stderr();
    if (strcmp(config->log, "stderr") != 0 && strcmp(config->log, "none") != 0) {
        absolute(log_path, sizeof log_path, config->log);
        if (strlen(log_path) < sizeof log_path - 1) kp_log_set_target(log_path);
        else kp_config_refuse(config, KP_SET_log, "is too long", "using stderr");
        return;
    }
    kp_log_set_target(config->log);
}

const char *kp_run_out_dir(void)
{
    return out_dir;
}

const char *kp_run_spool_dir(void)
{
    return spool_dir;
}

const char *kp_path_display(const char *path)
{
    size_t n = strlen(start_dir);
    return n && strncmp(path, start_dir, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

static void writer_tick(void)
{
    if (!kp_run_is_active()) return;
    kp_log_follow_stderr();
    kp_hook_scan();
    kp_finish_tick();
}

/*
 * A thread of ours that calls into torch must not do so while exit() destroys torch's objects. exit() calls exit_begins before that: it was
 * registered when torch was there already. A thread that is at it is waited for, but not for ever: the host may exit in a signal handler.
 */
static atomic_flag turn = ATOMIC_FLAG_INIT;
static _Atomic bool is_exiting;
int __cxa_atexit(void (*fn)(void *), void *arg, void *object); /* libc's; it may allocate, once for many handlers */
enum { TURN_TRIES = 200, TURN_NAP_NS = 1000000 };

bool kp_run_turn_begin(void)
{
    if (atomic_flag_test_and_set_explicit(&turn, memory_order_acquire)) return false;
    if (kp_run_is_active() && !kp_load_relaxed(&is_exiting)) return true;
    kp_run_turn_end();
    return false;
}

void kp_run_turn_end(void)
{
    atomic_flag_clear_explicit(&turn, memory_order_release);
}

static void exit_begins(void *unused)
{
    int saved = errno;
    (void)unused;
    for (int i = 0; i < TURN_TRIES && atomic_flag_test_and_set_explicit(&turn, memory_order_acquire); i++) kp_io_nap(TURN_NAP_NS);
    kp_store_relaxed(&is_exiting, true);
    kp_run_turn_end();
    errno = saved;
}

/*
 * Steps by time, where the rule or a silent program asks for them: a thread of its own, since the writer does not exist
 * while the schedule waits. It ends as soon as anything else counts steps.
 */
static void *clock_thread(void *unused)
{
    uint64_t period;
    (void)unused;
    while (kp_run_is_active() && !kp_io_helpers_alone() && (period = kp_steps_time_period_ns()) != 0) {
        if (period > SECOND_NS) period = SECOND_NS; /* looks whether the process is over; a step comes when it is due */
        kp_rest_nap(period);
        if (kp_rest_is_wanted()) break;
        if (!kp_run_turn_begin()) continue;
        if (kp_boot_saw_work() && kp_steps_time(kp_clock_ns(CLOCK_MONOTONIC), worked_again())) {
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
    if (kp_rest_thread(clock_thread, "kprof-clock", KP_IO_NICE, NULL) != 0)
        kp_log(0, "no thread for steps by time: only the program's own steps count");
}

static _Atomic int spool_failed;

bool kp_run_cannot_record(void)
{
    return kp_load_relaxed(&spool_failed) != 0;
}

static void note_worker(void)
{
    char pid[16];
    kp_fmt(pid, sizeof pid, "%d", (int)kp_run_parent_pid());
    kp_record_note("parent_pid", pid);
    kp_children_register(kp_record_path());
}

/* Asked at every window: said once, and not tried again. */
int kp_run_open_spool(void)
{
    struct kp_record_options options = {
        .dir = spool_dir,
        .max_bytes = config->max_mb << 20,
        .text = header_text,
        .tick = writer_tick,
    };
    int err = kp_load_relaxed(&spool_failed);
    if (err || kp_record_is_open()) return err;
    err = kp_record_open(&options);
    if (err) kp_store_relaxed(&spool_failed, err);
    if (!err) kp_spools_note_process();
    if (!err && kp_run_is_worker()) note_worker();
    return err;
}

bool kp_run_may_log(void)
{
    return !kp_children_are_collected();
}

bool kp_parent_lacks(const char *setting)
{
    return !kp_children_parent_has(setting);
}

static bool is_run_begun;
static _Atomic bool is_asked; /* sources shall attach */
static _Atomic bool has_worked;
static bool is_forked; /* a child that records */

/* A forked child has its parent's handlers. Not twice: it may begin inside a call of libc that has this list locked, and allocates. */
static void watch_exit(void)
{
    static bool is_watched;
    if (!is_watched && kp_fail_point("atexit") == 0) __cxa_atexit(exit_begins, NULL, NULL);
    is_watched = true;
}

/* The host forbade this thread to look at a clock before there was anything to record: there will be nothing. */
static void give_up(void)
{
    kp_gate_set(0);
    kp_store_release(&alive, false);
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
        kp_solo_install();
        kp_threadcount_install();
    }
    kp_cycle_begin_run(false);
    if (!is_run_begun && schedule.set) watch_exit();
    if (!is_run_begun && kp_run_is_worker() && schedule.set) kp_children_follow();
    else if (!is_run_begun) start_clock();
    is_run_begun = true;
}

/* The first source that has something to record begins the run; a later one is told what the run is at. */
static void attach_sources(void)
{
    bool is_news = false, works = false;
    for (size_t i = 0; sources[i]; i++) {
        if (is_forked && is_out[i]) continue;
        if (attached[i] && sources[i]->modules_changed) sources[i]->modules_changed();
        if (attached[i] || !sources[i]->attach()) continue;
        attached[i] = is_news = true;
        works |= sources[i]->works_from_start;
    }
    if (is_news) begin_run();
    if (works) kp_run_saw_activity();
}

/* Of a process that was not forked the run began when a source attached. The bit goes first: what begins allocates and makes calls. */
void kp_run_saw_activity(void)
{
    if (kp_gate_get() & KP_GATE_AWAITED) kp_gate_set(kp_gate_get() & ~(uint64_t)KP_GATE_AWAITED);
    if (!kp_run_is_active() || kp_exchange_acq_rel(&has_worked, true)) return;
    kp_children_worked();
    if (is_forked) begin_run();
}

/*
 * Never waits: a thread that finds another attaching leaves word, and that one looks again. Both change `attaching` by an exchange: if the
 * asking one comes first, the other reads what it wrote there, and so sees its word; a plain store of 0 would not do.
 */
void kp_run_modules_changed(void)
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
 * The loader's list lock and torch's lock of callbacks are not made anew in a child. So none of our threads may hold the one, and the other is
 * ours at that moment. Host threads that hold the loader's are the host's own affair. Not to be had within their bounds they are only when a
 * signal handler forks on the very thread that holds them: what needs them then stays out of the child.
 */
static _Thread_local bool holds_scan __attribute__((tls_model("initial-exec")));
static _Thread_local bool holds_cycle __attribute__((tls_model("initial-exec")));
static _Thread_local uint32_t held_sources __attribute__((tls_model("initial-exec"))); /* a bit each */
static _Thread_local uint32_t lost_sources __attribute__((tls_model("initial-exec"))); /* those that were not to be had */

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

/* All that was going on is the parent's. */
static void begin_in_child(void)
{
    const bool was_worker = kp_run_is_worker();
    uint32_t n = 0;
    kp_children_forked();
    if (!was_worker && kp_run_is_worker()) move_to_children();
    kp_io_after_fork();
    kp_rest_after_fork();
    kp_hook_begin_in_child();
    kp_native_begin_in_child(); /* frames kept so far are in the parent's file */
    kp_store_relaxed(&spool_failed, 0);
    kp_store_relaxed(&is_asked, false);
    kp_store_relaxed(&has_worked, false);
    is_forked = true;
    atomic_flag_clear_explicit(&turn, memory_order_relaxed);
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
    kp_store_release(&alive, true);
    for (size_t i = 0; i < n; i++) child_sources[i]->begin_in_child();
}

static void after_fork_in_child(void)
{
    const bool goes_on = kp_children_are_wanted() && kp_load_acquire(&alive) && holds_cycle;
    int saved = errno;
    give_sources(true);
    kp_gate_set(0); /* it is, unless a test went without (gate.c) */
    kp_store_release(&alive, false);
    kp_log_leave();
    kp_record_after_fork();
    if (goes_on) begin_in_child();
    errno = saved;
}

/* Whoever set us up hears why there will be no file. */
static int refuse(const char *why, int err)
{
    kp_log(0, "nothing is recorded: %s (error %d)", why, -err);
    return err;
}

/* Without a page for the settings: one of them says where that may be told. */
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
    fix_folders();
    fix_log();
    kp_schedule_settle(config, &schedule, &step_rule);
    size_t used = launcher_lines(header_text, LAUNCHER_BYTES); /* first: the rank must not be what a long KPROF_METADATA pushes out */
    kp_config_text(config, header_text + used, sizeof header_text - used);
    return 0;
}

static void attach_first(void)
{
    int err = kp_hook_start();
    if (err) kp_log(0, "not all modules could be tapped (error %d): what runs in them, and libraries opened later, may not be recorded", -err);
    if (!err) err = kp_getenv_start(config->activities & KP_ACTIVITY_CUDA, kp_locks_rows, KP_LOCKS_ROWS);
    if (err) kp_log(0, "NVTX ranges cannot be recorded (error %d)", -err);
    kp_run_modules_changed();
}

static int start(void)
{
    int err = read_settings();
    if (err) return err;
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
    kp_finish_setup(config);
    kp_spools_setup(config);
    kp_children_setup(config);
    if (kp_run_is_worker()) move_to_children();
    (void)kp_io_mprotect(config, sizeof *config, PROT_READ);
    if (kp_fail_point("atfork") != 0 || __register_atfork(before_fork, after_fork_in_parent, after_fork_in_child, &__dso_handle) != 0)
        return refuse("no memory to follow forks", -ENOMEM);
    kp_gate_set(kp_gate_make(0, KP_GATE_ON));
    kp_store_release(&alive, true);
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
    /* exit() in a signal handler: what it struck never goes on. A step with its lock held leaves the rest to kprof recover. */
    bool is_ended = kp_cycle_end_run();
    if (kp_thread_self) kp_store_release(&kp_thread_self->inside, 0); /* pairs with: quiesce.c:is_quiet */
    if (is_ended) kp_finish_exit();
    else kp_log(0, "exit() struck a step in the middle: no trace is written now, see: kprof recover %s", kp_record_path());
    kp_gate_set(0);
    kp_store_release(&alive, false);
    errno = saved;
}

void kp_run_end_early(void)
{
    exit_begins(NULL);
    kprof_end();
}
