// SPDX-License-Identifier: Apache-2.0
/* ended.h - how the program of a trace ended, where it did not end by itself */
#pragma once

#include "export/read/kineto/kineto.h"

/* Whether the process was gone before it could close the window. */
bool kp_ended_early(const struct kp_kineto *trace);
/* For such a trace: "SIGTERM", as `kprof run` or the program itself noted it; NULL: not noted. */
const char *kp_ended_signal(const struct kp_kineto *trace);
/* "ValueError", which nothing caught, and ended the program; NULL: none. */
const char *kp_ended_exception(const struct kp_kineto *trace);
/* The text of KPROF_ON_OOM on memory in the step of that exception; NULL: nothing. */
const char *kp_ended_oom(const struct kp_kineto *trace);
/* That exception says that another rank was gone, or NCCL's watchdog ended this one. */
bool kp_ended_lost_peer(const struct kp_kineto *trace);
/* The exception, else the signal, else "exec of sh", as which the process went on; NULL: not noted. */
const char *kp_ended_by(const struct kp_kineto *trace);
/* "SIGABRT of NCCL's watchdog" says more than "SIGABRT". */
bool kp_ended_says_more(const char *by, const char *than);
/* Torch ended the process, since a collective of NCCL took too long. */
bool kp_ended_by_watchdog(const char *by);
/* The process was gone early, or an exception ended it. */
bool kp_ended_badly(const struct kp_kineto *trace);
/* A fact: "42 was killed by SIGKILL: out of memory?", a child that crashed shortly before the program failed. */
#define KP_ENDED_CHILD "kprof.ended_child"
#define KP_ENDED_WITHOUT_EXIT "without an exit (killed, or by os._exit)"
/* Writes "by SIGKILL", or that where it is not noted: behind "killed" or "ended"; and which child crashed shortly
 * before. Returns `out`. */
const char *kp_ended_way(char *out, size_t bytes, const struct kp_kineto *trace);
enum { KP_ENDED_WAY_BYTES = 780 };
/* Writes an exception's text behind a blank and in quotes, and a remark where it hides what happened; "" for "" or
 * NULL. Returns `out`. */
const char *kp_ended_text(char *out, size_t bytes, const char *text);
enum { KP_ENDED_TEXT_BYTES = 160 };
/* Writes " at train.py:5 main (caused by KeyError "lr" at train.py:2 load)". NULL or "": not known. Returns `out`. */
const char *kp_ended_place(char *out, size_t bytes, const char *place, const char *root);
/* The same for the exception of a trace; "": none. */
const char *kp_ended_exception_place(char *out, size_t bytes, const struct kp_kineto *trace);
enum { KP_ENDED_PLACE_BYTES = 660 };
/* "killed" by SIGKILL, else "ended". */
const char *kp_ended_word(const struct kp_kineto *trace);
/* For a trace whose program went on: it was written when the ring was asked for (kprof_keep). */
bool kp_ended_is_kept(const struct kp_kineto *trace);
/* The trace was written while the program went on: it does not say how that ended. */
bool kp_ended_went_on(const struct kp_kineto *trace);
/* The trace is the last part of what was recorded (KPROF_RING). */
bool kp_ended_is_last_part(const struct kp_kineto *trace);
/* Writes "what was recorded until then"; of a ring (KPROF_RING) "the last 31.2 s before it ended". Returns `out`. */
const char *kp_ended_recorded(char *out, size_t bytes, const struct kp_kineto *trace);
enum { KP_ENDED_RECORDED_BYTES = 64 };
/* A remark in parentheses, with a blank before: the kernel lacked memory. "": none. */
const char *kp_ended_remark(const struct kp_kineto *trace);

/* Is that the name of a signal of a crash (kp_crash.h)? NULL: no. */
bool kp_ended_by_crash(const char *by);

/* How a process ended, as its launcher was told, and as it said itself: a line of HOST_PID.ends. */
enum { KP_JOBEND_BYTES = 512 };
struct kp_jobend {
    long pid, rank, step;     /* rank -1: of no job, or not known; step -1: none, or not known */
    long told_by;             /* the process whose file has the line */
    int64_t at_ns;            /* the launcher was told then, since the Unix epoch */
    bool is_own;              /* the process itself said it at its exit */
    bool is_exec;             /* it became another program */
    bool is_pending;          /* it has not said it: it runs, or was killed */
    bool has_lost_peer;       /* the exception says that another rank was gone */
    char by[KP_JOBEND_BYTES]; /* "SIGSEGV", "exit status 3"; "": by itself */
    char host[65];
    char exception[96], text[96], place[512], root[320]; /* which ended it, its line, and what it came from; "":
                                                                * none */
};
