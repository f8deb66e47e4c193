// SPDX-License-Identifier: Apache-2.0
/* everynth.c - whether some steps are each Nth one, as where a program does something every N steps */
#include "export/read/facts/everynth.h"

#include <stdio.h>

enum { LEAST = 3 };

long kp_everynth_of(const long *numbers, size_t count, long first, long last)
{
    if (count < LEAST) return 0;
    long least = numbers[0], most = numbers[0], sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] < least) least = numbers[i];
        if (numbers[i] > most) most = numbers[i];
    }
    const long between = (long)count - 1, distance = (most - least) / between;
    if (distance < 2 || distance * between != most - least) return 0;
    for (size_t i = 0; i < count; i++) {
        if ((numbers[i] - least) % distance) return 0;
        sum += (numbers[i] - least) / distance;
    }
    if (2 * sum != between * (long)count) return 0; /* a number stands there twice */
    return least - first < 2 * distance && last - most < 2 * distance ? distance : 0;
}

static const char *ending_of(long number)
{
    static const char *const endings[] = {"th", "st", "nd", "rd"};
    const long ones = number % 10;
    return number / 10 % 10 == 1 || ones > 3 ? "th" : endings[ones];
}

char *kp_everynth_text(char *out, size_t bytes, long distance)
{
    if (bytes) *out = 0;
    if (distance) snprintf(out, bytes, ", each %ld%s step", distance, ending_of(distance));
    return out;
}
