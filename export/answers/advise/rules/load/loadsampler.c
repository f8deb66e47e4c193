// SPDX-License-Identifier: Apache-2.0
/*
 * loadsampler.c - what a DataLoader costs in the process of the training, workers or not: its sampler
 *
 * next() asks the sampler, or the batch sampler, for the indices of a batch before a worker gets them. Calls of Python
 * show all of that. With stacks of ops alone it is the time from the sampler's first op to its last: at least that.
 */
#include "export/answers/advise/rules/load/loadwaits.h"

#include "export/answers/advise/rules/rules.h"
#include "export/answers/top/timeshares.h"
#include "export/read/facts/selftime.h"

#define SAMPLER_BOUND 0.10 /* of a step, as of data-loading */
#define AWAKE_SHARE 0.75   /* of calls for a batch of workers: the thread computes, or wants a core */
#define SAMPLER_PART 0.10  /* of a step's loading, before it is worth a word there */

struct sampling {
    struct kp_cost cost;
    struct kp_spans times; /* of the sampler, in calls for a batch */
};

/* A call for a batch asks the sampler once: between its ops it computes in Python. */
static void times_find(const struct kp_costrules *x, struct kp_spans *out)
{
    const struct kp_tree *const tree = x->tree;
    int32_t last_loader = -1;
    int64_t until_ns = 0;
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *const node = &tree->nodes[i];
        if (x->loaders[i] < 0 || node->removed || node->on_device) continue;
        if (node->is_python && kp_node_is(tree, i, KP_NAME_SAMPLES)) kp_spans_add(out, node->start_ns, node->end_ns);
        if (!kp_costrules_is_op(x, i) || !(kp_costrules_stack_facts(x, i) & KP_NAME_SAMPLES)) continue;
        kp_spans_add(out, last_loader == x->loaders[i] ? until_ns : node->start_ns, node->end_ns);
        last_loader = x->loaders[i];
        if (node->end_ns > until_ns) until_ns = node->end_ns;
    }
    kp_spans_settle(out);
}

static void piece_take(void *context, size_t node, int64_t from_ns, int64_t to_ns)
{
    struct sampling *const s = context;
    const struct kp_costrules *const x = s->cost.x;
    if (x->loaders[node] < 0 || kp_spans_between(&s->times, from_ns, to_ns) < to_ns - from_ns) return;
    kp_cost_add(&s->cost, (int32_t)node, from_ns, to_ns, kp_cost_exposed(x, from_ns, to_ns));
}

static struct kp_cost sampling_cost(struct kp_costrules *x)
{
    struct sampling s = {.cost = kp_cost_open(x)};
    times_find(x, &s.times);
    if (s.times.count) kp_selftime_each(x->tree, piece_take, &s);
    kp_spans_fini(&s.times);
    return s.cost;
}

void kp_rules_sampler(struct kp_costrules *x)
{
    const double loading_ns = x->out->mean_ns[KP_SPLIT_LOADING];
    if (loading_ns < SAMPLER_BOUND * x->out->step_ns) return;
    struct kp_cost cost = sampling_cost(x);
    const double ns = kp_cost_mean(&cost);
    const struct kp_cost_rule rule = {
        SAMPLER_BOUND, 1u << KP_SPLIT_LOADING, "data-sampler",
        "the sampler of the DataLoader takes its time in the process of the training, inside of next()",
        "Workers do not help: none of them runs the sampler. Compute once what does not change (weights, their "
        "cumulative sum, sorted lengths). Draw the indices of many batches, or of the whole epoch, at once "
        "(torch.multinomial, torch.randperm, numpy.searchsorted on the cumulative sum). Or draw them ahead in a "
        "thread."};
    /* If it has less than half, the rest is the finding, and has a word of this. */
    struct kp_finding *const f = kp_cost_tell_if(&cost, &rule, 2 * ns >= loading_ns);
    if (f && loading_ns - ns >= SAMPLER_PART * loading_ns)
        f->what = KP_TEXT("%s (the rest of next() takes %.1f ms)", f->what, (loading_ns - ns) / 1e6);
}

const char *kp_loadsampler_text(struct kp_costrules *x)
{
    struct kp_cost cost = sampling_cost(x);
    const double ns = kp_cost_mean(&cost);
    struct kp_finding most = {0};
    kp_costplaces_tell(&cost.places, x->tree->trace, &most);
    kp_cost_drop(&cost);
    if (ns < SAMPLER_PART * x->out->mean_ns[KP_SPLIT_LOADING]) return "";
    return KP_TEXT(
        "; its sampler takes %.1f ms of that in the process of the training, which workers do not shorten%s%s",
        ns / 1e6, most.line ? ": " : "", most.line ? most.line : "");
}

/* Calls of Python show what next() does, and the thread's times whether it slept there. Else it is not known. */
void kp_loadsampler_awake(const struct kp_costrules *x, struct kp_finding *f)
{
    if (kp_costrules_has_calls(x) || f->is_bursty) return;
    if (kp_loadcore_asleep_ns(x) < 0) f->what = "the step waits for the DataLoader, or computes in its next()";
    if (kp_loadcore_awake_share(x, KP_SPLIT_LOADING) < AWAKE_SHARE) return;
    f->is_of_main = true;
    /* Waits for a core are known by step: all of it may be one. */
    f->is_critical &= kp_summary_core_waited(x->tree->trace) < KP_CORE_WAITED_HALF;
    f->what = kp_costrules_is_crowded(x)
                  ? "next() of the DataLoader computes in this process, or has no CPU core: the thread hardly sleeps "
                    "there, so it does not wait for workers"
                  : "next() of the DataLoader computes in this process: the thread hardly sleeps there, so it does not "
                    "wait for workers";
    f->change = "See what it computes: kprof run --with-stack 1 --schedule 10-30, then kprof advise. The sampler (or "
                "batch_sampler) runs there, and batches are received there (pickle, a file descriptor a tensor). Make "
                "the sampler draw many batches at once, or hand over fewer, larger batches. More workers do not help.";
}
