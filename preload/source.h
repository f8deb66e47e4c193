// SPDX-License-Identifier: Apache-2.0
/*
 * source.h - a source is something that catches events: what boot.c drives
 */
#ifndef KP_SOURCE_H
#define KP_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

struct kp_config;

enum kp_source_mode { KP_SOURCE_OFF, KP_SOURCE_STEPS, KP_SOURCE_FULL };

struct kp_source {
    const char *name;
    /* The settings, read-only for good, before anything else is called. May be NULL. */
    void (*setup)(const struct kp_config *config);
    /* Looks whether its library is loaded and can be attached to. Called when modules changed, outside any hook,
     * possibly from inside a dlsym call of the host. true once attached (then never asked again). */
    bool (*attach)(void);
    /* OFF: nothing installed. STEPS: the cheapest thing that finds step marks. FULL: everything. Any thread, also
     * from inside one of its own callbacks at a step; must return in microseconds. */
    void (*set_mode)(enum kp_source_mode mode);
    /* Whether the host did anything this source would have recorded, also while OFF or STEPS; may be NULL (no). */
    bool (*had_activity)(void);

    /* --- the rest may be NULL --- */

    /* Whether the host did any since this was last asked. One thread asks. */
    bool (*had_activity_since)(void);

    /* KP_ACTIVITY_*: FULL becomes STEPS when KPROF_ACTIVITIES has none of them. 0: always asked for. */
    uint32_t activities;
    /* Modules came or went after it was attached. As attach: outside any hook, maybe inside a dlsym call of the
     * host. */
    void (*modules_changed)(void);
    /* A window records since `begin_ticks`: waits, at most so long, until this source does. The thread that steps, no
     * lock held; its first record of the window comes after this. May be called again for the same window. 0: must not
     * wait for anything, the thread may be inside a dlopen or cuInit of the host for which other threads of it wait. */
    void (*wait_ready)(uint64_t begin_ticks, uint32_t timeout_ms);
    /* Whether all that began in a window before `end_ticks` was handed over, or is given up. Until it says yes the
     * window is not closed. The writer thread, 20 times a second; must not wait. */
    bool (*is_drained)(uint64_t end_ticks);
    /* The window of this cycle is being closed: nothing more is put into its chunks. Right before kp_record_quiesce. */
    void (*close_cycle)(uint32_t cycle);
    /* What is to be said of the run so far: before the first trace is written, perhaps again before others. The export
     * thread, or the one that ends the program; may read files. */
    void (*report)(void);
    /* kp_run_gpu_backend has a new answer. Any thread, no lock held. */
    void (*gpu_changed)(void);
    /* The host forks: no thread of this source is inside the loader, or in a library of the host's, until after_fork
     * (only after true; in the parent, and first of all in the child). Waits for a bounded time. false: the source
     * stays out of this child. */
    bool (*before_fork)(void);
    void (*after_fork)(bool is_child);
    /* Inside fork, in a child that shall record (KPROF_CHILDREN): what was the parent's is forgotten. No record, no
     * thread, no lock. NULL: this source stays out of children. */
    void (*begin_in_child)(void);
    /* It records from the start on, before any op: attached is as good as kp_run_saw_activity. */
    bool starts_active;
};
extern const struct kp_source kp_torch_source, kp_python_source, kp_markers_source, kp_nvtx_source, kp_cupti_source,
    kp_cuda_hooks_source, kp_driver_source, kp_heap_source, kp_calltrace_source;

#endif
