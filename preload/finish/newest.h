// SPDX-License-Identifier: Apache-2.0
/* newest.h - keeps the newest traces of this process (KPROF_KEEP) */
#pragma once

#include <stdint.h>

/* A trace was written. Removes the oldest that this process wrote beyond `most`, with the files that were made of it; 0
 * keeps all. By the thread that writes traces. */
void kp_newest_note(const char *path, uint64_t most);
void kp_newest_forget(void); /* in a forked child: the traces are its parent's */
