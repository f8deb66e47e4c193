// SPDX-License-Identifier: Apache-2.0
/* opsrules.h - rules over ops and kernels that another call does in less time */
#pragma once

#include "export/answers/advise/parts/costrules.h"

void kp_rules_one_by_one(struct kp_costrules *rules);       /* onebyone.c */
void kp_rules_tensor_by_tensor(struct kp_costrules *rules); /* tensorloops.c: after one by one */
void kp_rules_small_ops(struct kp_costrules *rules);        /* smallops.c: after parametrized weights */
void kp_rules_one_hot(struct kp_costrules *rules);          /* onehotrule.c */
void kp_rules_functions(struct kp_costrules *rules);        /* backwardrule.c */
void kp_rules_parametrized(struct kp_costrules *rules);     /* parametrizerule.c */
void kp_rules_hooks(struct kp_costrules *rules);            /* hookrule.c */
void kp_rules_optimizer(struct kp_costrules *rules);        /* optimizerrule.c */
void kp_rules_wasted(struct kp_costrules *rules);           /* wastedrules.c: also of a GPU */
void kp_rules_pairwise(struct kp_costrules *rules);         /* pairwiserule.c: after page faults */
void kp_rules_dense_gradients(struct kp_costrules *rules);  /* densegrads.c: after the optimizer, without a GPU */
/* New tensors have so many elements, in all steps, and malloc gets each from the kernel: if that is most page
 * faults, they are no finding. wastedrules.c */
void kp_rules_faults_drop(struct kp_costrules *rules, double elements);
void kp_rules_unused_grads(struct kp_costrules *rules);     /* unusedgrads.c */
void kp_rules_optimizer_faults(struct kp_costrules *rules); /* optimizerrule.c: after page faults and both of these */
void kp_rules_compiling(struct kp_costrules *rules);        /* compilerule.c: before kp_rules_steps() */
void kp_rules_copies(struct kp_costrules *rules);           /* copyrules.c */
void kp_rules_launches(struct kp_costrules *rules);         /* launchrules.c */
void kp_rules_kernels(struct kp_costrules *rules);          /* kernelrules.c */
void kp_rules_attention(struct kp_costrules *rules);        /* attentionrules.c */
void kp_rules_repeated(struct kp_costrules *rules);         /* repeatrule.c */
void kp_rules_sorts(struct kp_costrules *rules);            /* sortrule.c */
void kp_rules_slowdown(struct kp_costrules *rules);         /* slowdownrule.c: before long steps are told */
void kp_rules_fusing(struct kp_costrules *rules);           /* fuserules.c */
void kp_rules_bandwidth(struct kp_costrules *rules);        /* bandwidth.c */
void kp_rules_anomaly(struct kp_costrules *rules);          /* anomalyrule.c */
void kp_rules_float64(struct kp_costrules *rules);          /* float64rule.c */
void kp_rules_bfloat16(struct kp_costrules *rules);         /* float64rule.c */
