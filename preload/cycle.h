// SPDX-License-Identifier: Apache-2.0
/*
 * cycle.h - windows of recording: opened and closed at steps, finished behind the host's back
 */
#ifndef KP_CYCLE_H
#define KP_CYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "collector/base/kp_config.h"
#include "preload/source.h"
#include "schedule/kp_schedule.h"

/* A window on its way from open to exported. */
struct kp_window {
    uint32_t number;                      /* cycle number in the spool, from 1 */
    uint64_t warm_begin, begin, end;      /* ticks; begin 0 while warming up */
    uint64_t first_step, steps;
    uint64_t lost;                        /* records lost in it; while it is open: kp_loss_total() at its begin */
    bool cut;                             /* closed by exit or kprof_stop, not by its schedule */
};

/* --- cycle.c --- */
/* Fixed once by the constructor. */
void kp_cycle_setup(const struct kp_config *config, const struct kp_schedule *schedule,
                    const struct kp_source *const *sources);
/* The first source is attached (or the API was used): enter the schedule's step 0. Idempotent, thread-safe. */
void kp_cycle_begin_run(void);
/* Closes what is open, at exit or by kprof_stop(). Nothing is recorded afterwards until kprof_start(). */
void kp_cycle_end_run(void);
/* kprof_start(): records from now on whatever the schedule says. 0 or -errno. */
int kp_cycle_force_open(void);
bool kp_cycle_is_running(void);
bool kp_cycle_ever_recorded(void);
/* Oldest window that waits for the writer to close it; false when there is none. The caller owns it then. */
bool kp_cycle_take_closed(struct kp_window *out);
uint64_t kp_cycle_skipped(void); /* windows not recorded because too many waited for the exporter */

/* --- finish.c --- */
void kp_finish_setup(const struct kp_config *config);
/* Writer thread, each tick: closes windows and hands them to the export thread. */
void kp_finish_tick(void);
/* Exit: finishes what is left on the calling thread and says the closing line. */
void kp_finish_exit(void);

#endif
