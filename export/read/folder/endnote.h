// SPDX-License-Identifier: Apache-2.0
/* endnote.h - notes in the spool of a program by which signal it ended, which `kprof run` knows */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The file that counts such ends: of this process's control group, else of the machine. Static. */
const char *kp_endnote_oom_file(void);
/* How often the kernel has killed a process for want of memory, by such a file; 0: not known. */
uint64_t kp_endnote_oom_kills(const char *path);
struct kp_endnote {
    int signal;
    bool lacked_memory;        /* the kernel did then */
    uint64_t real_ns, peak_kb; /* when it was gone, since the Unix epoch; the most memory that it had. 0: not known */
    uint64_t may_have;         /* bytes of memory: its control group's limit, or the machine's; 0: not known */
};
/* Notes that in each spool in `folder` that this process left open. True: it left a file there, of any kind. */
bool kp_endnote_leave(const char *folder, pid_t pid, const struct kp_endnote *note);
