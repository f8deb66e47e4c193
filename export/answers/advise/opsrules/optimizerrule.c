// SPDX-License-Identifier: Apache-2.0
/*
 * optimizerrule.c - an optimizer that updates its parameters op by op, though torch has it in one pass (fused=True)
 *
 * For a CPU alone: on a GPU launches and kernels show the same time. A step with a closure runs the model, too: the
 * update begins behind the last node of autograd in it.
 */
#include "export/answers/advise/opsrules/opsrules.h"

#include <stdio.h>

#include "export/answers/advise/stepkinds/longsteps.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/read/kineto/pagefaults.h"

#define STEP_NAME "Optimizer.step#"
#define SHARE_LEAST 0.15     /* of a step: one pass takes a fifth of the time */
#define SHARE_LEAST_SGD 0.30 /* it takes two thirds to a third; of few parameters Adagrad's, too */
#define CRITICAL_NS 5e5      /* what is less is mostly Optimizer.step's own Python, which stays */

struct update {
    uint32_t kind;  /* the last op's name */
    bool are_kinds; /* of ops: with one alone (SGD without momentum) one pass saves little */
    size_t ops;
    int64_t start_ns;
    int32_t first; /* an op; -1: none yet */
    bool is_other; /* it is fused already, or what fused=True refuses */
};
struct updates {
    struct kp_cost cost;
    struct kp_spans times;
    int32_t range; /* the last that was charged; -1 */
    size_t ops;
};

/* Classes that have fused=True on a CPU, from torch 2.4 on. Returns the name's end, NULL: none of these. */
static const char *fusable_of(const char *range)
{
    static const char *const names[] = {"AdamW", "Adam", "SGD", "Adagrad"};
    if (!kp_name_begins(range, STEP_NAME)) return NULL;
    const char *const of = range + strlen(STEP_NAME);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (kp_name_begins(of, names[i]) && strcmp(of + strlen(names[i]), ".step") == 0) return names[i];
    return NULL;
}

static bool is_elementwise(const char *op)
{
    return kp_name_begins(op, "aten::_foreach_") ||
           KP_NAME_IS(op, "aten::mul_", "aten::add_", "aten::addcmul_", "aten::addcdiv_", "aten::lerp_", "aten::div_",
                      "aten::sqrt", "aten::div");
}

static void op_take(struct update *u, const struct kp_costrules *x, size_t i)
{
    const char *const name = kp_costrules_name(x, (int32_t)i);
    const uint32_t id = kp_tree_event(x->tree, i)->name;
    u->is_other |= KP_NAME_HAS(name, "_fused_", "sparse", "coalesce");
    if (!is_elementwise(name)) return;
    if (u->first < 0) u->first = (int32_t)i;
    u->are_kinds |= u->ops++ && u->kind != id;
    u->kind = id;
}

static struct update update_of(const struct kp_costrules *x, size_t range)
{
    const struct kp_node *const nodes = x->tree->nodes;
    const uint64_t thread = kp_tree_thread(kp_tree_event(x->tree, range));
    struct update u = {.start_ns = nodes[range].start_ns, .first = -1};
    for (size_t i = range + 1; i < x->tree->count && nodes[i].start_ns < nodes[range].end_ns; i++) {
        if (nodes[i].on_device) continue;
        if (kp_node_is(x->tree, i, KP_NAME_ENGINE)) u = (struct update){.start_ns = nodes[i].end_ns, .first = -1};
        else if (nodes[i].start_ns >= u.start_ns && kp_costrules_is_op(x, i) &&
                 kp_tree_thread(kp_tree_event(x->tree, i)) == thread &&
                 kp_costplace_op(x->tree, (int32_t)i) == (int32_t)i)
            op_take(&u, x, i);
    }
    return u;
}

static void updates_charge(struct updates *s)
{
    const struct kp_costrules *const x = s->cost.x;
    for (size_t i = 0; i < x->tree->count; i++) {
        const struct kp_node *const node = &x->tree->nodes[i];
        if (node->on_device || node->is_python || !fusable_of(kp_costrules_name(x, (int32_t)i))) continue;
        const struct update u = update_of(x, i);
        if (u.is_other || !u.are_kinds || !kp_spans_has(&x->chosen->in_steps, u.start_ns)) continue;
        kp_cost_add(&s->cost, u.first, u.start_ns, node->end_ns, 1);
        kp_spans_add(&s->times, u.start_ns, node->end_ns);
        s->range = (int32_t)i;
        s->ops += u.ops;
    }
    kp_spans_settle(&s->times);
}

/* "; this is torch 2.3.1" where that has none of the kind on a CPU. */
static const char *version_text(const struct kp_costrules *x)
{
    const char *const torch = kp_kineto_fact(x->tree->trace, "kprof.torch_version");
    int major = 0, minor = 0;
    if (!torch || sscanf(torch, "%d.%d", &major, &minor) != 2 || major > 2 || (major == 2 && minor >= 4)) return "";
    return KP_TEXT("; this is torch %s", torch);
}

void kp_rules_optimizer(struct kp_costrules *x)
{
    struct updates s = {.cost = kp_cost_open(x), .range = -1};
    struct kp_cost_rule rule = {SHARE_LEAST, 0, KP_FINDING_OPTIMIZER, "", ""};
    if (!x->out->has_gpu) updates_charge(&s);
    const char *const of = s.range < 0 ? "" : fusable_of(kp_costrules_name(x, s.range));
    if (KP_NAME_IS(of, "SGD", "Adagrad")) rule.bound = SHARE_LEAST_SGD;
    rule.what = KP_TEXT("%s updates its parameters operator by operator (%.0f per step)", of,
                        (double)s.ops / (double)x->chosen->step_count);
    rule.change = KP_TEXT(
        "Use torch.optim.%s(..., fused=True), which updates all in one pass (on a CPU since torch 2.4%s; for dense "
        "floating-point parameters). The cost is all of Optimizer.step; fused=True saves a part of it.",
        of, version_text(x));
    struct kp_finding *const told = kp_cost_tell(&s.cost, &rule);
    if (told) {
        told->where = kp_costrules_name(x, s.range);
        told->is_critical &= told->step_ns >= CRITICAL_NS;
        kp_readtimes_idle(&x->read_idle, x, &s.times);
    }
    kp_spans_fini(&s.times);
}

/* ---- page faults of an update ---- */

/* How much longer ops of the update that make a new tensor take than those in place, in all steps. */
static double made_ns(const struct kp_costrules *x)
{
    double made = 0, in_place = 0;
    size_t made_count = 0, in_place_count = 0;
    for (size_t i = 0; i < x->tree->count; i++) {
        const char *const name = kp_costrules_name(x, (int32_t)i);
        if (!kp_costrules_is_op(x, i) || !is_elementwise(name) || kp_name_begins(name, "aten::_foreach_")) continue;
        if (!kp_costrules_in_steps(x, i) || !kp_node_is_in(x->tree, (int32_t)i, KP_NAME_OPTIMIZER)) continue;
        const bool makes = KP_NAME_IS(name, "aten::sqrt", "aten::div");
        *(makes ? &made : &in_place) += (double)kp_costrules_ns(x, i);
        *(makes ? &made_count : &in_place_count) += 1;
    }
    return made - (in_place_count ? in_place / (double)in_place_count * (double)made_count : made);
}

void kp_rules_optimizer_faults(struct kp_costrules *x)
{
    struct kp_finding *const taken = kp_costrules_find(x, KP_FINDING_FAULTS);
    struct kp_pagefaults faults;
    struct kp_finding *const f = kp_costrules_find(x, KP_FINDING_OPTIMIZER);
    if (!taken || !f || !kp_pagefaults_of(x->tree->trace, &faults)) return;
    if (faults.major_ns > faults.minor_ns || made_ns(x) < taken->step_ns * (double)x->out->steps) return;
    f->change = KP_TEXT("%s The new tensors of the update take most of the %.0f page faults per step.", f->change,
                        faults.minor);
    kp_finding_drop(x->out, taken);
}
