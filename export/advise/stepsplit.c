// SPDX-License-Identifier: Apache-2.0
/*
 * stepsplit.c - divides each step into compute, exposed communication, exposed copies, data loading and the rest
 *
 * A ladder of sets: each holds the one before it and one part more. What a set adds is the part's exposed time.
 */
#include "export/advise/advise.h"

#include <string.h>

struct ladder {
    enum kp_step_part order[KP_STEP_IDLE];
    struct kp_spans sets[KP_STEP_IDLE];
};

static const enum kp_step_part orders[2][KP_STEP_IDLE] = {
    {KP_STEP_LOADING, KP_STEP_COMPUTE, KP_STEP_COMM, KP_STEP_COPIES},
    {KP_STEP_COMPUTE, KP_STEP_COMM, KP_STEP_COPIES, KP_STEP_LOADING},
};

static enum kp_step_part gpu_part(const char *cat, const char *name)
{
    if (strcmp(cat, "gpu_memcpy") == 0 || strcmp(cat, "gpu_memset") == 0) return KP_STEP_COPIES;
    if (strcmp(cat, "kernel") != 0) return KP_STEP_IDLE; /* a wait of a stream */
    return strncmp(name, "nccl", 4) == 0 ? KP_STEP_COMM : KP_STEP_COMPUTE;
}

static enum kp_step_part part_of(const struct kp_kineto *trace, const struct kp_kineto_event *e, bool has_gpu)
{
    const char *name = kp_kineto_text(trace, e->name);
    if (e->kind == KP_KINETO_GPU) return gpu_part(kp_kineto_text(trace, e->cat), name);
    if (e->kind == KP_KINETO_ANNOTATION && kp_kineto_is_loader(name)) return KP_STEP_LOADING;
    return e->kind == KP_KINETO_OP && !has_gpu ? KP_STEP_COMPUTE : KP_STEP_IDLE;
}

static bool gpu_worked(const struct kp_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        if (kp_tree_event(tree, i)->kind == KP_KINETO_GPU) return true;
    return false;
}

static void ladder_add(struct ladder *l, const struct kp_node *node, enum kp_step_part part)
{
    bool is_in = false;
    for (size_t i = 0; i < KP_STEP_IDLE; i++) {
        is_in = is_in || l->order[i] == part;
        if (is_in) kp_spans_add(&l->sets[i], node->start_ns, node->end_ns);
    }
}

static void split_make(struct kp_step_split *out, const struct ladder *l, const struct kp_step *step)
{
    int64_t had = 0;
    *out = (struct kp_step_split){.step_ns = step->end_ns - step->start_ns};
    for (size_t i = 0; i < KP_STEP_IDLE; i++) {
        const int64_t has = kp_spans_between(&l->sets[i], step->start_ns, step->end_ns);
        out->part_ns[l->order[i]] = has - had;
        had = has;
    }
    out->part_ns[KP_STEP_IDLE] = out->step_ns - had;
}

bool kp_step_split_all(struct kp_step_split *out, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct ladder l = {0};
    const bool has_gpu = gpu_worked(tree);
    memcpy(l.order, orders[has_gpu], sizeof l.order);
    for (size_t i = 0; i < tree->count; i++)
        if (!tree->nodes[i].is_async)
            ladder_add(&l, &tree->nodes[i], part_of(tree->trace, kp_tree_event(tree, i), has_gpu));
    for (size_t i = 0; i < KP_STEP_IDLE; i++) kp_spans_settle(&l.sets[i]);
    for (size_t i = 0; i < chosen->step_count; i++) split_make(&out[i], &l, &chosen->steps[i]);
    for (size_t i = 0; i < KP_STEP_IDLE; i++) kp_spans_fini(&l.sets[i]);
    return has_gpu;
}
