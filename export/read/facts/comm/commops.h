// SPDX-License-Identifier: Apache-2.0
/* commops.h - ops that communicate inside of other ops: functional collectives, which their callers wait for */
#pragma once

#include "export/read/tree/tree.h"
#include "export/read/tree/spans.h"

enum kp_commop { KP_COMMOP_NONE, KP_COMMOP_IS, KP_COMMOP_INSIDE }; /* INSIDE: one is below it */
struct kp_commops {                                                /* all zero: the trace has none */
    uint8_t *of;                                                   /* a byte for each node, or NULL */
    struct kp_spans ranges;                                        /* a backend works at collectives, on any thread */
};
void kp_commops_find(struct kp_commops *out, const struct kp_tree *tree);
/*
 * Adds the time of an op, but for what communicates inside of it: ops that do, and where some do, what it does itself
 * beside a collective's work. FSDP starts one in an op of autograd, and waits for it there.
 */
void kp_commops_add(struct kp_spans *out, const struct kp_tree *tree, const struct kp_commops *ops, size_t node);
void kp_commops_fini(struct kp_commops *ops);
