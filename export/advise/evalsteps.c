// SPDX-License-Identifier: Apache-2.0
/*
 * evalsteps.c - steps of a training in which the model is evaluated, too: these are longer, and not slow
 *
 * With Python's calls recorded, a call of a whole module is a forward pass. It has a backward where some op in it has
 * one. A step holds an evaluation where it has several passes without, which most steps have not: a teacher, or a
 * network that is judged in each step, is a part of the training.
 */
#include "export/advise/adviseparts.h"

#include <stdio.h>
#include <stdlib.h>

enum { PASSES_LEAST = 2 };

struct passes {
    size_t with, without;
    int64_t without_ns;
};

static bool is_module(const struct kp_costrules *x, int32_t node)
{
    return x->tree->nodes[node].is_python && strncmp(kp_costrules_name(x, node), "nn.Module: ", 11) == 0;
}

/* The outermost module around a node, or itself; -1: none. */
static int32_t root_of(const struct kp_costrules *x, int32_t node)
{
    int32_t root = -1;
    for (; node >= 0; node = x->tree->nodes[node].parent)
        if (is_module(x, node)) root = node;
    return root;
}

/* Marks the calls of whole modules of which some op has a backward. */
static bool *backwards_mark(const struct kp_costrules *x)
{
    size_t capacity = 0;
    bool *has = kp_kineto_grow(NULL, &capacity, x->tree->count + 1, sizeof *has);
    memset(has, 0, x->tree->count + 1);
    for (size_t i = 0; i < x->tree->count; i++) {
        const int32_t forward = x->tree->nodes[i].forward;
        const int32_t root = forward >= 0 ? root_of(x, forward) : -1;
        if (root >= 0) has[root] = true;
    }
    return has;
}

/* The name of the model: of the longest call that has a backward. A loss is a module, too. */
static uint32_t model_find(const struct kp_costrules *x, const bool *has)
{
    int64_t longest = -1;
    uint32_t model = 0;
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *node = &x->tree->nodes[i];
        if (!has[i] || node->end_ns - node->start_ns <= longest) continue;
        longest = node->end_ns - node->start_ns;
        model = node->name;
    }
    return model;
}

static struct passes *passes_count(const struct kp_costrules *x)
{
    const struct kp_chosen *c = x->chosen;
    size_t capacity = 0;
    bool *has = backwards_mark(x);
    const uint32_t model = model_find(x, has);
    struct passes *of = kp_kineto_grow(NULL, &capacity, c->step_count + 1, sizeof *of);
    memset(of, 0, (c->step_count + 1) * sizeof *of);
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *node = &x->tree->nodes[i];
        if (node->name != model || !is_module(x, (int32_t)i) || root_of(x, (int32_t)i) != (int32_t)i) continue;
        const size_t step = kp_step_at(c->steps, c->step_count, node->start_ns);
        if (step == c->step_count) continue;
        of[step].with += has[i];
        of[step].without += !has[i];
        if (!has[i]) of[step].without_ns += node->end_ns - node->start_ns;
    }
    free(has);
    return of;
}

/* "step 10 holds 12", "steps 10, 20 and 3 more hold 12 to 14": which, and how many passes. */
static const char *steps_text(const struct kp_costrules *x, const struct passes *of)
{
    size_t capacity = 0, found = 0, least = SIZE_MAX, most = 0;
    size_t *at = kp_kineto_grow(NULL, &capacity, x->chosen->step_count + 1, sizeof *at);
    for (size_t i = 0; i < x->chosen->step_count; i++) {
        if (of[i].without < PASSES_LEAST) continue;
        if (of[i].without < least) least = of[i].without;
        if (of[i].without > most) most = of[i].without;
        at[found++] = i;
    }
    const char *numbers = kp_costrules_numbers(x, at, found);
    const char *to = most > least ? kp_costrules_text(x, " to %zu", most) : "";
    free(at);
    return kp_costrules_text(x, "%s hold%s %zu%s", numbers, found == 1 ? "s" : "", least, to);
}

void kp_evalsteps_tell(const struct kp_costrules *x)
{
    const size_t steps = x->chosen->step_count;
    struct passes *of = passes_count(x);
    size_t found = 0, trains = 0;
    int64_t ns = 0;
    for (size_t i = 0; i < steps; i++) {
        const bool is_found = of[i].without >= PASSES_LEAST;
        found += is_found;
        trains += of[i].with && !of[i].without;
        if (is_found) ns += of[i].without_ns;
    }
    if (found && trains > 2 * found && trains + found > steps * 9 / 10)
        x->out->evaluated =
            kp_costrules_text(x,
                              "%s forward passes without backward, %.1f ms a step of these: an evaluation inside of "
                              "the training, and no slow step of it",
                              steps_text(x, of), (double)ns / 1e6 / (double)found);
    free(of);
}
