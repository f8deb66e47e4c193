// SPDX-License-Identifier: Apache-2.0
/*
 * promptsteps.c - steps of a generation that take a prompt: they are longer than those of a token, and not slow
 *
 * The first embedding of a step says how many tokens it takes, where shapes were recorded: its second input is the
 * batch, [sequences, tokens]. With a cache each step takes one, but for those that begin with a prompt.
 */
#include "export/advise/longsteps.h"

#include <stdio.h>
#include <stdlib.h>

/* Reads the tokens of "[[50257, 128], [1, 12], [], [], []]": 12. 0: another form. */
static long tokens_of(const char *shapes)
{
    long sequences, tokens;
    int end = 0;
    const char *const second = shapes ? strstr(shapes, "], [") : NULL;
    if (!second || sscanf(second, "], [%ld, %ld]%n", &sequences, &tokens, &end) != 2 || !end) return 0;
    return tokens > 0 ? tokens : 0;
}

/* Notes the tokens of each step; 0: not known. */
static void steps_read(const struct kp_costrules *x, long *tokens)
{
    const struct kp_chosen *c = x->chosen;
    const struct kp_kineto *trace = x->tree->trace;
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *node = &x->tree->nodes[i];
        const uint32_t shapes = kp_tree_event(x->tree, i)->shapes;
        if (!shapes || strcmp(kp_costrules_name(x, (int32_t)i), "aten::embedding") != 0) continue;
        const size_t step = kp_step_at(c->steps, c->step_count, node->start_ns);
        if (step == c->step_count || tokens[step]) continue;
        tokens[step] = tokens_of(kp_kineto_text(trace, shapes));
    }
}

static double median_of(const struct kp_costrules *x, const long *tokens, bool is_prompt)
{
    size_t n = 0;
    double *lengths = kp_kineto_room(x->chosen->step_count + 1, sizeof *lengths);
    for (size_t i = 0; i < x->chosen->step_count; i++)
        if (tokens[i] && (tokens[i] > 1) == is_prompt) lengths[n++] = (double)x->splits[i].step_ns;
    const double median = kp_quantile(lengths, n, 0.5);
    free(lengths);
    return median;
}

static const char *prompts_text(const struct kp_costrules *x, const long *tokens)
{
    size_t count = 0;
    size_t *at = kp_kineto_room(x->chosen->step_count + 1, sizeof *at);
    for (size_t i = 0; i < x->chosen->step_count; i++)
        if (tokens[i] > 1) at[count++] = i;
    const char *text = kp_costrules_numbers_of(x, at, count);
    free(at);
    return text;
}

void kp_promptsteps_tell(const struct kp_costrules *x, bool *is_prompt)
{
    const size_t steps = x->chosen->step_count;
    size_t prompts = 0, alone = 0;
    long *tokens = kp_kineto_room(steps + 1, sizeof *tokens);
    memset(tokens, 0, (steps + 1) * sizeof *tokens);
    steps_read(x, tokens);
    for (size_t i = 0; i < steps; i++) {
        prompts += tokens[i] > 1;
        alone += tokens[i] == 1;
    }
    const bool is_told = prompts && alone > prompts && prompts + alone == steps;
    for (size_t i = 0; i < steps; i++) is_prompt[i] = is_told && tokens[i] > 1;
    if (is_told)
        x->out->prompts = kp_costrules_text(
            x, "%s take%s a prompt, %.3f ms (median of %zu); the others take a token each, %.3f ms (median of %zu)",
            prompts_text(x, tokens), prompts == 1 ? "s" : "", median_of(x, tokens, true) / 1e6, prompts,
            median_of(x, tokens, false) / 1e6, alone);
    free(tokens);
}
