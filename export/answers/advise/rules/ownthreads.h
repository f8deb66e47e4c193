// SPDX-License-Identifier: Apache-2.0
/* ownthreads.h - what other threads of the same program take from the thread of the steps: cores; and their line */
#pragma once

struct kp_costrules;

/*
 * "Other threads of this program ran for 674 ms together in these steps, the main thread for 281 ms"; NULL: they ran
 * for less than a quarter as long, or they may be torch's own pool, or the trace does not tell. The text lives as long
 * as the trace.
 */
const char *kp_ownthreads_text(const struct kp_costrules *rules);
/* The own line that they run most; NULL: Python's calls were not recorded, or none is the program's. */
const char *kp_ownthreads_line(const struct kp_costrules *rules);
/* Other processes of the same program, or of its job, that may have the cores and that its trace does not time: ", this
 * program's DataLoader workers", ", other ranks of the job", or both; "": it has none. */
const char *kp_ownthreads_relatives(const struct kp_costrules *rules);
/* How to see what they run: their own line, if Python's calls were recorded, else what to type. */
const char *kp_ownthreads_where(const struct kp_costrules *rules);
