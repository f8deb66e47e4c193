// SPDX-License-Identifier: Apache-2.0
/*
 * promptsteps.c - steps of a generation that take a prompt: they are longer than those of a token, and not slow
 *
 * The first embedding of a step says how many tokens it takes, where shapes were recorded: its second input is the
 * batch, [sequences, tokens]. With a cache each step takes one, but for those that begin with a prompt.
 *
 * If there are no shapes the ops decide: more rows make each call of the op with most time longer, and a wait for a
 * core makes one or two longer. So a step is of a prompt where nearly all of as many calls as usual last far longer
 * than the median call. That is said of steps of a model without a backward alone, which begin with an embedding each,
 * and pick a token each: those of a classifier of texts are as many rows as texts came together.
 *
 * A busy machine hides some of them, and makes steps of a token as long. If some that are found run other ops than the
 * usual step, a step is of a prompt if it runs the ops of most of those: generate() prepares each.
 *
 * A trace comes in pieces, or as one. That op is the one with most time in the first piece that has steps. Only its
 * calls are kept, and the steps are judged when all have come.
 */
#include "export/answers/advise/stepkinds/longsteps.h"

#include <stdio.h>
#include <stdlib.h>

#include "collector/base/kp_hash.h"
#include "export/answers/advise/stepkinds/steppieces.h"

struct op_call {
    uint32_t step, ns; /* ns: at most UINT32_MAX */
};
struct kp_promptpieces {
    long *tokens;  /* by step; 0: not known. If the ops decide, 1 or 2 stand for one and for more */
    uint64_t *ops; /* by step: which ops it runs and how often, in whatever order: a sum of hashes of their names */
    size_t steps, token_capacity, ops_capacity;
    uint64_t key;          /* of the op's name: each piece has strings of its own. 0: not found yet */
    struct op_call *calls; /* of that op */
    size_t count, capacity, embeddings, picks;
    bool has_backward, has_shapes;
};

long kp_prompt_tokens(const char *shapes)
{
    long sequences, tokens;
    int end = 0;
    const char *const second = shapes ? strstr(shapes, "], [") : NULL;
    if (!second || sscanf(second, "], [%ld, %ld]%n", &sequences, &tokens, &end) != 2 || !end) return 0;
    return tokens > 0 ? tokens : 0;
}

/* Notes the tokens of each chosen step, where shapes tell them. Returns whether they do. */
static bool tokens_read(const struct kp_costrules *x, long *tokens)
{
    bool is_any = false;
    const struct kp_chosen *c = x->chosen;
    const struct kp_kineto *trace = x->tree->trace;
    for (size_t i = 0; i < x->tree->count; i++) {
        const uint32_t shapes = kp_tree_event(x->tree, i)->shapes;
        if (!shapes || strcmp(kp_costrules_name(x, (int32_t)i), "aten::embedding") != 0) continue;
        const size_t step = kp_costrules_step(x, i);
        if (step == c->step_count || tokens[step]) continue;
        tokens[step] = kp_prompt_tokens(kp_kineto_text(trace, shapes));
        is_any |= tokens[step] != 0;
    }
    return is_any;
}

/* ---- without shapes ---- */

#define LONG_TIMES 2.0    /* the median call: a call of a larger input */
#define LONG_SHARE 0.8    /* of a step's calls */
#define USUAL_CALLS 0.2   /* so far from the median of the steps: as many calls as usual */
enum { CALLS_LEAST = 4 }; /* a step: fewer may all be hit by one wait */

struct prompt_op {
    uint32_t name; /* 0: none has enough calls a step */
    int64_t ns;
    size_t calls, embeddings, picks; /* the latter two: of all the steps */
    bool has_backward;               /* the steps are not of a model alone */
};

/* A token is picked from what the model says, greedily, by chance, or of beams. */
static bool picks_token(const char *op)
{
    return strcmp(op, "aten::argmax") == 0 || strcmp(op, "aten::multinomial") == 0 || strcmp(op, "aten::topk") == 0;
}

/* Returns the op that has most time in the steps. */
static struct prompt_op op_find(const struct kp_costrules *x)
{
    const struct kp_chosen *c = x->chosen;
    struct kp_keyindex keys = {0};
    struct prompt_op most = {.ns = 0};
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *node = &x->tree->nodes[i];
        if (!kp_costrules_is_op(x, i) || kp_costrules_step(x, i) == c->step_count) continue;
        const uint32_t name = kp_tree_event(x->tree, i)->name;
        struct prompt_op *const op = kp_keyindex_row(&keys, name, &(struct prompt_op){.name = name}, sizeof *op);
        op->ns += node->end_ns - node->start_ns;
        op->calls++;
        most.has_backward |= kp_tree_event(x->tree, i)->fwd_tid != 0;
        most.embeddings += strcmp(kp_costrules_name(x, (int32_t)i), "aten::embedding") == 0;
        most.picks += picks_token(kp_costrules_name(x, (int32_t)i));
    }
    const struct prompt_op *const all = keys.rows;
    for (size_t i = 0; i < keys.count; i++)
        if (all[i].calls >= CALLS_LEAST * c->step_count && all[i].ns > most.ns)
            most.name = all[i].name, most.ns = all[i].ns, most.calls = all[i].calls;
    kp_keyindex_fini(&keys);
    return most;
}

static uint64_t key_of(const char *name) { return kp_hash64(name, strlen(name)); }

static void ops_add(struct kp_promptpieces *p, const struct kp_costrules *x)
{
    const struct kp_chosen *const c = x->chosen;
    const struct prompt_op op = op_find(x);
    if (!p->key && op.name) p->key = key_of(kp_kineto_text(x->tree->trace, op.name));
    p->has_backward |= op.has_backward;
    p->embeddings += op.embeddings;
    p->picks += op.picks;
    if (p->has_backward) return; /* a training takes no prompts */
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *const node = &x->tree->nodes[i];
        const size_t step = kp_costrules_step(x, i);
        if (step == c->step_count || !kp_costrules_is_op(x, i)) continue;
        const uint64_t key = key_of(kp_costrules_name(x, (int32_t)i));
        p->ops[p->steps + step] += key;
        if (key != p->key) continue;
        const int64_t ns = node->end_ns - node->start_ns;
        *KP_KINETO_NEXT(p->calls, p->count, p->capacity) =
            (struct op_call){(uint32_t)(p->steps + step), ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX};
    }
}

/* The ops of most of the steps that have so many tokens (0: any), and run other than `but`. count: how many they
 * are. */
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

/* By step, the calls of that op: all, and those that last far longer than the median call. */
static void calls_count(const struct kp_promptpieces *p, double *calls, double *longer)
{
    struct kp_sample lengths = {0};
    for (size_t i = 0; i < p->count; i++) kp_sample_add(&lengths, p->calls[i].ns);
    const double median = kp_sample_end(&lengths, 0.5);
    for (size_t i = 0; i < p->count; i++) {
        calls[p->calls[i].step]++;
        longer[p->calls[i].step] += p->calls[i].ns > LONG_TIMES * median;
    }
}

/* Tokens by the ops. All stay 0 where these do not tell. */
static void tokens_guess(struct kp_promptpieces *p)
{
    if (!p->count || p->has_backward || p->embeddings < p->steps || p->picks < p->steps) return;
    const size_t room = p->steps + 1;
    double *const calls = kp_kineto_zeros(room, sizeof *calls), *const longer = kp_kineto_zeros(room, sizeof *longer);
    struct kp_sample all = {0};
    calls_count(p, calls, longer);
    for (size_t i = 0; i < p->steps; i++) kp_sample_add(&all, calls[i]);
    const double usual = kp_sample_end(&all, 0.5);
    for (size_t i = 0; i < p->steps; i++) {
        const bool is_usual = calls[i] > (1 - USUAL_CALLS) * usual && calls[i] < (1 + USUAL_CALLS) * usual;
        p->tokens[i] = is_usual && longer[i] >= LONG_SHARE * calls[i] ? 2 : 1;
    }
    steps_spread(p->ops, p->tokens, p->steps);
    free(calls);
    free(longer);
}

/* ---- the note ---- */

static double median_of(const struct kp_costrules *x, const long *tokens, bool is_prompt)
{
    struct kp_sample lengths = {0};
    for (size_t i = 0; i < x->chosen->step_count; i++)
        if (tokens[i] && (tokens[i] > 1) == is_prompt)
            kp_sample_add(&lengths, x->splits ? (double)x->splits[i].step_ns
                                              : (double)(x->chosen->steps[i].end_ns - x->chosen->steps[i].start_ns));
    return kp_sample_end(&lengths, 0.5);
}

static const char *numbers_text(const struct kp_costrules *x, const long *tokens)
{
    size_t count = 0;
    size_t *at = kp_kineto_room(x->chosen->step_count + 1, sizeof *at);
    for (size_t i = 0; i < x->chosen->step_count; i++)
        if (tokens[i] > 1) at[count++] = i;
    const char *text = kp_costrules_numbers(x, at, count, KP_NUMBERS_MOST, ",");
    free(at);
    return text;
}

/* The sentence, where some steps take more than one token; NULL: none does. */
static const char *prompts_text(const struct kp_costrules *x, const long *tokens, bool is_known)
{
    const size_t steps = x->chosen->step_count;
    size_t prompts = 0, alone = 0;
    for (size_t i = 0; i < steps; i++) {
        prompts += tokens[i] > 1;
        alone += tokens[i] == 1;
    }
    if (!prompts || alone <= prompts || prompts + alone != steps) return NULL;
    return KP_TEXT("%s process%s a prompt, %.3g ms (median of %zu); the other steps produce a token each, "
                   "%.3g ms (median of %zu)%s",
                   numbers_text(x, tokens), prompts == 1 ? "s" : "", median_of(x, tokens, true) / 1e6, prompts,
                   median_of(x, tokens, false) / 1e6, alone,
                   is_known ? "" : "; so say their ops; --record-shapes tells the tokens");
}

/* ---- pieces ---- */

struct kp_promptpieces *kp_promptpieces_open(void) { return calloc(1, sizeof(struct kp_promptpieces)); }

static void pieces_fini(struct kp_promptpieces *p)
{
    free(p->tokens);
    free(p->ops);
    free(p->calls);
}

void kp_promptpieces_close(struct kp_promptpieces *p)
{
    if (p) pieces_fini(p);
    free(p);
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
    p->has_shapes |= tokens_read(&x, p->tokens + p->steps) || tree->trace->record_shapes;
    if (!p->has_shapes && !p->has_backward) ops_add(p, &x);
    p->steps = all;
}

static const char *pieces_judge(struct kp_promptpieces *p, const struct kp_costrules *x)
{
    if (p->steps != x->chosen->step_count || !p->steps) return NULL;
    if (!p->has_shapes) tokens_guess(p);
    return prompts_text(x, p->tokens, p->has_shapes);
}

const char *kp_promptpieces_text(struct kp_promptpieces *p, struct kp_kineto *trace, const struct kp_chosen *steps)
{
    const struct kp_tree tree = {.trace = trace};
    return pieces_judge(p, &(struct kp_costrules){.tree = &tree, .chosen = steps});
}

void kp_promptsteps_tell(const struct kp_costrules *x, bool *is_prompt)
{
    struct kp_promptpieces whole = {0};
    kp_promptpieces_add(&whole, x->tree, x->chosen);
    const char *const text = pieces_judge(&whole, x);
    for (size_t i = 0; i < x->chosen->step_count; i++) is_prompt[i] = text && whole.tokens[i] > 1;
    if (text) x->out->prompts = text;
    pieces_fini(&whole);
}
