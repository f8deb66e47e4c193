// SPDX-License-Identifier: Apache-2.0
/* endnote.h - notes in the spool of a program by which signal it ended, which `kprof run` knows */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How often the kernel has killed a process for want of memory, by a file like /proc/vmstat; 0: not known. */
uint64_t kp_endnote_oom_kills(const char *path);
/* Notes the signal in each spool in `folder` that this process left open. `lacked_memory`: the kernel did then. */
void kp_endnote_leave(const char *folder, pid_t pid, int signal, bool lacked_memory);
