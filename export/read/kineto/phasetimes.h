// SPDX-License-Identifier: Apache-2.0
/* phasetimes.h - how long each phase took, recorded or not, as a trace says */
#pragma once

#include "export/read/kineto/kineto.h"

enum { KP_PHASETIMES_MAX = 17 };
struct kp_phasetime {
    char name[96]; /* of several loops without a row in KPROF_PHASES "validate, test" */
    long runs;     /* begun */
    int64_t ns;    /* of all of them, without other phases inside */
};
struct kp_phasetimes {
    struct kp_phasetime of[KP_PHASETIMES_MAX];
    size_t count;
    int64_t all_ns;  /* from the first phase's begin to the end of the trace's window */
    bool is_of_last; /* that window is of the run's last trace, not of this one */
    /* The time after the last op of the phase that was open when the program ended; runs 0: nothing came. Left out. */
    struct kp_phasetime tail;
    /* Steps before the first phase, and their time. */
    long before_steps;
    int64_t before_ns;
};
/* False: the trace does not say. */
bool kp_phasetimes_of(struct kp_phasetimes *out, const struct kp_kineto *trace);
/* Puts what the last trace of the same run says, kprof.phase_times and kprof.phase_tail (NULL: none), in place of what
 * `trace` itself says. */
void kp_phasetimes_set_last(struct kp_kineto *trace, const char *text, const char *tail);
const struct kp_phasetime *kp_phasetimes_find(const struct kp_phasetimes *times, const char *name); /* NULL: none */
/* "from the first phase's begin until this trace's end" */
const char *kp_phasetimes_until(const struct kp_phasetimes *times);
/*
 * Writes of each phase but `own` (NULL: of all) "validate took 34.0 % of the time from the first phase's begin until
 * this trace's end (12 times, 1.200 s each)", with "; " between two. Returns how many.
 */
size_t kp_phasetimes_text(char *out, size_t bytes, const struct kp_phasetimes *times, const char *own);
/* "; 14 steps before the first phase took 0.031 s; validate was open when the program ended: 0.934 s after its last op
 * are left out", or "" where both are little. */
const char *kp_phasetimes_remarks(char *out, size_t bytes, const struct kp_phasetimes *times);

/* phasetail.c: Ends the trace of such a phase (kprof.phase_open) with its last op, range or work of a device. How
 * much that leaves out is the fact kprof.phase_tail, "validate:1:US". */
void kp_phasetail_cut(struct kp_kineto *trace);
