// SPDX-License-Identifier: Apache-2.0
/* memticks.h - round ticks for an axis of bytes or of milliseconds, and how many steps have a number */
#ifndef KP_MEMTICKS_H
#define KP_MEMTICKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_ticks_axis {
    double first, apart; /* in the unit; first: the lowest tick from `from` on */
    int count, decimals;
    double unit; /* how many bytes or nanoseconds the unit has */
    const char *name;
};
/* Ticks at 1, 2 or 5 times a power of ten, at most `most` + 1 of them. Bytes begin at 0 and end at or above `peak`. */
struct kp_ticks_axis kp_ticks_bytes(int64_t peak, int most);
struct kp_ticks_axis kp_ticks_time(int64_t from_ns, int64_t to_ns, int most);
double kp_ticks_at(const struct kp_ticks_axis *axis, int i); /* the tick in bytes or nanoseconds */
char *kp_ticks_text(char *out, size_t bytes, const struct kp_ticks_axis *axis, int i);
/* Every which step gets its number, so that at most `most` do: 1, 2, 5, 10, ... */
size_t kp_ticks_every(size_t steps, size_t most);

#endif
