// SPDX-License-Identifier: Apache-2.0
/* kp_glob.h - matches a whole text against a glob: * is any characters, ? is one */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* `bytes` is the length of the glob, which may be a part of a text. */
static inline bool kp_glob_matches(const char *glob, size_t bytes, const char *text)
{
    const char *end = glob + bytes, *star = NULL, *from = NULL;
    for (;;) {
        if (glob < end && *glob == '*') {
            star = ++glob;
            from = text;
            if (star == end) return true;
            continue;
        }
        if (!*text) break;
        if (glob < end && (*glob == '?' || *glob == *text)) {
            glob++;
            text++;
        } else if (star) {
            glob = star;
            text = ++from;
        } else {
            return false;
        }
    }
    return glob == end;
}
