// SPDX-License-Identifier: Apache-2.0
/* selftime.c - divides the time of each thread among its nodes */
#include "export/read/facts/selftime.h"

#include <stdlib.h>
#include <string.h>

#include "export/read/tree/chosen.h"
#include "export/read/store/keyindex.h"

struct self_lane {
    uint32_t *open; /* nodes, the one that began last on top. Ended ones may lie below it */
    size_t count, capacity;
    int64_t since_ns; /* what came before is divided */
};
struct dividing {
    const struct kp_tree *tree;
    kp_selftime_fn give;
    kp_selftime_marker_fn give_marker; /* NULL: as any node */
    void *context;
    struct kp_keyindex threads; /* rows: struct self_lane */
};

static struct self_lane *lane_get(struct dividing *d, const struct kp_kineto_event *e)
{
    const struct self_lane first = {.since_ns = INT64_MIN};
    return kp_keyindex_row(&d->threads, kp_tree_thread(e), &first, sizeof first);
}

/* Gives a marker's time with the calls that run in it, each as long as it is the innermost. The rest has none. */
static void marker_give(struct dividing *d, struct self_lane *lane, uint32_t marker, int64_t to_ns)
{
    for (size_t i = lane->count; i-- > 0 && lane->since_ns < to_ns;) {
        const struct kp_node *call = &d->tree->nodes[lane->open[i]];
        const int64_t end_ns = call->end_ns < to_ns ? call->end_ns : to_ns;
        if (!call->is_python || call->removed || end_ns <= lane->since_ns) continue;
        d->give_marker(d->context, marker, lane->open[i], lane->since_ns, end_ns);
        lane->since_ns = end_ns;
    }
}

/* Gives the time up to `to_ns` to a node. A folded node's is its parent's. */
static void time_give(struct dividing *d, struct self_lane *lane, uint32_t node, int64_t to_ns)
{
    if (to_ns <= lane->since_ns) return;
    if (d->tree->nodes[node].removed) node = (uint32_t)d->tree->nodes[node].parent;
    if (d->give_marker && kp_node_is_step(d->tree, &d->tree->nodes[node])) marker_give(d, lane, node, to_ns);
    if (to_ns <= lane->since_ns) return;
    d->give(d->context, node, lane->since_ns, to_ns);
    lane->since_ns = to_ns;
}

/* Ends what is over at `at_ns`, as far as it lies on top. */
static void lane_advance(struct dividing *d, struct self_lane *lane, int64_t at_ns)
{
    for (; lane->count; lane->count--) {
        const uint32_t top = lane->open[lane->count - 1];
        if (d->tree->nodes[top].end_ns > at_ns) break;
        time_give(d, lane, top, d->tree->nodes[top].end_ns);
    }
    if (lane->count) time_give(d, lane, lane->open[lane->count - 1], at_ns);
    else lane->since_ns = at_ns;
}

static void node_open(struct dividing *d, uint32_t i)
{
    const struct kp_node *node = &d->tree->nodes[i];
    if (node->on_device || node->is_async) return;
    struct self_lane *lane = lane_get(d, &d->tree->trace->events[node->event]);
    lane_advance(d, lane, node->start_ns);
    *KP_KINETO_NEXT(lane->open, lane->count, lane->capacity) = i;
}

void kp_selftime_each_of(const struct kp_tree *tree, const uint32_t *nodes, size_t count, kp_selftime_fn give,
                         kp_selftime_marker_fn give_marker, void *context)
{
    struct dividing d = {.tree = tree, .give = give, .give_marker = give_marker, .context = context};
    for (size_t i = 0; i < count; i++) node_open(&d, nodes ? nodes[i] : (uint32_t)i);
    struct self_lane *const lanes = d.threads.rows;
    for (size_t i = 0; i < d.threads.count; i++) {
        lane_advance(&d, &lanes[i], INT64_MAX);
        free(lanes[i].open);
    }
    kp_keyindex_fini(&d.threads);
}

void kp_selftime_each_marked(const struct kp_tree *tree, kp_selftime_fn give, kp_selftime_marker_fn give_marker,
                             void *context)
{
    kp_selftime_each_of(tree, NULL, tree->count, give, give_marker, context);
}

void kp_selftime_each(const struct kp_tree *tree, kp_selftime_fn give, void *context)
{
    kp_selftime_each_marked(tree, give, NULL, context);
}

struct call_giving {
    kp_selftime_fn give;
    void *context;
};

static void piece_give(void *context, size_t node, int64_t from_ns, int64_t to_ns)
{
    const struct call_giving *const g = context;
    g->give(g->context, node, from_ns, to_ns);
}

static void call_give(void *context, size_t marker, size_t call, int64_t from_ns, int64_t to_ns)
{
    (void)marker;
    piece_give(context, call, from_ns, to_ns);
}

void kp_selftime_each_call(const struct kp_tree *tree, kp_selftime_fn give, void *context)
{
    kp_selftime_each_marked(tree, piece_give, call_give, &(struct call_giving){give, context});
}

struct summing {
    const struct kp_spans *inside;
    int64_t *out;
};

static void time_sum(void *context, size_t node, int64_t from_ns, int64_t to_ns)
{
    const struct summing *s = context;
    s->out[node] += kp_spans_between(s->inside, from_ns, to_ns);
}

void kp_selftime(const struct kp_tree *tree, const struct kp_spans *inside, int64_t *out)
{
    struct summing s = {inside, out};
    if (tree->count) memset(out, 0, tree->count * sizeof *out);
    kp_selftime_each(tree, time_sum, &s);
}
