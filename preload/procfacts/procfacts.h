// SPDX-License-Identifier: Apache-2.0
/* procfacts.h - notes in the spool what the program ran on: cores, waits for one, busy threads, the script */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool kp_procfacts_is_launcher(void);                  /* does this process run torchrun or its like? */
void kp_procfacts_own_script(char *out, size_t room); /* writes the script that this process runs, or "" */
void kp_procfacts_note_begin(void);                   /* cores, instructions and script, once a spool is open */
void kp_procfacts_note_end(void);                     /* busy threads, before a trace is written */
/*
 * How long the calling thread had a core in a window, and others did, how long it waited for one, and its page faults
 * (faultcount.h).
 * Both are called by the thread that opens the window and closes it, under the window's lock; another that closes it
 * notes nothing. If a helper thread opened it, as in a worker, the program's first thread is meant. `is_step`: the
 * window begins with a step.
 */
void kp_procfacts_window_begin(uint32_t window, bool is_step);
void kp_procfacts_window_note(uint32_t window);
/*
 * That recorded step has ended now (CLOCK_MONOTONIC). The time before the first end was the program's start. Steps
 * between two looks at the kernel's counts, which are 5 ms apart at least, are noted with one wait (corewaits.c).
 */
void kp_procfacts_core_step(uint64_t now_ns, bool is_first, uint64_t step);

/* How long the calling thread had a core so far, and waited for one. False: the kernel does not count it. Some 6 us. */
bool kp_procfacts_thread(uint64_t *had_ns, uint64_t *waited_ns);
/* The same of the thread or process whose schedstat is this file. */
bool kp_procfacts_schedstat(const char *path, uint64_t *had_ns, uint64_t *waited_ns);

/* Writes those of the CPU's instructions that a reader may ask for, of the begin of /proc/cpuinfo: "avx2 avx512bw", or
 * "". */
void kp_procfacts_instructions(const char *cpuinfo, char *out, size_t room);

/* The parts that tests call. The number of processors in the text of /proc/self/status, 0: not found. */
unsigned kp_procfacts_cores(const char *status);
/* Processor time in ns, of the texts of a task's stat and schedstat (or ""); 0 of our helper threads. */
uint64_t kp_procfacts_task_ns(const char *stat, const char *schedstat);
/*
 * Writes ns on a core and ns of waiting for one, of the text of a schedstat; false: the kernel does not count them.
 * A thread that has just begun may have 0 ns: the kernel adds to them when it is switched, or at a tick.
 */
bool kp_procfacts_core(const char *schedstat, uint64_t *had_ns, uint64_t *waited_ns);
/*
 * Writes "HAD,WAITED,OTHERS" in us: the thread of the steps had a core, and waited for one; the other threads of the
 * program had one, those that have ended, too, and none of the helper threads. The kernel counts a thread that runs
 * later than the program.
 */
void kp_procfacts_core_text(char *out, size_t room, uint64_t had_ns, uint64_t waited_ns, uint64_t program_ns,
                            uint64_t helpers_ns);
/* How many of these are a millisecond, and a twentieth of `over_ns`; 0: of what the longest has beyond imports. */
unsigned kp_procfacts_busy(const uint64_t *ns, size_t count, uint64_t over_ns);
/* How long a thread has a core in that time that gets one as often as one that had it and waited for it so long. */
uint64_t kp_procfacts_core_share(uint64_t ns, uint64_t had_ns, uint64_t waited_ns);
enum { KP_PROCFACTS_TASKS = 128 };
struct kp_tasks {
    uint64_t ns[KP_PROCFACTS_TASKS]; /* processor time */
    uint32_t tid[KP_PROCFACTS_TASKS];
    size_t count;
};
/* Takes from each thread what it ran before, as a library's that computes in an import. */
void kp_procfacts_leave_out(struct kp_tasks *now, const struct kp_tasks *before);
bool kp_procfacts_starts_ranks(const char *script);
/* Writes the name of the script that Python runs, of the text of /proc/self/cmdline; "": none. */
void kp_procfacts_script(const char *line, size_t bytes, char *out, size_t room);

/* residents.c: how much memory and how many open files the program has at the ends of a window's steps. procfacts.c
 * calls it, under the window's lock. */
void kp_residents_begin(uint32_t window, uint64_t now_ns); /* the window's steps begin, or begin again */
void kp_residents_step(uint64_t step, uint64_t now_ns);    /* a step ended: looks, where the last look is old enough */
void kp_residents_note(void);                              /* writes what is not yet in the spool: the window closes */

/* corewaits.c: which steps of a window waited for a core, and how long. procfacts.c calls it, under the window's
 * lock. */
void kp_corewaits_begin(uint32_t window); /* the window's steps begin, or begin again */
/* In these steps, which took so long together, their thread waited so long. Short waits are dropped. */
void kp_corewaits_add(uint64_t first_step, uint64_t last_step, uint64_t waited_ns, uint64_t of_ns);
void kp_corewaits_note(void); /* writes what is not yet in the spool */
