// SPDX-License-Identifier: Apache-2.0
/* phaserows.h - the phases of a run (KPROF_PHASES), a row each, from the traces of their windows */
#pragma once

#include <stdio.h>

#include "export/read/kineto/kineto_windows.h"
#include "export/read/kineto/phasetimes.h"
#include "export/answers/top/timeshares.h"

struct kp_phaserow {
    char *phase;
    size_t traces, steps, capacity;
    double *step_ns;                           /* of each step */
    int64_t wall_ns, op_ns, data_ns, other_ns; /* as in kp_summary */
    struct kp_kineto_windows windows;
    struct kp_kineto_runs runs; /* of these windows, once it is printed */
};
struct kp_phaserows { /* all zero: empty */
    struct kp_phaserow *of;
    size_t count, capacity;
    struct kp_phasetimes times; /* of the trace that ended last; of one process alone */
    bool are_several;           /* processes, so the times are of none */
    int64_t pid;
    bool has_parts; /* not all of the traces was chosen: nothing is known of runs */
};

/* with_runs: all of the trace is chosen. */
void kp_phaserows_add(struct kp_phaserows *rows, const struct kp_kineto *trace, const struct kp_chosen *chosen,
                      const struct kp_summary *summary, bool with_runs);
/* Sorts the steps' lengths and the windows. */
void kp_phaserows_print(FILE *out, struct kp_phaserows *rows);
void kp_phaserows_fini(struct kp_phaserows *rows);
