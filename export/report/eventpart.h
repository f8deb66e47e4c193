// SPDX-License-Identifier: Apache-2.0
/* eventpart.h - which part of a training step an event belongs to */
#ifndef KP_EVENTPART_H
#define KP_EVENTPART_H

#include "export/report/calltree.h"
#include "export/report/keyavg.h"

/*
 * Fills parts[node] (enum kp_part) for every node of a tree on which kp_tree_set_forward_stacks() was called. An event
 * has a part by its own name and call stack, and a part by its callers. The part that ranks higher is taken.
 */
void kp_eventpart_find(const struct kp_tree *tree, uint8_t *parts);

#endif
