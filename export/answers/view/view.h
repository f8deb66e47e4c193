// SPDX-License-Identifier: Apache-2.0
/* view.h - a trace on a terminal: tabs of rows that unfold, are sorted and searched (kprof view) */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "export/read/tree/tree.h"

/* Which of several traces is shown, as those of a job's ranks, and where the user wants to go. */
struct kp_view_among {
    size_t at, count;
    int tab;  /* the view that is shown: of the trace before, at first, then of this one */
    int move; /* 0: leave; 1: the next trace; -1: the one before */
};
struct kp_advice;
/*
 * Shows the trace until the user leaves it. kp_tree_set_forward_stacks() was called on the tree. `advice`: what kprof
 * advise says of it. Returns 0, or -errno with a line in `why`.
 */
int kp_view_run(struct kp_tree *tree, const struct kp_advice *advice, const char *label, struct kp_view_among *among,
                char *why, size_t why_bytes);
/* Prints what it would show as one JSON object, a line. The same result. */
int kp_view_json(FILE *out, struct kp_tree *tree, const struct kp_advice *advice, const char *label, char *why,
                 size_t why_bytes);
extern const struct kp_fields *const kp_view_schema;
