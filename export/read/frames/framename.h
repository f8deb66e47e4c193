// SPDX-License-Identifier: Apache-2.0
/* framename.h - names of frames: "file.py(LINE): function", with the line that ran or without one */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A text that grows. All zero: empty. */
struct kp_frametext {
    char *data;
    size_t capacity;
};
void kp_frametext_fini(struct kp_frametext *text);

#define KP_FRAMENAME_DEF "def "
/*
 * Writes `frame` with the line of `from`, "file.py:LINE", which is where its callee was called. If there is no line of
 * the same file the frame has that of its `def`, and the word: "file.py(3): def function". A module's code has neither:
 * "file.py: <module>". A name that is no Python frame stays.
 */
const char *kp_framename_called(struct kp_frametext *out, const char *frame, const char *from);
/* The same, but a module's code has line 0: "file.py(0): <module>". */
const char *kp_framename_at_line(struct kp_frametext *out, const char *frame, const char *from);
/* Writes a Python frame with line 0, which is none: "file.py(0): function". A name that is no Python frame stays. */
const char *kp_framename_unlined(struct kp_frametext *out, const char *frame);
/*
 * Writes the frame in which both `a` and `b` ran, one after the other: "file.py(LINE): f", or "file.py(LINE->LINE): f"
 * between two lines, in a loop's next turn back to an earlier one. NULL: they are frames of different functions.
 */
const char *kp_framename_between(struct kp_frametext *out, const char *a, const char *b);
/* A frame's function without the word `def`. */
const char *kp_framename_bare(const char *function);
/* Is the line with which Python names a function the one of its `def`, or of its expression? A module has none. */
bool kp_framename_has_def(const char *function);
/*
 * Returns `text`, of *bytes bytes, or what of it stays from run to run: "<built-in method get of dict object>" without
 * the object's address, and without the type of pybind11's record of a function.
 */
const char *kp_framename_lasting(struct kp_frametext *out, const char *text, size_t *bytes);
/* Writes a frame as folded stacks can hold it: no ';', no control characters. */
const char *kp_framename_shown(struct kp_frametext *out, const char *frame);
/* The module of a call "nn.Module: NAME"; NULL: another frame. */
const char *kp_framename_module(const char *frame);
/* The function of "file.py(12): name", or the module of "nn.Module: name"; NULL: another name. */
const char *kp_framename_part(const char *name);
/* Compares a pattern with a whole name, the function of "file.py(12): name", or the module of "nn.Module: name". */
bool kp_framename_is_meant(const char *pattern, const char *name);
/* Is it the call of torch.profiler that starts the recording? Calls that begin before it were open then. */
bool kp_framename_starts_recording(const char *frame);
/* Does the frame belong to the interpreter's machine code, or to what starts it? Python frames stand for it. */
bool kp_framename_is_interpreter(const char *frame);
