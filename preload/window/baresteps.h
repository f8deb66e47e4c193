// SPDX-License-Identifier: Apache-2.0
/*
 * baresteps.h - how long steps last in which nothing is recorded: what recording adds, and what the window has not
 *
 * All calls come from window.c, under its lock.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

void kp_baresteps_end(bool is_bare, uint64_t step); /* that step ends now; bare: no window was open, nor warming up */
void kp_baresteps_note(uint32_t window); /* writes the note bare.WINDOW of the last ones, where a window opens */
uint64_t kp_baresteps_all(uint64_t *ns); /* how many there were, and how long they lasted together */
void kp_baresteps_forget(void);          /* the steps to come are of another kind; and in a forked child */
