// SPDX-License-Identifier: Apache-2.0
/* opsrules.h - rules over ops, most of a CPU, that another call does in less time */
#pragma once

#include "export/advise/adviseparts.h"

void kp_rules_one_by_one(struct kp_costrules *rules); /* onebyone.c */
void kp_rules_one_hot(struct kp_costrules *rules);    /* onehotrule.c */
void kp_rules_optimizer(struct kp_costrules *rules);  /* optimizerrule.c */
void kp_rules_wasted(struct kp_costrules *rules);     /* wastedrules.c: also of a GPU */
