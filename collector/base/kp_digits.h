// SPDX-License-Identifier: Apache-2.0
/* kp_digits.h - a number in a text of the kernel's. Signal handlers: yes. */
#pragma once

#include <stdint.h>

/* Reads decimal digits, and moves *at behind them. Without digits: 0. */
static inline uint64_t kp_digits_read(const char **at)
{
    uint64_t value = 0;
    for (; **at >= '0' && **at <= '9'; (*at)++) value = value * 10 + (uint64_t)(**at - '0');
    return value;
}

static inline uint64_t kp_digits(const char *at) { return kp_digits_read(&at); }
