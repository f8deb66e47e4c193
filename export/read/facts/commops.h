// SPDX-License-Identifier: Apache-2.0
/* commops.h - ops that communicate inside of other ops: functional collectives, which their callers wait for */
#pragma once

#include "export/read/tree/tree.h"
#include "export/read/tree/spans.h"

enum kp_commop { KP_COMMOP_NONE, KP_COMMOP_IS, KP_COMMOP_INSIDE }; /* INSIDE: one is below it */
/* A byte for each node; the caller frees them. NULL: the trace has none. */
uint8_t *kp_commops_mark(const struct kp_tree *tree);
/* Adds the time of an op, but for what communicates inside of it. `marks` may be NULL. */
void kp_commops_add(struct kp_spans *out, const struct kp_tree *tree, const uint8_t *marks, size_t node);
