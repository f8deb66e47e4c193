// SPDX-License-Identifier: Apache-2.0
/*
 * launchrules.c - launches that wait: for their own kernel (CUDA_LAUNCH_BLOCKING), or for room in the driver's queue
 *
 * The queue holds 1024 launches.
 */

#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "export/answers/advise/opsrules/opsrules.h"

static const struct kp_cost_rule queue_full = {
    0.10, 0, "launch-queue-full", "the host is blocked: the launch queue is full of small kernels",
    "Make fewer and larger kernels: torch.compile(model), fused optimizers, larger batches."};

enum { LAUNCHES_LEAST = 10, QUEUE_FULL = 1000 };
enum { SMALL_KERNEL_NS = 20000 }; /* a queue full of longer ones is a GPU that always has work */

/* ---- CUDA_LAUNCH_BLOCKING ---- */

static int64_t blocked_ns(const struct kp_costrules *x, const struct kp_device_work *w)
{
    const struct kp_node *call = w->call < 0 ? NULL : &x->tree->nodes[w->call];
    return call && call->end_ns >= w->end_ns && call->start_ns <= w->start_ns ? w->end_ns - w->start_ns : 0;
}

static const struct kp_cost_rule blocking = {0.05,
                                             1u << KP_CAUSE(KP_IDLE_LAUNCH) | 1u << KP_CAUSE(KP_IDLE_PYTHON) |
                                                 1u << KP_CAUSE(KP_IDLE_SYNC) | 1u << KP_SPLIT_IDLE,
                                             "launch-blocking",
                                             "each launch waits for its kernel because CUDA_LAUNCH_BLOCKING is set",
                                             "Unset CUDA_LAUNCH_BLOCKING: it is meant for debugging."};

/* A step that did not wait would last as long as the host's own work or as the GPU's, whichever is longer. */
static void blocking_judge(struct kp_costrules *x)
{
    struct kp_cost cost = kp_cost_open(x);
    size_t launches = 0, blocked = 0;
    for (size_t i = 0; i < x->work_count; i++) {
        const struct kp_device_work *w = &x->works[i];
        if (w->part == KP_SPLIT_COPIES || w->call < 0) continue;
        const bool is_blocked = blocked_ns(x, w) > 0;
        launches++;
        blocked += is_blocked;
        if (is_blocked) kp_cost_add_work(&cost, w, 1);
    }
    const bool is_set = launches >= LAUNCHES_LEAST && blocked > launches / 2;
    for (size_t i = 0; i < x->chosen->step_count; i++) {
        const double idle = (double)x->splits[i].part_ns[KP_SPLIT_IDLE];
        if (cost.of[i] > idle) cost.of[i] = idle;
    }
    kp_cost_tell_if(&cost, &blocking, is_set);
}

/* ---- the queue ---- */

KP_ORDER_NUMBERS(time_order, int64_t)

/* How many works were launched before a call and had not begun when it did. `launched`: times of calls, sorted. */
static bool is_full(const struct kp_costrules *x, const int64_t *launched, size_t count, const struct kp_node *call)
{
    const size_t before = kp_rows_from(launched, count, sizeof *launched, call->start_ns);
    const size_t begun = kp_rows_from(x->works, x->work_count, sizeof *x->works, call->start_ns);
    return before >= begun + QUEUE_FULL;
}

static double kernel_mean(const struct kp_costrules *x)
{
    double all = 0, count = 0;
    for (size_t i = 0; i < x->work_count; i++) {
        if (x->works[i].part != KP_SPLIT_COMPUTE) continue;
        all += (double)(x->works[i].end_ns - x->works[i].start_ns);
        count++;
    }
    return count > 0 ? all / count : 0;
}

struct queue_calls {
    int64_t *launched;        /* when, sorted */
    struct kp_sample free_ns; /* how long calls last that find room */
    bool *is_full;            /* by work */
    size_t count;
};

static void calls_list(struct queue_calls *q, const struct kp_costrules *x)
{
    q->launched = kp_kineto_room(x->work_count + 1, sizeof *q->launched);
    q->is_full = kp_kineto_room(x->work_count + 1, sizeof *q->is_full);
    for (size_t i = 0; i < x->work_count; i++)
        if (kp_costrules_is_launch(x, &x->works[i]))
            q->launched[q->count++] = x->tree->nodes[x->works[i].call].start_ns;
    qsort(q->launched, q->count, sizeof *q->launched, time_order);
    for (size_t i = 0; i < x->work_count; i++) {
        const int32_t call = kp_costrules_is_launch(x, &x->works[i]) ? x->works[i].call : -1;
        q->is_full[i] = call >= 0 && is_full(x, q->launched, q->count, &x->tree->nodes[call]);
        if (call >= 0 && !q->is_full[i]) kp_sample_add(&q->free_ns, (double)kp_costrules_ns(x, (size_t)call));
    }
}

/* A call on a full queue costs what it lasts longer than others. */
static void queue_judge(struct kp_costrules *x)
{
    struct queue_calls q = {0};
    struct kp_cost cost = kp_cost_open(x);
    if (kernel_mean(x) < SMALL_KERNEL_NS) calls_list(&q, x);
    const double usual = kp_sample_end(&q.free_ns, 0.5);
    for (size_t i = 0; q.is_full && i < x->work_count; i++) {
        const struct kp_device_work *w = &x->works[i];
        if (!q.is_full[i] || (double)kp_costrules_ns(x, (size_t)w->call) <= usual) continue;
        const struct kp_node *call = &x->tree->nodes[w->call];
        kp_cost_add(&cost, w->call, call->start_ns + (int64_t)usual, call->end_ns, 1);
    }
    free(q.launched);
    free(q.is_full);
    kp_cost_tell(&cost, &queue_full);
}

void kp_rules_launches(struct kp_costrules *x)
{
    blocking_judge(x);
    queue_judge(x);
}
