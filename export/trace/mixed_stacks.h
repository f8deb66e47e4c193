// SPDX-License-Identifier: Apache-2.0
/* mixed_stacks.h - call stacks of ops with machine code and Python in one */
#ifndef KP_EXPORT_NATIVE_H
#define KP_EXPORT_NATIVE_H

#include "export/out/trace.h"

/*
 * Writes the frames of an op, innermost first, each with ';' behind: those of machine code, and before each frame of
 * the interpreter the Python frames it runs. 0 or -ENOMEM.
 */
int kp_native_stack_write(struct kp_trace *t, uint32_t native, uint32_t python);

#endif
