// SPDX-License-Identifier: Apache-2.0
/*
 * wastedrules.c - work that is done again for each piece or row, as the shapes of its inputs tell
 *
 * A tensor that torch.cat grows by a piece at a time is copied whole each time, as is a buffer that gets a few rows a
 * step. A generation without its cache computes all tokens again for each.
 */
#include "export/answers/advise/opsrules/opsrules.h"

#include <stdlib.h>

#include "export/answers/advise/stepkinds/longsteps.h"
#include "export/read/kineto/pagefaults.h"
#include "export/show/shapetext.h"

#define OLD_SHARE 0.9 /* of the elements that torch.cat returns: they lie in one of its inputs */

enum { TENSORS_MOST = 64, GROWN_LEAST = 8, AGAIN_LEAST = 8, AGAIN_PART = 4, NEAR_MOST = 12, PAGE_ELEMENTS = 1024 };

static const struct kp_cost_rule growing = {
    0.05, 0, "cat-in-a-loop", "torch.cat appends to a tensor again and again, and copies all of it each time",
    "Keep the pieces in a list, and join them once after the loop: torch.cat(pieces) or torch.stack(pieces)."};
static const struct kp_cost_rule old_data = {
    0.05, 0, "growing-cat", "",
    "Allocate the buffer once, and write into it: buffer[at:at + n] = new, with at = (at + n) % size where the oldest "
    "may go. Or keep the pieces in a list, and join them when they are read. For keys and values of a generation: "
    "model.generate(..., cache_implementation=\"static\")."};

/* How many elements each tensor of an input has. */
static size_t tensors_read(const struct kp_costrules *x, size_t node, double of[TENSORS_MOST])
{
    const uint32_t shapes = kp_kineto_shapes(kp_tree_event(x->tree, node));
    return shapes ? kp_shapetext_elements(kp_kineto_text(x->tree->trace, shapes), 0, of, TENSORS_MOST) : 0;
}

static bool is_judged(const struct kp_costrules *x, size_t node, const char *name)
{
    return kp_costrules_is_op(x, node) && strcmp(kp_costrules_name(x, (int32_t)node), name) == 0 &&
           kp_costrules_in_steps(x, node);
}

/* ---- torch.cat in a loop, and of old data ---- */

struct grown { /* by place: its last torch.cat */
    int32_t node;
    double most, elements; /* of its largest input; of all */
    bool is_old;           /* the largest input is what a step before made, grown since */
};
struct growth {
    struct kp_costrules *x;
    struct kp_keyindex places; /* rows: struct grown */
    size_t count, old_count;
    struct kp_cost cost, old;
    double old_elements, all_elements; /* that torch.cat copies of old data; and in all, then */
    double bare_ns;                    /* without shapes */
};

/* Is the result cut to the size that the largest input had, or was that a cut of one as large? */
static bool is_cut(const struct kp_costrules *x, size_t node, double elements)
{
    const int64_t tid = kp_tree_event(x->tree, node)->tid;
    for (size_t i = node > NEAR_MOST ? node - NEAR_MOST : 0; i < x->tree->count && i <= node + NEAR_MOST; i++) {
        double of[TENSORS_MOST];
        if (kp_tree_event(x->tree, i)->tid == tid &&
            KP_NAME_IS(kp_costrules_name(x, (int32_t)i), "aten::slice", "aten::narrow") &&
            tensors_read(x, i, of) == 1 && of[0] == elements)
            return true;
    }
    return false;
}

/* One place may make a tensor for each layer of a model: those behind the first are as that one. */
static bool is_grown(const struct growth *g, const struct grown *now, const struct grown *last)
{
    const struct kp_chosen *const c = g->x->chosen;
    const struct kp_node *const nodes = g->x->tree->nodes;
    const size_t step = kp_step_after(c->steps, c->step_count, nodes[now->node].start_ns);
    const bool is_before = nodes[last->node].start_ns < c->steps[step].start_ns;
    if (is_before) return now->most == last->elements;
    return last->is_old && now->most == last->most && now->elements == last->elements;
}

static void old_take(struct growth *g, struct grown *now, const struct grown *last)
{
    if (now->most < OLD_SHARE * now->elements) return;
    now->is_old = last->node >= 0 && is_grown(g, now, last);
    if (!now->is_old && !is_cut(g->x, (size_t)now->node, now->elements)) return;
    kp_cost_add_node(&g->old, (size_t)now->node, 1);
    g->old_elements += now->most;
    g->all_elements += now->elements;
    g->old_count++;
}

static void cat_take(struct growth *g, size_t node)
{
    double of[TENSORS_MOST];
    struct grown now = {.node = (int32_t)node};
    const size_t tensors = tensors_read(g->x, node, of);
    for (size_t i = 0; i < tensors; i++) now.elements += of[i], now.most = of[i] > now.most ? of[i] : now.most;
    struct grown *const last = kp_keyindex_row(&g->places, kp_costplace_key(g->x->tree, (int32_t)node),
                                               &(struct grown){.node = -1}, sizeof *last);
    if (tensors > 1) old_take(g, &now, last);
    if (tensors > 1 && last->node >= 0 && now.most == last->elements) {
        kp_cost_add_forward(&g->cost, (size_t)last->node);
        g->count++;
    }
    if (!kp_kineto_shapes(kp_tree_event(g->x->tree, node))) g->bare_ns += (double)kp_costrules_ns(g->x, node);
    *last = now;
}

void kp_rules_faults_drop(struct kp_costrules *x, double elements)
{
    struct kp_finding *const f = kp_costrules_find(x, KP_FINDING_FAULTS);
    struct kp_pagefaults faults;
    const double pages = elements / PAGE_ELEMENTS / (double)x->chosen->step_count;
    if (f && kp_pagefaults_of(x->tree->trace, &faults) && 2 * pages >= faults.minor) kp_finding_drop(x->out, f);
}

static void old_tell(struct growth *g)
{
    struct kp_costrules *const x = g->x;
    struct kp_cost_rule rule = old_data;
    rule.what = KP_TEXT(
        "torch.cat copies a buffer to add a little to it, %.1f times per step: %.1f %% of what it copies is old data",
        (double)g->old_count / (double)x->chosen->step_count, 100 * g->old_elements / g->all_elements);
    if (kp_cost_tell(&g->old, &rule)) kp_rules_faults_drop(x, g->all_elements);
}

static void growing_judge(struct kp_costrules *x)
{
    struct growth g = {.x = x, .cost = kp_cost_open(x), .old = kp_cost_open(x)};
    for (size_t i = 0; i < x->tree->count; i++)
        if (is_judged(x, i, "aten::cat")) cat_take(&g, i);
    const bool is_loop = g.count >= GROWN_LEAST * x->chosen->step_count;
    kp_cost_add_backward(&g.cost);
    kp_cost_tell_if(&g.cost, &growing, is_loop);
    if (is_loop || !g.old_count) kp_cost_drop(&g.old);
    else old_tell(&g);
    if (g.bare_ns > 0 && g.bare_ns >= old_data.bound * x->out->step_ns * (double)x->chosen->step_count)
        kp_costrules_unjudged(x, "old data that torch.cat copies (kprof run --record-shapes)");
    kp_keyindex_fini(&g.places);
}

/* ---- a generation without its cache ---- */

static void again_judge(struct kp_costrules *x)
{
    long before = 0, least = 0, most = 0;
    size_t all = 0, again = 0;
    struct kp_costplaces places = {0};
    for (size_t i = 0; i < x->tree->count; i++) {
        const uint32_t shapes = kp_tree_event(x->tree, i)->shapes;
        if (!shapes || !is_judged(x, i, "aten::embedding")) continue;
        const long tokens = kp_prompt_tokens(kp_kineto_text(x->tree->trace, shapes));
        all++;
        if (tokens > 2 && tokens == before + 1) {
            again++;
            least = least && least < tokens ? least : before;
            most = tokens > most ? tokens : most;
            kp_costplaces_add(&places, x->tree, (int32_t)i, -1, 1);
        }
        before = tokens;
    }
    if (again >= AGAIN_LEAST && AGAIN_PART * again >= all) {
        struct kp_finding f = {.id = "tokens-again",
                               .change = "Keep the keys and values of the tokens before: model.generate(..., "
                                         "use_cache=True), or config.use_cache = True. Each step then computes one "
                                         "token.",
                               .is_critical = true,
                               .steps = x->out->steps};
        f.what = KP_TEXT("for each new token the model recomputes all tokens before it (%ld to %ld)", least, most);
        kp_costplaces_tell(&places, x->tree->trace, &f);
        kp_costrules_tell(x, &f);
    }
    kp_costplaces_fini(&places);
}

void kp_rules_wasted(struct kp_costrules *x)
{
    again_judge(x);
    if (!x->out->has_gpu) growing_judge(x);
}
