// SPDX-License-Identifier: Apache-2.0
/* complain.h - what is wrong with a part of a setting, as a phrase for the log */
#pragma once

#include <errno.h>
#include <string.h>

#include "collector/base/kp_log.h"

/* Writes what is wrong. -EINVAL. */
static inline int kp_complain(char *why, unsigned long why_bytes, const char *phrase)
{
    kp_fmt(why, why_bytes, "%s", phrase);
    return -EINVAL;
}

/* Writes what is wrong, the first 40 bytes of the bad text up to `stop`, and how the setting is written. -EINVAL. */
static inline int kp_complain_at(char *why, unsigned long why_bytes, const char *what, const char *at, const char *stop,
                                 const char *written)
{
    enum { PART_MAX = 40 };
    char part[PART_MAX + 1];
    size_t n = strcspn(at, stop);
    if (n > PART_MAX) n = PART_MAX;
    memcpy(part, at, n);
    part[n] = 0;
    kp_fmt(why, why_bytes, "%s '%s' (written %s)", what, part, written);
    return -EINVAL;
}

/* regex_check.c: 0, or -EINVAL for what is no regular expression, or one that is dear. */
int kp_pattern_check(const char *pattern, char *why, unsigned long why_bytes);
