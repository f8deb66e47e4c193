// SPDX-License-Identifier: Apache-2.0
/* kineto_windows.h - the windows of a trace of a phase (KPROF_PHASES): their time, and of which run they are */
#pragma once

#include "export/read/kineto/kineto.h"

/*
 * A window holds all of its phase's time from start to end, whether an event lies there or not. A run lasts from a
 * phase's begin to its end, without the phases that begin inside of it; these divide it into parts.
 */
struct kp_kineto_window {
    int64_t start_ns, end_ns;
    int64_t pid;
    long run, part;  /* from 1; 0: the file does not say */
    bool is_gapless; /* the part was recorded from its begin to this window's end */
    bool is_left;    /* where the window ends the part ends, too */
};
struct kp_kineto_windows { /* all zero: empty */
    struct kp_kineto_window *of;
    size_t count, capacity;
};

/* Notes the window of a trace that has just been read, if it is of a phase. */
void kp_kineto_windows_note(struct kp_kineto *trace);
void kp_kineto_windows_append(struct kp_kineto_windows *to,
                              const struct kp_kineto_windows *from); /* both may be NULL */
void kp_kineto_windows_close(struct kp_kineto_windows *windows);     /* NULL is fine */

struct kp_kineto_runs {
    size_t count;   /* recorded as a whole */
    bool has_parts; /* other phases begin inside of them */
    bool is_all;    /* no window is of another run */
    int64_t least_ns, median_ns, mean_ns, most_ns;
};
/* Measures the runs that were recorded as a whole. Sorts the windows. */
void kp_kineto_windows_runs(struct kp_kineto_windows *windows, struct kp_kineto_runs *out);
