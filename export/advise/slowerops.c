// SPDX-License-Identifier: Apache-2.0
/*
 * slowerops.c - how much longer a step lasts by ops that run as often as in the other steps, but slower
 *
 * Calls are of one kind by name and shapes; where no shapes were recorded, by name and the program's line. What a
 * library's op does itself counts: a function of the program that an op calls may do something else each time.
 */
#include "export/advise/longsteps.h"

#include <stdlib.h>

#define CALLS_SLACK 0.5 /* more than usual in the mean */

static bool is_library_op(const struct kp_costrules *x, size_t i)
{
    return kp_costrules_is_op(x, i) && strncmp(kp_costrules_name(x, (int32_t)i), "aten::", 6) == 0 &&
           !kp_spans_has(&x->evaluated, x->tree->nodes[i].start_ns);
}

static double self_ns(const struct kp_tree *tree, size_t i)
{
    int64_t ns = tree->nodes[i].end_ns - tree->nodes[i].start_ns;
    for (int32_t k = tree->nodes[i].first_child; k >= 0; k = tree->nodes[k].next_sibling)
        ns -= tree->nodes[k].end_ns - tree->nodes[k].start_ns;
    return ns > 0 ? (double)ns : 0;
}

static struct kp_opcalls *calls_of(struct kp_opcallset *set, struct kp_slowerops *s, size_t i)
{
    const struct kp_tree *tree = s->x->tree;
    const struct kp_kineto_event *e = kp_tree_event(tree, i);
    const uint32_t stack = (uint32_t)(kp_costplace_key(tree, (int32_t)i) >> 32);
    const uint32_t more = e->shapes ? e->shapes : stack ? kp_ownline_of(&s->lines, tree->trace, stack) : 0;
    const size_t had = set->keys.count, at = kp_keyindex_get(&set->keys, (uint64_t)e->name << 32 | more);
    if (at == had) {
        set->of = kp_kineto_grow(set->of, &set->capacity, had + 1, sizeof *set->of);
        set->of[at] = (struct kp_opcalls){.has_shapes = e->shapes != 0, .node = (int32_t)i};
    }
    return &set->of[at];
}

static void step_add(struct kp_opcallset *set, struct kp_slowerops *s, size_t number)
{
    const struct kp_costrules *const x = s->x;
    const struct kp_step *const step = &x->chosen->steps[number];
    for (size_t i = kp_longsteps_node(x->tree, step->start_ns); i < x->tree->count; i++) {
        if (x->tree->nodes[i].start_ns >= step->end_ns) break;
        if (!is_library_op(x, i)) continue;
        struct kp_opcalls *const c = calls_of(set, s, i);
        c->count++;
        c->ns += self_ns(x->tree, i);
    }
}

void kp_slowerops_open(struct kp_slowerops *out, const struct kp_costrules *x, const double *longer)
{
    *out = (struct kp_slowerops){.x = x};
    for (size_t i = 0; i < x->chosen->step_count; i++) {
        if (longer[i] > 0) continue;
        out->steps++;
        step_add(&out->usual, out, i);
    }
}

static void set_fini(struct kp_opcallset *set)
{
    kp_keyindex_fini(&set->keys);
    free(set->of);
    *set = (struct kp_opcallset){0};
}

struct kp_slower kp_slowerops_of(struct kp_slowerops *s, size_t step)
{
    struct kp_opcallset own = {0};
    struct kp_slower out = {.node = -1};
    double most = 0;
    step_add(&own, s, step);
    for (size_t i = 0; i < own.keys.count && s->steps; i++) {
        const struct kp_opcalls *const c = &own.of[i], *const u = calls_of(&s->usual, s, (size_t)c->node);
        if (!u->count || (double)c->count > (double)u->count / (double)s->steps + CALLS_SLACK) continue;
        const double more = c->ns - (double)c->count * u->ns / (double)u->count;
        out.ns += more;
        if (c->has_shapes) out.shaped_ns += more;
        if (more <= most) continue;
        most = more;
        out.node = c->node;
    }
    set_fini(&own);
    return out;
}

void kp_slowerops_fini(struct kp_slowerops *s)
{
    set_fini(&s->usual);
    kp_ownlines_fini(&s->lines);
}
