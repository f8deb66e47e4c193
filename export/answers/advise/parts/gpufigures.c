// SPDX-License-Identifier: Apache-2.0
/*
 * gpufigures.c - how much of the GPU steps use: the numbers of TensorBoard's plugin and of HolisticTraceAnalysis
 *
 * They are of the time from the first step's begin to the last one's end, but for occupancy and tensor cores: those are
 * of all kernels. If a process works with several GPUs they are those of the first.
 */
#include "export/answers/advise/parts/costrules.h"

#include <stdlib.h>

#include "collector/base/kp_order.h"

struct figures {
    const struct kp_costrules *x;
    struct kp_spans computed, communicated, steps;
    int64_t device;
};
struct change { /* of the multiprocessors' load, or of a queue's length */
    int64_t ns;
    double by;
};
struct changes {
    struct change *of;
    size_t count, capacity;
};

static void change_add(struct changes *c, int64_t ns, double by)
{
    *KP_KINETO_NEXT(c->of, c->count, c->capacity) = (struct change){ns, by};
}

/* An end comes before a begin. */
KP_ORDER2(change_order, struct change, ns, by)

static bool is_kernel(const struct figures *f, const struct kp_device_work *w)
{
    return w->part != KP_SPLIT_COPIES && kp_tree_event(f->x->tree, (size_t)w->node)->pid == f->device;
}

/* ---- the figures ---- */

/* Each moment has at most all multiprocessors. */
static double sm_efficiency(const struct figures *f)
{
    struct changes load = {0};
    double now = 0, all = 0;
    const int64_t begin = f->steps.of[0].start_ns, end = f->steps.of[0].end_ns;
    for (size_t i = 0; i < f->x->work_count; i++) {
        const struct kp_device_work *w = &f->x->works[i];
        const int64_t from = w->start_ns > begin ? w->start_ns : begin, to = w->end_ns < end ? w->end_ns : end;
        if (!is_kernel(f, w) || !w->said || w->said->blocks_per_sm <= 0 || from >= to) continue;
        change_add(&load, from, (double)w->said->blocks_per_sm);
        change_add(&load, to, -(double)w->said->blocks_per_sm);
    }
    if (load.count) qsort(load.of, load.count, sizeof *load.of, change_order);
    for (size_t i = 0; i + 1 < load.count; i++) {
        now += load.of[i].by;
        all += (double)(load.of[i + 1].ns - load.of[i].ns) * (now < 1 ? now : 1);
    }
    free(load.of);
    return load.count ? all / (double)(end - begin) : -1;
}

static void kernels_weigh(const struct figures *f, struct kp_gpu_figures *out)
{
    double all = 0, known = 0, occupied = 0, tensor = 0;
    for (size_t i = 0; i < f->x->work_count; i++) {
        const struct kp_device_work *w = &f->x->works[i];
        const double ns = (double)(w->end_ns - w->start_ns);
        if (!is_kernel(f, w)) continue;
        all += ns;
        if (kp_node_is(f->x->tree, (size_t)w->node, KP_NAME_MATRIX)) tensor += ns;
        if (!w->said || w->said->occupancy < 0) continue;
        known += ns;
        occupied += ns * (double)w->said->occupancy / 100;
    }
    out->tensor_cores = all > 0 ? tensor / all : -1;
    out->occupancy = known > 0 ? occupied / known : -1;
}

/* For one stream, as HolisticTraceAnalysis counts: a launch goes in when its call begins, and out when its work
 * does. */
static size_t queue_most(const struct kp_costrules *x, int32_t stream)
{
    struct changes queue = {0};
    double now = 0, most = 0;
    for (size_t i = 0; i < x->work_count; i++) {
        const struct kp_device_work *w = &x->works[i];
        if (!kp_costrules_is_launch(x, w) || !w->said || w->said->stream != stream) continue;
        change_add(&queue, x->tree->nodes[w->call].start_ns, 1);
        change_add(&queue, w->start_ns, -1);
    }
    if (queue.count) qsort(queue.of, queue.count, sizeof *queue.of, change_order);
    for (size_t i = 0; i < queue.count; i++) {
        now += queue.of[i].by;
        if (now > most) most = now;
    }
    free(queue.of);
    return (size_t)most;
}

static size_t queues_most(const struct kp_costrules *x)
{
    struct kp_keyindex streams = {0};
    size_t most = 0;
    for (size_t i = 0; i < x->work_count; i++) {
        if (!x->works[i].said) continue;
        const size_t known = streams.count;
        if (kp_keyindex_get(&streams, (uint64_t)(int64_t)x->works[i].said->stream) < known) continue;
        const size_t of_stream = queue_most(x, x->works[i].said->stream);
        if (of_stream > most) most = of_stream;
    }
    kp_keyindex_fini(&streams);
    return most;
}

static void spans_gather(struct figures *f)
{
    const struct kp_chosen *chosen = f->x->chosen;
    kp_spans_add(&f->steps, chosen->steps[0].start_ns, chosen->steps[chosen->step_count - 1].end_ns);
    f->device = INT64_MAX;
    for (size_t i = 0; i < f->x->work_count; i++) {
        const int64_t device = kp_tree_event(f->x->tree, (size_t)f->x->works[i].node)->pid;
        if (device < f->device) f->device = device;
    }
    for (size_t i = 0; i < f->x->work_count; i++) {
        const struct kp_device_work *w = &f->x->works[i];
        if (is_kernel(f, w))
            kp_spans_add(w->part == KP_SPLIT_COMM ? &f->communicated : &f->computed, w->start_ns, w->end_ns);
    }
    kp_spans_settle(&f->steps);
    kp_spans_settle(&f->computed);
    kp_spans_settle(&f->communicated);
}

void kp_gpu_figures_make(struct kp_gpu_figures *out, const struct kp_costrules *x)
{
    struct figures f = {.x = x};
    *out = (struct kp_gpu_figures){-1, -1, -1, -1, -1, 0};
    if (!x->work_count || !x->chosen->step_count) return;
    spans_gather(&f);
    const double all = (double)kp_spans_length(&f.steps, NULL),
                 comm = (double)kp_spans_length(&f.communicated, &f.steps);
    const double compute = (double)kp_spans_length(&f.computed, &f.steps);
    kp_spans_cut(&f.computed, &f.steps);
    const double both = (double)kp_spans_length(&f.communicated, &f.computed);
    out->busy = all > 0 ? (compute + comm - both) / all : -1;
    out->comm_hidden = comm > 0 ? both / comm : -1;
    out->sm_efficiency = all > 0 ? sm_efficiency(&f) : -1;
    kernels_weigh(&f, out);
    out->queue_most = queues_most(x);
    kp_spans_fini(&f.steps);
    kp_spans_fini(&f.computed);
    kp_spans_fini(&f.communicated);
}
