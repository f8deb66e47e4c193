// SPDX-License-Identifier: Apache-2.0
/* copyrules.c - copies from memory that is not pinned, and many little copies that could be one */
#include "export/answers/advise/opsrules/opsrules.h"

static const struct kp_cost_rule pageable = {
    0.05, 1u << KP_SPLIT_COPIES, "pageable-copies", "copies from memory that is not pinned: nothing runs during them",
    "Pin the memory: DataLoader(..., pin_memory=True) or tensor.pin_memory(), and .to(device, non_blocking=True)."};
static const struct kp_cost_rule joined = {
    0.05, 1u << KP_SPLIT_COPIES | 1u << KP_SPLIT_IDLE | 1u << KP_CAUSE(KP_IDLE_LAUNCH) | 1u << KP_CAUSE(KP_IDLE_SYNC),
    "copies-to-join", "many small copies in a row could be one copy",
    "Join them before the copy: torch.cat or torch.stack on the host, then one .to(device)."};

enum { JOIN_LEAST = 5, JOIN_COPY_MOST_NS = 1000000, JOIN_GAP_MOST_NS = 1000000 };

static void pageable_judge(struct kp_costrules *x)
{
    struct kp_cost cost = kp_cost_open(x);
    for (size_t i = 0; i < x->work_count; i++) {
        const struct kp_device_work *w = &x->works[i];
        if (w->part != KP_SPLIT_COPIES || !strstr(kp_costrules_name(x, w->node), "Pageable")) continue;
        kp_cost_add_work(&cost, w, kp_cost_exposed(x, w->start_ns, w->end_ns));
    }
    kp_cost_tell(&cost, &pageable);
}

/* A run of little copies of one kind, with no kernel between them. */
struct copy_run {
    const struct kp_device_work *first;
    int64_t end_ns, longest_ns;
    double bytes, best; /* best: bytes a ns */
    size_t count;
};

/* Joined, the bytes would take as long as at the best speed among them; without sizes as long as the longest. */
static void run_charge(const struct copy_run *run, struct kp_cost *cost)
{
    if (run->count < JOIN_LEAST) return;
    const double all = (double)(run->end_ns - run->first->start_ns);
    const double one = run->best > 0 ? run->bytes / run->best : (double)run->longest_ns;
    const double part = all > one ? (all - one) / all : 0;
    kp_cost_add(cost, kp_costrules_place(run->first), run->first->start_ns, run->end_ns,
                part * kp_cost_exposed(cost->x, run->first->start_ns, run->end_ns));
}

static bool run_goes_on(const struct copy_run *run, const struct kp_costrules *x, const struct kp_device_work *w)
{
    return run->count && w->part == KP_SPLIT_COPIES && w->start_ns - run->end_ns <= JOIN_GAP_MOST_NS &&
           kp_tree_event(x->tree, (size_t)w->node)->name == kp_tree_event(x->tree, (size_t)run->first->node)->name;
}

static void run_add(struct copy_run *run, const struct kp_device_work *w)
{
    const int64_t ns = w->end_ns - w->start_ns;
    const double bytes = w->said ? (double)w->said->bytes : 0, speed = ns > 0 ? bytes / (double)ns : 0;
    if (!run->count++) run->first = w;
    if (w->end_ns > run->end_ns) run->end_ns = w->end_ns;
    if (ns > run->longest_ns) run->longest_ns = ns;
    if (speed > run->best) run->best = speed;
    run->bytes += bytes;
}

/* Between host and device: copies inside a device are cheap, and often a library's own. */
static bool is_little_copy(const struct kp_costrules *x, const struct kp_device_work *w)
{
    return w->part == KP_SPLIT_COPIES && w->end_ns - w->start_ns <= JOIN_COPY_MOST_NS &&
           (strstr(kp_costrules_name(x, w->node), "HtoD") || strstr(kp_costrules_name(x, w->node), "DtoH"));
}

static void joined_judge(struct kp_costrules *x)
{
    struct kp_cost cost = kp_cost_open(x);
    struct copy_run run = {0};
    for (size_t i = 0; i < x->work_count; i++) {
        const struct kp_device_work *w = &x->works[i];
        const bool is_little = is_little_copy(x, w);
        if (!is_little || !run_goes_on(&run, x, w)) {
            run_charge(&run, &cost);
            run = (struct copy_run){0};
        }
        if (is_little) run_add(&run, w);
    }
    run_charge(&run, &cost);
    kp_cost_tell(&cost, &joined);
}

void kp_rules_copies(struct kp_costrules *x)
{
    pageable_judge(x);
    joined_judge(x);
}
