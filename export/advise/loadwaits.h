// SPDX-License-Identifier: Apache-2.0
/* loadwaits.h - what a loader makes the steps wait: each a little, or a few of them for all */
#ifndef KP_LOADWAITS_H
#define KP_LOADWAITS_H

#include "export/advise/adviseparts.h"

/* The steps that wait do so for no longer than a batch takes to come from a worker. */
bool kp_loadwaits_is_short(const struct kp_costrules *rules, const struct kp_finding *finding);
/* Says where few steps wait for most of it, and what to change, while the workers are not known. */
void kp_loadwaits_tell(const struct kp_costrules *rules, const struct kp_step_split *splits, struct kp_finding *out);

#endif
