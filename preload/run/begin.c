// SPDX-License-Identifier: Apache-2.0
/*
 * begin.c - begins the run: when the first source attaches, in a forked child at its first activity
 *
 * Called by: the constructor, hook/dlfollow.c (modules changed), sources (first activity), fork.c; the thread
 *            kprof-clock
 * Owns:      whether the run has begun
 * Locks:     `attaching` (an atomic flag, never waited for)
 * On fail:   without the thread kprof-clock a line is logged, and no step is counted by time
 * Safe in:   after fork: kp_begin_forget comes first
 */
#include "preload/run/begin.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include "collector/base/sys/kp_clock.h"
#include "collector/base/kp_config.h"
#include "collector/base/kp_gate.h"
#include "collector/base/kp_helper_threads.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/kp_rank.h"
#include "collector/record/kp_record.h"
#include "preload/host/host.h"
#include "preload/run.h"
#include "preload/finish/childends.h"
#include "preload/finish/execs.h"
#include "preload/finish/children.h"
#include "preload/control/ctl.h"
#include "preload/run/crashline.h"
#include "preload/run/exit.h"
#include "preload/window/sources.h"
#include "preload/run/stepnote.h"
#include "preload/window/window.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

#define SECOND_NS UINT64_C(1000000000)

static const struct kp_config *config;
static const struct kp_schedule *schedule;
static bool is_run_begun;
static _Atomic uint32_t attaching;
static _Atomic bool is_asked; /* a thread wants the sources to attach */
static bool is_forked;        /* a child that records */

void kp_begin_setup(const struct kp_config *settings, const struct kp_schedule *wanted)
{
    config = settings;
    schedule = wanted;
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
        if (kp_sources_had_activity() && kp_steps_time(kp_clock_ns(CLOCK_MONOTONIC), kp_sources_had_activity_since())) {
            struct kp_thread *self = kp_thread_get();
            if (self) kp_run_step(self, kp_ticks());
        }
        kp_run_turn_end();
    }
    return NULL;
}

static void start_clock(void)
{
    if (!kp_steps_time_period_ns()) return;
    if (kp_helpers_start(clock_thread, "kprof-clock", KP_IO_NICE, NULL) != 0)
        kp_log(0, "no thread for steps by time: only the program's own steps count");
}

/* Ends recording before it begins: the host forbade this thread to read the processor's clock. */
static void give_up(void)
{
    kp_gate_set(0);
    kp_run_set_active(false);
    kp_log(0, "nothing is recorded: the program forbade itself the processor's clock (PR_SET_TSC)");
}

bool kp_begin_is_unscheduled_job(const struct kp_schedule *of)
{
    return !of->set && !kp_phases_are_set() && kp_run_rank().size > KP_RANK_MANY;
}

/* All ranks have the same settings, so that rank 0 alone says it. */
static void many_ranks_tell(void)
{
    const struct kp_rank place = kp_run_rank();
    const bool is_meant = config->ranks || place.rank || kp_run_is_worker();
    if (is_meant || !kp_begin_is_unscheduled_job(schedule)) return;
    KP_LOG_ONCE(0,
                "%u ranks record all their steps, up to %lu MB each (KPROF_MAX_MB), and write them at exit: "
                "--schedule active=5 records 5 steps, --ranks 0 or --ranks 1/%u few ranks",
                place.size, (unsigned long)config->max_mb, place.size / 2);
}

static void taps_install(void)
{
    struct kp_tap_row rows[KP_SELFSIGNAL_ROWS + KP_CHILDENDS_ROWS + KP_EXECS_ROWS];
    _Static_assert(sizeof rows / sizeof *rows == KP_SOLO_MORE, "kp_solo_install() takes all rows");
    memcpy(rows, kp_selfsignal_rows, sizeof kp_selfsignal_rows);
    memcpy(rows + KP_SELFSIGNAL_ROWS, kp_childends_rows, sizeof kp_childends_rows);
    memcpy(rows + KP_SELFSIGNAL_ROWS + KP_CHILDENDS_ROWS, kp_execs_rows, sizeof kp_execs_rows);
    kp_solo_install(rows, KP_SOLO_MORE);
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
        many_ranks_tell();
        kp_run_own();
        taps_install();
        kp_threadcount_install();
    }
    kp_window_begin_run(false);
    if (!is_run_begun && (kp_steps_are_marked(schedule) || kp_ctl_is_wanted())) kp_exit_watch();
    if (!is_run_begun && kp_run_is_worker() && schedule->set) kp_children_follow();
    else if (!is_run_begun) start_clock();
    if (!is_run_begun && !kp_run_is_worker()) kp_ctl_begin();
    if (!is_run_begun) kp_stepnote_begin();
    if (!is_run_begun && (config->hang || config->ring)) kp_crashline_begin();
    is_run_begun = true;
}

/* The first source that attaches begins the run; begin_run() tells a later one the run's state. */
static void begin_if_source_attached(void)
{
    bool starts_active;
    if (kp_sources_attach(&starts_active)) begin_run();
    if (starts_active) kp_run_saw_activity();
}

/* Begins the run of a forked child. In other processes it began when a source attached. */
void kp_begin_first_activity(void)
{
    kp_children_first_op();
    if (is_forked) begin_run();
}

/*
 * Never waits: a thread that finds another attaching sets is_asked, and the other looks again. Both change `attaching`
 * by an exchange. If the asking thread comes first, the other reads its value there, and so sees is_asked. A plain
 * store of 0 would not do.
 */
void kp_begin_modules_changed(void)
{
    if (!kp_run_is_active()) return;
    int saved = errno;
    (void)kp_exchange_acq_rel(&is_asked, true);
    while (!kp_exchange_acq_rel(&attaching, 1)) { /* pairs with: below */
        while (kp_exchange_acq_rel(&is_asked, false)) begin_if_source_attached();
        (void)kp_exchange_acq_rel(&attaching, 0); /* pairs with: above */
        if (!kp_load_acquire(&is_asked)) break;
    }
    errno = saved;
}

/* Who asks for all sources meanwhile is answered by the scan that follows this dlopen. */
void kp_begin_module_starts(const void *inside)
{
    bool starts_active = false;
    if (!kp_run_is_active() || kp_exchange_acq_rel(&attaching, 1)) return; /* pairs with: kp_begin_modules_changed */
    if (kp_sources_attach_early(inside, &starts_active)) begin_run();
    if (starts_active) kp_run_saw_activity();
    (void)kp_exchange_acq_rel(&attaching, 0);
}

void kp_begin_forget(void)
{
    kp_store_relaxed(&is_asked, false);
    kp_store_relaxed(&attaching, 0);
    is_forked = true;
    is_run_begun = false;
}
