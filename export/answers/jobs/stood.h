// SPDX-License-Identifier: Apache-2.0
/* stood.h - what a trace's process wrote beside it when it stood (KPROF_HANG) or was out of memory (KPROF_ON_OOM) */
#pragma once

#include "export/answers/ranks/stuck.h"
#include "export/answers/runadvice/advised.h"
#include "export/read/folder/trace_source.h"

/*
 * Looks at the end of the trace at `path`, or of a piece of it. If its program ended badly or runs, and none of its ops
 * began after a file of KPROF_HANG, that file says who waits for whom.
 */
void kp_stood_look(struct kp_stuck *stuck, const struct kp_tree *tree, const struct kp_chosen *chosen, const char *path,
                   bool is_spool);
/* As kp_stuck_tell(). A program whose trace ends in nothing is asked where it stands (KPROF_CONTROL). */
bool kp_stood_tell(struct kp_stuck_told *out, struct kp_stuck *stuck);
/* As kp_advised_open(), but nothing is advised. */
int kp_stood_open(struct kp_advised *out, const struct kp_trace_source *source, char *why, size_t why_bytes);
/* For the programs that record into a folder now: as kp_stood_tell(). False: nothing is known to be silent. */
bool kp_stood_running(struct kp_stuck_told *out, const char *folder);
/* For folders that have no trace: prints the text of their files of KPROF_HANG. */
void kp_stood_alone_put(char **paths, int count);
/* The fact "kprof.out_of_memory", where the trace does not say it itself. */
void kp_stood_note_oom(struct kp_advised *advised, const struct kp_trace_source *source);
