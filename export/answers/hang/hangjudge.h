// SPDX-License-Identifier: Apache-2.0
/* hangjudge.h - who waits for whom: ranks in a collective, and those that have not come */
#pragma once

#include <stdio.h>

#include "export/answers/hang/hangread.h"

struct kp_hang_spot {                        /* where a process stands; NULL: not known, or not there */
    const struct kp_hang_thread *thread;     /* its main thread */
    const struct kp_hang_frame *frame;       /* the innermost one of the program, else the innermost */
    const struct kp_hang_collective *within; /* a collective that has not ended */
};
void kp_hang_spot(struct kp_hang_spot *out, const struct kp_hang_process *process);

/* Python waits for other threads before it ends. */
bool kp_hang_is_at_exit(const struct kp_hang_thread *main);

enum kp_hang_kind {
    KP_HANG_NOBODY,   /* no process is known */
    KP_HANG_GOES_ON,  /* steps or collectives ended between two looks */
    KP_HANG_LOST,     /* a rank's process is gone */
    KP_HANG_HALTED,   /* a signal stopped a rank */
    KP_HANG_ABSENT,   /* some ranks are in a collective, to which others have not come */
    KP_HANG_MISMATCH, /* ranks are in different collectives */
    KP_HANG_INSIDE,   /* all are in one */
    KP_HANG_STANDS,   /* none is in one */
};
enum { KP_HANG_BYTES = 1500 };
struct kp_hang_verdict {
    enum kp_hang_kind kind;
    bool *accused; /* of each process: the others wait for it */
    char text[KP_HANG_BYTES];
};
/* `before`: an earlier look at the same processes, or NULL. The processes are sorted. */
void kp_hang_judge(struct kp_hang_verdict *out, const struct kp_hang *hang, const struct kp_hang *before);
const char *kp_hang_kind_word(enum kp_hang_kind kind); /* "absent" */
void kp_hang_verdict_fini(struct kp_hang_verdict *verdict);

/* Writes "rank 5", "ranks 0-4,6-7" or, without a job, "process 42": those for which `of` is true. */
void kp_hang_ranks_put(FILE *out, const struct kp_hang *hang, const bool *of);
/* Writes "reader.py:88 fetch, sleeps (clock_nanosleep)", what is known of it. */
void kp_hang_spot_put(FILE *out, const struct kp_hang_process *process, const struct kp_hang_spot *spot);
