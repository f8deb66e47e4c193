// SPDX-License-Identifier: Apache-2.0
/* watch.h - what the .steps files of a folder say of a run: each rank's step, its time, its memory, whether it lives */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "collector/format/kp_stepline.h"

enum kp_watch_state {
    KP_WATCH_RUNS,
    KP_WATCH_SILENT, /* no step has ended for ten medians, and 5 s */
    KP_WATCH_ENDED,  /* its exit was seen */
    KP_WATCH_GONE    /* no process has its number, or it gave no sign for a minute, and its exit was not seen */
};

enum { KP_WATCH_OOM_BYTES = 1024 };
struct kp_watch_rank {
    struct kp_stephead head;
    struct kp_stepline last;           /* count 0: no step has ended */
    double last_ns, median_ns, p99_ns; /* of the file's last lines; 0: not known */
    double had, waited;                /* shares of the last lines' time; NAN: not known */
    double quiet_ns;                   /* since the last step's end, or the last sign of life */
    enum kp_watch_state state;
    char oom[KP_WATCH_OOM_BYTES]; /* it ran out of memory last: what its file says (KPROF_ON_OOM); "": it did not */
};

/* Ranks in order; those of the run that goes on, else of the last one. */
struct kp_watch {
    struct kp_watch_rank *ranks;
    size_t count;
};

/* Reads the folder's files, 8 KB of each. `now_ns`: CLOCK_REALTIME. 0, or -errno: the folder cannot be read. */
int kp_watch_read(struct kp_watch *w, const char *dir, uint64_t now_ns);
/* The process ran out of memory then, as text says. The last one is kept. */
void kp_watch_oom(struct kp_watch *w, int64_t pid, int64_t time_ms, const char *text);
void kp_watch_free(struct kp_watch *w);
bool kp_watch_goes_on(const struct kp_watch *w); /* a rank runs, or is silent */
/* Writes the sentence that comes first: who is gone, stands or is behind; else the step. Returns out. */
char *kp_watch_say(const struct kp_watch *w, char *out, size_t bytes);
void kp_watch_print(FILE *out, const struct kp_watch *w);
void kp_watch_json(FILE *out, const struct kp_watch *w); /* one line */
extern const struct kp_fields *const kp_watch_schema;
