// SPDX-License-Identifier: Apache-2.0
/* backcost.h - charges the backward of what was charged */
#pragma once

#include "export/answers/advise/parts/adviseparts.h"

/* charged: by node, of outermost ops of a forward pass. Adds the nodes of autograd that belong to what is in these. */
void kp_backcost_add(struct kp_cost *cost, const struct kp_costrules *rules, const bool *charged);
