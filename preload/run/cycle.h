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
    uint32_t number;                 /* cycle number in the spool, from 1 */
    uint64_t warm_begin, begin, end; /* ticks; begin 0 while warming up */
    uint64_t first_step, steps;
    uint64_t lost; /* records lost in it; while it is open: kp_loss_total() at its begin */
    bool cut;      /* closed by exit, not by its schedule or kprof_stop */
};

/* --- cycle.c --- */
/* Fixed once by the constructor. */
void kp_cycle_setup(const struct kp_config *config, const struct kp_schedule *schedule,
                    const struct kp_source *const *sources);
/* A source is attached (or the API was used): enter the schedule's step 0, or tell the source what to do. Thread-safe.
 * may_wait: no module is being loaded on this thread, nor cuInit or NVTX set up: others, with the GIL maybe, would wait
 * for it. */
void kp_cycle_begin_run(bool may_wait);
struct kp_thread;
/* A step ends, on a thread inside its hook (t->inside is set). */
void kp_cycle_step(struct kp_thread *thread, uint64_t now_ticks);
/* kprof_start(): records from now on whatever the schedule says. 0 or -errno. */
int kp_cycle_start(void);
/* kprof_stop(): ends the window; the schedule counts on, but skips what is left of its active steps. 0 or -EALREADY. */
int kp_cycle_stop(void);
/* Exit: closes what is open, nothing is recorded afterwards. False when the lock is not to be had: touch nothing
 * then. */
bool kp_cycle_end_run(void);
/* Nobody is in the middle of a step (and so in torch's list of callbacks) while the process forks. */
bool kp_cycle_before_fork(void);
void kp_cycle_after_fork(void); /* only after true */
/* In a child that shall record: nothing has begun, nothing waits. Inside fork, no other thread is there. */
void kp_cycle_begin_in_child(const struct kp_schedule *schedule, const struct kp_source *const *sources);
/* From now on *word is the number of the window that records, 0: none. Any thread, not at a step. */
void kp_cycle_show_window(_Atomic uint32_t *word);
bool kp_cycle_ever_recorded(void);
/*
 * Oldest window that waits for the writer to close it and whose sources handed over all of it; false when there is
 * none. The caller owns it then. At exit nothing is waited for. One thread at a time.
 */
bool kp_cycle_take_closed(struct kp_window *out, bool at_exit);
void kp_cycle_tell(void);             /* the sources say what is to be said; the export thread or the one that exits */
void kp_cycle_leave(uint32_t number); /* the sources put nothing more into chunks of this window */
uint64_t kp_cycle_skipped(void);      /* windows not recorded because too many waited for the exporter */

/* --- finish.c --- */
/* had_activity: whether the host ran any op at all. */
void kp_finish_setup(const struct kp_config *config, const struct kp_schedule *schedule, bool (*had_activity)(void));
void kp_finish_begin_in_child(void);
/* Writer thread, each tick: closes windows and hands them to the export thread. */
void kp_finish_tick(void);
/* Exit: finishes what is left on the calling thread and says the closing line. */
void kp_finish_exit(void);

#endif
