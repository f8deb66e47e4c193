// SPDX-License-Identifier: Apache-2.0
/* finish.h - the parts of a run's end: its own spool is read, why records were lost, old traces go */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/read/kp_read.h"

/* A reader of one window. The caller closes it. 0 or -errno; `why` then gets a text. May wait for the disk. */
int kp_ownspool_open(struct kp_reader **reader, uint32_t cycle, char *why, size_t why_bytes);

/* losstext.c: ", 5 of them over KPROF_MAX_MB: ..." of `lost` records, and how long threads waited for room; or "". */
void kp_losstext_write(char *out, size_t bytes, uint64_t lost);

/* filetext.c: Logs which commands make what KPROF_EXPORT (`exports`) asks for beside the traces, unless they are
 * made anyway. */
void kp_filetext_say_beside(unsigned exports);
/* Whether a process has recorded into the folder since then: the ranks of a launcher, for example. */
bool kp_filetext_has_new(uint64_t since_ns);

/* newest.c: A trace was written. Removes the oldest that this process wrote beyond `most`, with the files that were
 * made of it; 0 keeps all. By the thread that writes traces. */
void kp_newest_note(const char *path, uint64_t most);
void kp_newest_forget(void); /* in a forked child: the traces are its parent's */
