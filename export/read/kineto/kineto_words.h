// SPDX-License-Identifier: Apache-2.0
/* kineto_words.h - numbers and categories of a trace's text */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads "12.345" microseconds as 12345 nanoseconds, rounds after the third decimal, and takes exponents. */
int64_t kp_kineto_ns(const char *text, size_t bytes);
int64_t kp_kineto_whole(const char *text, size_t bytes);
uint64_t kp_kineto_address(const char *text, size_t bytes);
uint8_t kp_kineto_kind(const char *category); /* KP_KINETO_* */
/* The category of an event without one. By the text that is its process: torch.autograd.profiler's, before torch 1.9;
 * by its name: memory of torch.profiler in 2021. */
uint8_t kp_kineto_kind_bare(const char *process, const char *name);
bool kp_kineto_is_recording(const char *category, const char *name); /* the span of torch's profiler */

bool kp_kineto_is_npu(const char *process, size_t bytes); /* torch_npu's name of the process with an NPU's kernels */
/* Is that the name of a device, which stands as a process of its number: "MTIA 9" of process 9? */
bool kp_kineto_is_device(int64_t pid, const char *name, size_t bytes);

/* hierarchy.c: Writes "nn.Module: fc1(Linear);nn.Module: TOP(Net)" of "TOP(Net)::forward.fc1(Linear)::forward.", the
 * innermost first as in a call stack. Returns its length; 0: there is none, or no room. */
size_t kp_hierarchy_stack(char *out, size_t room, const char *text, size_t bytes);
/* The kind of a file that is no trace, by its first bytes; or "". */
const char *kp_kineto_foreign(const char *text, size_t bytes);
