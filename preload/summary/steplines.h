// SPDX-License-Identifier: Apache-2.0
/* steplines.h - a line for each step, from the thread that steps to the one that writes them (KPROF_SUMMARY) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/format/kp_stepline.h"

/*
 * Makes room for lines. Call it before a step ends. `collectives`: for so long one at least was open, ever, in ns.
 * 0, or -ENOMEM: there are no lines.
 */
int kp_steplines_begin(uint64_t (*collectives)(void));
/*
 * A step ended now (CLOCK_MONOTONIC, ns), `dur_ns` after it began; 0: not known. Under the window's lock, on the thread
 * that steps. Takes some 0.1 us, and 15 us each 20 ms, when it looks at the kernel's counts.
 */
void kp_steplines_step(uint64_t step, uint64_t now_ns, uint64_t dur_ns, bool is_recorded);
/* Takes the oldest lines that nobody took. One thread at a time. Returns how many. */
size_t kp_steplines_take(struct kp_stepline *out, size_t most);
uint64_t kp_steplines_lost(void); /* steps that found no room. Any thread */
void kp_steplines_forget(void);   /* in a forked child: it has no lines */
