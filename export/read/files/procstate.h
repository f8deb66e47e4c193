// SPDX-License-Identifier: Apache-2.0
/* procstate.h - whether a process of this machine runs, has stopped, or is as good as gone */
#pragma once

#include <stdint.h>

/*
 * The state of proc(5) in the text of a stat file: 'X' also where the process exits or was killed, though its end takes
 * a while. '\0': the text is none.
 */
char kp_procstate_of(const char *stat);
char kp_procstate(long pid);        /* '\0': there is no such process */
long kp_procstate_parent(long pid); /* 0: there is none, or no such process */
/* As kp_io_process_start(), and 0 also of a process that was killed. */
uint64_t kp_procstate_start(long pid);
