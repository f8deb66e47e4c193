// SPDX-License-Identifier: Apache-2.0
/*
 * fuserules.c - runs of small kernels: those that could be one kernel, and those that a CUDA graph would start at once
 *
 * A run is of one stream, each kernel right after the one before. The savings of fusing are estimated as TraceLens
 * does: the longest stays, and 15 % of the others.
 */

#include "export/answers/advise/opsrules/opsrules.h"

static const struct kp_cost_rule fusable = {
    0.10, 0, "kernels-to-fuse", "elementwise kernels in a row could be one kernel",
    "Let a compiler join them: torch.compile(model), or a fused optimizer (fused=True)."};
static const struct kp_cost_rule small = {
    0.10, 1u << KP_CAUSE(KP_IDLE_DEPENDENCY) | 1u << KP_SPLIT_IDLE, "small-kernels",
    "kernels last a few microseconds, and the GPU spends the time between them on starting the next one",
    "Start them at once: torch.compile(model, mode=\"reduce-overhead\") or torch.cuda.graph; larger batches."};

enum { FUSE_LEAST = 3, FUSE_MOST = 15, SMALL_LEAST = 5, SMALL_MEAN_NS = 10000, GAP_MOST_NS = 10000 };
#define FUSED_REST 0.15

struct kernel_run {
    const struct kp_device_work *first;
    int64_t start_ns, end_ns, sum_ns, longest_ns;
    size_t count;
    int32_t stream;
};
struct run_kind {
    const struct kp_cost_rule *rule;
    bool (*is_in)(const char *name);
    double (*saves)(const struct kernel_run *run); /* ns */
    size_t most;
};

static bool is_elementwise(const char *name) { return KP_NAME_HAS(name, "elementwise_kernel", "multi_tensor"); }

static bool is_any(const char *name) { return name != NULL; }

static double fuse_saves(const struct kernel_run *run)
{
    if (run->count < FUSE_LEAST) return 0;
    return (double)(run->end_ns - run->start_ns) - (double)run->longest_ns -
           FUSED_REST * (double)(run->sum_ns - run->longest_ns);
}

static double graph_saves(const struct kernel_run *run)
{
    if (run->count < SMALL_LEAST || run->sum_ns / (int64_t)run->count >= SMALL_MEAN_NS) return 0;
    return (double)(run->end_ns - run->start_ns - run->sum_ns);
}

static void run_charge(const struct run_kind *kind, const struct kernel_run *run, struct kp_cost *cost)
{
    const double saved = run->count ? kind->saves(run) : 0;
    if (saved <= 0) return;
    kp_cost_add(cost, kp_costrules_place(run->first), run->start_ns, run->end_ns,
                saved / (double)(run->end_ns - run->start_ns));
}

static bool run_goes_on(const struct run_kind *kind, const struct kernel_run *run, const struct kp_device_work *w)
{
    return run->count && run->count < kind->most && w->start_ns >= run->end_ns &&
           w->start_ns - run->end_ns <= GAP_MOST_NS && w->said->stream == run->stream;
}

static void run_add(struct kernel_run *run, const struct kp_device_work *w)
{
    const int64_t ns = w->end_ns - w->start_ns;
    if (!run->count++) *run = (struct kernel_run){w, w->start_ns, 0, 0, 0, 1, w->said->stream};
    run->end_ns = w->end_ns;
    run->sum_ns += ns;
    if (ns > run->longest_ns) run->longest_ns = ns;
}

static void runs_judge(struct kp_costrules *x, const struct run_kind *kind)
{
    struct kp_cost cost = kp_cost_open(x);
    struct kernel_run run = {0};
    for (size_t i = 0; i < x->work_count; i++) {
        const struct kp_device_work *w = &x->works[i];
        const bool is_in = w->part == KP_SPLIT_COMPUTE && w->said && kind->is_in(kp_costrules_name(x, w->node));
        if (!is_in || !run_goes_on(kind, &run, w)) {
            run_charge(kind, &run, &cost);
            run = (struct kernel_run){0};
        }
        if (is_in) run_add(&run, w);
    }
    run_charge(kind, &run, &cost);
    kp_cost_tell(&cost, kind->rule);
}

void kp_rules_fusing(struct kp_costrules *x)
{
    runs_judge(x, &(struct run_kind){&fusable, is_elementwise, fuse_saves, FUSE_MOST});
    runs_judge(x, &(struct run_kind){&small, is_any, graph_saves, SIZE_MAX});
}
