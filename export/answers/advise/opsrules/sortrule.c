// SPDX-License-Identifier: Apache-2.0
/*
 * sortrule.c - a sort of all, of which the next op takes a few at one end: torch.topk finds these in less time
 *
 * How many are taken tell the shapes and Concrete Inputs. A sort behind a sort inverts its order, as for a mask.
 */
#include "export/answers/advise/opsrules/opsrules.h"
#include "export/show/shapetext.h"

#include <stdlib.h>

enum { PART_MOST = 4, NUMBERS_MOST = 4 }; /* told where a quarter or less is taken */

struct sorts {
    const struct kp_costrules *x;
    uint8_t *marks;    /* by node */
    int32_t inverse;   /* a sort right behind another; -1 */
    int32_t most;      /* the longest; -1: none */
    double all, taken; /* of that: how long a row is, and how many the next op takes; 0: not known */
};

static bool is_sort(const struct kp_costrules *x, int32_t node)
{
    return node >= 0 && KP_NAME_IS(kp_costrules_name(x, node), "aten::sort", "aten::argsort");
}

static bool takes_part(const struct kp_costrules *x, int32_t node)
{
    return node >= 0 && KP_NAME_IS(kp_costrules_name(x, node), "aten::slice", "aten::narrow", "aten::select");
}

/* The first op behind a node on its thread; -1: none. */
static int32_t next_op(const struct kp_costrules *x, int32_t node)
{
    const struct kp_node *const nodes = x->tree->nodes;
    const int64_t tid = kp_tree_event(x->tree, (size_t)node)->tid;
    for (size_t i = (size_t)node + 1; i < x->tree->count; i++)
        if (nodes[i].start_ns >= nodes[node].end_ns && kp_tree_event(x->tree, i)->tid == tid &&
            kp_costrules_is_op(x, i))
            return (int32_t)i;
    return -1;
}

/* The first input's. */
static struct kp_dims shape_of(const struct kp_costrules *x, int32_t node)
{
    struct kp_dims d;
    (void)kp_shapetext_dims(&d, kp_kineto_text(x->tree->trace, kp_kineto_shapes(kp_tree_event(x->tree, (size_t)node))),
                            0);
    return d;
}

/* Reads the numbers of Concrete Inputs behind the first; True and False are none. Returns how many. */
static size_t numbers_of(const struct kp_costrules *x, int32_t node, double of[NUMBERS_MOST])
{
    const char *at = strchr(kp_kineto_text(x->tree->trace, kp_tree_event(x->tree, (size_t)node)->concrete), '\n');
    size_t count = 0;
    for (; at && at[1] && count < NUMBERS_MOST; at = strchr(at + 1, '\n')) {
        char *end;
        const double number = strtod(at + 1, &end);
        if (end > at + 1) of[count++] = number;
    }
    return count;
}

static double from_begin(double at, double size) { return at < 0 ? at + size : at > size ? size : at; }

/* How many at one end of a sorted row the op takes, or all; 0: not known. */
static double taken_by(const struct kp_costrules *x, int32_t sort, int32_t taker, double *all)
{
    const struct kp_dims sorted = shape_of(x, sort), from = shape_of(x, taker);
    double by[NUMBERS_MOST];
    if (numbers_of(x, sort, by) != 1 || !sorted.count) return 0; /* the dimension */
    const double row = from_begin(by[0], (double)sorted.count);
    const size_t count = numbers_of(x, taker, by);
    if (count < 2 || row < 0 || row >= (double)sorted.count) return 0;
    *all = sorted.of[(size_t)row];
    const bool is_of_row = from_begin(by[0], (double)from.count) == row;
    if (memcmp(&sorted, &from, sizeof from) != 0 || !is_of_row) return *all;
    const double first = from_begin(by[1], *all);
    const bool has_length = strcmp(kp_costrules_name(x, taker), "aten::narrow") == 0;
    const double end = count == 2 ? first + 1 : has_length ? first + by[2] : from_begin(by[2], *all);
    return first < *all - end ? end : *all - first;
}

static void sort_take(struct sorts *s, int32_t sort)
{
    const struct kp_costrules *const x = s->x;
    int32_t next = next_op(x, sort);
    const bool is_inverse = sort == s->inverse;
    double all = 0;
    if (is_sort(x, next)) s->inverse = next;
    if (next >= 0 && strcmp(kp_costrules_name(x, next), "aten::flip") == 0) next = next_op(x, next);
    if (is_inverse || !takes_part(x, next)) return;
    const double taken = taken_by(x, sort, next, &all);
    const bool may_differ = !all && takes_part(x, next_op(x, next)); /* sorted[1:] - sorted[:-1] */
    if (may_differ || PART_MOST * taken > all) return;
    s->marks[sort] = true;
    if (s->most >= 0 && kp_costrules_ns(x, (size_t)sort) <= kp_costrules_ns(x, (size_t)s->most)) return;
    s->most = sort;
    s->all = all;
    s->taken = taken;
}

/* The share of a sort's time that torch.topk took on one core; see decisions/200. */
static const char *part_of(const struct sorts *s)
{
    return 64 * s->taken <= s->all   ? "a tenth"
           : 16 * s->taken <= s->all ? "a fifth"
           : 8 * s->taken <= s->all  ? "a quarter"
                                     : "two fifths";
}

static void sorts_tell(const struct sorts *s, struct kp_costrules *x)
{
    const char *const name = kp_costrules_name(x, s->most);
    struct kp_cost_rule rule = {0.05, s->taken > 0 ? 0 : KP_RULE_MILD, "sort-for-few", "", ""}; /* all may be used */
    if (s->taken > 0) {
        rule.what = KP_TEXT("%s sorts %.0f elements, and the next operator takes %.0f of them", name, s->all, s->taken);
        rule.change = KP_TEXT("If nothing else reads the sorted tensor, call torch.topk(x, %.0f)%s%s.", s->taken,
                              x->out->has_gpu ? "" : ": it takes about ",
                              x->out->has_gpu ? "" : KP_TEXT("%s of the time", part_of(s)));
    } else {
        rule.what = KP_TEXT("%s sorts all elements, and the next operator takes a part of them", name);
        rule.change = "If only the first or the last are used, call torch.topk(x, N). On a CPU it takes a tenth to two "
                      "fifths of the time for a quarter or less. --record-shapes shows how many are taken.";
    }
    kp_cost_tell_marked(x, &rule, s->marks, true);
}

void kp_rules_sorts(struct kp_costrules *x)
{
    struct sorts s = {.x = x, .inverse = -1, .most = -1};
    s.marks = kp_kineto_zeros(x->tree->count + 1, sizeof *s.marks);
    for (size_t i = 0; i < x->tree->count; i++) {
        if (!is_sort(x, (int32_t)i) || !kp_costrules_is_op(x, i) || x->loaders[i] >= 0) continue;
        if (!is_sort(x, x->tree->nodes[i].parent) && kp_costrules_in_steps(x, i)) sort_take(&s, (int32_t)i);
    }
    if (s.most >= 0) sorts_tell(&s, x);
    free(s.marks);
}
