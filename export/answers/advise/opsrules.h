// SPDX-License-Identifier: Apache-2.0
/* opsrules.h - rules over ops, most of a CPU, that another call does in less time */
#pragma once

#include "export/answers/advise/adviseparts.h"

void kp_rules_one_by_one(struct kp_costrules *rules); /* onebyone.c */
void kp_rules_one_hot(struct kp_costrules *rules);    /* onehotrule.c */
void kp_rules_optimizer(struct kp_costrules *rules);  /* optimizerrule.c */
void kp_rules_wasted(struct kp_costrules *rules);     /* wastedrules.c: also of a GPU */
/* Is it an op that prepares input, or a function that does, outside of a DataLoader? */
bool kp_rules_is_input(const struct kp_costrules *rules, size_t node); /* hostrules.c */
