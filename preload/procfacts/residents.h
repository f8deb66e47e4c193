// SPDX-License-Identifier: Apache-2.0
/*
 * residents.h - how much memory the program has at the ends of a window's steps
 *
 * All calls come from procfacts.c, under the window's lock.
 */
#pragma once

#include <stdint.h>

void kp_residents_begin(uint32_t window, uint64_t now_ns); /* the window's steps begin, or begin again */
void kp_residents_step(uint64_t step, uint64_t now_ns);    /* a step ended: looks, where the last look is old enough */
void kp_residents_note(void);                              /* writes what is not yet in the spool: the window closes */
