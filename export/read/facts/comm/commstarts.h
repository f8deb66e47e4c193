// SPDX-License-Identifier: Apache-2.0
/* commstarts.h - which op of the program started what a backend does on a thread of its own */
#pragma once

#include "export/read/tree/spans.h"
#include "export/read/tree/tree.h"

/*
 * Returns for each node the op that started it, "c10d::allreduce_" of "gloo:all_reduce"; -1: it is no range of a
 * backend that lacks a call stack, or its op is not in the trace. NULL: the trace has no such range. free() it.
 */
int32_t *kp_commstarts_find(const struct kp_tree *tree);

/*
 * Returns how much of each range that an op started lies `inside` and beside no op or call of the program, nor beside a
 * range before it: what the program has of it beyond its own work. A range has none of what a range in it has. `starts`
 * are those above, not NULL. free() it.
 */
int64_t *kp_commstarts_alone(const struct kp_tree *tree, const int32_t *starts, const struct kp_spans *inside);
