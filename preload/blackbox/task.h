// SPDX-License-Identifier: Apache-2.0
/* task.h - what a thread, or a child process, does: its state, its system call, and what that waits for */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { KP_TASK_RUNS = -1, KP_TASK_UNKNOWN = -2 };
struct kp_task {
    uint32_t tid;
    long call; /* KP_TASK_RUNS, KP_TASK_UNKNOWN, or the number of a system call */
    char name[16], state, channel[48];
    char on[256];      /* "/data/train.bin", "a pipe", "process 31"; "": not known */
    const char *words; /* in place of those of its call; NULL: those */
    uintptr_t futex;   /* of this process, where it waits at one; 0: it does not */
    uint64_t cpu_ms;
    int status; /* of a process that has ended (state Z), as wait(2) has it; -1: not known */
};
/* `pid`: 0 for this process, or a child, whose main thread has that number. False: it is gone. */
bool kp_task_look(struct kp_task *out, uint32_t pid, uint32_t tid);
/* Writes the numbers of the processes that this thread has started, `most` at most; `pid` as above. Returns how many. A
 * kernel without /proc/TID/children shows none. */
uint32_t kp_task_children(uint32_t pid, uint32_t tid, uint32_t *pids, uint32_t most);
/* "futex", and "waits for another thread" in *words. NULL: it is not in callwords.def. */
const char *kp_task_call(const struct kp_task *task, const char **words);
