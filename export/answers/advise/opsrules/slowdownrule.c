// SPDX-License-Identifier: Apache-2.0
/*
 * slowdownrule.c - an op that gets several times slower within the recording, though it runs as often on equal sizes
 *
 * Values do that: what decays becomes subnormal, and a CPU takes many times as long for some ops on such numbers. Calls
 * are of one kind by name, shapes and the program's line. A busier machine slows most ops alike, so an op counts by
 * what it grows beyond the median op, and waits for a core are left out of its time. Sizes may grow if no shapes were
 * recorded: steps that get slower and slower are then left to slower-steps.
 */
#include "export/answers/advise/opsrules/opsrules.h"

#include <stdlib.h>

#include "export/answers/advise/stepkinds/longsteps.h"
#include "export/answers/top/timeshares.h"
#include "export/show/units.h"

enum { STEPS_LEAST = 12, EARLY_LEAST = 4, EARLY_PART = 16, OPS_MOST = 16 };
#define GROWN_LEAST 3.0   /* of the time a call, late over early, and over what the median op grows */
#define MAYBE_LEAST 1.5   /* of the means, in which a slow call counts */
#define COUNT_SLACK 0.1   /* calls a step, late over early */
#define WEIGHT_LEAST 5e-3 /* of the early time in ops, of an op by which the others are judged */
#define LATE_SHARE 0.25   /* late calls that are as fast are no chance */

struct op_pace { /* a kind of calls: what they take in the early and in the late steps */
    double early_ns, late_ns, early_count, late_count;
    int32_t node; /* one of them */
    size_t slot;  /* 1 to OPS_MOST: its times are kept by step; 0: they are not */
};
struct slowdown {
    struct kp_costrules *x;
    double *on_core;         /* by step: the part of its time in which its thread had a core */
    size_t steps, from, end; /* the early steps are from `from`, since the first may warm up, to `end` */
    size_t late;             /* and the late ones from here on */
    bool has_shapes;
    struct kp_keyindex places, paces;       /* shapes and line; rows: struct op_pace, by name and place */
    double *ns[OPS_MOST], *count[OPS_MOST]; /* by step; ns: with the waits, which may not be those of this op */
    size_t slots;
};

/* Time of these depends on values by their nature, or they copy, or take memory, which the system may have to find. */
static bool is_of_values(const char *name)
{
    return KP_NAME_IS(name, "aten::copy_", "aten::item", "aten::_local_scalar_dense", "aten::nonzero", "aten::index",
                      "aten::masked_select", "aten::sort", "aten::argsort", "aten::index_put_", "aten::resize_") ||
           kp_name_begins(name, "aten::empty") || kp_name_begins(name, "aten::_unique") ||
           kp_name_begins(name, "aten::unique");
}

static bool is_judged(const struct kp_costrules *x, size_t node)
{
    return kp_slowerops_is_of_library(x, node) && x->loaders[node] < 0 &&
           !is_of_values(kp_costrules_name(x, (int32_t)node));
}

static struct op_pace *pace_of(struct slowdown *s, size_t node)
{
    const struct kp_kineto_event *const e = kp_tree_event(s->x->tree, node);
    const uint32_t shapes = kp_kineto_shapes(e), line = kp_costplace_line(s->x->tree, (int32_t)node);
    const size_t place = kp_keyindex_get(&s->places, (uint64_t)shapes << 32 | line);
    s->has_shapes |= shapes != 0;
    return kp_keyindex_row(&s->paces, (uint64_t)e->name << 32 | place, &(struct op_pace){.node = (int32_t)node},
                           sizeof(struct op_pace));
}

typedef void (*take_fn)(struct slowdown *s, struct op_pace *pace, size_t step, double ns);

static void early_late_take(struct slowdown *s, struct op_pace *pace, size_t step, double ns)
{
    const bool is_late = step >= s->late;
    *(is_late ? &pace->late_ns : &pace->early_ns) += s->on_core[step] * ns;
    *(is_late ? &pace->late_count : &pace->early_count) += 1;
}

static void step_take(struct slowdown *s, struct op_pace *pace, size_t step, double ns)
{
    if (!pace->slot) return;
    s->ns[pace->slot - 1][step] += ns;
    s->count[pace->slot - 1][step] += 1;
}

static void each_take(struct slowdown *s, size_t from, size_t to, take_fn take)
{
    const struct kp_tree *const tree = s->x->tree;
    for (size_t step = from; step < to; step++) {
        const struct kp_step *const of = &s->x->chosen->steps[step];
        for (size_t i = kp_longsteps_node(tree, of->start_ns), end = kp_longsteps_node(tree, of->end_ns); i < end; i++)
            if (is_judged(s->x, i)) take(s, pace_of(s, i), step, kp_slowerops_self_ns(tree, i));
    }
}

/* How many times as long a call takes late; 0: it runs more often or less often, or in a part of the steps. */
static double growth_of(const struct slowdown *s, const struct op_pace *pace)
{
    const double early = pace->early_count / (double)(s->end - s->from),
                 late = pace->late_count / (double)(s->steps - s->late);
    if (!(early > 0) || !(pace->early_ns > 0) || late > early * (1 + COUNT_SLACK) || late < early * (1 - COUNT_SLACK))
        return 0;
    return pace->late_ns / pace->late_count / (pace->early_ns / pace->early_count);
}

/* The growth of the median op, and at least 1. */
static double growth_of_ops(const struct slowdown *s)
{
    const struct op_pace *const paces = s->paces.rows;
    struct kp_sample of = {0};
    double all = 0;
    for (size_t i = 0; i < s->paces.count; i++) all += paces[i].early_ns;
    for (size_t i = 0; i < s->paces.count; i++) {
        const double growth = growth_of(s, &paces[i]);
        if (growth > 0 && paces[i].early_ns >= WEIGHT_LEAST * all) kp_sample_add(&of, growth);
    }
    const double median = kp_sample_end(&of, 0.5);
    return median > 1 ? median : 1;
}

/* Keeps the times by step of the ops that may get slower. */
static void slots_choose(struct slowdown *s, double usual)
{
    struct op_pace *const paces = s->paces.rows;
    for (size_t i = 0; i < s->paces.count && s->slots < OPS_MOST; i++) {
        const double more = paces[i].late_ns / (double)(s->steps - s->late) / s->x->out->step_ns;
        if (growth_of(s, &paces[i]) < MAYBE_LEAST * usual || more < WEIGHT_LEAST) continue;
        s->ns[s->slots] = kp_kineto_zeros(s->steps, sizeof *s->ns[0]);
        s->count[s->slots] = kp_kineto_zeros(s->steps, sizeof *s->count[0]);
        paces[i].slot = ++s->slots;
    }
}

/* The time of a call in these steps on a core, the quantile. 0: there is none. */
static double call_ns(const struct slowdown *s, size_t slot, size_t from, size_t end, double share)
{
    struct kp_sample of = {0};
    for (size_t i = from; i < end; i++)
        if (s->count[slot][i] > 0) kp_sample_add(&of, s->on_core[i] * s->ns[slot][i] / s->count[slot][i]);
    return kp_sample_end(&of, share);
}

struct slower_op { /* that has most of it */
    size_t ops;
    double ns, early_ns, late_ns;
    int32_t node;
};

/* Charges the steps with what such an op takes longer than early, and no more than it does in the median late step. */
static void op_charge(struct slowdown *s, const struct op_pace *pace, double usual, struct kp_cost *cost,
                      struct slower_op *most)
{
    const size_t slot = pace->slot - 1;
    const double early = call_ns(s, slot, s->from, s->end, 0.5), late = call_ns(s, slot, s->late, s->steps, 0.5);
    double all = 0;
    if (!(early > 0) || call_ns(s, slot, s->late, s->steps, LATE_SHARE) < GROWN_LEAST * usual * early) return;
    for (size_t i = 0; i < s->steps; i++) {
        const double count = s->count[slot][i], ns = s->ns[slot][i], usual_late = count * late;
        const double more = (ns < usual_late ? ns : usual_late) - count * early;
        cost->of[i] += more > 0 ? more : 0;
        all += more > 0 ? more : 0;
    }
    kp_costplaces_add(&cost->places, s->x->tree, pace->node, -1, (int64_t)all);
    most->ops++;
    if (all > most->ns) *most = (struct slower_op){most->ops, all, early, late, pace->node};
}

static const char subnormal_change[] =
    "Subnormal numbers, next to 0, are slow on a CPU: call torch.set_flush_denormal(True) at the start, or clamp what "
    "decays (x.clamp_min_(1e-20)).";

static void slowdown_tell(struct slowdown *s, const struct slower_op *most, struct kp_cost *cost)
{
    struct kp_costrules *const x = s->x;
    struct kp_cost_rule rule = {0.08, KP_RULE_TELLS_STEPS, "op-slows-down", "", subnormal_change};
    rule.what = KP_TEXT(
        "%s%s gets slower, with as many calls per step%s: a call takes %s in the first steps and %s in the last third",
        kp_costrules_name(x, most->node), most->ops > 1 ? KP_TEXT(" (and %zu more)", most->ops - 1) : "",
        s->has_shapes ? " and the same sizes" : "", kp_units_ms(most->early_ns), kp_units_ms(most->late_ns));
    if (!s->has_shapes) {
        rule.explains |= KP_RULE_MILD;
        rule.change = KP_TEXT("Sizes were not recorded: kprof run --record-shapes tells whether they grow. "
                              "If they do not: %s",
                              subnormal_change);
    }
    if (kp_summary_core_waited(x->tree->trace) >= KP_CORE_WAITED_HALF) rule.explains |= KP_RULE_MILD; /* by how much */
    cost->of_ns = x->out->step_ns - x->core_waited_ns;
    kp_costrules_core(x, kp_cost_tell(cost, &rule));
}

/* Reads the waits for a core of each step. False: a busy machine makes ops slower, and by how much is not known. */
static bool waits_read(struct slowdown *s)
{
    struct kp_costrules *const x = s->x;
    double *const waits = kp_waitedsteps_find(x), all = 0;
    for (size_t i = 0; i < s->steps; i++) {
        const double ns = (double)x->splits[i].step_ns;
        s->on_core[i] = ns > waits[i] ? (ns - waits[i]) / ns : 0;
        all += waits[i];
    }
    free(waits);
    x->core_waited_ns = all / (double)s->steps;
    if (!kp_costrules_is_crowded(x)) return true;
    const double steps_ns = x->out->step_ns * (double)s->steps;
    return all > 0 && !kp_summary_threads_of(x->tree->trace, false) &&
           !kp_summary_wait_for_slowest(x->tree->trace, steps_ns, false);
}

/* Do the steps get slower and slower? */
static bool has_trend(const struct slowdown *s)
{
    struct kp_steptrend trend;
    double *const of = kp_kineto_room(s->steps + 1, sizeof *of);
    for (size_t i = 0; i < s->steps; i++) of[i] = s->on_core[i] * (double)s->x->splits[i].step_ns;
    const bool is = kp_steptrend_find(&trend, of, s->steps);
    free(of);
    return is;
}

static void slowdown_judge(struct slowdown *s)
{
    struct slower_op most = {.node = -1};
    each_take(s, s->from, s->end, early_late_take);
    each_take(s, s->late, s->steps, early_late_take);
    const double usual = growth_of_ops(s);
    slots_choose(s, usual);
    if (!s->slots || (!s->has_shapes && has_trend(s))) return;
    each_take(s, 0, s->steps, step_take);
    struct kp_cost cost = kp_cost_open(s->x);
    const struct op_pace *const paces = s->paces.rows;
    for (size_t i = 0; i < s->paces.count; i++)
        if (paces[i].slot) op_charge(s, &paces[i], usual, &cost, &most);
    if (most.ops) slowdown_tell(s, &most, &cost);
    else kp_cost_drop(&cost);
}

void kp_rules_slowdown(struct kp_costrules *x)
{
    struct kp_costrules of = *x;
    struct slowdown s = {.x = &of, .steps = x->chosen->step_count, .from = 1};
    if (x->out->has_gpu || s.steps < STEPS_LEAST) return;
    s.end = 1 + (s.steps / EARLY_PART > EARLY_LEAST ? s.steps / EARLY_PART : EARLY_LEAST);
    s.late = s.steps - s.steps / 3;
    s.on_core = kp_kineto_room(s.steps + 1, sizeof *s.on_core);
    if (waits_read(&s)) slowdown_judge(&s);
    x->told = of.told;
    x->explained = of.explained;
    for (size_t i = 0; i < s.slots; i++) free(s.ns[i]), free(s.count[i]);
    kp_keyindex_fini(&s.places);
    kp_keyindex_fini(&s.paces);
    free(s.on_core);
}
