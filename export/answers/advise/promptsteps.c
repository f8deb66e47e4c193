// SPDX-License-Identifier: Apache-2.0
/*
 * promptsteps.c - steps of a generation that take a prompt: they are longer than those of a token, and not slow
 *
 * The first embedding of a step says how many tokens it takes, where shapes were recorded: its second input is the
 * batch, [sequences, tokens]. With a cache each step takes one, but for those that begin with a prompt.
 *
 * Without shapes the ops tell: more rows make each call of the op with most time longer, and a wait for a core makes
 * one or two longer. So a step is of a prompt where nearly all of as many calls as usual last far longer than the
 * median call. That is said of steps of a model without a backward alone, which begin with an embedding each.
 *
 * A busy machine hides some of them, and makes steps of a token as long. Where some that are found run other ops than
 * the usual step, a step is of a prompt if it runs what most of those do: generate() prepares each.
 */
#include "export/answers/advise/promptsteps.h"

#include <stdio.h>
#include <stdlib.h>

#include "collector/base/kp_hash.h"

long kp_prompt_tokens(const char *shapes)
{
    long sequences, tokens;
    int end = 0;
    const char *const second = shapes ? strstr(shapes, "], [") : NULL;
    if (!second || sscanf(second, "], [%ld, %ld]%n", &sequences, &tokens, &end) != 2 || !end) return 0;
    return tokens > 0 ? tokens : 0;
}

void kp_prompt_tokens_read(const struct kp_costrules *x, long *tokens)
{
    const struct kp_chosen *c = x->chosen;
    const struct kp_kineto *trace = x->tree->trace;
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *node = &x->tree->nodes[i];
        const uint32_t shapes = kp_tree_event(x->tree, i)->shapes;
        if (!shapes || strcmp(kp_costrules_name(x, (int32_t)i), "aten::embedding") != 0) continue;
        const size_t step = kp_step_at(c->steps, c->step_count, node->start_ns);
        if (step == c->step_count || tokens[step]) continue;
        tokens[step] = kp_prompt_tokens(kp_kineto_text(trace, shapes));
    }
}

/* ---- without shapes ---- */

#define LONG_SHARE 0.8    /* of a step's calls */
#define USUAL_CALLS 0.2   /* so far from the median of the steps: as many calls as usual */
enum { CALLS_LEAST = 4 }; /* a step: fewer may all be hit by one wait */

struct kp_prompt_op kp_prompt_op_find(const struct kp_costrules *x)
{
    const struct kp_chosen *c = x->chosen;
    struct kp_keyindex keys = {0};
    struct kp_prompt_op most = {.ns = 0};
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *node = &x->tree->nodes[i];
        if (!kp_costrules_is_op(x, i) || kp_step_at(c->steps, c->step_count, node->start_ns) == c->step_count) continue;
        const uint32_t name = kp_tree_event(x->tree, i)->name;
        struct kp_prompt_op *const op = kp_keyindex_row(&keys, name, &(struct kp_prompt_op){.name = name}, sizeof *op);
        op->ns += node->end_ns - node->start_ns;
        op->calls++;
        most.has_backward |= kp_tree_event(x->tree, i)->fwd_tid != 0;
        most.embeddings += strcmp(kp_costrules_name(x, (int32_t)i), "aten::embedding") == 0;
    }
    const struct kp_prompt_op *const all = keys.rows;
    for (size_t i = 0; i < keys.count; i++)
        if (all[i].calls >= CALLS_LEAST * c->step_count && all[i].ns > most.ns)
            most.name = all[i].name, most.ns = all[i].ns, most.calls = all[i].calls;
    kp_keyindex_fini(&keys);
    return most;
}

/* Counts this op's calls of each step, and those that last far longer than the median call. */
static void calls_count(const struct kp_costrules *x, const struct kp_prompt_op *op, double *calls, double *longer)
{
    const struct kp_chosen *c = x->chosen;
    double *lengths = kp_kineto_room(op->calls + 1, sizeof *lengths), median = 0;
    for (int pass = 0; pass < 2; pass++) {
        size_t n = 0;
        for (size_t i = 0; i < x->tree->count; i++) {
            const struct kp_node *node = &x->tree->nodes[i];
            if (kp_tree_event(x->tree, i)->name != op->name || !kp_costrules_is_op(x, i)) continue;
            const size_t step = kp_step_at(c->steps, c->step_count, node->start_ns);
            const double ns = (double)(node->end_ns - node->start_ns);
            if (step == c->step_count) continue;
            if (!pass) lengths[n++] = ns;
            else calls[step]++, longer[step] += ns > KP_PROMPT_LONG_TIMES * median;
        }
        if (!pass) median = kp_quantile(lengths, n, 0.5);
    }
    free(lengths);
}

static uint64_t *ops_of_steps(const struct kp_costrules *x)
{
    const struct kp_chosen *c = x->chosen;
    uint64_t *const ops = kp_kineto_zeros(c->step_count + 1, sizeof *ops);
    for (size_t i = 0; i < x->tree->count; i++) {
        if (!kp_costrules_is_op(x, i)) continue;
        const size_t step = kp_step_at(c->steps, c->step_count, x->tree->nodes[i].start_ns);
        const uint32_t name = kp_tree_event(x->tree, i)->name;
        if (step < c->step_count) ops[step] += kp_hash64(&name, sizeof name);
    }
    return ops;
}

/* What most of the steps run that have so many tokens (0: any), and run other than `but`. count: how many they are. */
static uint64_t most_common(const uint64_t *ops, const long *tokens, long of, uint64_t but, size_t steps, size_t *count)
{
    struct kp_keyindex keys = {0};
    size_t *const seen = kp_kineto_zeros(steps + 1, sizeof *seen);
    size_t most = 0;
    uint64_t found = 0;
    for (size_t i = 0; i < steps; i++) {
        if ((of && tokens[i] != of) || ops[i] == but) continue;
        const size_t at = kp_keyindex_get(&keys, ops[i]);
        if (++seen[at] > most) most = seen[at], found = ops[i];
    }
    kp_keyindex_fini(&keys);
    free(seen);
    *count = most;
    return found;
}

/* One of those that were found may run what the usual step does, and waited for a core. */
static void steps_spread(const uint64_t *ops, long *tokens, size_t steps)
{
    size_t usual_same, same, all = 0;
    const uint64_t usual = most_common(ops, tokens, 0, 0, steps, &usual_same);
    const uint64_t prompt = most_common(ops, tokens, 2, usual, steps, &same);
    for (size_t i = 0; i < steps; i++) all += same && ops[i] == prompt;
    for (size_t i = 0; i < steps && all > 1 && 2 * usual_same > steps; i++) tokens[i] = ops[i] == prompt ? 2 : 1;
}

void kp_prompt_tokens_guess(const struct kp_prompt_ops *by, long *tokens, size_t steps)
{
    double *sorted = kp_kineto_room(steps + 1, sizeof *sorted);
    memcpy(sorted, by->calls, steps * sizeof *sorted);
    const double usual = kp_quantile(sorted, steps, 0.5);
    for (size_t i = 0; i < steps; i++) {
        const bool is_usual = by->calls[i] > (1 - USUAL_CALLS) * usual && by->calls[i] < (1 + USUAL_CALLS) * usual;
        tokens[i] = is_usual && by->longer[i] >= LONG_SHARE * by->calls[i] ? 2 : 1;
    }
    steps_spread(by->ops, tokens, steps);
    free(sorted);
}

/* All stay 0 where the ops do not tell. */
static void steps_guess(const struct kp_costrules *x, long *tokens)
{
    const size_t steps = x->chosen->step_count;
    if (x->tree->trace->record_shapes) return;
    const struct kp_prompt_op op = kp_prompt_op_find(x);
    if (!op.name || op.has_backward || op.embeddings < steps) return;
    double *calls = kp_kineto_zeros(steps + 1, sizeof *calls), *longer = kp_kineto_zeros(steps + 1, sizeof *longer);
    calls_count(x, &op, calls, longer);
    uint64_t *const ops = ops_of_steps(x);
    kp_prompt_tokens_guess(&(struct kp_prompt_ops){calls, longer, ops}, tokens, steps);
    free(ops);
    free(calls);
    free(longer);
}

/* ---- the note ---- */

static double median_of(const struct kp_costrules *x, const long *tokens, bool is_prompt)
{
    size_t n = 0;
    double *lengths = kp_kineto_room(x->chosen->step_count + 1, sizeof *lengths);
    for (size_t i = 0; i < x->chosen->step_count; i++)
        if (tokens[i] && (tokens[i] > 1) == is_prompt)
            lengths[n++] = x->splits ? (double)x->splits[i].step_ns
                                     : (double)(x->chosen->steps[i].end_ns - x->chosen->steps[i].start_ns);
    const double median = kp_quantile(lengths, n, 0.5);
    free(lengths);
    return median;
}

static const char *numbers_text(const struct kp_costrules *x, const long *tokens)
{
    size_t count = 0;
    size_t *at = kp_kineto_room(x->chosen->step_count + 1, sizeof *at);
    for (size_t i = 0; i < x->chosen->step_count; i++)
        if (tokens[i] > 1) at[count++] = i;
    const char *text = kp_costrules_numbers_of(x, at, count);
    free(at);
    return text;
}

const char *kp_prompts_text(const struct kp_costrules *x, const long *tokens, bool is_known)
{
    const size_t steps = x->chosen->step_count;
    size_t prompts = 0, alone = 0;
    for (size_t i = 0; i < steps; i++) {
        prompts += tokens[i] > 1;
        alone += tokens[i] == 1;
    }
    if (!prompts || alone <= prompts || prompts + alone != steps) return NULL;
    return kp_costrules_text(x,
                             "%s process%s a prompt, %.3g ms (median of %zu); the other steps produce a token each, "
                             "%.3g ms (median of %zu)%s",
                             numbers_text(x, tokens), prompts == 1 ? "s" : "", median_of(x, tokens, true) / 1e6,
                             prompts, median_of(x, tokens, false) / 1e6, alone,
                             is_known ? "" : "; so say their ops; --record-shapes tells the tokens");
}

void kp_promptsteps_tell(const struct kp_costrules *x, bool *is_prompt)
{
    const size_t steps = x->chosen->step_count;
    size_t known = 0;
    long *tokens = kp_kineto_zeros(steps + 1, sizeof *tokens);
    kp_prompt_tokens_read(x, tokens);
    for (size_t i = 0; i < steps; i++) known += tokens[i] != 0;
    if (!known) steps_guess(x, tokens);
    const char *const text = kp_prompts_text(x, tokens, known > 0);
    for (size_t i = 0; i < steps; i++) is_prompt[i] = text && tokens[i] > 1;
    if (text) x->out->prompts = text;
    free(tokens);
}
