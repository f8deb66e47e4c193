// SPDX-License-Identifier: Apache-2.0
/* steprules.c - some steps last much longer than the others, or each step longer than the one before */

#include <stdlib.h>

#include "collector/base/kp_order.h"
#include "export/answers/advise/opsrules/opsrules.h"
#include "export/answers/advise/rules/load/loadwaits.h"
#include "export/answers/advise/rules/rules.h"
#include "export/answers/advise/rules/waits.h"
#include "export/read/facts/steps/everynth.h"
#include "export/show/units.h"

#define STEP_BOUND 0.03
static const struct kp_cost_rule outliers = {
    STEP_BOUND, 0, KP_FINDING_LONG, "some steps last much longer than the others",
    "Compare them with the others: kprof report --step N. `kprof html` draws each step."};
static const struct kp_cost_rule drift = {STEP_BOUND, 0, "slower-steps", "steps get slower and slower",
                                          "Look for what grows: a graph kept alive (use loss.item()), a list, a longer "
                                          "input. A hot machine is another cause."};

enum { MANY_STEPS = 100 }; /* of Python's calls: about what a trace holds */
#define OUTLIER_MEDIANS 1.5
#define OUTLIER_MEDIANS_FEW 2.0 /* of fewer than OUTLIER_MANY steps */
#define NTH_MEDIANS 1.15        /* of steps that are each Nth one */
#define NTH_BOUND 0.02          /* of all time, that such steps have more: it is certain from less on than jitter */
/* A single slow step has most of what its group has more, and is notable. */
#define OUTLIER_ONE_SHARE 0.6
#define SLOWER_SHARE 0.75  /* of what steps have more: of ops that run as often, but slower */
#define OUTLIER_RANGES 1.5 /* of the range between quartiles, above the third */
#define ASLEEP_SHARE 0.75  /* of what steps have more outside ops: the thread slept as long */
#define TOLD_WAIT_NS 1e5   /* for a core, before a sentence has it */
#define BURST_SHARE 0.75   /* of what a step has more: loading */
#define BURSTS_SHARE 0.10  /* of all steps */
#define WAITING_SHARE 0.10 /* of a step: it waits for data, as the rule over all steps counts */
enum { BURSTS_LEAST = 3, OUTLIER_MANY = 4, OUTLIERS_ALONE = 5, OPENING_LEAST = 3, OPENING_PART = 16 };

static const char *const part_words[] = {[KP_SPLIT_COMPUTE] = "ops",
                                         [KP_SPLIT_COMM] = "communication",
                                         [KP_SPLIT_COPIES] = "copies",
                                         [KP_SPLIT_LOADING] = "data loading",
                                         [KP_SPLIT_IDLE] = "time in which nothing runs"};

struct step_lengths {
    double *of;
    bool *is_prompt; /* longer than the others by its nature */
    double *waits;   /* for a core, which `of` is without */
    size_t count;
};

static double quantile_of(struct step_lengths *l, size_t from, size_t to, double share)
{
    struct kp_sample of = {0};
    for (size_t i = from; i < to; i++) kp_sample_add(&of, l->of[i]);
    return kp_sample_end(&of, share);
}

/* ---- what the long steps have more of ---- */

/*
 * Steps of `cost` beside those that are in no group of long ones. Only steps of a group that have its cause and no
 * other; if each of its steps has another group's as well, they stand beside the steps of that one.
 */
struct compared {
    struct kp_cost *cost;
    const double *longer;         /* of each step: it is long, and stands beside no other */
    const struct kp_longsteps *l; /* NULL: of no group */
    size_t group, base;           /* base: 0, or the group that they stand beside */
    size_t from;                  /* steps before it are among the others, whatever they cost */
    size_t many, few;
};

static bool is_of(const struct compared *c, size_t step)
{
    return step >= c->from && c->cost->of[step] > 0 && (!c->l || c->l->group[step] == c->group);
}

static bool is_beside(const struct compared *c, size_t step)
{
    return c->base ? c->l->group[step] == c->base : !(c->longer[step] > 0);
}

/* The group that each step of one has, too; 0: none. */
static size_t base_of(const struct kp_longsteps *l, size_t group, size_t steps)
{
    size_t base = 0;
    for (size_t i = 0; l && i < steps; i++) {
        if (l->group[i] != group) continue;
        if (!l->shared_with[i] || (base && l->shared_with[i] != base)) return 0;
        base = l->shared_with[i];
    }
    return base;
}

static struct compared compared_count(struct compared c, size_t steps)
{
    c.base = base_of(c.l, c.group, steps);
    for (size_t i = 0; i < steps; i++) {
        c.many += is_of(&c, i);
        c.few += is_beside(&c, i);
    }
    return c;
}

static struct compared compared_of(const struct kp_costrules *x, struct kp_cost *cost, const double *longer,
                                   const struct kp_longsteps *l, size_t group)
{
    return compared_count((struct compared){.cost = cost, .longer = longer, .l = l, .group = group},
                          x->chosen->step_count);
}

/* The time that the long steps have more than the others: each step's part in it. */
static double weight_of(const struct compared *c, size_t step)
{
    if (is_of(c, step)) return 1 / (double)c->many;
    return !is_beside(c, step) || !c->few ? 0 : -1 / (double)c->few;
}

static enum kp_split_part part_with_more(const struct kp_costrules *x, const struct compared *c)
{
    double more[KP_SPLIT_PARTS] = {0};
    int most = KP_SPLIT_COMPUTE;
    for (size_t i = 0; i < x->chosen->step_count; i++)
        for (int p = 0; p < KP_SPLIT_PARTS; p++) more[p] += (double)x->splits[i].part_ns[p] * weight_of(c, i);
    for (int p = 0; p < KP_SPLIT_PARTS; p++)
        if (more[p] > more[most]) most = p;
    return more[most] > 0 ? (enum kp_split_part)most : KP_SPLIT_PARTS;
}

/* Charges the places of ops, or of gaps between two of them. */
static void places_compare(const struct compared *c, bool are_gaps)
{
    struct kp_costrules *const x = c->cost->x;
    for (size_t i = 0; i < x->chosen->step_count; i++)
        for (struct kp_longsteps_walk w = kp_longsteps_walk_of(x, i, are_gaps); kp_longsteps_next(&w);)
            kp_costplaces_add(&c->cost->places, x->tree, w.node, are_gaps ? w.before : -1,
                              (int64_t)((double)w.ns * weight_of(c, i)));
}

KP_ORDER_BY(longest_first, double)

static const char jump_change[] =
    "Look for what changed there: larger inputs, more that is trained, another program on "
    "the machine, or a hot machine. `kprof html` draws each step.";

/* The steps that cost something, as a finding counts them, the longest first; the caller frees them. */
static size_t *cost_order(const struct kp_costrules *x, const struct kp_cost *cost, size_t *count)
{
    size_t *const at = kp_kineto_room(x->chosen->step_count + 1, sizeof *at);
    for (size_t i = *count = 0; i < x->chosen->step_count; i++)
        if (cost->of[i] > 0 && cost->of[i] >= STEP_BOUND * (double)x->splits[i].step_ns) at[(*count)++] = i;
    qsort_r(at, *count, sizeof *at, longest_first, cost->of);
    return at;
}

static const char *numbers_text(struct kp_costrules *x, const struct kp_cost *cost)
{
    size_t count, *const at = cost_order(x, cost, &count);
    const char *text = kp_costrules_numbers(x, at, count, KP_NUMBERS_MOST, "");
    free(at);
    return text;
}

static struct kp_longer_steps longer_steps(const struct kp_costrules *x, const struct kp_cost *cost)
{
    struct kp_longer_steps out = {0};
    size_t *const at = cost_order(x, cost, &out.count);
    struct kp_longer_step *const of = kp_kineto_room(out.count + 1, sizeof *of);
    for (size_t i = 0; i < out.count; i++)
        of[i] = (struct kp_longer_step){x->chosen->steps[at[i]].number, cost->of[at[i]]};
    out.of = kp_strings_keep_list(x->tree->trace->strings, of, out.count * sizeof *of);
    free(of);
    free(at);
    return out;
}

/* Which steps to record again: around a single one; where several are slow, many, since others may be the next time. */
static const char *schedule_text(const struct kp_costrules *x, long step, bool is_one)
{
    const struct kp_step *steps = x->chosen->steps;
    long from = step > 0 ? step - 1 : 0, to = step + 1;
    if (!is_one) {
        const long first = steps[0].number, last = steps[x->chosen->step_count - 1].number;
        from = step - MANY_STEPS / 2 > first ? step - MANY_STEPS / 2 : first;
        to = from + MANY_STEPS < last ? from + MANY_STEPS : last;
    }
    return KP_TEXT("%ld-%ld", from, to);
}

/* Only Python's calls show what ran while no op did: how to see those of these steps. */
static const char *gap_change(const struct kp_costrules *x, const struct kp_cost *cost)
{
    const bool has_gc = kp_costrules_fact(x, "kprof.python_gc") != 0, is_one = cost->least == 1;
    size_t count, *const at = cost_order(x, cost, &count);
    const long step = x->chosen->steps[at[0]].number; /* that costs most */
    free(at);
    if (kp_costrules_has_calls(x))
        return KP_TEXT("See the lines that ran then: kprof report --step %ld --by line%s.", step,
                       has_gc ? "" : "; whether Python collected garbage: kprof run --python-gc");
    const char *record = KP_TEXT("kprof run --with-stack 1%s --schedule %s -- ...", has_gc ? "" : " --python-gc",
                                 schedule_text(x, step, is_one));
    const double mean_ns = kp_cost_mean(cost);
    if (!is_one && x->asleep_ns >= ASLEEP_SHARE * mean_ns)
        return KP_TEXT("In that time %s sleeps for %s per step: it waits for a file, a lock, a socket or another "
                       "process. To see the call: kprof run --with-stack 1 --schedule %s -- ..., then kprof advise.",
                       x->out->step_thread, kp_units_ms(x->asleep_ns < mean_ns ? x->asleep_ns : mean_ns),
                       schedule_text(x, step, is_one));
    if (!is_one)
        return KP_TEXT("Record Python's calls of many steps: %s, then kprof advise names what ran%s.", record,
                       has_gc ? "" : ", or that Python collected garbage");
    return KP_TEXT("Record Python's calls around it: %s, then kprof report --step %ld --by line names what ran%s.",
                   record, step, has_gc ? "" : ", and kprof advise whether Python collected garbage");
}

static double *more_weights(const struct kp_costrules *x, const struct compared *c)
{
    double *weights = kp_kineto_room(x->chosen->step_count + 1, sizeof *weights);
    for (size_t i = 0; i < x->chosen->step_count; i++) weights[i] = weight_of(c, i);
    return weights;
}

/* Says what long steps have more. `weights`: of a gap, or NULL. */
static void longer_name(struct kp_costrules *x, struct kp_finding *f, const char *numbers, enum kp_split_part part,
                        const double *weights, bool is_one, const char *begin)
{
    const char *which = is_one ? "" : KP_TEXT(" (%s)", numbers), *has = is_one ? "this step" : "these steps";
    f->is_gap = weights && f->where;
    if (!weights) {
        f->what = KP_TEXT("%s%s: the extra time of %s is %s%s", f->what, which, has, part_words[part], begin);
        return;
    }
    double many = 0;
    for (size_t i = 0; i < x->out->steps; i++) many += weights[i] > 0;
    const double ns = kp_gapplace_tell(x, weights, f->step_ns * (double)x->out->steps / many, f).ns;
    const char *most = f->where ? KP_TEXT(", most of it before %s", f->where) : "";
    if (ns > 0)
        most = KP_TEXT(", %s%.1f ms of it in %s", is_one ? "" : "in each ", ns / 1e6,
                       f->is_gap ? KP_GAP_OF_FUNCTION : f->where);
    f->what = KP_TEXT("%s%s: the extra time of %s is outside operators%s%s", f->what, which, has, most, begin);
}

/* Half of what each of these steps has more is Python's garbage collector. */
static bool are_collecting(const struct kp_costrules *x, const struct kp_cost *cost)
{
    for (size_t i = 0; i < x->chosen->step_count; i++)
        if (cost->of[i] > 0 && !kp_longsteps_is_collecting(x, i, cost->of[i])) return false;
    return true;
}

/* A group is named once: by the rule over all collections, or here. Frees the cost. */
static struct kp_finding *collecting_tell(struct kp_costrules *x, struct kp_cost *cost, const struct kp_cost_rule *rule)
{
    struct kp_finding *const told = kp_costrules_find(x, KP_FINDING_GC);
    if (told) {
        told->what = KP_TEXT("%s, most in %s", told->what, numbers_text(x, cost));
        return kp_cost_drop(cost);
    }
    const bool is_one = cost->least == 1;
    struct kp_cost_rule of_them = *rule;
    kp_rules_collecting_places(x, cost->of, &cost->places);
    of_them.change = KP_COLLECTING_CHANGE;
    of_them.what = KP_TEXT("%s%s: the extra time of %s is Python's garbage collector", rule->what,
                           is_one ? "" : KP_TEXT(" (%s)", numbers_text(x, cost)), is_one ? "this step" : "these steps");
    struct kp_finding *const found = kp_cost_tell(cost, &of_them);
    kp_costrules_core(x, found);
    kp_rules_collecting_explicit(found);
    return found;
}

/* Are these steps longer by what is told as one finding of all steps? */
static bool is_told(const struct kp_costrules *x, const struct compared *c, bool is_gap)
{
    double *const weights = more_weights(x, c);
    double ns = 0;
    for (size_t i = 0; i < x->chosen->step_count; i++) ns += c->cost->of[i] / (double)c->many;
    const bool is = (is_gap && kp_costrules_find(x, KP_FINDING_GIL)) || kp_costrules_is_told(x, weights, ns);
    free(weights);
    return is;
}

/* Tells the part that these steps have more of. Frees the cost. */
static struct kp_finding *part_tell(struct kp_costrules *x, const struct compared *with,
                                    const struct kp_cost_rule *rule, enum kp_split_part part)
{
    struct kp_cost *const cost = with->cost;
    const bool is_gap = part == KP_SPLIT_IDLE && !x->out->has_gpu, is_one = cost->least == 1,
               is_outlier = strcmp(rule->id, outliers.id) == 0;
    struct kp_cost_rule of_part = *rule;
    if (!is_outlier) of_part.explains = 1u << part; /* what the others have of it is judged without the long ones */
    if (is_gap && is_outlier) of_part.change = gap_change(x, cost);
    const char *numbers = numbers_text(x, cost);
    struct kp_longer_steps longer = {0};
    if (part == KP_SPLIT_COMM && !x->out->has_gpu) longer = longer_steps(x, cost);
    const char *begin = is_outlier && part != KP_SPLIT_LOADING ? kp_stepbegin_text(x, cost->of, with->longer) : "";
    double *weights = more_weights(x, with);
    const bool is_carried = rule == &drift && part == KP_SPLIT_COMPUTE && kp_longplace_is_backward(x, weights);
    if (is_carried) begin = " of backward passes";
    if (rule == &drift) kp_longcauses_drift(&of_part, part, is_gap, is_carried);
    struct kp_finding *f = kp_cost_tell(cost, &of_part);
    if (!kp_part_is_of_others(x, part)) kp_costrules_core(x, f);
    if (f) longer_name(x, f, numbers, part, is_gap ? weights : NULL, is_one, begin);
    if (f && part == KP_SPLIT_LOADING) kp_loadepochs_tell(x, weights, f);
    if (f && rule == &drift && part == KP_SPLIT_COMPUTE) kp_growth_of_calls(x, f, is_carried);
    if (f && part == KP_SPLIT_COMPUTE && !x->out->has_gpu) kp_longplace_tell(x, weights, f);
    if (f) f->longer = longer, f->longer.is_each_nth = !is_outlier;
    free(weights);
    return f;
}

/* Tells the steps that the cost charges, against those beside them. Frees the cost. */
static struct kp_finding *longer_tell(struct kp_costrules *x, const struct compared *with,
                                      const struct kp_cost_rule *rule)
{
    struct kp_cost *const cost = with->cost;
    if (!with->many) return kp_cost_drop(cost);
    if (are_collecting(x, cost)) return collecting_tell(x, cost, rule);
    const enum kp_split_part part = part_with_more(x, with);
    if (part == KP_SPLIT_PARTS) return kp_cost_drop(cost); /* their mean is that of the others */
    const bool is_gap = part == KP_SPLIT_IDLE && !x->out->has_gpu;
    /* A host that is late waits until the GPU has done what was launched before. */
    const bool is_of_gpu = x->out->is_late && part == KP_SPLIT_COMPUTE,
               is_known = !is_of_gpu && is_told(x, with, is_gap);
    if (is_known && rule == &drift && is_gap) kp_rules_waits_grow(x);
    if (is_of_gpu || is_known) return kp_cost_drop(cost);
    if (x->out->has_gpu || part == KP_SPLIT_COMPUTE || is_gap) places_compare(with, is_gap);
    return part_tell(x, with, rule, part);
}

/* ---- the rules ---- */

/* One long step is told by its number, with how much longer it is. */
static struct kp_finding *one_tell(struct kp_costrules *x, const struct kp_longsteps *l, struct kp_cost *cost,
                                   size_t at)
{
    const struct kp_step *const step = &x->chosen->steps[at];
    const double length = (double)(step->end_ns - step->start_ns), more = l->more[at];
    const long number = x->chosen->steps[at].number;
    const struct kp_cost_rule one = {
        outliers.bound, 0, outliers.id,
        KP_TEXT("step %ld lasts %.1f ms longer than the median%s%s", number, more / 1e6,
                l->waits[at] >= TOLD_WAIT_NS ? ", without waits for a CPU core" : "",
                (double)x->splits[at].step_ns < length ? " and its evaluation" : ""),
        KP_TEXT("Compare it with the others: kprof report --step %ld. `kprof html` draws it.", number)};
    cost->least = 1;
    cost->of_ns = x->out->median_ns;
    const struct compared with = compared_of(x, cost, l->more, l, l->group[at]);
    return longer_tell(x, &with, &one);
}

static const char slower_what[] = ": the same number of calls as in the others, but slower";
static const char slower_change[] =
    "Either their inputs are larger, or the thread waited for a core that other threads or programs used. "
    "Compare shapes: kprof run --record-shapes -- ..., then kprof report --step N.";

/* The only notable step of a group, where it has most of what that has more; SIZE_MAX: none. */
static size_t one_find(const struct kp_costrules *x, const struct kp_longsteps *l, size_t group)
{
    size_t one = SIZE_MAX, count = 0;
    double all = 0;
    for (size_t i = 0; i < x->chosen->step_count; i++) {
        if (l->group[i] != group) continue;
        all += l->more[i];
        if (!kp_longcauses_is_notable(x, l, i)) continue;
        one = i;
        count++;
    }
    return count == 1 && l->more[one] >= OUTLIER_ONE_SHARE * all ? one : SIZE_MAX;
}

/* Are most steps of this cost each Nth one? */
static bool are_nth(const struct kp_longsteps *l, const struct kp_cost *cost, size_t steps)
{
    size_t nth = 0, all = 0;
    for (size_t i = 0; i < steps; i++) {
        all += cost->of[i] > 0;
        nth += cost->of[i] > 0 && l->is_nth[i];
    }
    return 2 * nth > all;
}

enum { MOST_STEPS_LEAST = 3 };

/* Are the steps of this cost all of those that are each Nth one, from the first to the last that was recorded? */
static bool are_each_nth(const struct kp_costrules *x, const struct kp_cost *cost)
{
    size_t count, *const at = cost_order(x, cost, &count);
    const bool are_each = kp_costrules_each_nth(x, at, count) > 0;
    free(at);
    return are_each;
}

/* JSON has what the sentence has not. */
static void once_set(struct kp_finding *f, const struct kp_costrules *x, const struct kp_longsteps *l, size_t one)
{
    const struct kp_step *const step = &x->chosen->steps[one];
    f->once_ns = l->more[one];
    f->once_step = step->number;
    f->length_ns = (double)(step->end_ns - step->start_ns);
    f->no_core_ns = l->waits[one];
}

/* Tells the steps of one group: the one that has most of it, or all. */
static void group_tell(struct kp_costrules *x, const struct kp_longsteps *l, size_t group)
{
    struct kp_cost cost = kp_cost_open(x);
    const size_t one = one_find(x, l, group);
    for (size_t i = 0; i < x->chosen->step_count; i++)
        if (l->group[i] == group && (one == SIZE_MAX || i == one)) cost.of[i] = l->more[i] - l->shared[i];
    bool are_slower = true;
    for (size_t i = 0; i < x->chosen->step_count; i++) are_slower &= !(cost.of[i] > 0) || l->is_slower[i];
    for (size_t i = 0; i < x->chosen->step_count && one == SIZE_MAX; i++)
        if (group && l->shared_with[i] == group) cost.of[i] = l->shared[i];
    const struct compared with = compared_of(x, &cost, l->more, l, group);
    struct kp_cost_rule rule = outliers;
    const bool is_nth = are_nth(l, &cost, x->chosen->step_count), is_again = is_nth || are_each_nth(x, &cost);
    if (is_nth) rule.bound = NTH_BOUND;
    struct kp_finding *f = one != SIZE_MAX ? one_tell(x, l, &cost, one) : longer_tell(x, &with, &rule);
    if (f && one != SIZE_MAX) once_set(f, x, l, one);
    const bool is_most = f && one == SIZE_MAX && f->steps >= MOST_STEPS_LEAST && f->share >= KP_SHARE_MOST;
    if (f) f->longer.is_each_nth = is_again;
    if (f) f->is_critical |= is_most || (is_again && f->share >= KP_SHARE_CRITICAL);
    if (!f || !are_slower) return;
    f->what = KP_TEXT("%s%s", f->what, slower_what);
    f->change = slower_change;
}

/*
 * Each step that is notable and has a cause of its own is told by its number, and steps of one cause together. The rest
 * is named together as well: many steps, each long by something else, are those of a busy machine.
 */
static void groups_tell(struct kp_costrules *x, struct kp_longsteps *l)
{
    size_t alone = 0;
    size_t *sizes = kp_kineto_zeros(l->groups + 2, sizeof *sizes);
    for (size_t i = 0; i < x->chosen->step_count; i++) sizes[l->group[i]]++;
    for (size_t i = 0; i < x->chosen->step_count; i++)
        alone += l->group[i] && sizes[l->group[i]] == 1 && kp_longcauses_is_notable(x, l, i);
    for (size_t i = 0; i < x->chosen->step_count; i++)
        if (l->group[i] && sizes[l->group[i]] == 1 && (alone > OUTLIERS_ALONE || !kp_longcauses_is_notable(x, l, i)))
            l->group[i] = l->groups + 1;
    for (size_t g = 1; g <= l->groups + 1; g++) group_tell(x, l, g);
    free(sizes);
}

/*
 * Steps of which many are long by what they load, or a few for a good share of all time, are those of a loader that
 * gives its items in bursts: what they wait for is judged with the others. The first may wait for workers to start.
 */
static void bursts_leave(const struct kp_costrules *x, const struct step_lengths *l, double *longer)
{
    size_t *at = kp_kineto_room(l->count + 1, sizeof *at), count = 0;
    struct kp_sample loading = {0};
    double all = 0;
    for (size_t i = 0; i < l->count; i++) kp_sample_add(&loading, (double)x->splits[i].part_ns[KP_SPLIT_LOADING]);
    const double usual = kp_sample_end(&loading, 0.5);
    for (size_t i = 1; i < l->count; i++) {
        const double more = (double)x->splits[i].part_ns[KP_SPLIT_LOADING] - usual;
        if (!(longer[i] > 0) || more < BURST_SHARE * longer[i]) continue;
        at[count++] = i;
        all += more;
    }
    const bool are_many = (double)count >= BURSTS_SHARE * (double)l->count;
    if (count >= BURSTS_LEAST && (are_many || all >= KP_SHARE_CRITICAL * x->out->step_ns * (double)l->count))
        for (size_t i = 0; i < count; i++) longer[at[i]] = 0;
    free(at);
}

/* Then steps are judged without them. */
static bool has_waits(const struct step_lengths *l)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->waits[i] > 0) return true;
    return false;
}

/* No machine makes each Nth step long: these count from a smaller length on. Returns which; the caller frees them. */
static bool *nth_add(const struct kp_costrules *x, const struct step_lengths *l, double median, double high,
                     double *longer)
{
    long *const numbers = kp_kineto_room(l->count + 1, sizeof *numbers);
    bool *const are_nth = kp_kineto_room(l->count + 1, sizeof *are_nth);
    for (size_t i = 0; i < l->count; i++) {
        numbers[i] = x->chosen->steps[i].number;
        are_nth[i] = !l->is_prompt[i] && l->of[i] > NTH_MEDIANS * median && l->of[i] > high;
    }
    kp_everynth_mark(numbers, are_nth, l->count);
    for (size_t i = 0; i < l->count; i++)
        if (are_nth[i]) longer[i] = l->of[i] > median ? l->of[i] - median : 0;
    free(numbers);
    return are_nth;
}

/*
 * Long steps that nothing has told are judged with the others, where they are long by what they load and half of the
 * steps wait for data as well: else no finding would have that time.
 */
static void loading_leave(const struct kp_costrules *x, const struct step_lengths *l, const struct kp_longsteps *longer)
{
    double *const loading = kp_kineto_room(l->count + 1, sizeof *loading);
    size_t waiting = 0;
    for (size_t i = 0; i < l->count; i++) {
        loading[i] = (double)x->splits[i].part_ns[KP_SPLIT_LOADING];
        waiting += loading[i] >= WAITING_SHARE * (double)x->splits[i].step_ns;
    }
    const double usual = kp_quantile(loading, l->count, 0.5); /* sorts them */
    for (size_t i = 0; i < l->count && 2 * waiting >= l->count; i++) {
        const double more = (double)x->splits[i].part_ns[KP_SPLIT_LOADING] - usual;
        if (longer->more[i] > 0 && more >= BURST_SHARE * longer->more[i]) x->is_long[i] = false;
    }
    free(loading);
}

static void outliers_judge(struct kp_costrules *x, struct step_lengths *l)
{
    const double median = quantile_of(l, 0, l->count, 0.5), low = quantile_of(l, 0, l->count, 0.25);
    const double high = quantile_of(l, 0, l->count, 0.75);
    const bool are_few = l->count < OUTLIER_MANY;
    const double bound = (are_few ? OUTLIER_MEDIANS_FEW : OUTLIER_MEDIANS) * median;
    struct kp_cost cost = kp_cost_open(x);
    for (size_t i = 0; i < l->count; i++)
        if (!l->is_prompt[i] && l->of[i] > bound && (are_few || l->of[i] > high + OUTLIER_RANGES * (high - low)))
            cost.of[i] = l->of[i] - median;
    bool *const are_nth = nth_add(x, l, median, high, cost.of);
    bursts_leave(x, l, cost.of);
    for (size_t i = 0; i < l->count; i++) x->is_long[i] = cost.of[i] > 0;
    struct kp_longsteps longer;
    kp_longsteps_find(&longer, x, cost.of, median);
    longer.waits = l->waits;
    longer.of = l->of;
    longer.is_nth = are_nth;
    kp_sharedsteps_find(&longer, x);
    if (longer.groups && !x->out->has_gpu) kp_longcauses_note(x, &longer);
    const size_t told = x->out->count;
    groups_tell(x, &longer);
    if (x->out->count == told) loading_leave(x, l, &longer);
    kp_longsteps_fini(&longer);
    free(are_nth);
    kp_cost_drop(&cost);
}

/* Are these steps longer by ops that are as many as in the others, but slower, with their waits for a core? */
static bool is_slower_alone(const struct kp_costrules *x, const double *longer)
{
    struct kp_slowerops slower;
    double slower_ns = 0, ns = 0;
    kp_slowerops_open(&slower, x, longer, NULL);
    for (size_t i = 0; i < x->chosen->step_count; i++) {
        if (!(longer[i] > 0)) continue;
        slower_ns += kp_slowerops_of(&slower, i).ns;
        ns += longer[i];
    }
    kp_slowerops_fini(&slower);
    return slower_ns >= SLOWER_SHARE * ns;
}

/* Do these steps last no longer than by what their thread waited for a core? */
static bool is_a_wait(const struct kp_costrules *x, const double *longer)
{
    double ns = 0;
    for (size_t i = 0; i < x->chosen->step_count; i++) ns += longer[i];
    return kp_costrules_is_crowded(x) && ns <= 1e3 * kp_costrules_fact(x, "kprof.core_waited_us");
}

/* The time of steps at first: of these few, or the one to which the growth of the medians of the thirds leads back. */
static double first_of(struct step_lengths *l, double early, double late)
{
    const size_t few = l->count / OPENING_PART > OPENING_LEAST ? l->count / OPENING_PART : OPENING_LEAST;
    const double fitted = early - (late - early) / 4, least = quantile_of(l, 0, l->count / 3, 0);
    const double opening = quantile_of(l, 0, few, 0.5), back = fitted > least ? fitted : least;
    return opening < back ? opening : back;
}

/* Charges each step from this one on with what it has more than those before. One that is long by something else has no
 * more than `most`. */
static void more_charge(struct kp_cost *cost, const struct step_lengths *l, size_t from, double before, double most)
{
    for (size_t i = from; i < l->count; i++) {
        const double ns = cost->x->is_long[i] && l->of[i] > most ? most : l->of[i];
        cost->of[i] = ns > before ? ns - before : 0;
    }
}

/* On a machine that gets busier the same ops are slower, too: threads share caches, or wait for one another. */
static bool is_busier(const struct kp_costrules *x, const struct step_lengths *l, const struct kp_steptrend *grown)
{
    struct kp_steptrend waits; /* they go up and down, so no trend is asked for */
    (void)kp_steptrend_find(&waits, l->waits, l->count);
    return kp_costrules_is_crowded(x) && waits.late_ns - waits.early_ns >= grown->late_ns - grown->early_ns;
}

static void drift_judge(struct kp_costrules *x, struct step_lengths *l)
{
    struct kp_steptrend trend;
    if (!kp_steptrend_find(&trend, l->of, l->count)) return;
    x->out->grown = kp_growth_of_inputs(x, l->of, &trend);
    if (x->out->grown) return;
    const size_t from = trend.jump ? trend.jump : l->count / 3;
    struct kp_cost cost = kp_cost_open(x);
    struct kp_cost_rule jumped = drift;
    double *longer = kp_kineto_room(l->count + 1, sizeof *longer); /* slow ones are no others to compare with */
    const double early = trend.early_ns, late = trend.late_ns;
    if (trend.jump)
        more_charge(&cost, l, from, quantile_of(l, 0, from, 0.5), quantile_of(l, from, l->count, 0.5)); /* medians */
    else more_charge(&cost, l, 0, first_of(l, early, late), late + (late - early) / 4);
    for (size_t i = 0; i < l->count; i++) longer[i] = x->is_long[i] ? l->of[i] : i < from ? 0 : cost.of[i];
    const bool is_told = (kp_rules_threads_wanted(x) || is_busier(x, l, &trend)) && is_slower_alone(x, longer);
    if (is_told || (!has_waits(l) && is_a_wait(x, longer))) kp_cost_drop(&cost); /* told with its reason */
    else {
        const struct compared with =
            compared_count((struct compared){.cost = &cost, .longer = longer, .from = from}, l->count);
        jumped.what = KP_TEXT("steps are slower from step %ld on", x->chosen->steps[from].number);
        jumped.change = jump_change;
        longer_tell(x, &with, trend.jump ? &jumped : &drift);
    }
    free(longer);
}

static void lengths_judge(struct kp_costrules *x)
{
    struct step_lengths l = {.count = x->chosen->step_count};
    l.of = kp_kineto_room(l.count + 1, sizeof *l.of);
    l.is_prompt = kp_kineto_room(l.count + 1, sizeof *l.is_prompt);
    l.waits = kp_waitedsteps_find(x);
    for (size_t i = 0; i < l.count; i++) {
        l.of[i] = (double)x->splits[i].step_ns - l.waits[i];
        x->core_waited_ns += l.waits[i] / (double)l.count;
    }
    kp_promptsteps_tell(x, l.is_prompt);
    outliers_judge(x, &l);
    drift_judge(x, &l); /* by what steps have without their waits: it needs none left out for these */
    if (has_waits(&l)) kp_waitedsteps_judge(x, l.of, l.waits, l.is_prompt);
    free(l.of);
    free(l.is_prompt);
    free(l.waits);
}

/* An evaluation inside of the training makes no slow step: steps are judged without. */
void kp_rules_steps(struct kp_costrules *x)
{
    x->trained = kp_kineto_room(x->chosen->step_count + 1, sizeof *x->trained);
    memcpy(x->trained, x->splits, x->chosen->step_count * sizeof *x->trained);
    x->is_long = kp_kineto_room(x->chosen->step_count + 1, sizeof *x->is_long);
    kp_evalsteps_tell(x, &x->evaluated);
    kp_evalsteps_leave_out(x, &x->evaluated, x->trained);
    kp_rules_slowdown(x);
    struct kp_costrules without = *x;
    without.splits = x->trained;
    lengths_judge(&without);
    x->explained = without.explained;
    x->unrecorded = without.unrecorded;
}
