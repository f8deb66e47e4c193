// SPDX-License-Identifier: Apache-2.0
/*
 * boot.c - composition root: the constructor, the wiring of the rooms, fork and exit
 *
 * Called by: the loader (constructor, destructor), fork (child handler), hook/dlfollow.c (modules changed),
 *            the writer thread (tick)
 * Owns:      the frozen configuration, the list of sources
 * Locks:     attach_lock (an atomic flag, never waited for)
 * On fail:   any step of start-up that fails leaves the process as if we were not there
 * Safe in:   after fork: the child is inert (its gate page is wiped); a program it executes starts anew
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/base/kp_arena.h"
#include "collector/base/kp_clock.h"
#include "collector/base/kp_config.h"
#include "collector/base/kp_gate.h"
#include "collector/base/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/record/kp_record.h"
#include "preload/boot.h"
#include "preload/cycle.h"
#include "preload/hook/hook.h"
#include "preload/source.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

#define SECOND_NS UINT64_C(1000000000)

static const struct kp_source *const sources[] = {&kp_torch_source, NULL};
static bool attached[sizeof sources / sizeof sources[0]];
static atomic_flag attaching = ATOMIC_FLAG_INIT;
static struct kp_config *config; /* read-only once the constructor is through */
static struct kp_schedule schedule;
static struct kp_step_rule step_rule;
static _Atomic bool alive;

bool kp_boot_is_ours(void)
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
static char start_dir[2048], out_dir[4096], spool_dir[4096];

/* Absolute, since the host may change its folder before anything is written. */
static void absolute(char *out, size_t size, const char *dir)
{
    if (dir[0] == '/' || !start_dir[0])
        kp_fmt(out, size, "%s", dir);
    else
        kp_fmt(out, size, "%s/%s", start_dir, dir);
}

static void fix_folders(void)
{
    if (!getcwd(start_dir, sizeof start_dir)) start_dir[0] = 0;
    absolute(out_dir, sizeof out_dir, config->dir);
    absolute(spool_dir, sizeof spool_dir, config->spool_dir ? config->spool_dir : config->dir);
}

const char *kp_boot_out_dir(void)
{
    return out_dir;
}

const char *kp_boot_shown(const char *path)
{
    size_t n = strlen(start_dir);
    return n && strncmp(path, start_dir, n) == 0 && path[n] == '/' ? path + n + 1 : path;
}

static void writer_tick(void)
{
    if (!kp_boot_is_ours()) return;
    kp_log_follow_stderr();
    kp_hook_scan();
    kp_finish_tick();
}

/*
 * Steps by time, where the rule or a silent program asks for them: a thread of its own, since the writer does not exist
 * while the schedule waits. It ends as soon as anything else counts steps.
 */
static void *clock_thread(void *unused)
{
    uint64_t period;
    (void)unused;
    while (kp_boot_is_ours() && !kp_io_helpers_alone() && (period = kp_steps_time_period_ns()) != 0) {
        if (period > SECOND_NS) period = SECOND_NS; /* looks whether the process is over; a step comes when it is due */
        struct timespec nap = {.tv_sec = (time_t)(period / SECOND_NS), .tv_nsec = (long)(period % SECOND_NS)};
        nanosleep(&nap, NULL);
        if (!kp_boot_is_ours() || !kp_boot_saw_work() || !kp_steps_time(kp_clock_ns(CLOCK_MONOTONIC))) continue;
        struct kp_thread *self = kp_thread_get();
        if (self) kp_boot_step(self, kp_ticks());
    }
    return NULL;
}

static void start_clock(void)
{
    if (!schedule.set || !kp_steps_time_period_ns()) return;
    if (kp_io_thread(clock_thread, NULL, "kprof-clock") != 0)
        kp_log(1, "no thread for steps by time: only the program's own steps count");
}

static _Atomic int spool_failed;

bool kp_boot_cannot_record(void)
{
    return kp_load_relaxed(&spool_failed) != 0;
}

/* Asked at every window: said once, and not tried again. */
int kp_boot_open_spool(void)
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
    return err;
}

/* Never waits: when another thread is attaching, it will see the modules we came for. */
void kp_boot_modules_changed(void)
{
    if (!kp_boot_is_ours() || atomic_flag_test_and_set_explicit(&attaching, memory_order_acquire)) return;
    int saved = errno;
    for (size_t i = 0; sources[i]; i++) {
        if (attached[i] || !sources[i]->attach()) continue;
        attached[i] = true;
        kp_log_keep_stderr();
        kp_config_complain(config);
        kp_config_log(config);
        kp_cycle_begin_run();
        start_clock();
    }
    errno = saved;
    atomic_flag_clear_explicit(&attaching, memory_order_release);
}

/*
 * The loader's list lock and torch's lock of callbacks are not made anew in a child, so none of our threads may hold one at
 * that moment. Host threads that hold them are the host's own affair.
 */
static _Thread_local bool holds_scan __attribute__((tls_model("initial-exec")));
static _Thread_local bool holds_cycle __attribute__((tls_model("initial-exec")));

static void before_fork(void)
{
    holds_scan = holds_cycle = false;
    if (!kp_boot_is_ours()) return;
    int saved = errno;
    holds_scan = kp_hook_before_fork();
    holds_cycle = kp_cycle_before_fork();
    errno = saved;
}

static void after_fork_in_parent(void)
{
    if (holds_cycle) kp_cycle_after_fork();
    if (holds_scan) kp_hook_after_fork();
}

static void after_fork_in_child(void)
{
    kp_store_release(&alive, false);
    kp_log_leave_stderr();
    kp_record_after_fork();
}

static int read_settings(void)
{
    config = kp_map_alloc(sizeof *config);
    if (!config) return -ENOMEM;
    kp_config_read(config, environ);
    if (!config->on) return -ECANCELED;
    kp_schedule_settle(config, &schedule, &step_rule);
    fix_folders();
    size_t used = launcher_lines(header_text, LAUNCHER_BYTES); /* first: the rank must not be what a long KPROF_METADATA pushes out */
    kp_config_text(config, header_text + used, sizeof header_text - used);
    return 0;
}

static int start(void)
{
    int err = read_settings();
    if (err) return err;
    kp_log_hold_stderr();
    kp_log_set_level((int)config->verbose);
    kp_io_set_failures(config->test_fail);
    kp_clock_init();
    err = kp_gate_init();
    if (err) return err;
    err = kp_steps_init(&schedule, &step_rule);
    if (err) return err;
    kp_cycle_setup(config, &schedule, sources);
    kp_finish_setup(config);
    mprotect(config, sizeof *config, PROT_READ);
    if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0) return -ENOMEM;
    kp_gate_set(kp_gate_make(0, KP_GATE_ON));
    kp_store_release(&alive, true);
    err = kp_hook_start();
    if (err) kp_log(1, "new modules cannot be noticed (error %d): torch is only seen when linked to the program", -err);
    kp_boot_modules_changed();
    return 0;
}

__attribute__((constructor)) static void kprof_begin(void)
{
    int saved = errno;
    start();
    errno = saved;
}

__attribute__((destructor)) static void kprof_end(void)
{
    if (!kp_boot_is_ours()) return;
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
