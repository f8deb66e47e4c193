// SPDX-License-Identifier: Apache-2.0
/* ownthreads.h - what other threads of the same program take from the thread of the steps: cores, and the GIL */
#pragma once

struct kp_costrules;
struct kp_finding;

/*
 * "Other threads of this program had one for 674 ms, 2.4 times as long as it": NULL: they had it for less
 * than a quarter as long, or they may be torch's own pool, or the trace does not tell. The text lives as long as the
 * trace.
 */
const char *kp_ownthreads_text(const struct kp_costrules *rules);
/* Where to see what they run: their own line, where Python's calls were recorded, else what to type. */
const char *kp_ownthreads_where(const struct kp_costrules *rules);
/* Says of time without an op that the thread sleeps meanwhile, as it does without the GIL, and what to change. */
void kp_ownthreads_tell(const struct kp_costrules *rules, struct kp_finding *out);
