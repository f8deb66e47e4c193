// SPDX-License-Identifier: Apache-2.0
/* stackpath.h - texts of call stacks, "inner;outer;", as paths of a call tree */
#pragma once

#include "export/answers/stacks/calltree.h"

/* The stack without its last ';', and of a forked worker without the frames around the fork. */
size_t kp_stackpath_bytes(const char *stack);
/* How many bytes at the end of both are the same outer frames. */
size_t kp_stackpath_common(const char *a, size_t a_bytes, const char *b, size_t b_bytes);
/* Adds the frames of the first `bytes` bytes, outermost first, but none of the interpreter's machine code. */
uint32_t kp_stackpath_add(struct kp_calltree *tree, uint32_t base, const char *stack, size_t bytes);
/* The frames that two stacks share, and the function of both whose line went on from one to the other. */
uint32_t kp_stackpath_between(struct kp_calltree *tree, uint32_t base, const char *a, const char *b);
