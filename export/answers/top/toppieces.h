// SPDX-License-Identifier: Apache-2.0
/* toppieces.h - the report of a trace that is read in pieces (kineto_pieces.h), so that its memory has a bound */
#pragma once

#include "export/read/parse/kineto_pieces.h"
#include "export/answers/stacks/stepparts.h"
#include "export/answers/top/timeshares.h"
#include "export/answers/top/toprows.h"

struct kp_toppieces;
struct kp_toppieces *kp_toppieces_open(enum kp_top_by by);
/* Gives the tree of each piece, too, before the first is read. Called by a thread of the pieces. */
typedef void (*kp_toppiece_fn)(void *context, const struct kp_tree *tree, const struct kp_chosen *chosen);
void kp_toppieces_give(struct kp_toppieces *pieces, kp_toppiece_fn give, void *context);
void kp_toppieces_close(struct kp_toppieces *pieces);
/* For the wish that reads the trace. */
struct kp_kineto_pieces *kp_toppieces_reading(struct kp_toppieces *pieces);
/* Whether a piece was given. Else the trace is whole. */
bool kp_toppieces_has(const struct kp_toppieces *pieces);
/* Adds what is left of the trace, and gives the report of all. False: the pieces do not add up to the whole, which must
 * be read again. The rows have the strings of `rest`; the steps of `chosen` are the caller's (kp_chosen_fini). */
bool kp_toppieces_end(struct kp_toppieces *pieces, struct kp_kineto *rest, struct kp_top *top,
                      struct kp_summary *summary, struct kp_stepparts *parts, struct kp_chosen *chosen);
