// SPDX-License-Identifier: Apache-2.0
/*
 * ctl_proto.h - the requests that `kprof ctl` sends to a running process, one line each
 *
 *     status
 *     where                           the answer tells where every thread stands, in some 100 KB
 *     start [steps=N] [at=N|at=next]
 *     stop
 *     keep                            a trace of the ring, while it goes on
 *     toggle cpu|cuda on|off
 *     step
 *     phase [NAME]                    without a name: the phase that was set ends
 *     metadata KEY VALUE              VALUE: the rest of the line
 *
 * A line has at most KP_CTL_LINE_MAX bytes and ends with a newline. Words are separated by one blank. No request names
 * a file. The process answers each with a line, a JSON object.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { KP_CTL_LINE_MAX = 4096 };

enum kp_ctl_verb {
    KP_CTL_STATUS,
    KP_CTL_START,
    KP_CTL_STOP,
    KP_CTL_TOGGLE,
    KP_CTL_STEP,
    KP_CTL_PHASE,
    KP_CTL_METADATA,
    KP_CTL_WHERE,
    KP_CTL_KEEP
};

struct kp_ctl_request {
    enum kp_ctl_verb verb;
    bool is_at_step, is_at_next; /* START: it names a step, or the next one */
    uint64_t at, steps;          /* steps 0: until it is stopped */
    const char *activity;        /* TOGGLE: cpu or cuda, in the line */
    bool on;                     /* TOGGLE */
    const char *key, *value;     /* METADATA; PHASE: key. They point into the line */
};

/* Reads a line without its newline, and puts NULs into it. 0, or -EINVAL with a phrase in why. */
int kp_ctl_parse(char *line, struct kp_ctl_request *out, char *why, unsigned long why_bytes);
