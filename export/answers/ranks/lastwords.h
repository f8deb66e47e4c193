// SPDX-License-Identifier: Apache-2.0
/* lastwords.h - what a program did when a signal or an exception ended it */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/read/tree/chosen.h"

enum { KP_LASTWORDS_BYTES = 1024 };
/*
 * Writes " in step 20, in aten::mm, killed.py:18 similarity, which had run for 512.3 ms; it had 801.20 MB of memory at
 * most" behind "killed by SIGKILL"; " after step 19" where nothing was open, and if it had run no operator for long
 * "; it ran no operator for its last 59.2 s (after ..)". "": the trace has no step, or is whole.
 * Behind "ended by ValueError": " at train.py:18 main, after step 19", or without a step its line alone;
 * with KPROF_ON_OOM also "; the host ran out of memory: ..".
 * If no parent saw the end the time is "at least", up to the last write. Returns `out`.
 */
const char *kp_lastwords(char *out, size_t bytes, const struct kp_tree *tree, const struct kp_chosen *chosen);
/*
 * Writes all of how it ended, behind "killed" or "ended" (kp_ended_word): "by SIGKILL in step 20, ..", "without an
 * exit (killed, or by os._exit) after step 19". "": by itself, or neither a step nor an exception tells where. Returns
 * `out`.
 */
const char *kp_lastwords_ended(char *out, size_t bytes, const struct kp_tree *tree, const struct kp_chosen *chosen);

/* ---- errorfile.c: what torch.distributed.elastic wrote of a rank's exception (TORCHELASTIC_ERROR_FILE) ---- */

enum { KP_ERRORFILE_TYPE = 80, KP_ERRORFILE_PLACE = 300, KP_ERRORFILE_MOST = 1 << 20 };
struct kp_errorfile {
    char type[KP_ERRORFILE_TYPE];   /* "ValueError" */
    char place[KP_ERRORFILE_PLACE]; /* "train.py:18 main", the innermost line of the program's own; "": not known */
    int64_t at_ns;                  /* in whole seconds */
    bool has_lost_peer;             /* it says that another rank was gone */
};
/* False: the text is no such file. The text of the exception may hold data of the user, and is not kept. */
bool kp_errorfile_read(struct kp_errorfile *out, const char *text, size_t bytes);
/* Reads the file that a trace names. False: there is none, or it is another one. */
bool kp_errorfile_open(struct kp_errorfile *out, const char *path);
