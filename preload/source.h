// SPDX-License-Identifier: Apache-2.0
/*
 * source.h - struct kp_source: a part of preload that catches one kind of event, driven by the files of run
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kp_config;

enum kp_source_mode { KP_SOURCE_OFF, KP_SOURCE_STEPS, KP_SOURCE_FULL };

struct kp_source {
    const char *name;
    /* Called first, with the settings, which never change afterwards. May be NULL. */
    void (*setup)(const struct kp_config *config);
    /* Attaches the source if its library is loaded. Called when modules changed, outside any hook, possibly inside a
     * dlsym call of the host. true: attached, and attach is not called again. */
    bool (*attach)(void);
    /* As attach, if the source can attach to the library with the address `inside`, whose constructors are about to
     * run. Constructors of other libraries did not run either: a dlopen of one, also with RTLD_NOLOAD, would run them
     * too early. NULL: it attaches later. */
    bool (*attach_early)(const void *inside);
    /* OFF: no hook. STEPS: the cheapest hook that finds step marks. FULL: all hooks. Any thread, also from inside one
     * of the source's own callbacks at a step; must return in microseconds. NULL: the gate decides at each call. */
    void (*set_mode)(enum kp_source_mode mode);
    /* Did the host do anything that this source would have recorded, also while OFF or STEPS? NULL: starts_active. */
    bool (*had_activity)(void);

    /* --- any of the following may be NULL --- */

    /* As had_activity, since the last call. One thread calls it. */
    bool (*had_activity_since)(void);

    /* KP_ACTIVITY_*: FULL becomes STEPS if KPROF_ACTIVITIES has none of them. 0: FULL always stays FULL. */
    uint32_t activities;
    /* Modules came or went after attach. Called like attach: outside any hook, maybe inside a host's dlsym call. */
    void (*modules_changed)(void);
    /* A window records since `begin_ticks`: waits until this source records, at most `timeout_ms`. On the thread that
     * steps, without a lock, before its first record of the window. May be called again for the same window. With 0 it
     * must not wait: the thread may be inside a dlopen or cuInit for which other host threads wait. */
    void (*wait_ready)(uint64_t begin_ticks, uint32_t timeout_ms);
    /* The step before a window begins, in which nothing is recorded: makes ready what would cost the first recorded
     * step much time. Called as wait_ready. */
    void (*warm_up)(uint32_t timeout_ms);
    /* Called after wait_ready of all sources, on the same thread: records what was there before the window. A source
     * that records the thread's open calls in wait_ready needs them to be its first records. */
    void (*record_before)(uint64_t begin_ticks);
    /* A step has ended, recorded or not, and no window began or ended with it. On the thread that steps, without a
     * lock; may wait for some milliseconds, seldom. */
    void (*step_ended)(void);
    /* A recorded step begins, or the one in progress ends. On the thread that steps, under window.c's lock. */
    void (*step_turns)(bool begins, uint64_t number);
    /* Was everything that began before `end_ticks` handed over, or given up? Until then the window is not closed. The
     * ticker asks, 20 times a second; must not wait. */
    bool (*is_drained)(uint64_t end_ticks);
    /* The cycle's window is being closed: the source must put no more records into its chunks. Called right before
     * kp_record_quiesce. */
    void (*close_cycle)(uint32_t cycle);
    /* Writes what it has found out into the spool, if that is new. Under finish.c's lock: at each tick, and before a
     * trace is written. Must not wait. */
    void (*note)(void);
    /* Logs the source's report on the run so far: before the first trace is written, perhaps again before others. On
     * the export thread or the exiting thread; may read files. */
    void (*report)(void);
    /* kp_run_gpu_backend returns a new value. Any thread, no lock held. */
    void (*gpu_changed)(void);
    /* The host forks. After true no thread of this source is inside the loader or a host library until after_fork.
     * after_fork is called in the parent, and first of all in the child. Waits for a bounded time. false: the source
     * does not record in this child. */
    bool (*before_fork)(void);
    void (*after_fork)(bool is_child);
    /* Inside fork, in a child that shall record (KPROF_CHILDREN): resets all state inherited from the parent. No
     * record, thread or lock. NULL: this source does not record in children. */
    void (*forget)(void);
    /* It records from the start, before any op: attaching counts as first activity. */
    bool starts_active;
};
extern const struct kp_source kp_torch_source, kp_python_source, kp_markers_source, kp_applied_source,
    kp_garbage_source, kp_groups_source, kp_distributed_source, kp_nvtx_source, kp_cupti_source, kp_cuda_hooks_source,
    kp_driver_source, kp_heap_source, kp_calltrace_source, kp_stepcalls_source;
