// SPDX-License-Identifier: Apache-2.0
/* kp_traceback.h - the text of a traceback as Python prints it: a frame's line, and the exception behind it */
#pragma once

#include <stdbool.h>

/* A block of a text: the frames from the outermost on, and the exception that left them. */
struct kp_traceback {
    char file[300], function[100], type[96]; /* the type without its module */
    const char *text;                        /* the exception's, in what was read, up to the line's end; "": none */
    int line;
};
/*
 * Reads the next block at *at, and moves *at behind it. Its frame is the innermost of those for which is_own(file)
 * holds, else the innermost. False: there is no further one. Python prints first what was raised first. Any thread.
 */
bool kp_traceback_next(const char **at, struct kp_traceback *out, bool (*is_own)(const char *file));
