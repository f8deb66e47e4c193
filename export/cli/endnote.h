// SPDX-License-Identifier: Apache-2.0
/* endnote.h - notes in the spool of a program by which signal it ended, which `kprof run` knows */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How often the kernel has killed a process for want of memory, by a file like /proc/vmstat; 0: not known. */
uint64_t kp_endnote_oom_kills(const char *path);
struct kp_endnote {
    int signal;
    bool lacked_memory;        /* the kernel did then */
    uint64_t real_ns, peak_kb; /* when it was gone, since the Unix epoch; the most memory that it had. 0: not known */
};
/* Notes that in each spool in `folder` that this process left open. */
void kp_endnote_leave(const char *folder, pid_t pid, const struct kp_endnote *note);
