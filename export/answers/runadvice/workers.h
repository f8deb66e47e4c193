// SPDX-License-Identifier: Apache-2.0
/* workers.h - what the workers of a DataLoader did, from their own traces in the folder children (KPROF_CHILDREN) */
#pragma once

#include "export/answers/runadvice/advised.h"

/* Prints the command that shows the traces of workers, where they lie beside this one. */
void kp_workers_lead(const char *trace_path);
/*
 * Where a finding is about data that workers load: `advised->workers` gets their slow lines, or how to record them. Its
 * change gets what helps: more workers, or cheaper items.
 */
void kp_workers_tell(struct kp_advised *advised, const char *trace_path);
/* Instead, where that would take long: such a finding says that `kprof advise` reads them. False: it would not. */
bool kp_workers_defer(struct kp_advised *advised, const char *trace_path);
