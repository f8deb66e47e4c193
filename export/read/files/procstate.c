// SPDX-License-Identifier: Apache-2.0
/*
 * procstate.c - reads /proc/PID/stat for the state of a process
 *
 * After kill -9 a process stays for as long as the kernel frees its memory, and then as a zombie until its parent
 * reaps it. It runs no code any more: SIGKILL is pending, or the kernel has set PF_EXITING.
 */
#include "export/read/files/procstate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_io.h"

enum { STATE = 3, PARENT = 4, FLAGS = 9, PENDING = 31 }; /* numbers of fields */
#define PF_EXITING 0x4ULL
#define KILLED (1ULL << (9 - 1))

static unsigned long long field(const char *at, int number)
{
    for (int i = STATE; at && i < number; i++) at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

char kp_procstate_of(const char *stat)
{
    const char *const end = strrchr(stat, ')'); /* of the name */
    if (!end || end[1] != ' ' || !end[2]) return '\0';
    return field(end + 2, FLAGS) & PF_EXITING || field(end + 2, PENDING) & KILLED ? 'X' : end[2];
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
    const char *const end = strrchr(text, ')');
    return end && end[1] == ' ' ? (long)field(end + 2, PARENT) : 0;
}

uint64_t kp_procstate_start(long pid) { return kp_procstate(pid) == 'X' ? 0 : kp_io_process_start((int32_t)pid); }
