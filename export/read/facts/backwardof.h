// SPDX-License-Identifier: Apache-2.0
/* backwardof.h - whose place the nodes of autograd's engine have: that of the backward op around or before them */
#pragma once

#include "export/read/tree/tree.h"

/*
 * Returns for each node the node whose call stack tells its module; most have themselves. The engine's range around a
 * backward op has that op. Gradients are accumulated right behind the backward op that made them, and have it, too.
 * After kp_tree_set_forward_stacks; free() it.
 */
uint32_t *kp_backward_of(const struct kp_tree *tree);
