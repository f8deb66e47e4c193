// SPDX-License-Identifier: Apache-2.0
/* faultcount.h - notes in the spool how many page faults the thread of the steps takes, and what one costs here */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * These are called under the window's lock. Steps of the thread that opened the window count; a window that another
 * thread steps in or closes has no note. `is_step`: the window begins with a step, and not with the program, whose
 * start-up takes more faults than its steps. `is_bare`: nothing was recorded in the step; the median of such steps
 * since the last window stands in the note, too, as recording may make faults fewer (decisions/118).
 */
void kp_faultcount_begin(bool is_step);
void kp_faultcount_step(bool is_bare);
void kp_faultcount_note(uint32_t window);
void kp_faultcount_forget(void);    /* the steps so far are of another kind, or of a parent */
void kp_faultcount_note_cost(void); /* before a trace is written, by any thread, if a window had many; once */
/* The number that half of the others are not higher than. */
uint64_t kp_faultcount_median(const uint64_t *of, size_t count);
