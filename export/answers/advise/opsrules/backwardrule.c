// SPDX-License-Identifier: Apache-2.0
/*
 * backwardrule.c - custom autograd functions: what runs in their backward without an op, and loops of small ops in them
 *
 * The nodes of autograd that are written in C++ end with a digit (MmBackward0), those of Python do not. Code that
 * torch.compile compiles runs without ops as well, and is no Python. A function that runs a backward pass of its own,
 * as activation checkpointing does, has a model in it and no loop. See decisions/200.
 */
#include "export/answers/advise/opsrules/opsrules.h"

#include <stdlib.h>

enum { TURNS_LEAST = 32 }; /* of one op at one line, in one call */

static const char end[] = "Backward";
static const struct kp_cost_rule bare = {
    0.10, KP_RULE_MILD, "python-backward", /* what an extension computes may be needed */
    "the backward of a custom autograd function runs Python, or an extension, without an op",
    "Write it with torch operators, or let autograd derive it. An extension that computes there is to be timed by "
    "itself."};

struct function { /* all calls of one, or of its backward */
    uint32_t name;
    int64_t ns, bare_ns, large_ns; /* bare: without an op; large: in ops that compute for long */
    size_t calls, ops, turns;
    uint32_t most; /* the op that runs most at one line, in the last call */
    bool has_engine, is_loop;
};
struct own_functions {
    struct kp_costrules *x;
    int32_t *of;                /* by node: its row, or -1 */
    struct kp_keyindex by_name; /* rows: struct function */
    struct kp_cost loops, bare;
};

static bool is_backward_name(const char *name)
{
    const size_t length = strlen(name), bytes = sizeof end - 1;
    return length > bytes && strcmp(name + length - bytes, end) == 0 && !strchr(name, ':') &&
           strncmp(name, "CompiledFunction", 16) != 0;
}

static bool is_python_backward(const struct kp_costrules *x, int32_t node)
{
    return kp_costrules_is_op(x, (size_t)node) && is_backward_name(kp_costrules_name(x, node));
}

/* The op of the forward pass that has such a backward; -1: not in the trace. */
static int32_t forward_of(const struct kp_costrules *x, int32_t backward)
{
    const int32_t forward = x->tree->nodes[backward].forward;
    if (forward < 0) return -1;
    const char *const name = kp_costrules_name(x, backward), *const of = kp_costrules_name(x, forward);
    return strlen(of) == strlen(name) + 1 - sizeof end && kp_name_begins(name, of) ? forward : -1;
}

/* The innermost op around a node; -1: none. */
static int32_t op_around(const struct kp_costrules *x, size_t node)
{
    int32_t at = x->tree->nodes[node].parent;
    while (at >= 0 && !kp_costrules_is_op(x, (size_t)at)) at = x->tree->nodes[at].parent;
    return at;
}

/* Returns the first op behind `from` that the call runs itself; the tree's count: none is left. */
static size_t next_of(const struct kp_costrules *x, int32_t call, size_t from)
{
    const struct kp_node *const nodes = x->tree->nodes;
    for (size_t i = from + 1; i < x->tree->count && nodes[i].start_ns < nodes[call].end_ns; i++)
        if (kp_costrules_is_op(x, i) && op_around(x, i) == call) return i;
    return x->tree->count;
}

/* The stack of the op itself: the tree gives what runs in backward that of the forward op. */
static uint32_t stack_of(const struct kp_costrules *x, size_t node) { return kp_tree_event(x->tree, node)->stack; }

static void call_read(struct function *f, const struct kp_costrules *x, int32_t call)
{
    const int64_t all_ns = kp_costrules_ns(x, (size_t)call);
    struct kp_keyindex counts = {0};
    size_t turns = 0;
    f->calls++;
    f->ns += all_ns;
    f->bare_ns += all_ns;
    for (size_t i = (size_t)call; (i = next_of(x, call, i)) < x->tree->count;) {
        const int64_t ns = kp_costrules_ns(x, i);
        const uint32_t name = kp_tree_event(x->tree, i)->name;
        size_t *const count =
            kp_keyindex_row(&counts, (uint64_t)name << 32 | stack_of(x, i), &(size_t){0}, sizeof *count);
        if (++*count > turns) turns = *count, f->most = name;
        f->has_engine |= kp_node_is(x->tree, i, KP_NAME_ENGINE);
        f->bare_ns -= ns;
        f->large_ns += ns > KP_OP_COMPUTES_NS ? ns : 0;
        f->ops++;
    }
    f->turns += turns;
    kp_keyindex_fini(&counts);
}

static void call_take(struct own_functions *f, int32_t call)
{
    if (f->of[call] >= 0) return;
    const uint32_t name = kp_tree_event(f->x->tree, (size_t)call)->name;
    const struct function empty = {.name = name};
    struct function *const of = kp_keyindex_row(&f->by_name, name, &empty, sizeof empty);
    f->of[call] = (int32_t)(of - (struct function *)f->by_name.rows);
    call_read(of, f->x, call);
}

/* Small ops take half of it or more, and Python is between them. */
static void loops_judge(struct own_functions *f)
{
    struct function *const of = f->by_name.rows;
    for (size_t i = 0; i < f->by_name.count; i++)
        of[i].is_loop = of[i].turns >= TURNS_LEAST * of[i].calls && !of[i].has_engine &&
                        2 * of[i].large_ns <= of[i].ns && of[i].bare_ns <= (int64_t)of[i].ops * KP_OP_COMPUTES_NS;
}

static bool loops(const struct own_functions *f, size_t node)
{
    const struct function *const of = f->by_name.rows;
    return f->of[node] >= 0 && of[f->of[node]].is_loop;
}

/* Charges the loop's own lines with the time up to the end of each op; without them the place that calls it. */
static void lines_charge(struct own_functions *f, int32_t call)
{
    const struct kp_costrules *const x = f->x;
    const struct kp_node *const nodes = x->tree->nodes;
    const uint32_t around = kp_ownline_of(x->tree->trace, stack_of(x, (size_t)call));
    const uint32_t name = kp_tree_event(x->tree, (size_t)kp_costplace_op(x->tree, call))->name;
    int64_t until = nodes[call].start_ns;
    for (size_t i = (size_t)call; (i = next_of(x, call, i)) < x->tree->count;) {
        const struct kp_costplace place = {.name = name, .stack = stack_of(x, i)};
        const uint32_t line = kp_ownline_of(x->tree->trace, place.stack);
        const int64_t ns = nodes[i].end_ns - until;
        until = nodes[i].end_ns;
        if (!line || line == around) {
            kp_costplaces_add(&f->loops.places, x->tree, call, -1, ns);
            continue;
        }
        struct kp_costplace *const sum =
            kp_keyindex_row(&f->loops.places.keys, kp_costplace_key_of(&place), &place, sizeof place);
        sum->ns += ns;
        sum->count++;
    }
}

/* Each iteration may need the one before. */
static void loops_tell(struct own_functions *f)
{
    const struct kp_costrules *const x = f->x;
    struct kp_cost_rule rule = {0.05, KP_RULE_MILD, "loop-in-function", "",
                                "Replace the loop by one operator over all iterations: a matrix product, a cumulative "
                                "sum, a convolution, or a scan in chunks. Or compile its body with torch.compile. The "
                                "cost is all of this call; one operator saves half of it or more."};
    const struct function *const of = f->by_name.rows, *most = NULL;
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *const n = &x->tree->nodes[i];
        if (!loops(f, i)) continue;
        kp_cost_add(&f->loops, -1, n->start_ns, n->end_ns, 1); /* its lines are the place */
        lines_charge(f, (int32_t)i);
        if (!most || of[f->of[i]].ns > most->ns) most = &of[f->of[i]];
    }
    if (most) {
        const char *const name = kp_kineto_text(x->tree->trace, most->name);
        const size_t bytes = strlen(name) - (is_backward_name(name) ? sizeof end - 1 : 0);
        rule.what = KP_TEXT("the %s of %.*s, a custom autograd function, loops: it runs %.0f operators one by one in "
                            "each call, %s most often",
                            name[bytes] ? "backward" : "forward", (int)bytes, name,
                            (double)most->ops / (double)most->calls, kp_kineto_text(x->tree->trace, most->most));
    }
    kp_cost_tell(&f->loops, &rule);
}

/* For a function that does not loop: the time without an op. */
static void bare_charge(struct own_functions *f)
{
    const struct kp_costrules *const x = f->x;
    for (size_t i = 0; i < x->tree->count; i++) {
        const int32_t around = kp_costrules_is_op(x, i) ? op_around(x, i) : -1;
        if (is_python_backward(x, (int32_t)i) && !loops(f, i)) kp_cost_add_node(&f->bare, i, 1);
        if (around >= 0 && is_python_backward(x, around) && !loops(f, (size_t)around))
            kp_cost_add(&f->bare, around, x->tree->nodes[i].start_ns, x->tree->nodes[i].end_ns, -1);
    }
}

void kp_rules_functions(struct kp_costrules *x)
{
    if (x->out->has_gpu || x->out->mean_ns[KP_SPLIT_COMM] > 0) return; /* it may wait for other ranks */
    struct own_functions f = {.x = x, .loops = kp_cost_open(x), .bare = kp_cost_open(x)};
    f.of = kp_kineto_room(x->tree->count + 1, sizeof *f.of);
    for (size_t i = 0; i < x->tree->count; i++) f.of[i] = -1;
    for (size_t i = 0; i < x->tree->count; i++) {
        if (!is_python_backward(x, (int32_t)i)) continue;
        const int32_t forward = forward_of(x, (int32_t)i);
        call_take(&f, (int32_t)i);
        if (forward >= 0) call_take(&f, forward);
    }
    loops_judge(&f);
    bare_charge(&f);
    loops_tell(&f);
    kp_cost_tell(&f.bare, &bare);
    kp_keyindex_fini(&f.by_name);
    free(f.of);
}
