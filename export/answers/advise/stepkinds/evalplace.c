// SPDX-License-Identifier: Apache-2.0
/*
 * evalplace.c - the line from which a training evaluates
 *
 * Stacks of an evaluation and of the training share their outermost frames. The first frame of the program in which the
 * training spends next to nothing is the line that calls the evaluation, whatever of the model's code both run.
 */
#include "export/answers/advise/stepkinds/evalsteps.h"

#include "export/read/frames/framename.h"

#define MOST 0.5    /* of the ops' time in evaluations: their line has that much */
#define LITTLE 0.05 /* of the training's time: what is at the border of an evaluation, and may be of either */

struct evalplace_row {
    int64_t ns, trained_ns; /* in evaluations; in the training */
    int64_t called_ns;      /* of ns: no frame outside of it is the evaluation's own */
};
struct evalplace {
    struct kp_kineto *trace;
    struct kp_keyindex stacks, frames; /* by string id; rows: struct evalplace_row */
    int64_t ns, trained_ns;
    bool is_named; /* a frame that the training has not is named as an evaluation */
};

static struct evalplace_row *place_at(struct kp_keyindex *index, uint32_t id)
{
    return kp_keyindex_row(index, id, &(struct evalplace_row){0}, sizeof(struct evalplace_row));
}

static bool is_own(const struct evalplace *p, const struct evalplace_row *of)
{
    return of->ns > of->trained_ns && (double)of->trained_ns <= LITTLE * (double)p->trained_ns;
}

/* Looks at ops that no other op calls. */
static void stacks_take(struct evalplace *p, const struct kp_costrules *x, const struct kp_spans *times)
{
    const struct kp_tree *const tree = x->tree;
    for (size_t i = 0; i < tree->count; i++) {
        const struct kp_node *const n = &tree->nodes[i];
        const uint32_t stack = kp_tree_event(tree, i)->stack;
        if (!stack || !kp_costrules_is_op(x, i) || !kp_spans_has(&x->chosen->in_steps, n->start_ns)) continue;
        if (n->parent >= 0 && kp_costrules_is_op(x, (size_t)n->parent)) continue;
        struct evalplace_row *const place = place_at(&p->stacks, stack);
        const bool is_in = kp_spans_has(times, n->start_ns);
        *(is_in ? &place->ns : &place->trained_ns) += n->end_ns - n->start_ns;
        *(is_in ? &p->ns : &p->trained_ns) += n->end_ns - n->start_ns;
    }
}

/* The frame of the program that ends at *end, or the next one outside of it that does; moves *end. 0: there is none. */
static uint32_t frame_next(const struct evalplace *p, const char *stack, const char **end)
{
    while (*end > stack) {
        const char *at = *end;
        while (at > stack && at[-1] != ';') at--;
        const uint32_t id = kp_strings_put(p->trace->strings, at, (size_t)(*end - at));
        *end = at > stack ? at - 1 : stack;
        if (!kp_ownline_is_installed(p->trace, kp_kineto_text(p->trace, id))) return id;
    }
    return 0;
}

/* Adds the times of a stack to each of its frames, or to the outermost one that is the evaluation's own. That one and
 * those inside of it may be named as an evaluation. */
static void stack_walk(struct evalplace *p, uint32_t id, const struct evalplace_row *of, bool is_adding)
{
    const char *const stack = kp_kineto_text(p->trace, id), *end = stack + strlen(stack);
    if (end > stack && end[-1] == ';') end--;
    bool is_called = false;
    for (uint32_t frame; (frame = frame_next(p, stack, &end));) {
        struct evalplace_row *const place = place_at(&p->frames, frame);
        place->ns += is_adding ? of->ns : 0;
        place->trained_ns += is_adding ? of->trained_ns : 0;
        if (is_adding || !is_own(p, place)) continue;
        place->called_ns += is_called ? 0 : of->ns;
        is_called = true;
        p->is_named |= of->ns && kp_evalkind_is_name(kp_framename_part(kp_kineto_text(p->trace, frame)));
    }
}

const char *kp_evalplace_text(const struct kp_costrules *x, const struct kp_spans *times, bool *is_named)
{
    struct evalplace p = {.trace = x->tree->trace};
    const struct evalplace_row *best = NULL, *rows;
    uint32_t line = 0;
    stacks_take(&p, x, times);
    rows = p.stacks.rows;
    for (int is_adding = 1; is_adding >= 0; is_adding--)
        for (size_t i = 0; i < p.stacks.count; i++) stack_walk(&p, (uint32_t)p.stacks.keys[i], &rows[i], is_adding);
    rows = p.frames.rows;
    for (size_t i = 0; i < p.frames.count; i++)
        if (!best || rows[i].called_ns > best->called_ns) best = &rows[i];
    if (best && (double)best->called_ns > MOST * (double)p.ns)
        line = kp_ownline_of(p.trace, (uint32_t)p.frames.keys[best - rows]);
    if (is_named) *is_named = p.is_named;
    const char *const text = line ? KP_TEXT(", at %s", kp_kineto_text(p.trace, line)) : "";
    kp_keyindex_fini(&p.stacks);
    kp_keyindex_fini(&p.frames);
    return text;
}
