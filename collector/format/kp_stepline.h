// SPDX-License-Identifier: Apache-2.0
/*
 * kp_stepline.h - the file HOST_PID.TIME.steps of KPROF_SUMMARY: a head, then a line a step
 *
 * Little-endian, of fixed size. A torn last line is not read. Beyond KP_STEPLINE_SINGLES lines each stands for up to
 * KP_STEPLINE_FOLD steps, so that a run of weeks stays some MB.
 */
#pragma once

#include <stdint.h>

#define KP_STEPLINE_MAGIC "KPSTEPS1"
enum { KP_STEPLINE_SINGLES = 100000, KP_STEPLINE_FOLD = 100 };
enum { KP_STEPLINE_RUNS, KP_STEPLINE_ENDED }; /* state: the program's exit was seen */

struct kp_stephead {
    char magic[8];
    uint32_t head_bytes, line_bytes;
    int32_t pid;
    uint32_t rank, ranks; /* 0 of 1 without a launcher */
    uint32_t state;
    uint64_t process_start; /* kp_io_process_start: clock ticks since the machine's boot */
    uint64_t begin_ns;      /* CLOCK_REALTIME, as all times here: the file was made */
    uint64_t beat_ns;       /* the process was seen alive: each 10 s at least */
    uint64_t lost;          /* steps without a line */
    char host[65], script[128], job[46];
    char rest[209];
};
_Static_assert(sizeof(struct kp_stephead) == 512, "the head of a file has a fixed size");

struct kp_stepline {
    uint64_t step, end_ns; /* of the last step that the line stands for */
    uint64_t dur_ns;       /* of all steps together; 0: the first step's begin is not known */
    uint64_t min_ns, median_ns, p99_ns, max_ns;
    uint32_t count, recorded;              /* steps; those in which something was recorded */
    uint32_t had_us, waited_us, looked_us; /* the thread had a core, and wanted one, within so long a time */
    uint32_t faults_minor, faults_major;   /* within that time, of the thread */
    uint32_t resident_kb;                  /* memory without files; 0: not known */
    uint32_t collectives_us;               /* that long a collective was open; 0: not known either */
    uint32_t rest;
};
_Static_assert(sizeof(struct kp_stepline) == 96, "a line has a fixed size");
