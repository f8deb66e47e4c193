// SPDX-License-Identifier: Apache-2.0
/*
 * longplace.c - the line that calls all of what long steps have more, where that lies at several lines
 *
 * Each step has some line that is busiest, and what a line of the program calls then may take much longer in all. So
 * the frames around the ops are added up, each with the frames that call it. Ordinary steps do not have that call.
 */
#include "export/answers/advise/stepkinds/longsteps.h"

#include <string.h>

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

static void op_weigh(void *context, size_t step, int32_t node, int32_t before, int64_t ns)
{
    struct longplace *const p = context;
    const double weighed = p->weights[step] * (double)ns;
    (void)before;
    p->ns += weighed;
    if (kp_node_is_backward(p->x->tree, (size_t)node)) p->backward_ns += weighed;
}

/* The same, and to each call around the op. */
static void op_add(void *context, size_t step, int32_t node, int32_t before, int64_t ns)
{
    struct longplace *const p = context;
    struct kp_kineto *const trace = p->x->tree->trace;
    const double weighed = p->weights[step] * (double)ns;
    const uint32_t stack = kp_tree_stack(p->x->tree, &p->x->tree->nodes[node]);
    op_weigh(p, step, node, before, ns);
    if (kp_node_is_backward(p->x->tree, (size_t)node) || !stack || !(weighed > 0 || weighed < 0)) return;
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

static void ops_walk(struct longplace *p, kp_longsteps_fn take)
{
    for (size_t i = 0; i < p->x->chosen->step_count; i++)
        if (p->weights[i] > 0 || p->weights[i] < 0) kp_longsteps_walk(p->x, i, false, take, p);
}

bool kp_longplace_is_backward(const struct kp_costrules *x, const double *weights)
{
    struct longplace p = {.x = x, .weights = weights};
    ops_walk(&p, op_weigh);
    return p.ns > 0 && p.backward_ns >= BACK_SHARE * p.ns;
}

void kp_longplace_tell(const struct kp_costrules *x, const double *weights, struct kp_finding *out)
{
    struct longplace p = {.x = x, .weights = weights};
    struct kp_kineto *const trace = x->tree->trace;
    ops_walk(&p, op_add);
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
