// SPDX-License-Identifier: Apache-2.0
/* mixed_stacks.h - writes call stacks of ops that mix machine code and Python */
#pragma once

#include "export/write/out/trace.h"

/*
 * Writes the frames of an op, innermost first, each with ';' behind. The Python frames that a frame of the interpreter
 * runs come before that frame. 0 or -ENOMEM.
 */
int kp_native_stack_write(struct kp_trace *t, uint32_t native, uint32_t python);
