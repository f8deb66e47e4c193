// SPDX-License-Identifier: Apache-2.0
/* heapfold.h - which frames of a block's call stack are Python's interpreter, calling one function after another */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * A call stack, from the innermost frame on. The interpreter's own work there (it made a list, a dict) shows the kind
 * of the block, and stays. Further out its frames only say that Python called something.
 */
struct kp_heapfold {
    bool is_all;   /* nothing is folded */
    bool is_calls; /* past the innermost frames of the interpreter's own */
    size_t run;    /* folded since the caller set it to 0 */
};

/* A frame of Python: those of the interpreter behind it are calls. */
void kp_heapfold_pass(struct kp_heapfold *f);
/* Is this frame of machine code folded? Then it is counted in `run`. function: NULL, not known. */
bool kp_heapfold_take(struct kp_heapfold *f, const char *module, const char *function);
