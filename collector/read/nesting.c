// SPDX-License-Identifier: Apache-2.0
/*
 * nesting.c - keeps events of a thread apart by a nanosecond where a coarse clock gives two of them one end
 *
 * Called by: events.c, for each op, step and Python call of a timeline (hot)
 *
 * Some processors count time in steps of 10 ns. The ends of two ops, or an end and the next begin, then have one time.
 * A viewer that keeps microseconds as doubles rounds each of them, sees an overlap, and drops one.
 */
#include <stddef.h>

#include "collector/read/crossing.h"
#include "collector/base/kp_poison.h"

void kp_nesting_fit(struct kp_nesting *nesting, uint64_t *start_ns, uint64_t *end_ns)
{
    const uint64_t least = nesting->last_start_ns;
    const struct kp_nesting_end *top;
    uint64_t start = *start_ns < least ? least : *start_ns, end = *end_ns;
    for (; nesting->n && nesting->ends[nesting->n - 1].ns <= start; nesting->n--) {
        if (nesting->ends[nesting->n - 1].ns < start) continue;
        if (end <= start) break; /* no duration: it counts as inside */
        start++;
    }
    top = nesting->n ? &nesting->ends[nesting->n - 1] : NULL;
    if (top && end >= top->ns && end <= top->recorded_ns) end = top->ns - 1;
    if (end < start) start = end < least ? least : end;
    if (end < start) end = start;
    nesting->last_start_ns = start;
    if (nesting->n < KP_NESTING_MAX)
        nesting->ends[nesting->n++] = (struct kp_nesting_end){.ns = end, .recorded_ns = *end_ns};
    *start_ns = start;
    *end_ns = end;
}
