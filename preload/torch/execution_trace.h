// SPDX-License-Identifier: Apache-2.0
/*
 * execution_trace.h - torch's own execution trace of each window (KPROF_EXECUTION_TRACE)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "preload/torch/torch.h"

struct kp_config;

void kp_execution_trace_setup(const struct kp_config *config);
/* Once, when torch was found: finds torch's observer, and taps the program's own use of it. Outside hooks. */
void kp_execution_trace_attach(const struct kp_torch_api *api);
/*
 * Sources were set for a window: opens its file, lets torch write while the gate records, and ends it. `is_full`: all
 * hooks are wanted. true: torch's observer is new in its list of callbacks, and ours must be added behind it. So torch
 * has written the end of a step's last op when our callback ends the step.
 */
bool kp_execution_trace_turn(bool is_full, uint64_t gate);
bool kp_execution_trace_is_on(void); /* wanted, and torch has an observer; constant once attached */
/* A window is being closed: torch writes the end of its file. Any thread, without a lock, outside hooks. */
void kp_execution_trace_close(void);
/* A recorded step begins, or the one in progress ends: torch writes its range ProfilerStep#N, as in torch.profiler. */
void kp_execution_trace_step_begin(uint64_t number);
void kp_execution_trace_step_end(void);
/* In a forked child: the file is its parent's. */
void kp_execution_trace_forget(void);
