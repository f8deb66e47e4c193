// SPDX-License-Identifier: Apache-2.0
/*
 * nosyncrule.c - gradients of several backward passes are added up, and DistributedDataParallel sends those of each
 *
 * Between two optimizer steps only the last pass has to send: no_sync() keeps the others local. A pass is what lies
 * between two calls of the model's forward; it sends if a collective begins in autograd's engine. Two models that share
 * an optimizer send one after the other as well, and have to: they are called from different places.
 */

#include "export/answers/advise/rules/rules.h"

#define FORWARD "DistributedDataParallel.forward"
#define NEEDLESS_SHARE 0.25 /* of all collectives: fewer are not worth a change */
enum { UPDATES_LEAST = 3 };

struct passes {
    const struct kp_costrules *x;
    size_t sent, of_pass, of_earlier; /* collectives: of all kinds; of the engine in this pass, and before it */
    size_t sending;                   /* passes before this one that sent, since the optimizer */
    size_t needless, updates, sent_passes;
    uint32_t place;             /* stack of the forward calls since the optimizer; 0: none is known */
    bool has_places, is_placed; /* several since the optimizer; any at all */
    int32_t last;               /* node: such a collective, or -1 */
};

static void pass_end(struct passes *p)
{
    p->of_earlier += p->of_pass;
    p->sending += p->of_pass > 0;
    p->of_pass = 0;
}

/* The optimizer uses the sum: the collectives of its last pass were needed. */
static void update_end(struct passes *p)
{
    const size_t last = p->of_pass;
    pass_end(p);
    if (last && p->sending > 1 && !p->has_places) {
        p->needless += p->of_earlier - last;
        p->sent_passes += p->sending;
        p->updates++;
    }
    p->of_earlier = p->sending = 0;
    p->place = 0;
    p->has_places = false;
}

static void forward_take(struct passes *p, size_t node)
{
    const uint32_t place = kp_tree_event(p->x->tree, node)->stack;
    pass_end(p);
    p->has_places |= p->place && place != p->place;
    p->is_placed |= place > 0;
    p->place = place;
}

static void collective_take(struct passes *p, size_t node)
{
    const struct kp_tree *const tree = p->x->tree;
    const int32_t parent = tree->nodes[node].parent;
    if (parent >= 0 && kp_node_is(tree, (size_t)parent, KP_NAME_COMM_OP)) return;
    p->sent++;
    if (!kp_node_is_in(tree, parent, KP_NAME_ENGINE)) return;
    p->of_pass++;
    p->last = (int32_t)node;
}

static void node_take(struct passes *p, size_t node)
{
    const struct kp_tree *const tree = p->x->tree;
    const enum kp_kineto_kind kind = kp_tree_event(tree, node)->kind;
    if (kind == KP_KINETO_PYTHON || tree->nodes[node].on_device) return;
    if (kp_node_is(tree, node, KP_NAME_OPTIMIZER)) update_end(p);
    else if (kind == KP_KINETO_OP && kp_node_is(tree, node, KP_NAME_COMM_OP)) collective_take(p, node);
    else if (kind == KP_KINETO_ANNOTATION && strcmp(kp_costrules_name(p->x, (int32_t)node), FORWARD) == 0)
        forward_take(p, node);
}

void kp_rules_no_sync(struct kp_costrules *x)
{
    if (x->out->mean_ns[KP_SPLIT_COMM] <= 0) return;
    struct passes p = {.x = x, .last = -1};
    for (size_t i = 0; i < x->tree->count; i++)
        if (kp_costrules_in_steps(x, i)) node_take(&p, i);
    if (p.updates < UPDATES_LEAST || (double)p.needless < NEEDLESS_SHARE * (double)p.sent) return;
    if (!p.is_placed) {
        kp_costrules_unjudged(x, "gradients sent more than once per step (kprof run --with-stack ops)");
        return;
    }
    struct kp_cost cost = kp_cost_open(x);
    for (size_t i = 0; i < x->chosen->step_count; i++)
        cost.of[i] = (double)x->splits[i].part_ns[KP_SPLIT_COMM] * (double)p.needless / (double)p.sent;
    const struct kp_cost_rule rule = {
        0.05, 1u << KP_SPLIT_COMM, "needless-all-reduce",
        KP_TEXT("DistributedDataParallel sends gradients in each of the %.3g backward passes before an "
                "optimizer step, and only the last has to; that costs at least",
                (double)p.sent_passes / (double)p.updates),
        "Run all passes but the last in `with model.no_sync():` (Accelerate: accelerator.accumulate(model)). "
        "Gradients then add up on each rank, and are sent once per optimizer step."};
    struct kp_finding *const f = kp_cost_tell(&cost, &rule);
    if (!f) return;
    /* The engine runs where backward() was called: that is the line, and not the one that made its node. */
    const uint32_t line = kp_ownline_of(x->tree->trace, kp_tree_event(x->tree, (size_t)p.last)->stack);
    f->line = line ? kp_kineto_text(x->tree->trace, line) : NULL;
}
