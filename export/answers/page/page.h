// SPDX-License-Identifier: Apache-2.0
/* page.h - traces as one page that a browser opens without a network (decisions/065) */
#pragma once

#include <stdio.h>

#include "export/read/tree/tree.h"
#include "export/answers/ranks/rankwaits.h"
#include "export/answers/ranks/stuck.h"

/* A page is a head, one block of data a trace, and an end. */
void kp_page_begin(FILE *out, const char *title);
/* Which steps the page shows at first. */
struct kp_page_start {
    long first_step, last_step; /* -1: the steps, where they are a part of the trace */
    bool all;
};
struct kp_advice;
/* kp_tree_set_forward_stacks() was called on the tree. `advice`: what kprof advise says of it. Returns 0, or -errno
 * with a line in `why`. */
int kp_page_add(FILE *out, struct kp_tree *tree, const char *label, const struct kp_page_start *start,
                struct kp_rankwaits *ranks, const struct kp_advice *advice, char *why, size_t why_bytes);
/* `ranks`: what kp_page_add() added up. Settles them. `stands`: how the job stands (stuck.h); NULL: it does not. */
void kp_page_end(FILE *out, struct kp_rankwaits *ranks, const struct kp_stuck_told *stands);
