// SPDX-License-Identifier: Apache-2.0
/* selftime.h - what each node did itself: every moment of a thread belongs to one node */
#pragma once

#include "export/read/tree/tree.h"
#include "export/read/tree/spans.h"

/*
 * Writes the self time of each node inside a set of time, in nanoseconds, to out[0 .. tree->count). A moment belongs to
 * the node that began last of those that are open on its thread. So events that overlap without nesting, as a step and
 * the Python function that ends it, are not counted twice.
 */
void kp_selftime(const struct kp_tree *tree, const struct kp_spans *inside, int64_t *out);

/* Gives every piece of a thread's time with the node that it belongs to, by the same rule, by time in each thread. */
typedef void (*kp_selftime_fn)(void *context, size_t node, int64_t from_ns, int64_t to_ns);
void kp_selftime_each(const struct kp_tree *tree, kp_selftime_fn give, void *context);
/* The same, but a piece of a step's marker (ProfilerStep#N) comes with the innermost call of Python that is open then.
 * The marker began where the step before ended, which tells nothing of what runs in it. */
typedef void (*kp_selftime_marker_fn)(void *context, size_t marker, size_t call, int64_t from_ns, int64_t to_ns);
void kp_selftime_each_marked(const struct kp_tree *tree, kp_selftime_fn give, kp_selftime_marker_fn give_marker,
                             void *context);
/* The same, but such a piece is given as one of that call. */
void kp_selftime_each_call(const struct kp_tree *tree, kp_selftime_fn give, void *context);
/* The same of some nodes alone (NULL: the first `count`), in the tree's order: all that are open in the time that is
 * looked at. */
void kp_selftime_each_of(const struct kp_tree *tree, const uint32_t *nodes, size_t count, kp_selftime_fn give,
                         kp_selftime_marker_fn give_marker, void *context);
