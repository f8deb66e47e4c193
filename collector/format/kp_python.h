// SPDX-License-Identifier: Apache-2.0
/*
 * kp_python.h - what a spool says of Python: calls of functions
 *
 * KP_KIND_PYCALL: one call of a Python or C function, in the chunk of the thread that made it, put when it starts; the
 * end is filled in as in an op. Its name has two parts, as an op's: "file.py(LINE): function" and "file.py:LINE" of the
 * caller. A generator or coroutine makes one such record each time it is resumed.
 *
 * A frame that was there when the window began is put first of all that the thread does in it, and starts when the
 * window does (KP_PY_OPEN); LINE is where it stood then, else where the function begins (or goes on).
 *
 * A call stack (KP_OP_STACK in an op) is the id of its innermost frame's text, "AROUND;file.py(LINE): function": AROUND
 * is the id of the frame around it, always a smaller one, 0 for the outermost; LINE is the line that runs. With '!' for
 * ';' C entered the interpreter for this frame: in a stack with machine code what is around it lies around that C.
 */
#ifndef KP_PYTHON_FORMAT_H
#define KP_PYTHON_FORMAT_H

#include "collector/format/kp_format.h"
enum {
    KP_PY_C = 1u << 0, /* a function made in C; the name's first part is "<built-in ...>" */
    KP_PY_MODULE =
        1u << 1, /* torch.nn.Module.__call__: the name's first part is the class, and a kp_rec_pymodule follows */
    KP_PY_OPEN = 1u << 2,
};
struct kp_rec_pycall {
    struct kp_rec head;
    uint64_t start;
    _Atomic uint64_t ticks; /* as in an op: 0 still open */
};
/* Addresses: equal ones are the same object or class, as long as it lives. */
struct kp_rec_pymodule {
    struct kp_rec_pycall call;
    uint64_t self, type;
};
_Static_assert(sizeof(struct kp_rec_pycall) == 24, "a call is 24 bytes");

#endif
