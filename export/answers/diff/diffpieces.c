// SPDX-License-Identifier: Apache-2.0
/*
 * diffpieces.c - gathers the samples of a trace piece by piece, apart from the comparison until all have come
 *
 * A trace without steps is one sample, so its pieces add to it. Once a piece has steps, what was before the first of
 * them is of no step and counts no longer.
 */
#include "export/answers/diff/diff.h"

#include <stdlib.h>

#include "export/read/facts/steps/nocore.h"
#include "export/read/tree/treepieces.h"

struct kp_diffpieces {
    struct kp_treepieces *trees;
    struct kp_diff own; /* of this trace alone */
    int side;
    struct kp_step *steps;
    size_t step_count, step_capacity;
    bool has_steps, is_gpu, has_piece;
};

static void begin_again(struct kp_diffpieces *p)
{
    kp_diff_close(&p->own);
    kp_diff_open(&p->own);
}

static bool tree_add(void *context, struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct kp_diffpieces *p = context;
    const bool is_gpu = kp_diff_gpu_worked(tree);
    if (p->has_piece && is_gpu != p->is_gpu) return false; /* modules have times of the one or of the other */
    kp_tree_fill_calls(tree);
    kp_tree_set_forward_stacks(tree);
    if (chosen->step_count && !p->has_steps) begin_again(p);
    p->has_steps |= chosen->step_count != 0;
    p->has_piece = true;
    p->is_gpu = is_gpu;
    for (size_t i = 0; i < chosen->step_count; i++)
        *KP_KINETO_NEXT(p->steps, p->step_count, p->step_capacity) = chosen->steps[i];
    if (chosen->step_count || !p->has_steps) kp_diff_gather(&p->own, p->side, tree, chosen, !p->has_steps);
    return true;
}

struct kp_diffpieces *kp_diffpieces_open(int side)
{
    struct kp_diffpieces *const p = kp_kineto_zeros(1, sizeof *p);
    p->side = side;
    kp_diff_open(&p->own);
    p->trees = kp_treepieces_open(tree_add, p);
    kp_treepieces_reading(p->trees)->has_memory = true;
    return p;
}

void kp_diffpieces_close(struct kp_diffpieces *p)
{
    kp_treepieces_close(p->trees);
    kp_diff_close(&p->own);
    free(p->steps);
    free(p);
}

struct kp_kineto_pieces *kp_diffpieces_reading(struct kp_diffpieces *p) { return kp_treepieces_reading(p->trees); }

/* The list of waits comes behind the events. */
static void waits_take(struct kp_diffpieces *p, const struct kp_kineto *rest)
{
    double *const waits = kp_kineto_zeros(p->step_count + 1, sizeof *waits);
    (void)kp_nocore_of(waits, rest, p->steps, p->step_count);
    kp_diff_waits_add(&p->own, p->side, p->steps, waits, p->step_count);
    free(waits);
}

bool kp_diffpieces_end(struct kp_diffpieces *p, struct kp_kineto *rest, struct kp_diff *into, const char *label)
{
    if (!kp_treepieces_end(p->trees, rest)) return false;
    if (!p->has_steps) p->own.sides[p->side].samples = 1;
    p->own.sides[p->side].has_gpu = p->is_gpu;
    p->own.sides[p->side].has_steps = p->has_steps;
    waits_take(p, rest);
    kp_diff_take(into, &p->own, p->side, rest, label);
    return true;
}
