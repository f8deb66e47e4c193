// SPDX-License-Identifier: Apache-2.0
/*
 * fork.c - follows the host's forks: takes locks before, gives them back after, and begins a child's own run
 *
 * Called by: fork (its three handlers), on the thread that forks
 * Owns:      which locks this thread holds over a fork
 * Locks:     the hook's scan, the window's lock and those of sources, from before the fork until after it
 * On fail:   what could not be locked stays out of the child
 * Safe in:   after fork: the child records nothing, since its gate page is wiped. With KPROF_CHILDREN=1 it begins a run
 *            of its own at its first op. A program that it executes starts from the beginning.
 */
#include "preload/procfacts/endlist.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "collector/base/sys/kp_fail.h"
#include "collector/base/kp_gate.h"
#include "collector/base/kp_helper_threads.h"
#include "collector/base/sys/kp_io.h"
#include "collector/base/kp_log.h"
#include "collector/base/elf/kp_otherlibc.h"
#include "collector/record/kp_record.h"
#include "preload/hook/hook.h"
#include "preload/run.h"
#include "preload/run/begin.h"
#include "preload/finish/children.h"
#include "preload/control/ctl.h"
#include "preload/window/sources.h"
#include "preload/blackbox/oomfile.h"
#include "preload/run/crashline.h"
#include "preload/run/stepnote.h"
#include "preload/finish/finish.h"
#include "preload/window/window.h"
#include "preload/unwind/kp_unwind.h"
#include "schedule/kp_schedule.h"
#include "collector/base/kp_poison.h"

static const struct kp_schedule *schedule;

/*
 * Nothing resets the loader's list lock and torch's callback lock in a child. So at a fork no thread of this library
 * holds the first, and the forking thread holds the second. Host threads that hold the loader's lock are the host's
 * concern. The wait for each is bounded. It fails only if a signal handler forks on the thread that holds the lock.
 * A caller that needs the lock then stays out of the child.
 */
static _Thread_local bool holds_scan __attribute__((tls_model("initial-exec")));
static _Thread_local bool holds_window __attribute__((tls_model("initial-exec")));
static _Thread_local uint32_t held_sources
    __attribute__((tls_model("initial-exec"))); /* a bit each: before_fork() took its locks */
static _Thread_local uint32_t lost_sources
    __attribute__((tls_model("initial-exec"))); /* a bit each: before_fork() could not */

static void before_fork(void)
{
    holds_scan = holds_window = false;
    held_sources = lost_sources = 0;
    if (!kp_run_is_active()) return;
    int saved = errno;
    holds_scan = kp_hook_before_fork();
    holds_window = kp_window_before_fork();
    held_sources = kp_sources_before_fork(&lost_sources);
    errno = saved;
}

static void after_fork_in_parent(void)
{
    kp_sources_after_fork(held_sources, false);
    if (holds_window) kp_window_after_fork();
    if (holds_scan) kp_hook_after_fork();
}

/* Resets what else it inherited from the parent, and begins recording. */
static void begin_in_child(void)
{
    const bool was_worker = kp_run_is_worker();
    kp_children_join();
    if (!was_worker && kp_run_is_worker()) kp_run_move_to_children();
    kp_io_forget();
    kp_helpers_forget();
    kp_hook_forget();
    kp_unwind_forget(); /* frames kept so far are in the parent's file */
    kp_run_forget();
    kp_begin_forget();
    const struct kp_source *const *sources = kp_sources_of_child(lost_sources);
    kp_phases_forget();
    kp_steps_start_over(schedule);
    kp_window_forget(schedule, sources);
    kp_finish_forget();
    kp_endlist_forget();
    kp_gate_set(kp_gate_make(0, KP_GATE_ON));
    kp_run_set_active(true);
    for (size_t i = 0; sources[i]; i++) sources[i]->forget();
}

static void after_fork_in_child(void)
{
    bool goes_on = kp_children_are_wanted() && holds_window;
    int saved = errno;
    kp_sources_after_fork(held_sources, true);
    kp_gate_set(0); /* already wiped, unless a test turned that off (gate.c) */
    goes_on &= kp_run_set_active(false);
    kp_log_release();
    kp_record_forget();
    kp_ctl_forget();
    kp_stepnote_forget();
    kp_oomfile_forget();
    kp_crashline_end();
    if (goes_on) begin_in_child();
    errno = saved;
}

int kp_fork_follow(const struct kp_schedule *wanted)
{
    schedule = wanted;
    if (kp_fail_point("atfork") != 0) return -ENOMEM;
    return __register_atfork(before_fork, after_fork_in_parent, after_fork_in_child, &__dso_handle) ? -ENOMEM : 0;
}
