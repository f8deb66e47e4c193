// SPDX-License-Identifier: Apache-2.0
/* steplines.h - a line for each step, from the thread that steps to the one that writes them (KPROF_SUMMARY) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collector/format/kp_stepline.h"

/*
 * Makes room for lines. Call it before a step ends. `collectives`: for so long one at least was open, ever, in ns.
 * 0, or -ENOMEM: there are no lines.
 */
int kp_steplines_begin(uint64_t (*collectives)(void));
/*
 * A step ended now (CLOCK_MONOTONIC, ns), `dur_ns` after it began; 0: not known. Under the window's lock, on the thread
 * that steps. Takes some 0.1 us, and 15 us each 20 ms, when it looks at the kernel's counts.
 */
void kp_steplines_step(uint64_t step, uint64_t now_ns, uint64_t dur_ns, bool is_recorded);
/* Takes the oldest lines that nobody took. One thread at a time. Returns how many. */
size_t kp_steplines_take(struct kp_stepline *out, size_t most);
uint64_t kp_steplines_lost(void); /* steps that found no room. Any thread */
void kp_steplines_forget(void);   /* in a forked child: it has no lines */

/* ---- otherranks.c: how long the ranks of a job are in collectives, by their files of KPROF_SUMMARY ---- */

enum { KP_OTHERRANKS_MOST = 8 };
/*
 * For the last steps of a rank that were not recorded: the share in which a collective was open, in thousandths. 0, or
 * -errno: -ENODATA where there are too few. One thread at a time, as all here.
 */
int kp_otherranks_share(const char *path, struct kp_stephead *head, uint64_t *milli);
/* The same of other ranks of the job, KP_OTHERRANKS_MOST at most, that lived within a minute. Returns how many. */
size_t kp_otherranks_shares(const char *folder, const struct kp_stephead *own, uint64_t now_ns,
                            uint64_t out[KP_OTHERRANKS_MOST]);

/* ---- promtext.c: the counts of a run in Prometheus' text format (KPROF_PROM) ---- */

enum { KP_PROMTEXT_STEPS = 256 };

struct kp_promtext {
    uint64_t steps, dur_ns, had_us, waited_us, looked_us; /* since the begin */
    uint64_t faults_minor, faults_major, recorded;
    uint64_t last_step, last_end_ns, resident_kb;
    uint64_t ns[KP_PROMTEXT_STEPS], count; /* a ring of the last steps; ever */
    uint64_t traces, lost;                 /* written; records that were dropped */
};

void kp_promtext_add(struct kp_promtext *p, const struct kp_stepline *line);
/* Writes the metrics with labels of the host, rank and pid. Returns the length needed, as kp_fmt does. */
size_t kp_promtext_write(const struct kp_promtext *p, const struct kp_stephead *head, char *out, size_t bytes);
/*
 * Writes the file's name: `given` itself, or with ".rRANK" before its ending in a job of several ranks; in a folder
 * ("/" at the end) kprof_HOST_PID.prom.
 */
void kp_promtext_path(const char *given, const struct kp_stephead *head, char *out, size_t bytes);

/* ---- stepfile.c: the file of a line a step, which grows to some MB and then slowly (kp_stepline.h) ---- */

/* One thread makes all calls. */
struct kp_stepfile {
    char path[4300];
    struct kp_stephead head;
    uint64_t at;                       /* bytes in the file; 0: it is not there yet */
    uint64_t singles;                  /* lines of a single step */
    uint64_t folded[KP_STEPLINE_FOLD]; /* how long the steps of `open` lasted */
    uint64_t open_ns;                  /* the end of the first of them */
    struct kp_stepline open;           /* stands for several; count 0: none */
    struct kp_stepline out[64];
    size_t out_count;
};

/* Adds a line, which is written by kp_stepfile_flush, or when 64 wait. */
void kp_stepfile_add(struct kp_stepfile *file, const struct kp_stepline *line);
/*
 * Writes what waits, and the head. The first call with a line makes the file, at file->path, which must be new. 0 or
 * -errno: the lines are dropped, and counted in head.lost.
 */
int kp_stepfile_flush(struct kp_stepfile *file, uint64_t now_ns);
int kp_stepfile_end(struct kp_stepfile *file, uint64_t now_ns); /* writes all, and that the program ended */
