// SPDX-License-Identifier: Apache-2.0
/*
 * boot.c - starts the library in the host: the constructor, the settings, the wiring of the rooms
 *
 * Called by: the loader (constructor); kprof-tick (tick); run.c (the spool is wanted)
 * Owns:      the frozen configuration, the calls that run.c passes on
 * On fail:   a failed step of start-up logs a line, and the host runs as without the library
 * Safe in:   after fork yes: the configuration never changes. A program that a child executes starts from here.
 */
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collector/base/sys/kp_arena.h"
#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_config.h"
#include "collector/base/sys/kp_fail.h"
#include "collector/base/kp_gate.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/elf/kp_otherlibc.h"
#include "collector/base/kp_rank.h"
#include "collector/record/kp_record.h"
#include "preload/hook/getenv.h"
#include "preload/hook/hook.h"
#include "preload/host/host.h"
#include "preload/procfacts/procfacts.h"
#include "preload/run.h"
#include "preload/run/begin.h"
#include "preload/finish/children.h"
#include "preload/control/ctl.h"
#include "preload/run/exit.h"
#include "preload/blackbox/hangwatch.h"
#include "preload/blackbox/oomfile.h"
#include "preload/window/sources.h"
#include "preload/finish/spools.h"
#include "preload/run/stepnote.h"
#include "preload/finish/finish.h"
#include "preload/window/window.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

enum { MANY_MAX_MB = 512 }; /* config.def tells it */

static struct kp_config *config; /* read-only after the constructor */
static struct kp_schedule schedule;
static struct kp_step_rule step_rule;

static bool is_of_launcher(const char *entry)
{
    static const char *const names[] = {
        "PT_PROFILER_JOB_NAME", "PT_PROFILER_JOB_VERSION", "PT_PROFILER_JOB_ATTEMPT_INDEX",
        "LOCAL_WORLD_SIZE",     "OMP_NUM_THREADS",         "MALLOC_TRIM_THRESHOLD_",
        KP_RANK_ERROR_FILE};
    for (unsigned i = 0; kp_rank_variable(i); i++)
        if (kp_config_is_variable(entry, kp_rank_variable(i))) return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (kp_config_is_variable(entry, names[i])) return true;
    return false;
}

/* Writes the job's id and the launcher's variables, by which a reader tells the rank and who shares the cores. They are
 * read once. */
static size_t launcher_lines(char *buf, size_t size)
{
    size_t used = kp_fmt(buf, size, "step_ends=1\n"); /* which ranges ended a step is recorded */
    if (*kp_run_job()) used += kp_fmt(buf + used, size - used, "job=%s\n", kp_run_job());
    for (char **e = environ; e && *e; e++)
        if (is_of_launcher(*e) && used + strlen(*e) + 8 < size) used += kp_fmt(buf + used, size - used, "env.%s\n", *e);
    return used;
}

/* KPROF_RANKS. A rank that it leaves out waits for nothing, as with KPROF_SCHEDULE=none. One that no launcher started
 * may get its rank later (mp.spawn): finish.c decides then. */
static void ranks_apply(void)
{
    const struct kp_rank place = kp_run_rank();
    if (!config->ranks) return;
    if (kp_ranks_need_node(config->ranks) && place.on_node < 0) {
        kp_config_refuse(config, KP_SET_ranks, "finds no LOCAL_RANK (or SLURM_LOCALID, ...)", "using all ranks");
        return;
    }
    if (kp_ranks_name(config->ranks, &place) || (!place.is_launched && place.size == 1)) return;
    const struct kp_phases none = {.count = 0};
    schedule = (struct kp_schedule){.set = true};
    kp_phases_init(&none);
    kp_run_leave_out(place.rank == 0 && !kp_ranks_name_any(config->ranks, place.size) ? place.size : 0);
}

/* Each rank of a big job without a schedule would write GBs into one folder, and all GPUs wait for it at exit. */
static void many_ranks_apply(void)
{
    const bool is_named = config->from_env & KP_SET_BIT(KP_SET_max_mb);
    if (kp_begin_is_unscheduled_job(&schedule) && !is_named) config->max_mb = MANY_MAX_MB;
}

/* On an H200 torch.profiler's second session had no kernel so (docs/internals/evidence/gpu-validation.md). */
static void tee_apply(void)
{
    const char *teardown = kp_config_variable(environ, "TEARDOWN_CUPTI");
    if (config->cupti == KP_CUPTI_TEE && teardown && strcmp(teardown, "1") == 0)
        kp_config_refuse(config, KP_SET_cupti, "may lose kernels with TEARDOWN_CUPTI=1", "using yield");
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

/* From now on processors may count differently: what is recorded so far stays as it is. */
static void clock_check(void)
{
    static bool was_left; /* until the turn could be had */
    was_left |= kp_clock_was_left(kp_clock_ms());
    if (!was_left || !kp_run_turn_begin()) return;
    was_left = false;
    const bool is_open = kp_window_stop() == 0;
    kp_run_turn_end();
    if (kp_record_is_open()) kp_record_note("clock_left", "tsc");
    kp_log(0,
           "the kernel has left the processor's clock (tsc) for another one: times recorded from now on may be wrong%s",
           is_open ? "; the window ends here" : "");
}

static void tick(void)
{
    if (!kp_run_is_active()) return;
    clock_check();
    kp_log_follow_stderr();
    kp_run_set_ticking(true);
    kp_hook_scan();
    kp_run_set_ticking(false);
    kp_finish_tick();
}

static void note_worker(void)
{
    char pid[16];
    kp_fmt(pid, sizeof pid, "%d", (int)kp_run_parent_pid());
    kp_record_note("parent_pid", pid);
    kp_children_register(kp_record_path());
}

/* Older records go. 0: none do. */
static uint64_t ring_ms(void) { return kp_config_time_ms(config->ring); }

static int open_spool(void)
{
    struct kp_record_options options = {
        .dir = kp_run_spool_dir(),
        .max_bytes = config->max_mb << 20,
        .memory_bytes = config->buffer_mb << 20,
        .ring_ms = (uint32_t)ring_ms(),
        .text = header_text,
        .share = kp_children_share(),
        .tick = tick,
    };
    if (kp_record_is_open()) return 0;
    int err = kp_record_open(&options);
    if (!err) kp_spools_note_process();
    if (!err) kp_procfacts_note_begin();
    if (!err && kp_run_is_worker()) note_worker();
    return err;
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
    const char *const target = kp_config_variable(environ, "KPROF_LOG");
    if (target && *target) kp_log_set_target(target);
    return refuse("no memory", -ENOMEM);
}

/* torchrun runs no op: its Python calls would be a trace of many MB beside those of its ranks. */
static void launcher_apply(void)
{
    if (config->with_stack == KP_STACK_CALLS && config->heap == KP_HEAP_OFF && kp_procfacts_is_launcher())
        config->with_stack = KP_STACK_NONE;
}

/* Why the ring cannot be; NULL: it can. */
static const char *ring_refused(void)
{
    if (kp_stepnote_is_trigger()) return "does not go with KPROF_TRIGGER, whose recordings have an end";
    if (kp_phases_are_set()) return "does not go with KPROF_PHASES, whose recordings have an end";
    if (schedule.set) return "does not go with KPROF_SCHEDULE, whose recordings have an end";
    if (config->heap != KP_HEAP_OFF) return "does not go with KPROF_MALLOC, which needs the run's first allocations";
    return NULL;
}

/* Who asks for the last seconds wants to know what filled the memory, too. */
static void ring_check(void)
{
    const char *const why = config->ring ? ring_refused() : NULL;
    if (why) kp_config_refuse(config, KP_SET_ring, why, "using none");
    if (config->ring && !(config->from_env & KP_SET_BIT(KP_SET_on_oom))) config->on_oom = KP_OOM_DUMP;
}

static int read_settings(void)
{
    config = kp_map_alloc(sizeof *config);
    if (!config) return refuse_early();
    kp_config_read(config, environ);
    if (!config->on) return -ECANCELED;
    kp_run_set_folders(config->dir, config->spool_dir ? config->spool_dir : config->dir,
                       kp_config_variable(environ, "KPROF_RUN_FROM"));
    fix_log();
    launcher_apply();
    kp_schedule_from_config(config, &schedule, &step_rule);
    kp_stepnote_setup(config);
    if (kp_stepnote_is_trigger()) schedule.set = true; /* as none, if KPROF_SCHEDULE is unset */
    if (config->signal && !kp_ctl_signal_parse(config->signal))
        kp_config_refuse(config, KP_SET_signal, "is none of HUP, USR1, USR2, URG, WINCH, IO, a real-time number",
                         "none");
    ring_check();
    const struct kp_rank place = kp_rank_find(kp_config_variable, environ);
    kp_run_set_rank(&place);
    char job[KP_JOB_ID_BYTES];
    kp_job_id_find(kp_config_variable, environ, job);
    kp_run_set_job(job);
    ranks_apply();
    many_ranks_apply();
    tee_apply();
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
               "not all libraries could be hooked (%s): what runs in them, and libraries opened later, may not be "
               "recorded",
               kp_log_error_text(err));
    if (!err) err = kp_getenv_start(config->activities & KP_ACTIVITY_CUDA, kp_locks_rows, KP_LOCKS_ROWS);
    if (err) kp_log(0, "NVTX ranges cannot be recorded (%s)", kp_log_error_text(err));
    kp_begin_modules_changed();
}

static const struct kp_run_calls calls = {
    .modules_changed = kp_begin_modules_changed,
    .module_starts = kp_begin_module_starts,
    .step = kp_window_step,
    .phase_begin = kp_window_phase_begin,
    .phase_end = kp_window_phase_end,
    .first_activity = kp_begin_first_activity,
    .gpu_changed = kp_sources_gpu_changed,
    .open_spool = open_spool,
    .end = kp_exit_early,
    .out_of_memory = kp_stepnote_out_of_memory,
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
    kp_window_setup(config, &schedule, kp_sources);
    for (size_t i = 0; kp_sources[i]; i++)
        if (kp_sources[i]->setup) kp_sources[i]->setup(config);
    kp_finish_setup(config, &schedule, kp_sources_had_activity);
    kp_begin_setup(config, &schedule);
    kp_hangwatch_setup(config);
    kp_oomfile_setup(config);
    kp_ctl_setup(config);
    kp_ctl_job_setup(config);
    kp_spools_setup(config);
    kp_children_setup(config);
    if (kp_run_is_worker()) kp_run_move_to_children();
    (void)kp_io_mprotect(config, sizeof *config, PROT_READ);
    if (kp_fork_follow(&schedule) != 0) return refuse("no memory to follow forks", -ENOMEM);
    kp_gate_set(kp_gate_make(0, KP_GATE_ON));
    kp_run_set_active(true);
    attach_first();
    kp_ctl_begin_early();
    return 0;
}

__attribute__((constructor)) static void kprof_begin(void)
{
    if (!kp_libc_is_glibc()) return;
    int saved = errno;
    start();
    errno = saved;
}
