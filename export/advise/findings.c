// SPDX-License-Identifier: Apache-2.0
/* findings.c - the rules: what part of a step is too large, and what to change; bounds are in decisions/061 */
#include "export/advise/advise.h"

#include <stdlib.h>
#include <string.h>

/* Steps that must pass a bound: to be told, and to be called critical. */
enum { STEPS_LEAST = 2, STEPS_CRITICAL = 20 };
#define SHARE_CRITICAL 0.20
#define SHARE_HEALTHY 0.90

struct advice_rule {
    enum kp_step_part part;
    double bound; /* share of a step */
    enum { ANYWHERE, WITH_GPU, WITHOUT_GPU } with;
    const char *id, *what, *change;
};
static const struct advice_rule rules[] = {
    {KP_STEP_LOADING, 0.10, ANYWHERE, "data-loading", "the step waits for the DataLoader",
     "Give the DataLoader more workers: DataLoader(..., num_workers=N, persistent_workers=True)."},
    {KP_STEP_COMM, 0.05, WITH_GPU, "exposed-communication", "collectives run while nothing computes",
     "Let communication overlap with backward: DDP(..., bucket_cap_mb=N, gradient_as_bucket_view=True)."},
    {KP_STEP_COPIES, 0.05, WITH_GPU, "exposed-copies", "copies run while nothing computes",
     "Copy from pinned memory beside the compute: DataLoader(..., pin_memory=True) and .to(device, "
     "non_blocking=True)."},
    {KP_STEP_IDLE, 0.15, WITH_GPU, "gpu-idle", "the GPU has nothing to do, and not for want of data",
     "See what the host does meanwhile: kprof run --with-stack ops, then kprof stacks."},
    {KP_STEP_IDLE, 0.40, WITHOUT_GPU, "no-op-runs", "no op runs: Python between ops, or a wait",
     "Find the lines: kprof run --with-stack 1, then kprof stacks. Larger batches and fewer, larger ops leave less "
     "of it."},
};

/* Returns the name of the first event of the DataLoader. Its class tells whether it has workers. */
static const char *loader_name(const struct kp_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++) {
        const char *name = kp_kineto_text(tree->trace, kp_tree_event(tree, i)->name);
        if (kp_kineto_is_loader(name)) return name;
    }
    return NULL;
}

static void rule_judge(struct kp_advice *out, const struct advice_rule *rule, const struct kp_step_split *splits,
                       const struct kp_tree *tree)
{
    struct kp_finding f = {.id = rule->id, .what = rule->what, .change = rule->change};
    if (rule->with == (out->has_gpu ? WITHOUT_GPU : WITH_GPU)) return;
    for (size_t i = 0; i < out->steps; i++)
        f.steps += (double)splits[i].part_ns[rule->part] >= rule->bound * (double)splits[i].step_ns;
    f.step_ns = out->mean_ns[rule->part];
    f.share = out->step_ns > 0 ? f.step_ns / out->step_ns : 0;
    if (f.steps < STEPS_LEAST || f.share < rule->bound) return;
    f.is_critical = f.share >= SHARE_CRITICAL && f.steps >= STEPS_CRITICAL;
    if (rule->part == KP_STEP_LOADING) f.where = loader_name(tree);
    out->findings[out->count++] = f;
}

static int finding_order(const void *a, const void *b)
{
    const double x = ((const struct kp_finding *)a)->step_ns, y = ((const struct kp_finding *)b)->step_ns;
    return (x < y) - (x > y);
}

static void means_make(struct kp_advice *out, const struct kp_step_split *splits)
{
    for (size_t i = 0; i < out->steps; i++) {
        out->step_ns += (double)splits[i].step_ns / (double)out->steps;
        for (int p = 0; p < KP_STEP_PARTS; p++) out->mean_ns[p] += (double)splits[i].part_ns[p] / (double)out->steps;
    }
}

static const char *missing_of(const struct kp_kineto *trace, size_t steps)
{
    const char *lost = kp_kineto_fact(trace, "kprof.lost");
    if (steps < STEPS_LEAST) return "fewer than two whole steps; record more with --schedule (KPROF_SCHEDULE)";
    return lost && strcmp(lost, "0") != 0 ? "events were dropped; kprof report tells which" : NULL;
}

void kp_advice_make(struct kp_advice *out, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    size_t capacity = 0;
    struct kp_step_split *splits = kp_kineto_grow(NULL, &capacity, chosen->step_count + 1, sizeof *splits);
    *out = (struct kp_advice){.steps = chosen->step_count};
    out->has_gpu = kp_step_split_all(splits, tree, chosen);
    means_make(out, splits);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) rule_judge(out, &rules[i], splits, tree);
    qsort(out->findings, out->count, sizeof *out->findings, finding_order);
    out->missing = missing_of(tree->trace, out->steps);
    out->is_healthy = !out->count && !out->missing && out->mean_ns[KP_STEP_COMPUTE] >= SHARE_HEALTHY * out->step_ns;
    free(splits);
}
