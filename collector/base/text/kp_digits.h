// SPDX-License-Identifier: Apache-2.0
/* kp_digits.h - numbers in texts of the kernel's. Signal handlers: yes. */
#pragma once

#include <stdint.h>
#include <string.h>

/* Reads decimal digits, and moves *at behind them. Returns 0 for a text that has no digits. */
static inline uint64_t kp_digits_read(const char **at)
{
    uint64_t value = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++) value = value * 10 + (uint64_t)(**at - '0');
    return value;
}

static inline uint64_t kp_digits(const char *at) { return kp_digits_read(&at); }

/* As kp_digits_read, of "7f3a" or "0x7f3a". */
static inline uint64_t kp_digits_hex(const char **at)
{
    uint64_t value = 0;
    if (strncmp(*at, "0x", 2) == 0) *at += 2;
    for (; (**at >= '0' && **at <= '9') || (**at >= 'a' && **at <= 'f'); (*at)++)
        value = value << 4 | (uint64_t)(**at <= '9' ? **at - '0' : **at - 'a' + 10);
    return value;
}

/* Begin of a field in the text of a process's stat, by its number in proc(5) from 3 on. "": it has none. */
static inline const char *kp_digits_stat(const char *stat, int number)
{
    const char *at = strrchr(stat, ')'); /* the name before it may contain any character */
    if (!at || at[1] != ' ') return "";
    for (at += 2; *at && number > 3; number--) at += strcspn(at, " "), at += *at == ' ';
    return at;
}

/* The sum of a field and the next one, as the times of a process: 100 ticks a second on every machine that we know. */
static inline uint64_t kp_digits_stat_ticks(const char *stat, int number)
{
    return kp_digits(kp_digits_stat(stat, number)) + kp_digits(kp_digits_stat(stat, number + 1));
}
enum { KP_STAT_STATE = 3, KP_STAT_TIMES = 14, KP_STAT_CHILD_TIMES = 16, KP_STAT_TICK_MS = 10 };
