// SPDX-License-Identifier: Apache-2.0
/* why.h - why a job ended: the rank that went first, and those that followed */
#pragma once

#include <stdio.h>

#include "export/answers/ranks/lastwords.h"
#include "export/read/kineto/ended.h"

enum { KP_WHY_STOOD_BYTES = 1500 };
struct kp_why_end {            /* how one process ended */
    long rank, pid;            /* rank -1: of no job */
    int64_t last_ns, begun_ns; /* when it did something last, and began its last op, since the Unix epoch */
    int64_t until_ns;          /* it was seen last; of a process without a trace its end */
    int64_t started_ns;        /* its first record; of a process without a trace its end */
    bool is_restarted;         /* its launcher started all ranks once more behind it */
    int64_t gone_ns;           /* when its launcher was told that it is gone; 0: not known */
    bool is_running;           /* it has not ended */
    bool has_gone_on;          /* after its last trace, and nothing tells how it ended */
    bool is_kept;              /* that is of its ring */
    bool is_bad, is_asked;     /* not by itself; by a signal with which a launcher ends the others */
    bool is_stopped;           /* by one of a terminal, or SIGKILL: as a person ends a job */
    bool has_waited;           /* the last that it did, or began, was a collective */
    bool has_lost_peer;        /* by an exception that says that another rank was gone, or by NCCL's watchdog */
    bool has_crashed;          /* by a signal that no launcher sends first */
    bool has_oom;              /* `how` says that memory was out */
    bool is_of_window;         /* its last trace was over before it ended */
    struct kp_why_came {       /* how far it came */
        bool is_known;
        long step;          /* the last whole one; -1: none */
        size_t collectives; /* that it called behind that */
        char last[64];      /* and the last of them */
    } came;
    int64_t silent_ns;                      /* it did nothing for so long before it ended */
    bool is_missed;                         /* the others waited for it until they ended */
    long steps;                             /* that it had done, where it is known; else 0 */
    bool has_stood;                         /* it did nothing more after it had written that it stands */
    char word[16];                          /* "killed", "ended" */
    char recorded[KP_ENDED_RECORDED_BYTES]; /* of a ring (KPROF_RING): "the last 31.2 s before it ended"; else "" */
    char how[KP_LASTWORDS_BYTES + KP_ENDED_WAY_BYTES]; /* "by ValueError at train.py:18 main, after step 4" */
};
enum { KP_WHY_OOM_BYTES = 1024 };
struct kp_why { /* all zero: empty */
    struct kp_why_end *of;
    size_t count, capacity;
    char stood[KP_WHY_STOOD_BYTES]; /* the job stood before it ended: who waited for whom; "": it did not */
    char now[KP_WHY_STOOD_BYTES];   /* it runs: "it is stuck: ..", or how long it has been silent; "": it goes on */
    char oom[KP_WHY_OOM_BYTES];     /* the first that did not end by itself was out of memory; "": it was not */
};
/* The facts about a process beside its trace. */
struct kp_why_known {
    bool is_running;
    const char *by;  /* its launcher was told so: "SIGSEGV", "exit status 3"; NULL: not known */
    int64_t gone_ns; /* and then */
    enum { KP_WHY_UNSEEN, KP_WHY_EXITED, KP_WHY_GONE } end; /* its lines a step have its exit, or it is gone without */
    long step;                                              /* the last that they have; -1: none */
    bool is_last_step;                                      /* the process itself said that step at its exit */
};
/* Looks at how the process of a trace ended. `chosen`: its steps. */
void kp_why_add(struct kp_why *why, const struct kp_tree *tree, const struct kp_chosen *chosen,
                const struct kp_why_known *known);
/* A process without a trace. */
void kp_why_add_untraced(struct kp_why *why, const struct kp_jobend *end);
bool kp_why_has(const struct kp_why *why, long rank, long pid); /* that process, or another of that rank */
/*
 * A process wrote then, after so many steps, that it stands. True: it is known, did nothing after that, and did not end
 * by itself.
 */
bool kp_why_stood(struct kp_why *why, long pid, int64_t ns, long steps);
/*
 * Settled: the traces of a job that was ended from outside, all of it at once, say that it stood. False: it was not, or
 * one has a cause of its own.
 */
bool kp_why_stand(struct kp_why *why, const char *text);
/*
 * Settled: a process was out of memory then, as text says. That of what ended first is kept, if it ended badly; without
 * any trace the one that is told last.
 */
void kp_why_oom(struct kp_why *why, int64_t pid, int64_t time_ms, const char *text);
/* Keeps the newest trace of each process, and puts what ended first, in front; call it once. */
void kp_why_settle(struct kp_why *why);
/* Settled: one sentence, and behind it a line for each process that ended after that. */
void kp_why_print(FILE *out, const struct kp_why *why);
void kp_why_json(FILE *out, const struct kp_why *why);
extern const struct kp_fields *const kp_why_schema;
void kp_why_fini(struct kp_why *why);
