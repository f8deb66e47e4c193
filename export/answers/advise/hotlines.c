// SPDX-License-Identifier: Apache-2.0
/*
 * hotlines.c - which lines of the program, or operators, the steps, or a trace without steps, spend most time in
 *
 * Rules know some mistakes. A cost that none of them knows, as a loop that copies weights, is in sight by its line: the
 * rows of kprof report --by line, each with the time of its backward. Operators stand for lines that were not recorded.
 */
#include "export/answers/advise/hotlines.h"

#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "export/answers/advise/parts/costrules.h"
#include "export/answers/top/toprows.h"

enum { LINES_SHOWN = 4 };
#define FIRST_LEAST 0.10 /* of a step */
#define OTHER_LEAST 0.05

/* A line with its backward. */
struct hot {
    uint32_t name;
    double ns, backward_ns; /* of all steps, or of all that was recorded; the second is a part of the first */
};

KP_ORDER_DOWN(most_first, struct hot, ns)

KP_ORDER(by_name, struct kp_top_row, name)

/* True if the row is a step, an optimizer or a loader: each is a part of a step, and is named as that. So is a
 * collective, which may run on a thread beside the step's. */
static bool is_part(const struct kp_kineto *trace, uint32_t name)
{
    const char *const text = kp_kineto_text(trace, name);
    return strncmp(text, "ProfilerStep", 12) == 0 || strchr(text, '#') ||
           kp_namefacts(trace, name) & KP_NAME_COLLECTIVE;
}

/* In steps, without what a backend of collectives does beside ops, which have that time already. */
static double own_ns(const struct kp_top *top, const struct kp_top_row *row, bool has_steps)
{
    return has_steps ? row->steps.self_ns - row->begun_ns + row->begun_alone_ns : kp_top_row_self_ns(top, row);
}

/* Into as much room as there are rows. `has_steps`: the time in steps counts, and no other. */
static size_t hots_make(struct hot *of, struct kp_top *top, bool has_steps)
{
    size_t count = 0;
    if (top->count) qsort(top->rows, top->count, sizeof *top->rows, by_name);
    for (size_t i = 0; i < top->count; i++) {
        const struct kp_top_row *const row = &top->rows[i];
        if (!row->name || (top->by == KP_TOP_BY_OP && is_part(top->trace, row->name))) continue;
        if (!count || of[count - 1].name != row->name) of[count++] = (struct hot){.name = row->name};
        const double ns = own_ns(top, row, has_steps);
        of[count - 1].ns += ns;
        if (row->is_backward) of[count - 1].backward_ns += ns;
    }
    if (count) qsort(of, count, sizeof *of, most_first);
    return count;
}

static bool has_ops(const struct kp_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        if (kp_tree_event(tree, i)->kind == KP_KINETO_OP) return true;
    return false;
}

/* `all_ns`: what the shares are of. If several threads run steps at once, it is the time of all of these. */
static const char *most_text(const struct kp_costrules *x, const struct hot *of, size_t count, double all_ns)
{
    const double threads = x->out->steps && x->out->step_threads > 1 ? (double)x->out->step_threads : 1;
    const char *text = "";
    double all = 0;
    bool has_backward = false;
    for (size_t i = 0; i < count && i < LINES_SHOWN; i++) {
        const double share = of[i].ns / all_ns / threads;
        if (share < (i ? OTHER_LEAST : FIRST_LEAST)) break;
        text =
            KP_TEXT("%s%s%s %.0f %%", text, *text ? ", " : "", kp_kineto_text(x->tree->trace, of[i].name), 100 * share);
        has_backward |= of[i].backward_ns > 0;
        all += share;
    }
    const char *const of_what = x->out->steps               ? "a step"
                                : !has_ops(x->tree)         ? "the recorded time in calls"
                                : kp_costrules_has_calls(x) ? "the recorded time"
                                                            : "the recorded time in operators";
    if (!*text) return NULL;
    if (threads > 1)
        return KP_TEXT("most of the time of the %zu threads that run steps%s: %s", x->out->step_threads,
                       has_backward ? ", lines with their backward" : "", text);
    return KP_TEXT("most of %s%s%s: %s", of_what, has_backward ? ", lines with their backward" : "",
                   all > 1.005 ? ", on several threads at once" : "", text);
}

/* The line that has the most of what is in no part of a training: such a line has no backward. */
static const char *elsewhere_line(const struct kp_costrules *x, const struct hot *of, size_t count)
{
    const double ns = x->out->elsewhere * (double)x->out->steps * x->out->step_ns;
    for (size_t i = 0; i < count && of[i].ns >= ns / 2; i++)
        if (of[i].backward_ns == 0 && of[i].ns <= ns) return KP_TEXT("%s", kp_kineto_text(x->tree->trace, of[i].name));
    return NULL;
}

void kp_hotlines_tell(const struct kp_costrules *x)
{
    struct kp_top top;
    const bool has_lines = x->tree->trace->has_stacks || x->tree->trace->with_stack;
    if (x->out->has_gpu || (!x->out->steps && x->tree->has_device)) return;
    kp_top_build(&top, x->tree, x->chosen, has_lines ? KP_TOP_BY_LINE : KP_TOP_BY_OP);
    struct hot *const of = kp_kineto_room(top.count + 1, sizeof *of);
    const size_t count = hots_make(of, &top, x->out->steps);
    double all_ns = x->out->step_ns * (double)x->out->steps;
    for (size_t i = 0; !x->out->steps && i < top.count; i++) all_ns += kp_top_row_self_ns(&top, &top.rows[i]);
    x->out->most = most_text(x, of, count, all_ns);
    if (x->out->elsewhere > 0) x->out->elsewhere_line = elsewhere_line(x, of, count);
    free(of);
    kp_top_fini(&top);
}
