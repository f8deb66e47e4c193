// SPDX-License-Identifier: Apache-2.0
/* stepspans.c - finds the times of steps by their numbers, from a walk over the events of a trace */
#include "export/read/tree/stepspans.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_order.h"
#include "export/read/store/qsort.h"
#include "export/read/kineto/stepends.h"
#include "export/show/units.h"

void kp_stepspans_see(struct kp_stepspans *steps, const struct kp_kineto *trace, const struct kp_kineto_event *e)
{
    const char *name = kp_kineto_text(trace, e->name);
    if (!steps->count) kp_passends_see(&steps->passes, e, 0);
    const bool is_range = e->kind == KP_KINETO_ANNOTATION, is_step = kp_kineto_is_step(name);
    if (e->phase != 'X' || (!is_range && !(e->kind == KP_KINETO_OP && is_step))) return;
    if (!is_step && !kp_stepends_may(trace, e)) return;
    kp_passends_fini(&steps->passes);
    steps->has_steps |= is_step;
    steps->are_marked |= trace->has_step_ends;
    const bool is_named = e->flags & KP_KINETO_TEXT_PID;
    *KP_KINETO_NEXT(steps->of, steps->count, steps->capacity) =
        (struct kp_stepmark){.start_ns = e->start_ns,
                             .end_ns = e->start_ns + e->dur_ns,
                             .pid = is_named ? -1 : e->pid,
                             .tid = is_named ? -1 : e->tid,
                             .name = e->name,
                             .number = is_step ? strtol(name + 13, NULL, 10) : -1};
}

KP_ORDER2(mark_order, struct kp_stepmark, start_ns, end_ns)

/* Makes steps of what the optimizer that counts marked, as kp_stepends_counts() does. */
static void optimizer_number(struct kp_stepspans *steps)
{
    size_t kept = 0;
    long number = 0;
    int64_t last_ns = INT64_MIN;
    kp_qsort(steps->of, steps->count, sizeof *steps->of, mark_order);
    const struct kp_stepmark first = steps->of[0];
    for (size_t i = 0; i < steps->count; i++) {
        const struct kp_stepmark mark = steps->of[i];
        const bool counts =
            steps->are_marked || (mark.name == first.name && mark.pid == first.pid && mark.tid == first.tid);
        if (!counts || mark.end_ns <= last_ns) continue;
        if (number)
            steps->of[kept++] = (struct kp_stepmark){last_ns, mark.end_ns, mark.pid, mark.tid, mark.name, number};
        last_ns = mark.end_ns;
        number++;
    }
    steps->count = kept;
}

static void passes_add(struct kp_stepspans *steps, const struct kp_kineto *trace)
{
    if (!kp_passends_may(trace)) return;
    kp_passends_settle(&steps->passes, trace);
    for (size_t i = 0; i < steps->passes.count; i++) {
        const struct kp_pass_op *const op = &steps->passes.ops[i];
        *KP_KINETO_NEXT(steps->of, steps->count, steps->capacity) = (struct kp_stepmark){
            op->start_ns, op->end_ns, op->has_names ? -1 : op->pid, op->has_names ? -1 : op->tid, op->name, -1};
    }
    steps->are_marked = true;
}

int kp_stepspans_cut(struct kp_stepspans *steps, const struct kp_kineto *trace, long first, long last,
                     struct kp_spans *out, char *why, size_t why_bytes)
{
    char span[80], asked[80];
    long least = -1, most = -1;
    size_t found = 0;
    if (!steps->count) passes_add(steps, trace);
    if (steps->count && !steps->has_steps) optimizer_number(steps);
    for (size_t i = 0; i < steps->count; i++) {
        const struct kp_stepmark *s = &steps->of[i];
        if (s->number < 0) continue;
        if (least < 0 || s->number < least) least = s->number;
        if (s->number > most) most = s->number;
        if (s->number < first || s->number > last) continue;
        kp_spans_add(out, s->start_ns, s->end_ns);
        found++;
    }
    if (found) return 0;
    if (least < 0) snprintf(why, why_bytes, "the trace has no steps; kprof run --schedule or --step marks them");
    else
        snprintf(why, why_bytes, "no %s in it: the trace has %s", kp_units_steps(asked, sizeof asked, first, last),
                 kp_units_steps(span, sizeof span, least, most));
    return -ENOENT;
}

void kp_stepspans_fini(struct kp_stepspans *steps)
{
    free(steps->of);
    kp_passends_fini(&steps->passes);
    *steps = (struct kp_stepspans){0};
}
