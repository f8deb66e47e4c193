// SPDX-License-Identifier: Apache-2.0
/* waits.h - where the thread of the steps waits: by calls of Python, or by gaps between ops */
#pragma once

#include "export/answers/advise/parts/costrules.h"
#include "export/answers/advise/rules/ownthreads.h"
#include "export/read/facts/pywait.h"

/* Beside the kinds of calls: the own code of a function of the program. */
#define KP_PYWAIT_OWN ((int)KP_PYWAIT_KINDS)

/* The function whose calls are the steps, as a glob of its bare name: a step begins where the call before it ends, so
 * it has the time between calls, too. NULL: steps are no calls. */
const char *kp_waits_function(const struct kp_costrules *rules);

/* ---- waitcalls.c ---- */

struct kp_waitplace {    /* what waits, called from where */
    uint32_t line, call; /* string ids */
    int kind;            /* NONE: a function in C that no table names, under which no op runs */
    double ns, ack_ns;   /* ack_ns: in waits as long as TCP delays an acknowledgement */
};
struct kp_waitcalls {
    const struct kp_costrules *x;
    struct kp_keyindex places; /* rows: struct kp_waitplace */
    struct kp_keyindex steps;  /* step << 8 | kind; rows: ns */
    double between_ns;         /* in all steps, in calls that wait outside of the function whose calls are the steps */
};
void kp_waitcalls_find(struct kp_waitcalls *out, const struct kp_costrules *rules);
void kp_waitcalls_fini(struct kp_waitcalls *calls);
double kp_waitcalls_ns(const struct kp_waitcalls *calls, int kind); /* the mean of a step */
void kp_waitcalls_steps(const struct kp_waitcalls *calls, int kind, double *of);
/* Returns the place with most. If it is not nearly all, writes "45.5 ms a step in FUNCTION at a.py:24 read, ..",
 * largest first; else "". */
const struct kp_waitplace *kp_waitcalls_lines(const struct kp_waitcalls *calls, const struct kp_kineto *trace, int kind,
                                              char *out, size_t bytes);
/* For a thread that puts into queues: the place at which it spends most of its other time. NULL: none does. */
const char *kp_waitcalls_feeder(const struct kp_costrules *rules, bool *is_for_this);

/* ---- waitgaps.c ---- */

struct kp_waitgaps {
    struct kp_costplaces places; /* the one with most, alone */
    double *of;                  /* by step, ns */
    double most_ns;              /* what it has in the mean of a step */
    size_t large_steps;          /* that have one gap there of `large_ns` */
    size_t begin_steps;          /* of these, that begin with it */
    int32_t node;                /* the op behind the longest; -1: none */
};
/* Gaps between the ops of the thread of the steps. */
void kp_waitgaps_find(struct kp_waitgaps *out, const struct kp_costrules *rules, double large_ns);
void kp_waitgaps_fini(struct kp_waitgaps *gaps);
/* How much longer gaps are than usual at their places, the mean of a step; 0: one place has half of that. */
double kp_waitgaps_scattered(const struct kp_costrules *rules);

/* ---- waitrules.c ---- */

void kp_rules_waits(struct kp_costrules *rules); /* before kp_rules_steps() */
/* Says of the first of them that it grows from step to step. */
void kp_rules_waits_grow(const struct kp_costrules *rules);
