// SPDX-License-Identifier: Apache-2.0
/* heapview.h - what a trace of KPROF_MALLOC says of the host's heap, as text */
#ifndef KP_HEAPVIEW_H
#define KP_HEAPVIEW_H

#include <stdbool.h>
#include <stdio.h>

#include "export/kp_export.h"
#include "export/report/kineto.h"

/* Totals, leaks, the peak and who allocates most; as_json: the trace's own, as a member of an object. false: the trace
 * has nothing of the heap (or cannot be read: who reads its events says so). row_limit: rows of a table, -1 all.
 * places: asked for what stands at the frames; NULL: they stay FILE+0xOFFSET. */
bool kp_heapview_write(FILE *out, const struct kp_texts *from, long row_limit, bool as_json,
                       const struct kp_places *places);

#endif
