// SPDX-License-Identifier: Apache-2.0
/* tracehead.h - the begin of a trace's text */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct kp_tracehead {
    char bytes[32768]; /* 16 devices have 8 KiB, before the rank */
    size_t used;
};
void kp_tracehead_read(struct kp_tracehead *head, const char *path); /* "": it cannot be read */

/* Traces of others end in .json[.gz], and so do other files. May one of this name be a trace, and does it begin so? */
bool kp_tracehead_may_be(const char *name);
bool kp_tracehead_is_trace(const char *path);
