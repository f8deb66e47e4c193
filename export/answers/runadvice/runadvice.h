// SPDX-License-Identifier: Apache-2.0
/*
 * runadvice.h - what is advised of the traces of a run, as data until all of them are read
 *
 * The traces of all ranks tell why collectives take long. A schedule starts over with the first step of an optimizer:
 * traces from before it, as of an evaluation, have guessed steps, and stand behind the training's.
 */
#pragma once

#include "export/answers/ranks/stuck.h"
#include "export/answers/runadvice/advised.h"

struct kp_runadvice { /* all zero: none. kp_runadvice_fini() frees it */
    struct kp_traceadvice *items;
    size_t count, capacity;
    int64_t *trained; /* the processes with steps by an optimizer */
    size_t trained_count, trained_capacity;
    struct kp_strings *texts;
    bool is_json, has_communication;    /* has_communication: some finding is of it */
    const struct kp_stuck_told *stands; /* NULL: the job does not */
};
/* Keeps the advice of a trace, and takes its `workers`. `other`, or NULL, is printed in place of both; it is freed. */
void kp_runadvice_add(struct kp_runadvice *all, struct kp_advised *advised, const char *label, char *other);
/* The finding of collectives; NULL: none. */
const struct kp_finding *kp_runadvice_waiting(const struct kp_advice *advice);
/* Says of one rank's findings what all ranks together tell. Its texts are kept in `texts`. */
void kp_runadvice_of_rank(struct kp_advice *a, const struct kp_rankwaits *ranks, long rank, struct kp_strings *texts);
/* Adds what all ranks together tell. `stands`: how the job stands, which then is all that is said, or NULL; it outlives
 * `all`. */
void kp_runadvice_settle(struct kp_runadvice *all, const struct kp_rankwaits *ranks,
                         const struct kp_stuck_told *stands);
/* Prints the traces in order, but not those of guessed steps. `several`: each behind its label. */
void kp_runadvice_print(const struct kp_runadvice *all, bool several);
/* Prints those of guessed steps. In text those of a process that has a training are one block, with the findings of
 * them that are critical. */
void kp_runadvice_guesses_print(const struct kp_runadvice *all, bool several);
void kp_runadvice_fini(struct kp_runadvice *all);

/* ---- endranks.c: what the other ranks' traces of a run that has just ended tell of one rank's findings ---- */

/* Compares the ranks of the run where the trace at `path` is one of several, and their traces are read quickly:
 * `advised->has_read_ranks` says so then. Unasked it reads fewer. */
void kp_endranks_tell(struct kp_advised *advised, const char *path, const char *folder, const struct timespec *since,
                      bool is_asked);
