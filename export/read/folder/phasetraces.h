// SPDX-License-Identifier: Apache-2.0
/* phasetraces.h - the traces of a run with phases, put together by phase and process */
#pragma once

#include "export/read/kineto/kineto.h"

struct kp_phasetrace {
    struct kp_kineto *trace; /* all of them behind one another; NULL: taken away */
    char *phase, *rank;      /* rank NULL: of one process alone */
    int64_t pid;
    size_t traces;
};
/* The times of the phases that the last trace of a process has. */
struct kp_phaselast {
    char *rank, *text, *tail; /* tail NULL: none */
    int64_t pid, all_ns;
    size_t traces;
};
struct kp_phasetraces { /* all zero: none */
    struct kp_phasetrace *of;
    size_t count, capacity;
    struct kp_phaselast *last;
    size_t last_count, last_capacity;
};
/* Looks how long the phases of its process took: also in a trace that is not taken. */
void kp_phasetraces_look(struct kp_phasetraces *all, const struct kp_kineto *trace);
/* Takes the trace, if it is of a phase; then *trace is NULL. False: it is of none. */
bool kp_phasetraces_take(struct kp_phasetraces *all, struct kp_kineto **trace);
/* After the last look: gives each what the last trace of its process says of the phases' times. */
void kp_phasetraces_settle(struct kp_phasetraces *all);
void kp_phasetraces_fini(struct kp_phasetraces *all);
