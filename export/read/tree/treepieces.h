// SPDX-License-Identifier: Apache-2.0
/* treepieces.h - trees of a trace that is read in pieces (kineto_pieces.h), one by one, while the next is read */
#pragma once

#include "export/read/tree/chosen.h"
#include "export/read/parse/kineto_pieces.h"

/* Adds the tree of a piece, of which all is chosen; the tree's stacks are for it to fill. False: pieces do not hold.
 * Called by one thread at a time, which need not be the caller's. */
typedef bool (*kp_treepiece_fn)(void *context, struct kp_tree *tree, const struct kp_chosen *chosen);

struct kp_treepieces;
struct kp_treepieces *kp_treepieces_open(kp_treepiece_fn add, void *context);
void kp_treepieces_close(struct kp_treepieces *pieces);
/* For the wish that reads the trace. If it has_given no piece, the trace is whole. */
struct kp_kineto_pieces *kp_treepieces_reading(struct kp_treepieces *pieces);
/* Adds what is left of the trace. False: the pieces do not add up to the whole, which must be read again. */
bool kp_treepieces_end(struct kp_treepieces *pieces, struct kp_kineto *rest);
