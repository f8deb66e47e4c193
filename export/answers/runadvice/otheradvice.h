// SPDX-License-Identifier: Apache-2.0
/* otheradvice.h - what `kprof advise` says of a recording without an op of torch: of a heap, of functions by name */
#pragma once

#include "export/answers/runadvice/advised.h"
#include "export/read/folder/trace_source.h"

/* Has the trace neither steps nor ops nor work of a GPU? */
bool kp_otheradvice_is_meant(const struct kp_advised *advised);
/* Prints the largest of the heap's places at the peak and of what was kept, and the functions that took most. */
void kp_otheradvice_print(FILE *out, const struct kp_advised *advised, const struct kp_trace_source *source);
