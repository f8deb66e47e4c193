// SPDX-License-Identifier: Apache-2.0
/* ownline.h - finds the program's own line, and its nn.Modules, in a call stack */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kp_kineto;

/* The innermost frame of a call stack that is the program's (of no installed package and not of Python itself), and its
 * length; NULL: none. If all is installed, the innermost of the package that called the others. */
const char *kp_ownline_frame(const struct kp_kineto *trace, const char *stack, size_t *bytes);

/* Is the frame, "file.py(12): name", of Python's library or of an installed package? */
bool kp_ownline_is_installed(const struct kp_kineto *trace, const char *frame);
/* Is it no file of Python's library or of an installed package? list: of packages, with commas; NULL: none was
 * recorded, and well-known ones count. */
bool kp_ownline_is_file(const char *list, const char *file);

/* All return a string id, 0 for none. Each string is searched once, and what was found stays beside it. */

/* The innermost own line of a stack, "train.py:12 forward". */
uint32_t kp_ownline_of(struct kp_kineto *trace, uint32_t stack);
/* The next own line outwards that is another: what calls that line's function. */
uint32_t kp_ownline_caller(struct kp_kineto *trace, uint32_t stack);
/* The same past the lines of modules' forward: what calls the model. It is searched each time. */
uint32_t kp_ownline_caller_of_forward(struct kp_kineto *trace, uint32_t stack);
/* The innermost line of a stack that is not of torch or Python's library: of the program, or of what it calls
 * ("transformers/models/bert/modeling_bert.py:160 forward"). */
uint32_t kp_ownline_library(struct kp_kineto *trace, uint32_t stack);
/* The function that is named, if it is the program's, with the line of its `def`: "train.py:9 def main".
 * KP_WORKERFRAME_LOOP for a worker's loop. */
uint32_t kp_ownline_function(struct kp_kineto *trace, uint32_t name);
/* The innermost function of a stack, or the one that is named, of any file: "torch/nn/functional.py linear". Functions
 * of one name in one file are one. A name that has no file stays: "<built-in method add>". */
uint32_t kp_ownline_any_function(struct kp_kineto *trace, uint32_t stack);
/* All modules, the outermost first: "Net_0.Linear_1". */
uint32_t kp_ownline_modules(struct kp_kineto *trace, uint32_t stack);
/* The same with the names that the program gives them: "Net_0.head (Linear_1)". */
uint32_t kp_ownline_module_names(struct kp_kineto *trace, uint32_t stack);
