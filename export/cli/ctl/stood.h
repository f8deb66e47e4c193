// SPDX-License-Identifier: Apache-2.0
/* stood.h - what a trace's process wrote beside it when it stood (KPROF_HANG) or was out of memory (KPROF_ON_OOM) */
#pragma once

#include "export/answers/runadvice/advised.h"
#include "export/read/folder/trace_source.h"

/*
 * Adds facts to a trace. Its program ended badly or runs, and none of its ops began later: "kprof.stood", who waits for
 * whom. The trace does not say it itself: "kprof.out_of_memory".
 */
void kp_stood_note(struct kp_advised *advised, const struct kp_trace_source *source);
