// SPDX-License-Identifier: Apache-2.0
/*
 * kp_python.h - a spool's records about Python: calls of functions
 *
 * KP_KIND_PYCALL: a call of a Python or C function, in the chunk of its thread, put when it starts. Its end is filled
 * in as in an op. Its name has two parts, as an op's: "file.py(LINE): function" and "file.py:LINE" of the caller. In
 * the second part of a module's call the key in the module around it comes first, or nothing, and a tab: "fc1\t". A
 * generator or coroutine makes a record each time it is resumed.
 *
 * LINE is where the function begins (or goes on). A frame that was there when the window began has KP_PY_OPEN and
 * starts with the window. It comes before all other records of its thread, and its LINE is the line that ran then.
 *
 * A call stack (KP_OP_STACK in an op) is the id of its innermost frame's text, "AROUND;file.py(LINE): function". AROUND
 * is the caller's frame, always a smaller id, and 0 for the outermost. LINE is the line that runs. '!' in place of ';'
 * says that C entered the interpreter for this frame. In a stack with machine code, the frames of that C lie between
 * this frame and its caller.
 *
 * An op has no stack if calls are recorded: these calls are its stack. If the innermost is of Python, the op may have
 * in the stack's place the line that the call runs: "@file.py:LINE".
 */
#pragma once

#include "collector/format/kp_format.h"
#define KP_PY_LINE '@'
#define KP_PY_KEY_END '\t'
enum {
    KP_PY_C = 1u << 0,      /* a C function; the name's first part is "<built-in ...>" */
    KP_PY_MODULE = 1u << 1, /* torch.nn.Module.__call__, as a kp_rec_pymodule; the name's first part is the class */
    KP_PY_OPEN = 1u << 2,
    KP_PY_GARBAGE = 1u << 3, /* no call but a collection of Python's garbage collector; its name has no second part */
    KP_PY_FURTHER = 1u << 7, /* no spool has it: kp_read.h gives a call in several parts */
};
struct kp_rec_pycall {
    struct kp_rec head;
    uint64_t start;
    _Atomic uint64_t ticks; /* as in an op: 0 while open */
};
/* Addresses. Equal addresses are the same object or class, as long as it lives. */
struct kp_rec_pymodule {
    struct kp_rec_pycall call;
    uint64_t self, type;
};
_Static_assert(sizeof(struct kp_rec_pycall) == 24, "a call is 24 bytes");
