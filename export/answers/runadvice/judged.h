// SPDX-License-Identifier: Apache-2.0
/* judged.h - what is advised of a trace beyond its own events: of the heap, of workers, of a recording without ops */
#pragma once

#include "export/answers/runadvice/advised.h"
#include "export/read/folder/trace_source.h"

/* After kp_advised_open(). It adds nothing for a spool. */
void kp_judged_add(struct kp_advised *advised, const struct kp_trace_source *source);
/* The same at the end of a run, whose user waits: traces of workers that take long to read are left for `kprof advise`,
 * and a finding about them says so. */
void kp_judged_add_at_end(struct kp_advised *advised, const char *path);

/* heapadvice.c: Adds findings of the heap's profile beside the trace at `path`, before all others. It does nothing if
 * there is none. */
void kp_heapadvice_add(struct kp_advised *advised, const char *path);

/* otheradvice.c: Has the trace neither steps nor ops nor work of a GPU? */
bool kp_otheradvice_is_meant(const struct kp_advised *advised);
/* Prints the largest of the heap's places at the peak and of what was kept, and the functions that took most. */
void kp_otheradvice_print(FILE *out, const struct kp_advised *advised, const struct kp_trace_source *source);

/* workers.c: Prints the command that shows the traces of workers, where they lie beside this one. */
void kp_workers_lead(const char *trace_path);
/*
 * For a finding about data that workers load: `advised->workers` gets their slow lines, or how to record them. Its
 * change gets what helps: more workers, or cheaper items.
 */
void kp_workers_tell(struct kp_advised *advised, const char *trace_path);
/* Instead, where that would take long: such a finding says that `kprof advise` reads them. False: it would not. */
bool kp_workers_defer(struct kp_advised *advised, const char *trace_path);
