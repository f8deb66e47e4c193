// SPDX-License-Identifier: Apache-2.0
/*
 * window_sources.h - what windows ask of the sources: their mode, that they settle, drain and report
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/source.h"
#include "schedule/kp_schedule.h"

void kp_window_sources_setup(const struct kp_source *const *list, uint32_t activities);
void kp_window_sources_forget(const struct kp_source *const *list); /* in a child */

/* --- under the window's lock --- */
void kp_window_sources_mode(enum kp_source_mode now);
void kp_window_sources_again(void); /* the mode that was set last, for a source that has just attached */
/* kprof_toggle(). 0, or -EINVAL: KPROF_ACTIVITIES lacks it. */
int kp_window_sources_switch(uint32_t activities, bool on);
bool kp_window_sources_are_off(uint32_t activity);         /* by kprof_toggle; without the lock, too */
void kp_window_sources_step(bool begins, uint64_t number); /* a recorded step begins, or the one in progress ends */

/* --- without a lock, as a source may wait for a lock of the host (the GIL); begin 0: no window records --- */
void kp_window_sources_settle(uint64_t begin, uint32_t timeout_ms);
/* The schedule starts over, since `now` counts: the steps of windows up to `last` were guesses. */
void kp_window_sources_guessed(uint32_t last, enum kp_step_source now);
void kp_window_sources_step_ended(void); /* at each step; without the lock */
void kp_window_sources_switched(uint32_t activities, uint64_t begin, uint32_t timeout_ms);
bool kp_window_sources_are_drained(uint64_t end);
void kp_window_sources_close(uint32_t number); /* tells the sources to put no more records into chunks of this window */
void kp_window_sources_note(void);             /* each source writes what it knows into the spool; under finish_lock */
void kp_window_sources_report(void); /* each source logs its report; on the export thread or the exiting thread */
