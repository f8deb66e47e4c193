// SPDX-License-Identifier: Apache-2.0
/*
 * gapplace.c - which call of Python fills the time in which no op runs, where Python's calls were recorded
 *
 * The time of the thread that trains goes to the program's own line, and to what that line calls.
 */
#include "export/answers/advise/stepkinds/longsteps.h"

#include <stdlib.h>

#include "export/read/frames/framename.h"
#include "export/read/facts/selftime.h"

#define OPS_LITTLE 0.1 /* of a function's Python: ops that run under it */

struct gap_cost {
    uint32_t line, call; /* string ids; call 0: the own function itself */
    double ns;
};
struct gaps {
    const struct kp_costrules *x;
    const struct kp_tree *tree;
    const struct kp_chosen *chosen;
    const double *weights; /* by step; with `of_steps` the steps that are asked for have more than 0 */
    bool of_steps;
    struct kp_keyindex step_keys; /* step << 32 | number in `keys`; rows: ns */
    struct kp_spans worked;
    struct kp_keyindex keys; /* line << 32 | call; rows: struct gap_cost */
    struct gap_cost sought;  /* for under_take: its ns is with callees */
    bool *under;             /* by node: it is what is sought, or runs in it */
};

static bool is_work(const struct kp_tree *tree, size_t i)
{
    const struct kp_kineto_event *e = kp_tree_event(tree, i);
    const uint32_t is = kp_namefacts(tree->trace, e->name);
    if (e->kind == KP_KINETO_ANNOTATION) return is & (KP_NAME_LOADER | KP_NAME_COLLECTIVE);
    return is & KP_NAME_LOADER || (e->kind == KP_KINETO_OP && !(is & KP_NAME_RANGE));
}

/* Finds what works at all. */
static void work_find(struct gaps *g, const struct kp_costrules *x)
{
    kp_spans_add_all(&g->worked, &x->evaluated);
    kp_spans_add_all(&g->worked, &x->read_idle);
    for (size_t i = 0; i < g->tree->count; i++) {
        const struct kp_node *node = &g->tree->nodes[i];
        if (node->on_device || node->is_async) continue;
        if (is_work(g->tree, i)) kp_spans_add(&g->worked, node->start_ns, node->end_ns);
    }
    kp_spans_settle(&g->worked);
}

/* The own line of a call, and what that line calls; 0: none of its stack is the program's. */
static struct gap_cost place_of(struct gaps *g, int32_t node)
{
    struct kp_kineto *trace = g->tree->trace;
    struct gap_cost place = {0};
    for (; node >= 0 && g->tree->nodes[node].is_python; node = g->tree->nodes[node].parent) {
        const uint32_t function = kp_ownline_function(trace, kp_tree_call_name(g->tree, &g->tree->nodes[node]));
        if (function) {
            if (!place.call) place.line = function;
            return place;
        }
        const uint32_t line = kp_ownline_of(trace, kp_tree_event(g->tree, (size_t)node)->stack);
        if (line) place = (struct gap_cost){line, kp_tree_event(g->tree, (size_t)node)->name, 0};
    }
    return place;
}

static size_t place_charge(struct gaps *g, struct gap_cost place, double ns)
{
    struct gap_cost *const sum =
        kp_keyindex_row(&g->keys, (uint64_t)place.line << 32 | place.call, &place, sizeof place);
    sum->ns += ns;
    return g->keys.last;
}

static bool is_of_thread(const struct gaps *g, size_t node)
{
    return kp_tree_event(g->tree, node)->kind == KP_KINETO_PYTHON && kp_costrules_is_of_thread(g->x, node);
}

/* The time without an op in a piece of a call, each step by its weight; of_steps: charges the steps instead. */
static double piece_weigh(struct gaps *g, size_t node, int64_t from_ns, int64_t to_ns)
{
    const struct kp_chosen *c = g->chosen;
    double sum = 0;
    for (size_t i = kp_step_after(c->steps, c->step_count, from_ns); i < c->step_count; i++) {
        const struct kp_step *s = &c->steps[i];
        if (s->start_ns >= to_ns) break;
        const int64_t from = from_ns > s->start_ns ? from_ns : s->start_ns, to = to_ns < s->end_ns ? to_ns : s->end_ns;
        const double ns = (double)(to - from - kp_spans_between(&g->worked, from, to));
        if (!g->of_steps) sum += g->weights[i] * ns;
        else if (g->weights[i] > 0 && ns > 0)
            *kp_keyindex_sum(&g->step_keys, (uint64_t)i << 32 | place_charge(g, place_of(g, (int32_t)node), 0)) += ns;
    }
    return sum;
}

static void piece_take(void *context, size_t node, int64_t from_ns, int64_t to_ns)
{
    struct gaps *g = context;
    if (!is_of_thread(g, node)) return;
    const double sum = piece_weigh(g, node, from_ns, to_ns);
    if (sum > 0 || sum < 0) place_charge(g, place_of(g, (int32_t)node), sum);
}

/* Is it the function, or the call of it, that is sought? */
static bool is_sought(struct gaps *g, size_t node)
{
    struct kp_kineto *trace = g->tree->trace;
    const struct kp_kineto_event *e = kp_tree_event(g->tree, node);
    if (g->sought.call) return e->name == g->sought.call && kp_ownline_of(trace, e->stack) == g->sought.line;
    const uint32_t name = kp_tree_call_name(g->tree, &g->tree->nodes[node]);
    return kp_ownline_function(trace, name) == g->sought.line;
}

/* Marks the calls that are what is sought, or are called by it, however deep. Parents come first. */
static void under_find(struct gaps *g)
{
    g->under = kp_kineto_room(g->tree->count + 1, sizeof *g->under);
    for (size_t i = 0; i < g->tree->count; i++) {
        const struct kp_node *node = &g->tree->nodes[i];
        g->under[i] = node->is_python && ((node->parent >= 0 && g->under[node->parent]) || is_sought(g, i));
    }
}

static void under_take(void *context, size_t node, int64_t from_ns, int64_t to_ns)
{
    struct gaps *g = context;
    if (is_of_thread(g, node) && g->under[node]) g->sought.ns += piece_weigh(g, node, from_ns, to_ns);
}

/* Charges the places with the time without an op of all pieces. */
static void gaps_measure(struct gaps *g, const struct kp_costrules *x, const double *weights)
{
    g->x = x;
    g->tree = x->tree;
    g->chosen = x->chosen;
    g->weights = weights;
    work_find(g, x);
    kp_selftime_each_call(x->tree, piece_take, g);
}

static void gaps_fini(struct gaps *g)
{
    kp_spans_fini(&g->worked);
    kp_keyindex_fini(&g->keys);
    kp_keyindex_fini(&g->step_keys);
    free(g->under);
}

void kp_gapplace_steps(const struct kp_costrules *x, const double *weights, uint64_t *calls)
{
    const size_t steps = x->chosen->step_count;
    struct gaps g = {.of_steps = true};
    double *most = kp_kineto_zeros(steps + 1, sizeof *most);
    memset(calls, 0, steps * sizeof *calls);
    gaps_measure(&g, x, weights);
    const struct gap_cost *const of = g.keys.rows;
    const double *const step_ns = g.step_keys.rows;
    for (size_t i = 0; i < g.step_keys.count; i++) {
        const size_t step = (size_t)(g.step_keys.keys[i] >> 32), place = (uint32_t)g.step_keys.keys[i];
        if (!of[place].line || step_ns[i] <= most[step]) continue;
        most[step] = step_ns[i];
        calls[step] = g.keys.keys[place];
    }
    gaps_fini(&g);
    free(most);
}

double kp_gapplace_usual(const struct kp_costrules *x, const double *weights, uint64_t call)
{
    const size_t steps = x->chosen->step_count;
    struct gaps g = {0};
    double *others = kp_kineto_room(steps + 1, sizeof *others);
    size_t count = 0;
    for (size_t i = 0; i < steps; i++) count += !(weights[i] > 0);
    for (size_t i = 0; i < steps; i++) others[i] = weights[i] > 0 ? 0 : 1 / (double)count;
    gaps_measure(&g, x, others);
    const struct gap_cost none = {0}, *const of_call = kp_keyindex_row(&g.keys, call, &none, sizeof none);
    const double ns = of_call->ns;
    gaps_fini(&g);
    free(others);
    return ns;
}

/* "train.py:12 main", "train.py:9 def main" and "train.py main" are of one function. */
bool kp_gapplace_is_function(const char *a, const char *b)
{
    const char *const of_a = strchr(a, ' '), *const of_b = strchr(b, ' ');
    const size_t file = strcspn(a, ": ");
    return of_a && of_b && file == strcspn(b, ": ") && memcmp(a, b, file) == 0 &&
           strcmp(kp_framename_bare(of_a + 1), kp_framename_bare(of_b + 1)) == 0;
}

bool kp_gapplace_is_inner(const char *line, const char *function)
{
    const char *const name = strchr(line, ' ');
    return name && name[1] == '<' && strcmp(name, " <module>") != 0 &&
           strncmp(line, function, strcspn(function, ":") + 1) == 0;
}

bool kp_gapplace_is_within(const char *line, const char *function)
{
    return kp_gapplace_is_function(line, function) || kp_gapplace_is_inner(line, function);
}

/* The lines around a gap tell more than the function in which it lies. */
static bool is_around(const struct kp_finding *gap, const char *function)
{
    return gap->is_gap && gap->line && gap->after && kp_gapplace_is_function(gap->line, function) &&
           kp_gapplace_is_function(gap->after, function);
}

/* How long ops run in the steps under what is sought. Parents come first. */
static double ops_under(struct gaps *g)
{
    double ns = 0;
    int64_t until = INT64_MIN;
    for (size_t i = 0; i < g->tree->count; i++) {
        const struct kp_node *node = &g->tree->nodes[i];
        if (node->on_device || node->is_async || node->start_ns < until || !is_work(g->tree, i)) continue;
        if (!kp_spans_has(&g->chosen->in_steps, node->start_ns) || node->parent < 0) continue;
        if (!g->under[node->parent]) continue;
        ns += (double)(node->end_ns - node->start_ns);
        until = node->end_ns;
    }
    return ns;
}

/* With callees. A function of the program under which next to no op runs is Python alone. */
static void call_measure(struct gaps *g, const struct gap_cost *most, struct kp_gap_call *call)
{
    g->sought = (struct gap_cost){most->line, most->call, 0};
    under_find(g);
    kp_selftime_each_call(g->tree, under_take, g);
    call->ns = g->sought.ns;
    call->is_python = !most->call && OPS_LITTLE * call->ns * (double)g->chosen->step_count > ops_under(g);
}

struct kp_gap_call kp_gapplace_tell(const struct kp_costrules *x, const double *weights, double of_ns,
                                    struct kp_finding *out)
{
    struct gaps g = {0};
    const struct gap_cost *most = NULL;
    struct kp_kineto *trace = x->tree->trace;
    gaps_measure(&g, x, weights);
    const struct gap_cost *const of = g.keys.rows;
    for (size_t i = 0; i < g.keys.count; i++)
        if (of[i].line && (!most || of[i].ns > most->ns)) most = &of[i];
    struct kp_gap_call call = {0};
    if (most && most->ns >= of_ns / 10) call.ns = call.itself_ns = most->ns;
    if (call.ns > 0 && (most->call || !is_around(out, kp_kineto_text(trace, most->line)))) {
        out->line = kp_kineto_text(trace, most->line);
        out->also_line = NULL;
        out->where = most->call ? kp_kineto_text(trace, most->call) : out->line;
        out->after = out->module = out->frame = NULL;
        out->is_gap = out->is_backward = out->is_after_backward = false;
        call_measure(&g, most, &call);
    }
    gaps_fini(&g);
    return call;
}
