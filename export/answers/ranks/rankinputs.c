// SPDX-License-Identifier: Apache-2.0
/*
 * rankinputs.c - why a rank has more to do in ops: it calls them more often, or its inputs are larger
 *
 * The nth call of an op in a step is the same call on every rank: ranks run one program. The numbers of the tensors of
 * each input of such a call are compared. Weights are equal, so the first one that differs tells the data.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_order.h"
#include "export/answers/ranks/rankwaits.h"
#include "export/read/facts/namefacts.h"
#include "export/read/store/qsort.h"
#include "export/show/plain.h"
#include "export/show/shapetext.h"
#include "export/show/units.h"

enum { CALLS_MAX = 63, INPUTS_MAX = 8, INPUT_BYTES = 128, LINE_BYTES = 160 };
enum side { LATE, OTHERS, SIDES };
#define LARGER 1.2
#define MORE_CALLS 1.1
#define EXPLAINS_SHARE 0.5

struct rankinputs_call { /* of a rank: the nth call of an op in its steps, with these shapes */
    uint32_t op, nth, shapes, line;
    double count, ns;
};
struct call_sum { /* a mean step's */
    uint32_t op, nth, line;
    double count[SIDES], ns[SIDES], numbers[SIDES][INPUTS_MAX];
};
struct op_sum {
    uint32_t op;
    double count[SIDES], more_ns;
};
struct rankinputs {
    const struct kp_rankwaits *w;
    const struct kp_rankwait *late;
    struct kp_keyindex calls, ops;
    const struct call_sum *larger; /* the first of a step with larger inputs; NULL: none */
    double larger_ns;
};

/* ---- one trace ---- */

static uint64_t call_key(uint32_t op, uint32_t nth, uint32_t shapes)
{
    return (uint64_t)op << 38 | (uint64_t)nth << 32 | shapes;
}

static uint32_t text_kept(struct kp_rankwaits *w, const struct kp_tree *tree, uint32_t text)
{
    const char *const of = text ? kp_kineto_text(tree->trace, text) : "";
    return *of ? kp_strings_put(w->texts, of, strlen(of)) : 0;
}

/* Which call of its op in its step it is. */
static uint32_t nth_of(struct kp_keyindex *counted, uint32_t op, size_t step)
{
    struct counted {
        size_t step;
        uint32_t next;
    } first = {step, 0}, *const c = kp_keyindex_row(counted, op, &first, sizeof first);
    if (c->step != step) *c = first;
    return c->next++;
}

static bool is_compared(const struct kp_tree *tree, size_t i)
{
    const struct kp_node *const n = &tree->nodes[i];
    return !n->removed && !n->on_device && kp_tree_event(tree, i)->kind == KP_KINETO_OP &&
           !kp_node_is(tree, i, KP_NAME_COLLECTIVE);
}

void kp_rankinputs_add(struct kp_rankwaits *w, struct kp_rankwait *row, const struct kp_tree *tree,
                       const struct kp_chosen *chosen)
{
    struct kp_keyindex counted = {0};
    row->has_shapes |= tree->trace->record_shapes;
    row->has_device |= tree->has_device;
    for (size_t i = 0; i < tree->count; i++) {
        const size_t step = kp_step_at(chosen->steps, chosen->step_count, tree->nodes[i].start_ns);
        if (step >= chosen->step_count || !is_compared(tree, i)) continue;
        struct kp_values v;
        kp_tree_values(tree, i, &v);
        const struct kp_kineto_event *const e = kp_tree_event(tree, i);
        const uint32_t op = text_kept(w, tree, e->name), number = nth_of(&counted, op, step);
        const uint32_t nth = number < CALLS_MAX ? number : CALLS_MAX; /* all others are counted alone */
        const uint32_t shapes = nth < CALLS_MAX ? text_kept(w, tree, e->shapes) : 0;
        const struct rankinputs_call first = {op, nth, shapes, text_kept(w, tree, kp_tree_line(tree, &tree->nodes[i])),
                                              0,  0};
        struct rankinputs_call *const call =
            kp_keyindex_row(&row->calls, call_key(op, nth, shapes), &first, sizeof first);
        call->count++;
        call->ns += 1e3 * (tree->has_device ? v.self_device : v.self_cpu);
    }
    kp_keyindex_fini(&counted);
}

/* ---- the late rank beside the others ---- */

/* How many numbers the tensors of an input have; 0: it has none. */
static double numbers_of(const char *shapes, size_t input)
{
    char text[INPUT_BYTES];
    double all, largest;
    size_t bytes;
    const char *const at = kp_shapetext_input(shapes, input, &bytes);
    if (!at || bytes >= sizeof text) return 0;
    memcpy(text, at, bytes);
    text[bytes] = 0;
    kp_shapetext_numbers(text, &all, &largest);
    return all;
}

static void row_sum(struct rankinputs *c, const struct kp_rankwait *row)
{
    const enum side side = row == c->late ? LATE : OTHERS;
    const double part = 1 / (double)row->steps / (side == LATE ? 1 : (double)(c->w->rank_count - 1));
    const struct rankinputs_call *const calls = row->calls.rows;
    for (size_t i = 0; i < row->calls.count; i++) {
        const char *const shapes = kp_strings_get(c->w->texts, calls[i].shapes);
        const struct call_sum first = {.op = calls[i].op, .nth = calls[i].nth, .line = calls[i].line};
        struct call_sum *const sum = kp_keyindex_row(&c->calls, call_key(first.op, first.nth, 0), &first, sizeof first);
        sum->count[side] += part * calls[i].count;
        sum->ns[side] += part * calls[i].ns;
        for (size_t k = 0; k < INPUTS_MAX; k++) sum->numbers[side][k] += part * calls[i].count * numbers_of(shapes, k);
    }
}

static bool is_as_often(const double count[SIDES])
{
    return count[LATE] <= MORE_CALLS * count[OTHERS] && count[OTHERS] <= MORE_CALLS * count[LATE];
}

/* How many times as large its first input is that is larger; 1: none is. */
static double larger_by(const struct call_sum *sum, size_t *input)
{
    if (!is_as_often(sum->count)) return 1;
    for (*input = 0; *input < INPUTS_MAX; ++*input) {
        const double late = sum->numbers[LATE][*input] * sum->count[OTHERS];
        const double others = sum->numbers[OTHERS][*input] * sum->count[LATE];
        if (others > 0 && late >= LARGER * others) return late / others;
    }
    return 1;
}

static void ops_sum(struct rankinputs *c)
{
    struct call_sum *const calls = c->calls.rows;
    for (size_t i = 0, input; i < c->calls.count; i++) {
        struct call_sum *const sum = &calls[i];
        const struct op_sum first = {.op = sum->op};
        struct op_sum *const op = kp_keyindex_row(&c->ops, sum->op, &first, sizeof first);
        const double more = sum->ns[LATE] - sum->ns[OTHERS];
        op->more_ns += more;
        for (int side = 0; side < SIDES; side++) op->count[side] += sum->count[side];
        if (larger_by(sum, &input) <= 1) continue;
        c->larger_ns += more;
        if (!c->larger) c->larger = sum;
    }
}

/* ---- in words ---- */

struct weighed {
    double numbers, count;
    const char *shapes;
};
KP_ORDER(weighed_order, struct weighed, numbers)

/* The input of a call with as many calls of smaller as of larger ones: "[580, 128]". *is_one: all are equal. */
static const char *input_usual(char *out, size_t bytes, const struct rankinputs *c, const struct call_sum *sum,
                               size_t input, enum side side, bool *is_one)
{
    struct weighed *all = NULL;
    size_t count = 0, capacity = 0, at = 0, length = 0;
    double half = 0;
    for (size_t r = 0; r < c->w->rank_count; r++) {
        const struct kp_rankwait *const row = &c->w->ranks[r];
        const struct rankinputs_call *const calls = row->calls.rows;
        for (size_t i = 0; i < row->calls.count && (row == c->late) == (side == LATE); i++) {
            if (calls[i].op != sum->op || calls[i].nth != sum->nth) continue;
            const char *const shapes = kp_strings_get(c->w->texts, calls[i].shapes);
            *KP_KINETO_NEXT(all, count, capacity) = (struct weighed){numbers_of(shapes, input), calls[i].count, shapes};
            half += 0.5 * calls[i].count;
        }
    }
    if (!count) return "";
    kp_qsort(all, count, sizeof *all, weighed_order);
    *is_one &= all[0].numbers >= all[count - 1].numbers;
    while (at + 1 < count && (half -= all[at].count) > 0) at++;
    const char *const text = kp_shapetext_input(all[at].shapes, input, &length);
    char list[INPUT_BYTES + 2];
    snprintf(list, sizeof list, "[%.*s]", (int)length, text ? text : "");
    char shown[sizeof list];
    kp_shapetext_short(shown, sizeof shown, list);
    snprintf(out, bytes, "%.*s", (int)strlen(shown) - 2, shown + 1);
    free(all);
    return out;
}

static void larger_tell(char *out, size_t bytes, const struct rankinputs *c, const struct call_sum *sum)
{
    char op[96], line[LINE_BYTES], inputs[SIDES][INPUT_BYTES];
    const char *const name = kp_strings_get(c->w->texts, sum->op), *const at = kp_strings_get(c->w->texts, sum->line);
    size_t input = 0;
    bool is_one = true;
    const double ratio = larger_by(sum, &input);
    kp_plain_text(op, sizeof op, name, strlen(name));
    kp_plain_text(line, sizeof line, at, strlen(at));
    for (int side = 0; side < SIDES; side++)
        input_usual(inputs[side], sizeof inputs[side], c, sum, input, (enum side)side, &is_one);
    snprintf(out, bytes, "Its inputs are %.1f times as large from %s%s%s on: %s there, %s on the other%s%s", ratio, op,
             *line ? " at " : "", line, inputs[LATE], inputs[OTHERS], kp_units_s(c->w->rank_count - 1),
             is_one ? "" : " (medians)");
}

/* Larger inputs of ops that run as often, or ops that run more often, of which one costs most. */
static void judge(char *out, size_t bytes, const struct rankinputs *c, double more_ns)
{
    const struct op_sum *oftener = NULL, *const ops = c->ops.rows;
    double oftener_ns = 0;
    for (size_t i = 0; i < c->ops.count; i++) {
        const struct op_sum *const op = &ops[i];
        if (op->count[LATE] <= MORE_CALLS * op->count[OTHERS]) continue;
        oftener_ns += op->more_ns;
        if (!oftener || op->more_ns > oftener->more_ns) oftener = op;
    }
    if (c->larger && c->larger_ns >= EXPLAINS_SHARE * more_ns) larger_tell(out, bytes, c, c->larger);
    else if (oftener && oftener_ns >= EXPLAINS_SHARE * more_ns)
        snprintf(out, bytes, "It calls %s %.3g times per step, the other%s %.3g",
                 kp_strings_get(c->w->texts, oftener->op), oftener->count[LATE], kp_units_s(c->w->rank_count - 1),
                 oftener->count[OTHERS]);
    else if (!c->late->has_shapes)
        snprintf(out, bytes, "Larger inputs are not ruled out: kprof run --record-shapes compares them");
}

void kp_rankinputs_tell(char *out, size_t bytes, const struct kp_rankwaits *w, const struct kp_rankwait *late,
                        double more_ns)
{
    struct rankinputs c = {.w = w, .late = late};
    *out = 0;
    if (late->steps) row_sum(&c, late); /* first, so that calls are in its order */
    for (size_t i = 0; i < w->rank_count; i++)
        if (&w->ranks[i] != late && w->ranks[i].steps) row_sum(&c, &w->ranks[i]);
    ops_sum(&c);
    judge(out, bytes, &c, more_ns);
    kp_keyindex_fini(&c.calls);
    kp_keyindex_fini(&c.ops);
}
