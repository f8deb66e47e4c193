// SPDX-License-Identifier: Apache-2.0
/*
 * hotlines.c - which lines of the program the steps spend most time in
 *
 * Rules know some mistakes. What none of them knows, as a loop that copies weights, is in sight by its line: the rows
 * of kprof report --by line.
 */
#include "export/answers/advise/hotlines.h"

#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "export/answers/advise/parts/costrules.h"
#include "export/answers/top/toprows.h"

enum { LINES_SHOWN = 4 };
#define FIRST_LEAST 0.10 /* of a step */
#define OTHER_LEAST 0.05

KP_ORDER_DOWN(most_first, struct kp_top_row, steps.self_ns)

static const char *lines_text(const struct kp_costrules *x, const struct kp_top *lines)
{
    const char *text = NULL;
    size_t shown = 0;
    for (size_t i = 0; i < lines->count && shown < LINES_SHOWN; i++) {
        const struct kp_top_row *const l = &lines->rows[i];
        const char *const name = kp_kineto_text(x->tree->trace, l->name);
        const double share = l->steps.self_ns / (double)x->out->steps / x->out->step_ns;
        if (share < (shown ? OTHER_LEAST : FIRST_LEAST)) break;
        if (!l->name) continue;
        text = kp_costrules_text(x, "%s%s%s%s %.0f %%", text ? text : "most of a step: ", text ? ", " : "",
                                 l->is_backward ? KP_TOP_BACKWARD_OF : "", name, 100 * share);
        shown++;
    }
    return text;
}

const char *kp_hotlines_text(const struct kp_costrules *x)
{
    struct kp_top lines;
    if (x->out->has_gpu || !x->out->steps || !(x->tree->trace->has_stacks || x->tree->trace->with_stack)) return NULL;
    kp_top_build(&lines, x->tree, x->chosen, KP_TOP_BY_LINE);
    if (lines.count) qsort(lines.rows, lines.count, sizeof *lines.rows, most_first);
    const char *const text = lines_text(x, &lines);
    kp_top_fini(&lines);
    return text;
}
