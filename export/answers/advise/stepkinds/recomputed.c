// SPDX-License-Identifier: Apache-2.0
/*
 * recomputed.c - what activation checkpointing computes again in the backward pass (torch.utils.checkpoint)
 *
 * It is asked for, to save memory: so it is a note, and no finding. Ops of it have torch's hook in their stacks, or lie
 * in a call of it. With use_reentrant=True backward runs inside of that call, so nothing tells the two apart: it is not
 * told.
 */
#include "export/answers/advise/stepkinds/evalsteps.h"

#include "export/show/units.h"

#define TOLD_SHARE 0.05 /* of the steps' time */
#define OF_TORCH "torch/utils/checkpoint.py("
#define CALL "): checkpoint"

static bool is_of_torch(const struct kp_costrules *x, uint32_t text)
{
    return (kp_namefacts(x->tree->trace, text) & KP_NAME_RECOMPUTES) &&
           strstr(kp_kineto_text(x->tree->trace, text), OF_TORCH);
}

/* The call itself, or an op whose own stack has it: the tree gives some ops the stack of their forward op. */
static bool is_recomputed(const struct kp_costrules *x, size_t i)
{
    if (x->tree->nodes[i].is_python) return is_of_torch(x, x->tree->nodes[i].name);
    return kp_costrules_is_op(x, i) && is_of_torch(x, kp_tree_event(x->tree, i)->stack);
}

/* The own line that calls checkpoint(), by an op that runs in it; 0: no stack tells. */
static uint32_t line_of(const struct kp_costrules *x)
{
    struct kp_kineto *const trace = x->tree->trace;
    for (size_t i = 0; i < x->tree->count; i++) {
        if (!kp_costrules_is_op(x, i)) continue;
        const char *const stack = kp_kineto_text(trace, kp_tree_stack(x->tree, &x->tree->nodes[i]));
        const char *const torch = strstr(stack, OF_TORCH), *const call = torch ? strstr(torch, CALL) : NULL;
        const char *const outer = call ? strchr(call, ';') : NULL;
        if (outer) return kp_ownline_of(trace, kp_strings_put(trace->strings, outer + 1, strlen(outer + 1)));
    }
    return 0;
}

/* On a GPU its work counts, by the op that launched it. */
static double cost_of(const struct kp_costrules *x, const struct kp_spans *times)
{
    double ns = 0;
    if (!x->out->has_gpu) return (double)kp_spans_length(times, &x->chosen->in_steps);
    for (size_t i = 0; i < x->work_count; i++) {
        const int32_t place = kp_costrules_place(&x->works[i]);
        if (place < 0 || !kp_spans_has(times, x->tree->nodes[place].start_ns)) continue;
        if (!kp_costrules_in_steps(x, place)) continue;
        ns += (double)(x->works[i].end_ns - x->works[i].start_ns);
    }
    return ns;
}

const char *kp_recomputed_text(const struct kp_costrules *x)
{
    const double steps = (double)x->chosen->step_count, all_ns = x->out->step_ns * steps;
    struct kp_spans times = {0};
    for (size_t i = 0; i < x->tree->count; i++)
        if (is_recomputed(x, i)) kp_spans_add(&times, x->tree->nodes[i].start_ns, x->tree->nodes[i].end_ns);
    kp_spans_settle(&times);
    const double ns = cost_of(x, &times);
    kp_spans_fini(&times);
    if (!(all_ns > 0) || ns < TOLD_SHARE * all_ns) return NULL;
    const uint32_t line = line_of(x);
    return KP_TEXT("activation checkpointing computes a part of the forward pass again: %s per step "
                   "(%.1f %%)%s%s. If memory allows, checkpoint fewer layers",
                   kp_units_ms(ns / steps), 100 * ns / all_ns, line ? ", called at " : "",
                   line ? kp_kineto_text(x->tree->trace, line) : "");
}
