// SPDX-License-Identifier: Apache-2.0
/* eventpart.h - which part of a training step an event belongs to */
#pragma once

#include "export/answers/stacks/calltree.h"
#include "export/read/tree/tree.h"
#include "export/read/frames/workerframe.h"

/*
 * Fills parts[node] (enum kp_part) for every node of a tree on which kp_tree_set_forward_stacks() was called. An event
 * has a part by its own name and call stack, and a part by its callers. The part that ranks higher is taken. A worker
 * that waits for work is in none.
 */
void kp_eventpart_find(const struct kp_tree *tree, uint8_t *parts);
/* The kind of a Python call of a worker's. KP_WORKERFRAME_GET: the worker waits for work in it. */
enum kp_workerframe kp_eventpart_worker(const struct kp_tree *tree, size_t node);
