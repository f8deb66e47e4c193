// SPDX-License-Identifier: Apache-2.0
/*
 * longplace.c - the line that calls all of what long steps have more, where that lies at several lines
 *
 * Each step has some line that is busiest, and what a line of the program calls then may take much longer in all. So
 * the frames around the ops are added up, each with the frames that call it. Ordinary steps do not have that call.
 */
#include "export/answers/advise/stepkinds/longsteps.h"

#define MOST_SHARE 0.8   /* of the ops' extra time lies under such a call; the rest is noise */
#define ALL_SHARE 0.95   /* of that: an inner call with so much is meant */
#define USUAL_SHARE 0.02 /* of that: the other steps have no more of it */
#define BACK_SHARE 0.85  /* of the ops' extra time: larger inputs would have a third of it in the forward pass */

struct call_cost {         /* by the text of a frame of the program and of those that call it */
    uint32_t stack, inner; /* inner: the stack from the frame that it calls, where most of the time lies */
    double more_ns, usual_ns, most_ns;
    size_t depth;
};
struct longplace {
    const struct kp_costrules *x;
    const double *weights; /* by step: below 0 those that are ordinary */
    struct kp_keyindex calls;
    double ns, backward_ns; /* what the ops have more in all, and in backward passes */
};

static void call_add(struct longplace *p, uint32_t stack, uint32_t inner, size_t depth, double ns)
{
    const struct call_cost none = {.stack = stack, .depth = depth};
    struct call_cost *const call = kp_keyindex_row(&p->calls, stack, &none, sizeof none);
    *(ns > 0 ? &call->more_ns : &call->usual_ns) += ns > 0 ? ns : -ns;
    if (ns > call->most_ns) call->most_ns = ns, call->inner = inner;
}

/* Adds the time of an op of the forward pass to each call around it. */
static void calls_add(struct longplace *p, int32_t node, double weighed)
{
    struct kp_kineto *const trace = p->x->tree->trace;
    const uint32_t stack = kp_tree_stack(p->x->tree, &p->x->tree->nodes[node]);
    if (!stack || !(weighed > 0 || weighed < 0)) return;
    const char *at = kp_kineto_text(trace, stack);
    size_t bytes;
    uint32_t inner = 0;
    for (; *at && (at = kp_ownline_frame(trace, at, &bytes)); at += bytes + (at[bytes] == ';')) {
        const size_t depth = strlen(at);
        const uint32_t id = kp_strings_put(trace->strings, at, depth);
        call_add(p, id, inner, depth, weighed);
        inner = id;
        at = kp_kineto_text(trace, id);
    }
}

static bool is_new(const struct call_cost *call) { return call->usual_ns <= USUAL_SHARE * call->more_ns; }

/* The innermost call that has all of what the outermost has; NULL: that is not most of the extra time. */
static const struct call_cost *call_find(const struct longplace *p)
{
    const struct call_cost *const of = p->calls.rows, *found = NULL;
    double all_ns = 0;
    for (size_t i = 0; i < p->calls.count; i++)
        if (is_new(&of[i]) && of[i].more_ns > all_ns) all_ns = of[i].more_ns;
    for (size_t i = 0; i < p->calls.count && all_ns >= MOST_SHARE * p->ns; i++)
        if (is_new(&of[i]) && of[i].more_ns >= ALL_SHARE * all_ns && (!found || of[i].depth > found->depth))
            found = &of[i];
    return found;
}

static void step_weigh(struct longplace *p, size_t step, bool with_calls)
{
    for (struct kp_longsteps_walk w = kp_longsteps_walk_of(p->x, step, false); kp_longsteps_next(&w);) {
        const double weighed = p->weights[step] * (double)w.ns;
        const bool is_backward = kp_node_is_backward(p->x->tree, (size_t)w.node);
        p->ns += weighed;
        if (is_backward) p->backward_ns += weighed;
        else if (with_calls) calls_add(p, w.node, weighed);
    }
}

static void steps_weigh(struct longplace *p, bool with_calls)
{
    for (size_t i = 0; i < p->x->chosen->step_count; i++)
        if (p->weights[i] > 0 || p->weights[i] < 0) step_weigh(p, i, with_calls);
}

bool kp_longplace_is_backward(const struct kp_costrules *x, const double *weights)
{
    struct longplace p = {.x = x, .weights = weights};
    steps_weigh(&p, false);
    return p.ns > 0 && p.backward_ns >= BACK_SHARE * p.ns;
}

void kp_longplace_tell(const struct kp_costrules *x, const double *weights, struct kp_finding *out)
{
    struct longplace p = {.x = x, .weights = weights};
    struct kp_kineto *const trace = x->tree->trace;
    steps_weigh(&p, true);
    const struct call_cost *const call = p.ns > 0 ? call_find(&p) : NULL;
    const uint32_t line = call && call->inner ? kp_ownline_of(trace, call->stack) : 0;
    if (line) {
        out->line = kp_kineto_text(trace, line);
        out->where = kp_kineto_text(trace, kp_ownline_any_function(trace, call->inner));
        out->also_line = out->after = out->module = out->frame = NULL;
        out->is_backward = out->is_after_backward = false;
    }
    kp_keyindex_fini(&p.calls);
}
