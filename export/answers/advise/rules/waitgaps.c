// SPDX-License-Identifier: Apache-2.0
/* waitgaps.c - time without an op of its own thread: the place in a step that has most, and what lies scattered */
#include "export/answers/advise/rules/waits.h"

#include <stdlib.h>

#include "collector/base/kp_order.h"

#define GAP_LEAST_NS 100000

struct waitgap_place {
    double ns;
    size_t large_steps, begin_steps;
    size_t last_step;     /* the last one with a large gap there, + 1 */
    int32_t node, before; /* of its longest gap */
    double most_ns;
};
struct waitgap_walk {
    const struct kp_costrules *x;
    struct kp_kindtimes *all; /* takes each gap, and nothing else is done; or NULL */
    double large_ns;
    struct kp_keyindex keys; /* kp_costplace_key; rows: struct waitgap_place */
    uint64_t key;            /* of the place that is charged; 0: all are looked at */
    double *of;
};

static void gap_take(struct waitgap_walk *g, size_t step, int32_t node, int32_t before, int64_t from_ns, int64_t to_ns)
{
    const uint64_t key = kp_costplace_key(g->x->tree, node);
    const double ns = (double)(to_ns - from_ns);
    if (g->all) kp_kindtimes_add(g->all, key, step, ns);
    if (g->all || ns < GAP_LEAST_NS) return;
    if (g->of) {
        g->of[step] += key == g->key ? ns : 0;
        return;
    }
    struct waitgap_place *const place = kp_keyindex_row(&g->keys, key, &(struct waitgap_place){0}, sizeof *place);
    place->ns += ns;
    const bool is_new = ns >= g->large_ns && place->last_step != step + 1;
    place->large_steps += is_new;
    place->begin_steps += is_new && from_ns == g->x->chosen->steps[step].start_ns;
    if (ns >= g->large_ns) place->last_step = step + 1;
    if (ns <= place->most_ns) return;
    place->most_ns = ns;
    place->node = node;
    place->before = before;
}

/* Gives the gaps before each outermost op, or loading, of the thread of the steps. */
static void gaps_walk(struct waitgap_walk *g)
{
    const struct kp_tree *const tree = g->x->tree;
    const struct kp_chosen *const c = g->x->chosen;
    int64_t until = INT64_MIN;
    int32_t before = -1;
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *const node = &tree->nodes[i];
        const bool is_loader = g->x->loaders[i] == (int32_t)i;
        if (!kp_costrules_is_of_thread(g->x, i) || node->end_ns <= until) continue;
        if (!is_loader && !kp_costrules_is_op(g->x, i)) continue;
        for (size_t s = until == INT64_MIN ? c->step_count : kp_step_after(c->steps, c->step_count, until);
             s < c->step_count && c->steps[s].start_ns < node->start_ns; s++) {
            const int64_t from = until > c->steps[s].start_ns ? until : c->steps[s].start_ns,
                          to = node->start_ns < c->steps[s].end_ns ? node->start_ns : c->steps[s].end_ns;
            if (to >= from) gap_take(g, s, (int32_t)i, before, from, to);
        }
        until = node->end_ns;
        before = (int32_t)i;
    }
}

void kp_waitgaps_find(struct kp_waitgaps *out, const struct kp_costrules *x, double large_ns)
{
    struct waitgap_walk g = {.x = x, .large_ns = large_ns};
    *out = (struct kp_waitgaps){.node = -1, .of = kp_kineto_zeros(x->out->steps + 1, sizeof *out->of)};
    gaps_walk(&g);
    const struct waitgap_place *const of = g.keys.rows;
    size_t most = 0;
    for (size_t i = 1; i < g.keys.count; i++)
        if (of[i].ns > of[most].ns) most = i;
    if (g.keys.count) {
        out->most_ns = of[most].ns / (double)x->out->steps;
        out->large_steps = of[most].large_steps;
        out->begin_steps = of[most].begin_steps;
        g.key = g.keys.keys[most];
        out->node = of[most].node;
        kp_costplaces_add(&out->places, x->tree, of[most].node, of[most].before, (int64_t)of[most].ns);
        g.of = out->of;
        gaps_walk(&g);
    }
    kp_keyindex_fini(&g.keys);
}

void kp_waitgaps_fini(struct kp_waitgaps *g)
{
    kp_costplaces_fini(&g->places);
    free(g->of);
}

/* ---- what lies scattered ---- */

double kp_waitgaps_scattered(const struct kp_costrules *x)
{
    struct kp_kindtimes all = {0};
    struct waitgap_walk g = {.x = x, .all = &all};
    double more = 0, most = 0, usual = 0;
    if (!x->has_thread) return 0;
    gaps_walk(&g);
    kp_kindtimes_sort(&all);
    for (size_t i = 0, end; i < all.count; i = end) {
        double of_place = 0;
        end = kp_kindtimes_end(&all, i);
        const double quick = kp_kindtimes_quickest(all.of + i, end - i);
        for (size_t k = i; k < end; k++) of_place += all.of[k].ns > quick ? all.of[k].ns - quick : 0;
        usual += quick * (double)(end - i);
        more += of_place;
        if (of_place > most) most = of_place;
    }
    kp_kindtimes_fini(&all);
    const double steps = (double)x->out->steps, no_core = 1e3 * kp_costrules_fact(x, "kprof.core_waited_us");
    more -= no_core * usual / (x->out->step_ns * steps); /* a gap has its part of these waits */
    return 2 * most > more ? 0 : more / steps;
}
