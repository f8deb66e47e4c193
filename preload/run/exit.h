// SPDX-License-Identifier: Apache-2.0
/*
 * exit.h - ends the run: when the process exits, or earlier on demand
 */
#pragma once

/* Registers a handler that runs before exit() destroys torch's objects. Outside fork, as libc may allocate. */
void kp_exit_watch(void);
/* Does what exit does though the program goes on. On a host thread, outside hooks. */
void kp_exit_early(void);
