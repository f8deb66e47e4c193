// SPDX-License-Identifier: Apache-2.0
/*
 * kp_symbol.h - what a spool says of calls of functions by name (KPROF_SYMBOLS)
 *
 * KP_KIND_SYMBOL: a call, put when it begins, in the chunk of the thread that makes it: a caller before what it calls.
 * head.name is the function's name as the linker has it, then NUL, then the base name of the object it is in. The end
 * is filled in as that of an op is: by the return, by whoever finds out that the stack is above it (longjmp, an
 * exception), or when the thread ends.
 */
#ifndef KP_SYMBOL_FORMAT_H
#define KP_SYMBOL_FORMAT_H

#include "collector/format/kp_format.h"

struct kp_rec_symbol {
    struct kp_rec head;
    uint64_t start;         /* ticks */
    _Atomic uint64_t ticks; /* as in an op */
};
_Static_assert(sizeof(struct kp_rec_symbol) == 24, "a call is 24 bytes");

#endif
