// SPDX-License-Identifier: Apache-2.0
/*
 * corewaits.h - which steps of a window waited for a core, and how long
 *
 * All calls come from procfacts.c, under the window's lock.
 */
#pragma once

#include <stdint.h>

void kp_corewaits_begin(uint32_t window); /* the window's steps begin, or begin again */
/* In these steps, which took so long together, their thread waited so long. Short waits are dropped. */
void kp_corewaits_add(uint64_t first_step, uint64_t last_step, uint64_t waited_ns, uint64_t of_ns);
void kp_corewaits_note(void); /* writes what is not yet in the spool: the window closes */
