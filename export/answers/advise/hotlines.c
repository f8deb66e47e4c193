// SPDX-License-Identifier: Apache-2.0
/*
 * hotlines.c - which lines of the program the steps spend most time in
 *
 * Rules know some mistakes. What none of them knows, as a loop that copies weights, is in sight by its line. An op's
 * own time counts, as in kprof report --by line: its line is the innermost of the program, and of a backward op the
 * forward's. Gradients are accumulated at the line of the backward op before, as kprof report --by module has it.
 */
#include "export/answers/advise/hotlines.h"

#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "export/answers/advise/parts/adviseparts.h"
#include "export/answers/advise/stepkinds/longsteps.h"
#include "export/read/facts/backwardof.h"
#include "export/answers/top/toprows.h"

enum { LINES_SHOWN = 4 };
#define FIRST_LEAST 0.10 /* of a step */
#define OTHER_LEAST 0.05

struct hot_line {
    uint32_t line;
    bool is_backward;
    double ns;
};
struct hot_lines {
    const struct kp_costrules *x;
    struct kp_ownlines found;
    struct kp_keyindex keys; /* rows: struct hot_line */
};

KP_ORDER_DOWN(most_first, struct hot_line, ns)

static void op_take(struct hot_lines *h, size_t node, size_t of)
{
    const struct kp_tree *const tree = h->x->tree;
    const uint32_t line = kp_costplace_line(&h->found, tree, (int32_t)of);
    const bool is_backward = kp_node_is_backward(tree, of);
    if (!line) return;
    struct hot_line *const sum = kp_keyindex_row(&h->keys, (uint64_t)line << 1 | is_backward,
                                                 &(struct hot_line){line, is_backward, 0}, sizeof *sum);
    sum->ns += kp_slowerops_self_ns(h->x->tree, node);
}

static const char *lines_text(struct hot_lines *h)
{
    const struct kp_costrules *const x = h->x;
    const double steps = (double)x->out->steps;
    const char *text = NULL;
    struct hot_line *const of = h->keys.rows;
    if (h->keys.count) qsort(of, h->keys.count, sizeof *of, most_first);
    for (size_t i = 0; i < h->keys.count && i < LINES_SHOWN; i++) {
        const struct hot_line *const l = &of[i];
        const double share = l->ns / steps / x->out->step_ns;
        if (share < (i ? OTHER_LEAST : FIRST_LEAST)) break;
        text = kp_costrules_text(x, "%s%s%s%s %.3f ms (%.1f %%)", text ? text : "most of a step: ", text ? ", " : "",
                                 l->is_backward ? KP_TOP_BACKWARD_OF : "", kp_kineto_text(x->tree->trace, l->line),
                                 l->ns / steps / 1e6, 100 * share);
    }
    return text;
}

const char *kp_hotlines_text(const struct kp_costrules *x)
{
    struct hot_lines h = {.x = x};
    if (x->out->has_gpu || !x->out->steps || !(x->tree->trace->has_stacks || x->tree->trace->with_stack)) return NULL;
    uint32_t *const of = kp_backward_of(x->tree);
    for (size_t i = 0; i < x->tree->count; i++)
        if (kp_costrules_is_op(x, i) && kp_spans_has(&x->chosen->in_steps, x->tree->nodes[i].start_ns))
            op_take(&h, i, of[i]);
    const char *const text = lines_text(&h);
    free(of);
    kp_keyindex_fini(&h.keys);
    kp_ownlines_fini(&h.found);
    return text;
}
