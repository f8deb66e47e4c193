// SPDX-License-Identifier: Apache-2.0
/* crossing.h - frames of Python that begin outside of a range and end inside, or the other way round, made to nest */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collector/format/kp_format.h"

/* An event of a thread; as a result: a frame's further part. Times are ticks. */
struct kp_crossing_part {
    const struct kp_rec *rec;
    uint32_t bytes, piece; /* the record's, and the piece of its thread that has it */
    uint64_t start, end;
    bool is_first; /* the frame has no part before */
};
struct kp_crossing_cut { /* a frame whose first part ends early */
    const struct kp_rec *rec;
    uint64_t end; /* 0: it is among `parts` */
};
struct kp_crossing_open; /* crossing.c */
struct kp_crossings {
    uint64_t long_ticks; /* a rest that lasts so long is a part of its own */
    struct kp_crossing_cut *cuts;
    struct kp_crossing_part *parts; /* of each thread by start */
    uint32_t cuts_n, cuts_cap, parts_n, parts_cap;
    /* of the thread that is looked at */
    struct kp_crossing_open *open;
    uint32_t depth, open_cap;
    uint64_t last_start;
    bool is_crossed;
};

/* The thread has no more events, and those that come are another's. 0 or -ENOMEM. */
int kp_crossings_thread(struct kp_crossings *x);
/* Takes a thread's next event by start. is_frame: a call of Python; else a range, an op or a step. 0 or -ENOMEM. */
int kp_crossings_take(struct kp_crossings *x, const struct kp_crossing_part *event, bool is_frame);
void kp_crossings_sort(struct kp_crossings *x); /* once all threads were looked at */
/* When the first part of this frame ends; `end`: it is not cut; 0: it is among `parts`. */
uint64_t kp_crossings_end(const struct kp_crossings *x, const struct kp_rec *rec, uint64_t end);
void kp_crossings_fini(struct kp_crossings *x);

/* ---- nesting.c: keeps events of a thread apart by a nanosecond where a coarse clock gives two of them one end ---- */

enum { KP_NESTING_MAX = 64 }; /* events that are open within each other; deeper ones stay as they are */

struct kp_nesting_end {
    uint64_t ns, recorded_ns; /* the end that was given back, and the recorded one */
};

struct kp_nesting {
    struct kp_nesting_end ends[KP_NESTING_MAX];
    uint64_t last_start_ns;
    uint32_t n;
};

/*
 * Takes the events of one thread in order of start, an outer one before its inner ones. An event that ends when the one
 * around it ends is given an end one nanosecond earlier. One that begins when the one before it ends begins one
 * nanosecond later. Others keep their times, also those that truly overlap.
 */
void kp_nesting_fit(struct kp_nesting *nesting, uint64_t *start_ns, uint64_t *end_ns);
