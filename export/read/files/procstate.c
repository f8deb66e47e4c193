// SPDX-License-Identifier: Apache-2.0
/*
 * procstate.c - reads /proc/PID/stat for the state of a process
 *
 * After kill -9 a process stays for as long as the kernel frees its memory, and then as a zombie until its parent
 * reaps it. It runs no code any more: SIGKILL is pending, or the kernel has set PF_EXITING.
 */
#include "export/read/files/procstate.h"

#include <stdio.h>

#include "collector/base/text/kp_digits.h"
#include "collector/base/sys/kp_io.h"

enum { PARENT = 4, FLAGS = 9, PENDING = 31 }; /* numbers of fields */
#define PF_EXITING 0x4ULL
#define KILLED (1ULL << (9 - 1))

static uint64_t field(const char *stat, int number) { return kp_digits(kp_digits_stat(stat, number)); }

char kp_procstate_of(const char *stat)
{
    const bool is_ending = field(stat, FLAGS) & PF_EXITING || field(stat, PENDING) & KILLED;
    const char state = *kp_digits_stat(stat, KP_STAT_STATE);
    return state && is_ending ? 'X' : state;
}

char kp_procstate(long pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    (void)kp_io_text(path, text, sizeof text); /* "" where it is gone */
    return kp_procstate_of(text);
}

long kp_procstate_parent(long pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    (void)kp_io_text(path, text, sizeof text);
    return (long)field(text, PARENT);
}

uint64_t kp_procstate_start(long pid) { return kp_procstate(pid) == 'X' ? 0 : kp_io_process_start((int32_t)pid); }
