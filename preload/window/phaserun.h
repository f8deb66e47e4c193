// SPDX-License-Identifier: Apache-2.0
/*
 * phaserun.h - runs of phases: tells the spool which run of its phase a window is of
 *
 * A run lasts from a phase's begin to its end. Phases that begin inside of it divide it into parts. All calls come from
 * window.c, under its lock, but that at the end.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The state of the run at a window's end. KP_RUN_IS_OPEN: the program ends, or recording does, and not the run. */
enum kp_phaserun_leaving { KP_RUN_GOES_ON, KP_RUN_PAUSES, KP_RUN_ENDS, KP_RUN_IS_OPEN };

void kp_phaserun_enter(uint32_t phase, bool is_new); /* a part of a run begins, the first of a new one or another */
/* Is the part recorded from its begin until now? */
void kp_phaserun_recorded(bool is_recorded);
void kp_phaserun_gap(void); /* it is not */
/*
 * The phase's name, when a window begins. When it ends, the run, and of each phase how often it has begun and how long
 * it took since the first began, recorded or not.
 */
void kp_phaserun_note_phase(uint32_t window, uint32_t phase);
void kp_phaserun_note(uint32_t window, uint32_t phase, enum kp_phaserun_leaving leaving, uint64_t steps);
/* "40 steps in train, 12 in validate", of `all` that were recorded; of many phases "52 steps in phases". */
void kp_phaserun_steps(char *out, size_t bytes, uint64_t all);
void kp_phaserun_say_missed(int steps); /* so many have ended, and no phase has begun */
void kp_phaserun_say_never_begun(void); /* at the end: the phases with a schedule that did not begin */
void kp_phaserun_forget(void);          /* in a forked child */
