// SPDX-License-Identifier: Apache-2.0
/*
 * kp_symbol.h - a spool's records about calls of functions by name (KPROF_SYMBOLS)
 *
 * KP_KIND_SYMBOL: a call, put when it begins, in the chunk of its thread. So a caller comes before its callees.
 * head.name is the function's name as the linker has it, then NUL, then its object's base name. The end is filled in as
 * in an op: by the return, or when the thread ends. After a longjmp or an exception, the next hook that finds the stack
 * above the call fills it in.
 */
#pragma once

#include "collector/format/kp_format.h"

struct kp_rec_symbol {
    struct kp_rec head;
    uint64_t start;         /* ticks */
    _Atomic uint64_t ticks; /* as in an op */
};
_Static_assert(sizeof(struct kp_rec_symbol) == 24, "a call is 24 bytes");
