// SPDX-License-Identifier: Apache-2.0
/* adviseparts.h - what the files of this room share: places in a trace, the causes of idle, and what costs where */
#ifndef KP_ADVISEPARTS_H
#define KP_ADVISEPARTS_H

#include "export/advise/advise.h"
#include "export/report/keyindex.h"

/* ---- costplace.c: which op, on which line, costs how much ---- */

struct kp_costplace {
    int64_t ns;
    uint32_t name, stack, after; /* string ids; after: the stack of the op before */
};
struct kp_costplaces { /* all zero: empty */
    struct kp_keyindex keys;
    struct kp_costplace *of; /* by number in `keys` */
    size_t capacity;
};
void kp_costplaces_add(struct kp_costplaces *places, const struct kp_tree *tree, int32_t node, int32_t before,
                       int64_t ns);
/* Names the place that costs most. */
void kp_costplaces_tell(const struct kp_costplaces *places, struct kp_kineto *trace, struct kp_finding *out);
void kp_costplaces_fini(struct kp_costplaces *places);
/* The outermost op around a node, or the node. */
int32_t kp_costplace_op(const struct kp_tree *tree, int32_t node);

/* ---- idlecause.c ---- */

struct kp_idle {
    struct kp_spans of[KP_IDLE_CAUSES]; /* settled; they do not overlap */
    struct kp_costplaces places[KP_IDLE_CAUSES];
    int64_t late_ns; /* how long a GPU works on after the last step, on what was launched in steps */
};
/* Divides the chosen time outside of `worked` (settled) by its cause. */
void kp_idle_find(struct kp_idle *out, const struct kp_tree *tree, const struct kp_chosen *chosen,
                  const struct kp_spans *worked, bool has_gpu);
void kp_idle_fini(struct kp_idle *idle);

/* ---- stepsplit.c ---- */

struct kp_split_places {
    struct kp_costplaces parts[KP_STEP_PARTS], causes[KP_IDLE_CAUSES];
    int64_t late_ns;
};
/* As kp_step_split_all(), with causes; adds what costs where. NULL: nothing of either. */
bool kp_step_split_places(struct kp_step_split *out, const struct kp_tree *tree, const struct kp_chosen *chosen,
                          struct kp_split_places *places);

/* A range of the host that is no op, whatever old files call it. */
static inline bool kp_advise_is_range(const char *name)
{
    return kp_kineto_is_step(name) || strncmp(name, "Optimizer.", 10) == 0 || kp_kineto_is_loader(name);
}

#endif
