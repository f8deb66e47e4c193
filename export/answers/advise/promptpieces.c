// SPDX-License-Identifier: Apache-2.0
/*
 * promptpieces.c - the steps of a generation that take a prompt, of a trace that is read in pieces
 *
 * Without shapes the calls of one op tell. It is the one with most time in the first piece that has steps. Only its
 * calls are kept, and the steps are judged when all have come.
 */
#include "export/answers/advise/promptsteps.h"

#include <stdlib.h>

#include "collector/base/kp_hash.h"

struct op_call {
    uint32_t step;
    float ns;
};
struct kp_promptpieces {
    long *tokens;  /* by step */
    uint64_t *ops; /* by step, as in kp_prompt_ops */
    size_t steps, token_capacity, ops_capacity;
    uint64_t key;          /* of the op's name: each piece has strings of its own. 0: not found yet */
    struct op_call *calls; /* of that op */
    size_t count, capacity, embeddings;
    bool has_backward, has_shapes;
};

struct kp_promptpieces *kp_promptpieces_open(void) { return calloc(1, sizeof(struct kp_promptpieces)); }

void kp_promptpieces_close(struct kp_promptpieces *p)
{
    if (!p) return;
    free(p->tokens);
    free(p->ops);
    free(p->calls);
    free(p);
}

static uint64_t key_of(const char *name) { return kp_hash64(name, strlen(name)); }

static void ops_add(struct kp_promptpieces *p, const struct kp_costrules *x)
{
    const struct kp_chosen *const c = x->chosen;
    const struct kp_prompt_op op = kp_prompt_op_find(x);
    if (!p->key && op.name) p->key = key_of(kp_kineto_text(x->tree->trace, op.name));
    p->has_backward |= op.has_backward;
    p->embeddings += op.embeddings;
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *const node = &x->tree->nodes[i];
        const size_t step = kp_step_at(c->steps, c->step_count, node->start_ns);
        if (step == c->step_count || !kp_costrules_is_op(x, i)) continue;
        const uint64_t key = key_of(kp_costrules_name(x, (int32_t)i));
        p->ops[p->steps + step] += key;
        if (key != p->key) continue;
        *KP_KINETO_NEXT(p->calls, p->count, p->capacity) =
            (struct op_call){(uint32_t)(p->steps + step), (float)(node->end_ns - node->start_ns)};
    }
}

void kp_promptpieces_add(void *pieces, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    struct kp_promptpieces *const p = pieces;
    const struct kp_costrules x = {.tree = tree, .chosen = chosen};
    const size_t all = p->steps + chosen->step_count;
    p->tokens = kp_kineto_grow(p->tokens, &p->token_capacity, all + 1, sizeof *p->tokens);
    p->ops = kp_kineto_grow(p->ops, &p->ops_capacity, all + 1, sizeof *p->ops);
    memset(p->tokens + p->steps, 0, chosen->step_count * sizeof *p->tokens);
    memset(p->ops + p->steps, 0, chosen->step_count * sizeof *p->ops);
    p->has_shapes |= tree->trace->record_shapes != 0;
    if (p->has_shapes) kp_prompt_tokens_read(&x, p->tokens + p->steps);
    else if (!p->has_backward) ops_add(p, &x); /* a training takes no prompts */
    p->steps = all;
}

static void guess(struct kp_promptpieces *p)
{
    double *const lengths = kp_kineto_room(p->count + 1, sizeof *lengths);
    const size_t room = p->steps + 1;
    struct kp_prompt_ops by = {.ops = p->ops};
    by.calls = kp_kineto_zeros(room, sizeof *by.calls);
    by.longer = kp_kineto_zeros(room, sizeof *by.longer);
    for (size_t i = 0; i < p->count; i++) lengths[i] = (double)p->calls[i].ns;
    const double median = kp_quantile(lengths, p->count, 0.5);
    for (size_t i = 0; i < p->count; i++) {
        by.calls[p->calls[i].step]++;
        by.longer[p->calls[i].step] += (double)p->calls[i].ns > KP_PROMPT_LONG_TIMES * median;
    }
    kp_prompt_tokens_guess(&by, p->tokens, p->steps);
    free(by.calls);
    free(by.longer);
    free(lengths);
}

const char *kp_promptpieces_text(struct kp_promptpieces *p, struct kp_kineto *trace, const struct kp_chosen *steps)
{
    const struct kp_tree tree = {.trace = trace};
    const struct kp_costrules x = {.tree = &tree, .chosen = steps};
    if (p->steps != steps->step_count || !p->steps) return NULL;
    if (!p->has_shapes) {
        if (!p->count || p->has_backward || p->embeddings < p->steps) return NULL;
        guess(p);
    }
    return kp_prompts_text(&x, p->tokens, p->has_shapes);
}
