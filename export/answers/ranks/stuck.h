// SPDX-License-Identifier: Apache-2.0
/* stuck.h - whether a job stands still at the end of its traces, and in what each rank is */
#pragma once

#include <stdio.h>

#include "export/answers/ranks/silence.h"
#include "export/read/tree/chosen.h"

enum { KP_STUCK_NAME_BYTES = 160, KP_STUCK_BYTES = 1200, KP_STUCK_NEXT_BYTES = 400, KP_STUCK_FOLDER_BYTES = 240 };
#define KP_STUCK_UNJUDGED "Its steps are not judged while it is stuck"
struct kp_stuckrank {
    long rank; /* -1: of no job */
    int64_t pid;
    bool in_collective, is_stuck, is_follower; /* the last: an exception ended it that says a rank was gone */
    bool has_stood;                            /* a file of KPROF_HANG says so of its end: kp_stuck.stood */
    bool is_silent, is_running;                /* no op for long, of a program of no job; its process is there */
    int64_t ns;                                /* so long, up to the end of the trace */
    char by[KP_STUCK_NAME_BYTES];              /* the exception that ended it; "": none */
    char in[KP_STUCK_NAME_BYTES];              /* what is open; "": no op */
    char after[KP_STUCK_NAME_BYTES],
        call[KP_STUCK_NAME_BYTES];  /* the last op; the Python function, or a line; "": not known */
    char silence[KP_SILENCE_BYTES]; /* of one that is silent, since when: "after aten::mm, in step 4; a step took .." */
    uint32_t *batches;              /* that a loader gave, by step; NULL: not known */
    long first_step;
    size_t steps; /* of batches */
};
struct kp_stuck { /* all zero: empty */
    struct kp_stuckrank *of;
    size_t count, capacity;
    bool is_running, is_early; /* a trace's program runs; or was gone before its window's end */
    bool has_added;            /* by the last kp_stuck_add */
    int64_t deaf;              /* the process that stands and cannot be asked (kp_stuck_rest); 0: none */
    char waits[KP_STUCK_NAME_BYTES];
    char folder[KP_STUCK_FOLDER_BYTES], stood[KP_STUCK_BYTES];
};
struct kp_stuck_told {
    char what[KP_STUCK_BYTES];      /* which rank is in what, and since when; or who waits for whom. One line */
    char next[KP_STUCK_NEXT_BYTES]; /* the command that tells more; "": none does */
    bool stands;                    /* false: it may do other work */
    long rank;                      /* the one that all others wait for; -1: not one alone */
};

/* Looks at the end of a trace. `chosen`: its steps. `stood`: what its file of KPROF_HANG says of that end, or NULL. */
void kp_stuck_add(struct kp_stuck *stuck, const struct kp_tree *tree, const struct kp_chosen *chosen,
                  const char *stood);
/* The path of the trace that was added last, and whether its program runs. */
void kp_stuck_lead(struct kp_stuck *stuck, const char *path, bool is_running);
/*
 * The process of no job that runs, and has run no op for far longer than any step. Its trace does not say whether it
 * stands or does other work. 0: none, or another trace's program of this kind goes on.
 */
int64_t kp_stuck_silent(const struct kp_stuck *stuck);
/* That process stands at `where`, "feeder.py:41 next, waits for another thread (futex)". */
void kp_stuck_stand(struct kp_stuck *stuck, int64_t pid, const char *where);
/* It cannot be asked, but it rests, and `waits` for something: "waits for a lock, a queue or a thread (futex)". */
void kp_stuck_rest(struct kp_stuck *stuck, int64_t pid, const char *waits);
/* False: none stands; then `what` is "", or says of a silent process "the program (..) has run no operator for ..". */
bool kp_stuck_tell(struct kp_stuck_told *out, const struct kp_stuck *stuck);
/* Prints it as the first lines of a text: "STUCK    rank 1 did nothing for 12.0 s; ..", "silent   the program ..". */
void kp_stuck_put(FILE *out, const struct kp_stuck_told *told);
void kp_stuck_drop(struct kp_stuck *stuck, size_t count); /* all but the first `count` that were added */
void kp_stuck_fini(struct kp_stuck *stuck);
