// SPDX-License-Identifier: Apache-2.0
/* steplist.h - `kprof report --by step`: a row for each step */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "export/answers/advise/parts/finding.h"

struct kp_steplist {
    const struct kp_chosen *chosen;
    struct kp_step_split *splits; /* one a step */
    size_t *order;                /* of the rows */
    bool *evaluates;              /* by step: it holds an evaluation, beside a training */
    double *no_core_ns;           /* by step: of it the thread of the steps had none */
    double median_ns;
    bool has_gpu;          /* then the parts are those of its time */
    bool is_longest_first; /* the rows */
};
/* Divides each of the chosen steps by what runs in it. is_longest_first: not by number. */
void kp_steplist_make(struct kp_steplist *out, const struct kp_tree *tree, const struct kp_chosen *chosen,
                      bool is_longest_first);
void kp_steplist_fini(struct kp_steplist *list);
void kp_steplist_print(FILE *out, const struct kp_steplist *list, size_t most); /* so many rows; 0: all */
void kp_steplist_json(FILE *out, const struct kp_steplist *list, const char *label);
extern const struct kp_fields *const kp_steplist_schema;
