// SPDX-License-Identifier: Apache-2.0
/* commkinds.h - what ranks send one another for: gradients, parameters, tokens of experts, stages of a pipeline */
#pragma once

#include "export/read/tree/tree.h"
#include "export/read/tree/spans.h"

enum kp_commkind {
    KP_COMM_REDUCE,   /* all_reduce: gradients of DDP */
    KP_COMM_TENSOR,   /* functional collectives of layers that ranks share: tensor parallel */
    KP_COMM_GATHER,   /* all_gather and reduce_scatter: FSDP, ZeRO */
    KP_COMM_EXCHANGE, /* all_to_all: experts */
    KP_COMM_STAGES,   /* send and recv: a pipeline */
    KP_COMM_KINDS
};
struct kp_commkinds { /* all zero: none yet */
    int64_t ns[KP_COMM_KINDS];
    bool has_data_parallel; /* a range of DDP is in it */
    bool has_exchange;      /* a call of all_to_all: NCCL's kernel for it is that of send and recv */
};
/* A message between two ranks: no others take part in it. */
bool kp_commkinds_is_stage(const char *name);
/* Adds what a trace communicates in this time. */
void kp_commkinds_add(struct kp_commkinds *kinds, const struct kp_tree *tree, const struct kp_spans *within);
/* The kind with most time. */
enum kp_commkind kp_commkinds_most(const struct kp_commkinds *kinds);
/* The change to make if ranks send too much: a sentence. And where they send at the wrong time: the end of one.
 * Settings of DDP are told to its programs alone. */
const char *kp_commkinds_less(const struct kp_commkinds *kinds);
const char *kp_commkinds_overlap(const struct kp_commkinds *kinds);
