// SPDX-License-Identifier: Apache-2.0
/* phaserows.h - the phases of a run (KPROF_PHASES), a row each, from the traces of their windows */
#ifndef KP_PHASEROWS_H
#define KP_PHASEROWS_H

#include <stdio.h>

#include "export/report/timeshares.h"

struct kp_phaserow {
    char *phase;
    size_t traces, steps, capacity;
    int64_t *step_ns;                                    /* of each step */
    int64_t sum_ns, shared_ns, op_ns, data_ns, other_ns; /* sum: of all steps; the others as in kp_summary */
};
struct kp_phaserows { /* all zero: empty */
    struct kp_phaserow *of;
    size_t count, capacity;
};

void kp_phaserows_add(struct kp_phaserows *rows, const char *phase, const struct kp_chosen *chosen,
                      const struct kp_summary *summary);
/* Sorts the steps' lengths. */
void kp_phaserows_print(FILE *out, struct kp_phaserows *rows);
void kp_phaserows_fini(struct kp_phaserows *rows);

#endif
