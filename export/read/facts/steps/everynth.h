// SPDX-License-Identifier: Apache-2.0
/* everynth.h - whether some steps are each Nth one, as where a program does something every N steps */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * The distance between these steps, in any order, where it is one number and they are all from step `first` to `last`
 * that have it; one may lack at either end. 0: they are not, or are fewer than three, or each step.
 */
long kp_everynth_of(const long *numbers, size_t count, long first, long last);
/* Writes ", each 10th step", or "" for 0. Returns `out`. */
char *kp_everynth_text(char *out, size_t bytes, long distance);
/*
 * Marks each Nth step from one of the first N on, where nearly all of these are marked, and so many are by no chance;
 * others may be marked, too. Unmarks the rest. False: no distance has five of them.
 */
bool kp_everynth_mark(const long *numbers, bool *marks, size_t count);
enum { KP_RECURS_LEAST = 6 };
/* Does what happens in `times` of `count` steps, first and last at these, come again and again? Once a cache is full,
 * nothing comes for long. */
static inline bool kp_everynth_recurs(size_t times, long first, long last, long count)
{
    return times >= KP_RECURS_LEAST && 4 * (last - first) >= 3 * count;
}
