// SPDX-License-Identifier: Apache-2.0
/*
 * evalpieces.c - the steps of a training that hold an evaluation, of a trace that is read in pieces
 *
 * An evaluation of many passes is a piece of its own, beside which no other step lies. So each piece is counted, and
 * the steps are judged when all have come. No op is kept by then: an evaluation lasts about what its step does beyond
 * the median of the others. An evaluation outside of the steps is not counted. A trace that is not too large is read as
 * a whole then.
 */
#include "export/answers/advise/stepkinds/evalsteps.h"

#include <stdlib.h>

#include "collector/base/kp_hash.h"
#include "collector/base/kp_order.h"
#include "export/answers/advise/stepkinds/steppieces.h"

enum { NAMES_KEPT = 64 }; /* those that are met first; a model has about so many */

struct counted_name {
    uint64_t key; /* of its text: each piece has strings of its own */
    int64_t ns;
    bool is_layer;
    uint32_t *with, *without; /* by step */
    size_t capacity, without_capacity;
};
struct kp_evalpieces {
    struct counted_name names[NAMES_KEPT];
    size_t count, steps;
};

struct kp_evalpieces *kp_evalpieces_open(void) { return calloc(1, sizeof(struct kp_evalpieces)); }

void kp_evalpieces_close(struct kp_evalpieces *p)
{
    if (!p) return;
    for (size_t n = 0; n < p->count; n++) {
        free(p->names[n].with);
        free(p->names[n].without);
    }
    free(p);
}

static uint32_t *counts_grow(uint32_t *counts, size_t *capacity, size_t from, size_t to)
{
    counts = kp_kineto_grow(counts, capacity, to + 1, sizeof *counts);
    memset(counts + from, 0, (to + 1 - from) * sizeof *counts);
    return counts;
}

static void name_grow(struct counted_name *n, size_t from, size_t to)
{
    n->with = counts_grow(n->with, &n->capacity, from, to);
    n->without = counts_grow(n->without, &n->without_capacity, from, to);
}

/* NULL: it is not kept. */
static struct counted_name *name_of(struct kp_evalpieces *p, const char *name, bool is_forward, size_t steps)
{
    const uint64_t key = kp_hash64(name, strlen(name));
    for (size_t i = 0; i < p->count; i++)
        if (p->names[i].key == key) return &p->names[i];
    if (!is_forward || p->count == NAMES_KEPT) return NULL;
    struct counted_name *const n = &p->names[p->count++];
    *n = (struct counted_name){.key = key, .is_layer = kp_evalsteps_is_layer(name)};
    name_grow(n, 0, steps);
    return n;
}

void kp_evalpieces_add(void *pieces, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct kp_evalpieces *const p = pieces;
    struct kp_advice advice = {.steps = chosen->step_count};
    struct kp_costrules x = {.tree = tree, .chosen = chosen, .out = &advice};
    const size_t before = p->steps, all = before + chosen->step_count;
    kp_costrules_open(&x);
    for (size_t n = 0; n < p->count; n++) name_grow(&p->names[n], before, all);
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_kineto_event *const e = kp_tree_event(tree, i);
        const size_t step = kp_costrules_step(&x, i);
        if (step == chosen->step_count || x.loaders[i] >= 0 || !kp_costrules_is_op(&x, i)) continue;
        const bool is_forward = kp_evalsteps_is_forward(e);
        struct counted_name *const n = name_of(p, kp_kineto_text(tree->trace, e->name), is_forward, all);
        if (!n) continue;
        if (is_forward) n->ns += kp_costrules_ns(&x, i);
        ++*(kp_evalsteps_has_gradients(e) ? &n->with[before + step] : &n->without[before + step]);
    }
    p->steps = all;
    kp_costrules_fini(&x);
}

KP_ORDER_DOWN(longest_first, struct counted_name, ns)

/* Each step's passes. */
static struct kp_passes *passes_find(const struct kp_evalpieces *p)
{
    struct counted_name names[NAMES_KEPT];
    struct kp_forward_names most = {.steps = p->steps,
                                    .count = p->count < KP_FORWARD_NAMES_MOST ? p->count : KP_FORWARD_NAMES_MOST};
    struct kp_passes *const of = kp_kineto_room(p->steps + 1, sizeof *of);
    memcpy(names, p->names, p->count * sizeof *names);
    if (p->count) qsort(names, p->count, sizeof *names, longest_first);
    for (size_t n = 0; n < most.count; n++)
        most.of[n] = (struct kp_forward_name){.ns = names[n].ns,
                                              .is_layer = names[n].is_layer,
                                              .a_step = kp_evalsteps_median(names[n].with, p->steps),
                                              .usual = kp_evalsteps_usual(names[n].without, p->steps),
                                              .calls = names[n].without};
    for (size_t i = 0; i < p->steps; i++)
        of[i] = (struct kp_passes){.with = most.count > 0 && most.of[0].a_step > 0,
                                   .without = kp_evalsteps_passes(&most, i)};
    return of;
}

/* How much longer than the median of the others the steps with an evaluation last, together. */
static double longer_ns(const struct kp_chosen *steps, const struct kp_passes *of, size_t *found)
{
    struct kp_sample lengths = {0};
    double ns = 0;
    *found = 0;
    for (size_t i = 0; i < steps->step_count; i++) {
        const double length = (double)(steps->steps[i].end_ns - steps->steps[i].start_ns);
        if (!of[i].without) kp_sample_add(&lengths, length);
        else ns += length, ++*found;
    }
    ns -= (double)*found * kp_sample_end(&lengths, 0.5);
    return ns > 0 ? ns : 0;
}

bool kp_evalpieces_has(const struct kp_evalpieces *p)
{
    if (!p->steps) return false;
    struct kp_passes *const of = passes_find(p);
    const bool has = kp_evalsteps_are(of, p->steps, 1);
    free(of);
    return has;
}

const char *kp_evalpieces_text(const struct kp_evalpieces *p, struct kp_kineto *trace, const struct kp_chosen *steps)
{
    const struct kp_tree tree = {.trace = trace};
    const struct kp_costrules x = {.tree = &tree, .chosen = steps};
    const char *text = NULL;
    size_t found;
    if (p->steps != steps->step_count || !p->steps) return NULL;
    struct kp_passes *const of = passes_find(p);
    if (kp_evalsteps_are(of, p->steps, 1)) {
        const double ns = longer_ns(steps, of, &found);
        const char *const share = kp_costrules_text(&x, KP_EVALSTEPS_SHARE, 100 * ns / kp_chosen_steps_ns(steps));
        text = kp_evalsteps_text(&x, found, kp_evalkind_unknown(), "some ", ns, share, kp_evalsteps_numbers(&x, of, 1));
    }
    free(of);
    return text;
}
