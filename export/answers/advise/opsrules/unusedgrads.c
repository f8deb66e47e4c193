// SPDX-License-Identifier: Apache-2.0
/*
 * unusedgrads.c - backward goes through what no optimizer updates: a teacher without torch.no_grad(), a frozen net
 *
 * AccumulateGrad takes over the gradient of a leaf whose .grad is None, and adds to one that nobody cleared. Each leaf
 * has one in a pass, behind the backward op that made the gradient, which has the place of the forward op. So leaves
 * have kinds, by that place: those that are cleared again and again, and those that never are. A pass is judged where
 * as many leaves are cleared as all optimizers update together: those of a GAN, in whose passes gradients of the other
 * net are left over, are fewer.
 */
#include "export/answers/advise/opsrules/opsrules.h"

#include <stdio.h>
#include <stdlib.h>

#include "export/read/facts/backwardof.h"
#include "export/show/shapetext.h"
#include "export/show/units.h"

#define STEP_NAME "Optimizer.step#"
#define ROOT_FRAME "): _make_grads;" /* of torch/autograd/__init__.py */
enum { PASSES_LEAST = 3, INSIDE_MOST = 16 };

struct leaf {
    size_t pass, kind;
    int32_t node, root; /* its AccumulateGrad; the first node of the pass */
    int64_t forward_ns; /* when the op began that uses it */
    bool is_added;      /* to what was there */
    bool is_of_root;    /* its pass has one root: the backward() of one loss */
};
struct leaf_kind { /* by stack */
    size_t first_pass, last_pass, added_passes;
    bool is_cleared; /* in another pass than its first, in which .grad may be None yet */
};
struct graded {
    size_t cleared, left, others; /* leaves, by their kinds */
    int64_t cleared_ns;           /* the first use of one that is cleared */
    int64_t from_ns, until_ns;    /* first and last use of one that is not */
};
struct updated { /* by optimizer and place: how many tensors an op takes */
    size_t pass, now, most;
    int32_t range;
};
struct grads {
    struct kp_costrules *x;
    uint32_t *of; /* by node: kp_backward_of */
    struct leaf *leaves;
    size_t leaf_count, leaf_capacity, pass_count;
    struct kp_keyindex kinds;   /* rows: struct leaf_kind */
    struct kp_keyindex updates; /* rows: struct updated */
    int64_t root_ns;            /* the forward op of the pass's first node */
    uint32_t root_stack;
    int32_t root;
    bool has_root;  /* the last op made the gradient of a loss, which is 1 */
    bool is_open;   /* no other op ran since the last node of the engine */
    bool is_listed; /* an optimizer takes lists of tensors, whose lengths are not recorded */
    bool is_unsure; /* an optimizer's tensors are not to be counted */
    size_t zeros;   /* tensors that are set to zero outside of other ops */
    size_t judged, unlisted, with_left, left, cleared;
    bool is_sure; /* nothing that is trained lies before what is not */
};

/* ---- what is in the trace ---- */

/* Two passes may follow each other without an op between: called from other lines, or from a later root. Other ones
 * that do have no loss, whose gradient an op makes. */
static void node_take(struct grads *g, size_t node)
{
    const struct kp_tree *const tree = g->x->tree;
    const int32_t forward = tree->nodes[node].forward;
    const int64_t ns = forward < 0 ? INT64_MIN : tree->nodes[forward].start_ns;
    const uint32_t stack = kp_tree_event(tree, node)->stack;
    if (!g->is_open || stack != g->root_stack || ns > g->root_ns) {
        g->pass_count++;
        g->root_stack = stack;
        g->root = (int32_t)node;
        g->root_ns = INT64_MIN;
    }
    g->is_open = true;
    if (ns > g->root_ns) g->root_ns = ns;
}

static bool adds_inside(const struct kp_costrules *x, size_t node)
{
    const struct kp_node *const nodes = x->tree->nodes;
    for (size_t i = node + 1; i < x->tree->count && i < node + INSIDE_MOST; i++)
        if (nodes[i].parent == (int32_t)node && KP_NAME_IS(kp_costrules_name(x, (int32_t)i), "aten::add_", "aten::add"))
            return true;
    return false;
}

static void leaf_take(struct grads *g, size_t node)
{
    const struct kp_tree *const tree = g->x->tree;
    const int32_t forward = tree->nodes[g->of[node]].forward;
    if (forward < 0 || !g->pass_count) return;
    const struct leaf_kind empty = {.first_pass = g->pass_count};
    struct leaf_kind *const kind =
        kp_keyindex_row(&g->kinds, kp_tree_event(tree, (size_t)forward)->stack, &empty, sizeof empty);
    const struct leaf leaf = {.pass = g->pass_count,
                              .kind = (size_t)(kind - (struct leaf_kind *)g->kinds.rows),
                              .node = (int32_t)node,
                              .root = g->root,
                              .forward_ns = tree->nodes[forward].start_ns,
                              .is_added = adds_inside(g->x, node),
                              .is_of_root = g->has_root};
    *KP_KINETO_NEXT(g->leaves, g->leaf_count, g->leaf_capacity) = leaf;
    kind->is_cleared |= !leaf.is_added && leaf.pass != kind->first_pass;
    kind->added_passes += leaf.is_added && leaf.pass != kind->last_pass;
    kind->last_pass = leaf.pass;
}

/* How many tensors such an op of an optimizer takes. 0: a list, whose shapes are not recorded. */
static size_t tensors_of(const struct kp_costrules *x, size_t node, const char *name)
{
    if (!KP_NAME_HAS(name, "_foreach_", "_fused_")) return 1;
    const uint32_t shapes = kp_kineto_shapes(kp_tree_event(x->tree, node));
    return shapes ? kp_shapetext_tensors(kp_kineto_text(x->tree->trace, shapes)) : 0;
}

static size_t most_at_one_line(struct grads *g, size_t range)
{
    const struct kp_costrules *const x = g->x;
    const struct kp_node *const nodes = x->tree->nodes;
    struct kp_keyindex counts = {0};
    size_t most = 0;
    for (size_t i = range + 1; i < x->tree->count && nodes[i].start_ns < nodes[range].end_ns; i++) {
        if (!kp_costrules_is_outer(x, i) || kp_costrules_is_beside(x, i)) continue;
        const struct kp_kineto_event *const e = kp_tree_event(x->tree, i);
        const size_t tensors = tensors_of(x, i, kp_costrules_name(x, (int32_t)i));
        size_t *const sum = kp_keyindex_row(&counts, (uint64_t)e->name << 32 | e->stack, &(size_t){0}, sizeof *sum);
        *sum += tensors;
        if (*sum > most) most = *sum;
        g->is_listed |= !tensors;
        g->is_unsure |= kp_node_is(x->tree, i, KP_NAME_ENGINE); /* a closure runs the model */
    }
    kp_keyindex_fini(&counts);
    return most;
}

/* Optimizers that step at one line, in a loop, come between the same two passes. */
static void update_take(struct grads *g, size_t range)
{
    const struct kp_kineto_event *const e = kp_tree_event(g->x->tree, range);
    const size_t tensors = most_at_one_line(g, range);
    struct updated *const u =
        kp_keyindex_row(&g->updates, (uint64_t)e->name << 32 | e->stack, &(struct updated){0}, sizeof *u);
    g->is_unsure |= !tensors && !g->is_listed;
    u->now = u->pass == g->pass_count ? u->now + tensors : tensors;
    u->pass = g->pass_count;
    if (u->now > u->most) u->most = u->now;
}

static void trace_read(struct grads *g)
{
    const struct kp_costrules *const x = g->x;
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *const node = &x->tree->nodes[i];
        if (node->on_device || node->is_python || node->removed) continue;
        const char *const name = kp_costrules_name(x, (int32_t)i);
        const bool is_outer = kp_costrules_is_outer(x, i);
        if (strcmp(name, KP_ACCUMULATE_GRAD) == 0) leaf_take(g, i);
        else if (kp_name_begins(name, STEP_NAME)) update_take(g, i);
        else if (is_outer && kp_node_is(x->tree, i, KP_NAME_ENGINE)) node_take(g, i);
        else if (is_outer && !kp_costrules_is_beside(x, i)) {
            g->is_open = false;
            g->has_root = strstr(kp_kineto_text(x->tree->trace, kp_tree_event(x->tree, i)->stack), ROOT_FRAME);
            g->zeros += strcmp(name, "aten::zero_") == 0;
            g->is_unsure |= strcmp(name, "aten::_foreach_zero_") == 0;
        }
    }
}

/* ---- what is judged ---- */

enum leaf_is { LEAF_CLEARED, LEAF_LEFT, LEAF_OTHER };

static enum leaf_is kind_is(const struct grads *g, size_t kind)
{
    const struct leaf_kind *const of = (const struct leaf_kind *)g->kinds.rows + kind;
    if (of->is_cleared) return LEAF_CLEARED;
    return of->added_passes >= PASSES_LEAST ? LEAF_LEFT : LEAF_OTHER;
}

static enum leaf_is leaf_is(const struct grads *g, const struct leaf *leaf) { return kind_is(g, leaf->kind); }

static void pass_take(const struct grads *g, struct graded *pass, const struct leaf *leaf)
{
    const enum leaf_is is = leaf_is(g, leaf);
    const int64_t ns = leaf->forward_ns;
    pass->others += is == LEAF_OTHER;
    if (is == LEAF_CLEARED) {
        if (!pass->cleared++ || ns < pass->cleared_ns) pass->cleared_ns = ns;
    } else if (is == LEAF_LEFT) {
        if (!pass->left++) pass->from_ns = pass->until_ns = ns;
        if (ns < pass->from_ns) pass->from_ns = ns;
        if (ns > pass->until_ns) pass->until_ns = ns;
    }
}

static size_t updated_of(const struct grads *g)
{
    const struct updated *const of = g->updates.rows;
    size_t sum = 0;
    for (size_t i = 0; i < g->updates.count; i++) sum += of[i].most;
    return sum;
}

/* Leaves of a pass that are used between those that are not cleared, and are. */
static bool is_mixed(const struct grads *g, const struct graded *pass, const struct leaf *leaves, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (leaf_is(g, &leaves[i]) == LEAF_CLEARED && leaves[i].forward_ns > pass->from_ns &&
            leaves[i].forward_ns < pass->until_ns)
            return true;
    return false;
}

/* Marks the engine's ranges of one pass: of what the trained part's first op comes behind, no gradient is used. */
static void pass_mark(const struct grads *g, uint8_t *marks, const struct graded *pass, const struct leaf *leaves,
                      size_t count)
{
    const struct kp_tree *const tree = g->x->tree;
    const bool is_apart = !is_mixed(g, pass, leaves, count);
    const int32_t first = leaves[0].root, last = leaves[count - 1].node;
    for (int32_t i = first; i >= 0 && i <= last; i++) {
        const int32_t forward = tree->nodes[i].forward;
        if (forward < 0 || !kp_node_is(tree, (size_t)i, KP_NAME_ENGINE)) continue;
        const int64_t ns = tree->nodes[forward].start_ns;
        marks[i] = ns < pass->cleared_ns || (is_apart && ns >= pass->from_ns && ns <= pass->until_ns);
    }
    for (size_t i = 0; i < count; i++)
        if (leaf_is(g, &leaves[i]) == LEAF_LEFT) marks[leaves[i].node] = true;
}

static void passes_judge(struct grads *g, uint8_t *marks)
{
    const size_t updated = updated_of(g);
    g->is_sure = true;
    for (size_t i = 0, count; i < g->leaf_count; i += count) {
        struct graded pass = {0};
        for (count = 0; i + count < g->leaf_count && g->leaves[i + count].pass == g->leaves[i].pass; count++)
            pass_take(g, &pass, &g->leaves[i + count]);
        g->with_left += pass.left > 0;
        if (!pass.left || !pass.cleared || pass.others || !g->leaves[i].is_of_root) continue;
        g->unlisted += g->is_listed;
        if (g->is_listed || pass.cleared != updated) continue;
        g->judged++;
        g->left = pass.left;
        g->cleared = pass.cleared;
        g->is_sure &= pass.until_ns < pass.cleared_ns;
        pass_mark(g, marks, &pass, &g->leaves[i], count);
    }
}

/* ---- where it is ---- */

static const char *kind_stack(const struct grads *g, size_t kind)
{
    return kp_kineto_text(g->x->tree->trace, (uint32_t)g->kinds.keys[kind]);
}

/* The stack from its frame on is of what is left, and of nothing that is trained. */
static bool is_apart_from(const struct grads *g, const char *rest)
{
    const size_t bytes = strlen(rest);
    for (size_t i = 0; i < g->kinds.count; i++) {
        const char *const stack = kind_stack(g, i);
        const size_t length = strlen(stack);
        const bool has = length >= bytes && strcmp(stack + length - bytes, rest) == 0 &&
                         (length == bytes || stack[length - bytes - 1] == ';');
        if (has != (kind_is(g, i) == LEAF_LEFT)) return false;
    }
    return true;
}

/* Does a frame stand in a stack of what is trained? */
static bool is_trained_frame(const struct grads *g, const char *rest)
{
    char frame[256];
    snprintf(frame, sizeof frame, "%.*s", (int)strcspn(rest, ";"), rest);
    for (size_t i = 0; i < g->kinds.count; i++)
        if (kind_is(g, i) == LEAF_CLEARED && strstr(kind_stack(g, i), frame)) return true;
    return false;
}

/* The own line that calls all of what is left, the innermost that the trained part has not. NULL: there is none. */
static const char *line_of(const struct grads *g)
{
    struct kp_kineto *const trace = g->x->tree->trace;
    const char *rest = "";
    for (size_t i = 0; i < g->kinds.count && !*rest; i++)
        if (kind_is(g, i) == LEAF_LEFT) rest = kind_stack(g, i);
    for (; *rest; rest += strcspn(rest, ";"), rest += *rest == ';') {
        if (is_trained_frame(g, rest) || !is_apart_from(g, rest)) continue;
        const uint32_t line = kp_ownline_of(trace, kp_strings_put(trace->strings, rest, strlen(rest)));
        return line ? kp_kineto_text(trace, line) : NULL;
    }
    return NULL;
}

#define CURE                                                                                                           \
    "If it is not to be trained (a teacher, a target network, a frozen part), call requires_grad_(False) on it once, " \
    "%s. If it is, give its parameters to an optimizer."

static void grads_tell(struct grads *g, const uint8_t *marks)
{
    struct kp_costrules *const x = g->x;
    struct kp_cost_rule rule = {0.10, g->is_sure ? 0 : KP_RULE_MILD, "gradients-unused", "", ""};
    const char *const line = line_of(g);
    rule.what = KP_TEXT("backward computes gradients of %zu parameter%s that no optimizer updates in these steps, and "
                        "nothing clears, beside %zu that %s updated%s",
                        g->left, kp_units_s(g->left), g->cleared, g->cleared == 1 ? "is" : "are",
                        g->is_sure ? "" : "; at most this is saved");
    rule.change = g->is_sure ? KP_TEXT(CURE, "or run it under torch.no_grad()")
                             : KP_TEXT(CURE, "or, where nothing trained lies before it, run it under torch.no_grad()");
    struct kp_finding *const told = kp_cost_tell_marked(x, &rule, marks, true);
    if (!told || !line) return;
    told->line = line;
    told->also_line = NULL;
}

void kp_rules_unused_grads(struct kp_costrules *x)
{
    struct grads g = {.x = x, .of = kp_backward_of(x->tree)};
    uint8_t *const marks = kp_kineto_zeros(x->tree->count + 1, sizeof *marks);
    trace_read(&g);
    if (!g.is_unsure && g.updates.count) passes_judge(&g, marks);
    if (g.judged >= PASSES_LEAST && 4 * g.judged >= 3 * g.with_left && g.zeros < g.judged * g.left)
        grads_tell(&g, marks);
    if (g.unlisted >= PASSES_LEAST && 4 * g.unlisted >= 3 * g.with_left)
        kp_costrules_unjudged(x, "gradients that no optimizer uses (kprof run --record-shapes)");
    kp_keyindex_fini(&g.kinds);
    kp_keyindex_fini(&g.updates);
    free(g.leaves);
    free(g.of);
    free(marks);
}
