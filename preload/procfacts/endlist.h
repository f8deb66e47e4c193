// SPDX-License-Identifier: Apache-2.0
/* endlist.h - a list of child processes that ended badly, as waitpid told */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KP_ENDLIST_MAX = 64, KP_ENDLIST_LINE = 64 };
/* Is that answer of waitpid a process that ended by a signal, or with an exit status but 0? */
bool kp_endlist_is_bad(int pid, const int *status);
/* The first KP_ENDLIST_MAX stay. Any thread. */
void kp_endlist_add(int pid, int status, uint64_t at_ns);
bool kp_endlist_has_any(void);
/* Writes a line for each, "PID STATUS NANOSECONDS", the status as wait(2) has it. Returns their bytes. */
size_t kp_endlist_text(char *text, size_t bytes);
/* The same of children that the kernel or a fault ended since then, not of those that were asked to end. */
size_t kp_endlist_crashes(char *text, size_t bytes, uint64_t since_ns);
void kp_endlist_forget(void);
