// SPDX-License-Identifier: Apache-2.0
/* exceptions.h - what an exception object of Python says. All need the GIL, with no exception set. */
#pragma once

#include "preload/run.h"

/* Tracebacks, of a type's first word on: "traceback". */
bool kp_exception_is_trace(const void *object);
/* Is no frame outside of the outermost one of this traceback? */
bool kp_exception_is_of_all(const void *trace);
/* Did this function call what raised the exception, and catch it? */
bool kp_exception_is_under(const void *trace, const char *function);
/* Fills `out` for an exception with this traceback, and its root. False: it has no type. */
bool kp_exception_read(struct kp_run_exception *out, const void *type, const void *value, const void *trace);
