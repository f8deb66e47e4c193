// SPDX-License-Identifier: Apache-2.0
/* valuereads.h - values of tensors that Python reads one at a time: .item(), float(), bool(), print() */
#pragma once

#include "export/read/tree/chosen.h"

enum { KP_VALUEREADS_LEAST = 8 }; /* a step: a loop that logs reads fewer */

bool kp_valueread_is_name(const char *op);
bool kp_valueread_is_meant(const char *pattern); /* a name or glob: what is inside of reads alone is asked for */
/* Whether a node is such a read, and not inside of another. */
bool kp_valueread_is(const struct kp_tree *tree, size_t node);
/* Also: in a step, and by the program. torch's optimizers read the number of their step, its loaders a seed, its
 * anomaly mode whether a gradient is NaN, and without a GPU some of its ops a value for themselves (aten::std). */
bool kp_valueread_is_own(const struct kp_tree *tree, const struct kp_chosen *chosen, size_t node);
size_t kp_valuereads_count(const struct kp_tree *tree, const struct kp_chosen *chosen);
