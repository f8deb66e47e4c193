// SPDX-License-Identifier: Apache-2.0
/* judged.h - what is advised of a trace beyond its own events, for every command that shows advice */
#pragma once

#include "export/answers/runadvice/advised.h"
#include "export/read/folder/trace_source.h"

/* After kp_advised_open(). Of a spool it adds nothing. */
void kp_judged_add(struct kp_advised *advised, const struct kp_trace_source *source);
/* The same at the end of a run, whose user waits: traces of workers that take long to read are left for `kprof advise`,
 * and a finding about them says so. */
void kp_judged_add_at_end(struct kp_advised *advised, const char *path);
