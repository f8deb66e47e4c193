// SPDX-License-Identifier: Apache-2.0
/*
 * evalplace.c - the line from which a training evaluates
 *
 * Stacks of an evaluation and of the training share their outermost frames. The first frame of the program that no
 * stack of the training has is the line that calls the evaluation, whatever of the model's code both run.
 */
#include "export/answers/advise/stepkinds/evalsteps.h"

#define MOST 0.5 /* of the ops' time in evaluations: their line has that much */

struct evalplace_row {
    int64_t ns;      /* in evaluations */
    bool is_trained; /* the training has it */
};
struct evalplace {
    struct kp_kineto *trace;
    struct kp_keyindex stacks, frames; /* by string id; rows: struct evalplace_row */
};

static struct evalplace_row *place_at(struct kp_keyindex *index, uint32_t id)
{
    return kp_keyindex_row(index, id, &(struct evalplace_row){0, false}, sizeof(struct evalplace_row));
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
        if (kp_spans_has(times, n->start_ns)) place->ns += n->end_ns - n->start_ns;
        else place->is_trained = true;
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

/* Marks all frames of a stack of the training, or charges the outermost one that the training has not. */
static void stack_walk(struct evalplace *p, uint32_t id, const struct evalplace_row *of, bool is_marking)
{
    const char *const stack = kp_kineto_text(p->trace, id), *end = stack + strlen(stack);
    if (end > stack && end[-1] == ';') end--;
    for (uint32_t frame; (frame = frame_next(p, stack, &end));) {
        struct evalplace_row *const place = place_at(&p->frames, frame);
        place->is_trained |= is_marking;
        if (is_marking || place->is_trained) continue;
        place->ns += of->ns;
        return;
    }
}

const char *kp_evalplace_text(const struct kp_costrules *x, const struct kp_spans *times)
{
    struct evalplace p = {.trace = x->tree->trace};
    const struct evalplace_row *best = NULL, *rows;
    uint32_t line = 0;
    int64_t all = 0;
    stacks_take(&p, x, times);
    rows = p.stacks.rows;
    for (int is_marking = 1; is_marking >= 0; is_marking--)
        for (size_t i = 0; i < p.stacks.count; i++)
            if (rows[i].is_trained == is_marking) stack_walk(&p, (uint32_t)p.stacks.keys[i], &rows[i], is_marking);
    for (size_t i = 0; i < p.stacks.count; i++) all += rows[i].ns;
    rows = p.frames.rows;
    for (size_t i = 0; i < p.frames.count; i++)
        if (!best || rows[i].ns > best->ns) best = &rows[i];
    if (best && (double)best->ns > MOST * (double)all)
        line = kp_ownline_of(p.trace, (uint32_t)p.frames.keys[best - rows]);
    const char *const text = line ? KP_TEXT(", at %s", kp_kineto_text(p.trace, line)) : "";
    kp_keyindex_fini(&p.stacks);
    kp_keyindex_fini(&p.frames);
    return text;
}
