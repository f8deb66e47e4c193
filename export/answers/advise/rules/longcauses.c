// SPDX-License-Identifier: Apache-2.0
/*
 * longcauses.c - long steps for which nothing of the program is found: a note, as a busy machine may have made them
 *
 * A thread that has no core is slower where it happens to be: in ops that are as many as in the other steps, or while
 * no op runs. If the trace has how long it was ready and did not run, steps come here without that time
 * (waitedsteps.c). Other traces do not have it. So a step stays a finding where the program does more then, or the same
 * place has it too often for chance (longsteps.c), or it is notable. If cores are known to lack, programs share caches
 * and memory as well: an op that moves much memory gets slower than others, so the same ops stay a note, but in each
 * Nth step.
 */
#include "export/answers/advise/rules/ownthreads.h"

#include <stdlib.h>

#include "export/answers/advise/rules/rules.h"

#define SLOWER_SHARE 0.75 /* of what a step has more: of ops that run as often, but slower */
#define ADDED_SHARE 0.5   /* of it: calls that the others do not have */
#define CALLS_SHARE 0.5   /* of it: those of one kind */
#define NOTE_SHARE 0.03   /* of all time, before it is told; as a finding's */
#define NOTABLE_MEDIANS 2.0
#define NOTABLE_NS 50e6

enum { MANY_STEPS = 100 }; /* of Python's calls: about what a trace holds */
enum causeless { NOT_CAUSELESS, SLOWER_UNSHAPED, SLOWER_SHAPED, WITHOUT_OP }; /* are shapes known to be the same? */

struct noting {
    struct kp_costrules *x;
    struct kp_longsteps *l;
    enum causeless *by;       /* by step */
    struct kp_slower *slower; /* by step that is long */
    bool are_many;            /* more threads than cores: that is told */
    bool lack_cores;          /* by these, or by other programs: then ops are slow in turns, at one place as well */
};

bool kp_longcauses_is_notable(const struct kp_costrules *x, const struct kp_longsteps *l, size_t at)
{
    const double ns = (double)x->splits[at].step_ns - l->waits[at];
    return at && l->more[at] >= NOTABLE_NS && ns >= NOTABLE_MEDIANS * l->median_ns;
}

/* ---- which steps ---- */

static bool has_notable(const struct noting *n, size_t group)
{
    for (size_t i = 0; i < n->x->chosen->step_count; i++)
        if (n->l->group[i] == group && kp_longcauses_is_notable(n->x, n->l, i)) return true;
    return false;
}

/* Have more long steps than by chance half of what they have more in these calls? */
static bool are_often(const struct noting *n, const struct kp_slower *has)
{
    size_t hits = 0, count = 0;
    for (size_t i = 0; i < n->x->chosen->step_count; i++) {
        const struct kp_slower *const s = &n->slower[i];
        if (!(n->l->more[i] > 0)) continue;
        count++;
        hits += s->calls_ns >= CALLS_SHARE * n->l->more[i] && s->calls == has->calls;
    }
    return kp_longsteps_is_often(n->l, hits, count, has->usual_ns);
}

static enum causeless judge(const struct noting *n, size_t step)
{
    struct kp_longsteps *const l = n->l;
    const struct kp_slower *const has = &n->slower[step];
    const double more = l->more[step];
    l->is_slower[step] = has->node >= 0 && has->ns >= SLOWER_SHARE * more;
    if (has->node >= 0 && has->shaped_ns >= SLOWER_SHARE * more) return SLOWER_SHAPED;
    if (n->lack_cores && l->is_slower[step] && !l->is_nth[step]) return SLOWER_UNSHAPED;
    if (l->has_cause[step] || has->added_ns >= ADDED_SHARE * more || has_notable(n, l->group[step]))
        return NOT_CAUSELESS;
    if (has->calls_ns >= CALLS_SHARE * more && are_often(n, has)) return NOT_CAUSELESS;
    return l->is_slower[step] || !l->is_gap[step] ? SLOWER_UNSHAPED : WITHOUT_OP;
}

static void slower_find(struct noting *n)
{
    struct kp_slowerops slower;
    kp_slowerops_open(&slower, n->x, n->l->more, n->l->of);
    for (size_t i = 0; i < n->x->chosen->step_count; i++)
        n->slower[i] = n->l->more[i] > 0 ? kp_slowerops_of(&slower, i) : (struct kp_slower){.node = -1};
    kp_slowerops_fini(&slower);
}

/* Returns how much they have more in all. If a finding says that threads are too many, those are the reason. */
static double steps_judge(struct noting *n)
{
    double ns = 0;
    slower_find(n);
    for (size_t i = 0; i < n->x->chosen->step_count; i++) {
        n->by[i] = n->l->group[i] ? judge(n, i) : NOT_CAUSELESS;
        if (n->by[i] != NOT_CAUSELESS) n->l->group[i] = 0;
        if (n->are_many && n->by[i] != SLOWER_SHAPED) n->by[i] = NOT_CAUSELESS;
        if (n->by[i] != NOT_CAUSELESS) ns += n->l->more[i];
    }
    return ns;
}

/* ---- words ---- */

/* The steps that are, or are not, without an op, with what they have more. Returns the longest; SIZE_MAX: none. */
static size_t which_tell(const struct noting *n, bool are_gaps, struct kp_waited_steps *out)
{
    const size_t steps = n->x->chosen->step_count;
    size_t count = 0, *at = kp_kineto_room(steps + 1, sizeof *at);
    for (size_t i = 0; i < steps; i++)
        if (n->by[i] != NOT_CAUSELESS && (n->by[i] == WITHOUT_OP) == are_gaps) at[count++] = i;
    *out = kp_costrules_waited(n->x, at, count, n->l->more);
    out->what =
        kp_costrules_text(n->x, "%s last%s %.1f ms longer", kp_costrules_numbers(n->x, at, count, KP_NUMBERS_FEW, ","),
                          count == 1 ? "s" : " up to", out->some.most_ns / 1e6);
    const size_t longest = count ? at[0] : SIZE_MAX;
    free(at);
    return longest;
}

/* Who may have had the core, as far as the trace tells. */
static const char *core_text(const struct noting *n)
{
    const long cores = (long)kp_costrules_fact(n->x, "kprof.cores"),
               busy = (long)kp_costrules_fact(n->x, "kprof.busy_threads");
    if (kp_ownthreads_text(n->x)) return "the GIL, a busy core";
    const bool may_be_own = busy > cores || *kp_ownthreads_relatives(n->x);
    return cores <= 0 || busy <= 0 || may_be_own ? "a busy core" : "another program on the core";
}

static const char *place_text(const struct noting *n, const struct kp_finding *f)
{
    char room[512];
    const char *const line = kp_finding_line(f, room, sizeof room);
    return line && (!f->where || strcmp(line, f->where) != 0) ? kp_costrules_text(n->x, " (%s)", line) : "";
}

static bool are_shaped(const struct noting *n)
{
    for (size_t i = 0; i < n->x->chosen->step_count; i++)
        if (n->by[i] == SLOWER_UNSHAPED) return false;
    return true;
}

static bool slower_note(const struct noting *n)
{
    struct kp_costplaces places = {0};
    struct kp_finding f = {0};
    struct kp_waited_steps of;
    const size_t longest = which_tell(n, false, &of);
    if (longest == SIZE_MAX) return false;
    kp_costplaces_add(&places, n->x->tree, n->slower[longest].node, -1, 1);
    kp_costplaces_tell(&places, n->x->tree->trace, &f);
    kp_costplaces_fini(&places);
    const char *const most =
        f.where ? kp_costrules_text(n->x, ", most in %s%s", kp_costrules_name(n->x, n->slower[longest].node),
                                    place_text(n, &f))
                : "";
    of.what =
        kp_costrules_text(n->x, "%s: the same ops%s, but slower%s", of.what, are_shaped(n) ? " and shapes" : "", most);
    kp_advice_waited_add(n->x->out, &of);
    return true;
}

/* For steps that have more time without an op than the others: the gap, and the call of Python that fills it. */
static struct kp_gap_call gaps_place(const struct noting *n, struct kp_finding *f)
{
    const size_t steps = n->x->chosen->step_count;
    struct kp_costplaces places = {0};
    double many = 0, few = 0, ns = 0, *weights = kp_kineto_room(steps + 1, sizeof *weights);
    for (size_t i = 0; i < steps; i++) {
        many += n->by[i] == WITHOUT_OP;
        few += !(n->l->more[i] > 0);
    }
    for (size_t i = 0; i < steps; i++) {
        const bool is_one = n->by[i] == WITHOUT_OP;
        weights[i] = is_one ? 1 / many : n->l->more[i] > 0 ? 0 : -1 / few;
        ns += is_one ? n->l->more[i] / many : 0;
        for (struct kp_longsteps_walk w = kp_longsteps_walk_of(n->x, i, true); kp_longsteps_next(&w);)
            kp_costplaces_add(&places, n->x->tree, w.node, w.before, (int64_t)(weights[i] * (double)w.ns));
    }
    kp_costplaces_tell(&places, n->x->tree->trace, f);
    kp_costplaces_fini(&places);
    f->is_gap = f->where != NULL;
    const struct kp_gap_call call = kp_gapplace_tell(n->x, weights, ns, f);
    free(weights);
    return call;
}

static const char *begin_text(const struct noting *n)
{
    double *const of = kp_kineto_room(n->x->chosen->step_count + 1, sizeof *of);
    for (size_t i = 0; i < n->x->chosen->step_count; i++) of[i] = n->by[i] == WITHOUT_OP ? n->l->more[i] : 0;
    const char *const text = kp_stepbegin_text(n->x, of, n->l->more);
    free(of);
    return text;
}

/* The begin of a step is told where no line is known. Returns the longest step, or SIZE_MAX. */
static size_t gaps_note(const struct noting *n)
{
    struct kp_finding f = {0};
    struct kp_waited_steps of;
    const size_t longest = which_tell(n, true, &of);
    if (longest == SIZE_MAX) return longest;
    const bool is_in = gaps_place(n, &f).ns > 0 && !f.is_gap;
    const char *const line = place_text(n, &f);
    const char *const most =
        f.where ? kp_costrules_text(n->x, ", most %s %s%s", is_in ? "in" : "before", f.where, line) : "";
    of.what = kp_costrules_text(n->x, "%s: no operator runs%s%s", of.what, most, *line ? "" : begin_text(n));
    kp_advice_waited_add(n->x->out, &of);
    return longest;
}

/* The calls that Python ran more: many steps are to be recorded, since others may be long the next time. */
static const char *python_text(const struct kp_costrules *x, size_t longest)
{
    const struct kp_step *const steps = x->chosen->steps;
    const long first = steps[0].number, last = steps[x->chosen->step_count - 1].number;
    if (longest == SIZE_MAX) return "";
    if (kp_costrules_has_calls(x))
        return KP_TEXT(", more Python (kprof report --step %ld --by line)", steps[longest].number);
    return KP_TEXT(", more Python (kprof run --with-stack 1 --schedule %ld-%ld shows it)", first,
                   first + MANY_STEPS < last ? first + MANY_STEPS : last);
}

void kp_longcauses_note(struct kp_costrules *x, struct kp_longsteps *l)
{
    const size_t steps = x->chosen->step_count;
    struct noting n = {.x = x, .l = l, .are_many = kp_rules_threads_wanted(x) != 0};
    n.lack_cores = n.are_many || kp_costrules_is_crowded(x);
    n.by = kp_kineto_room(steps + 1, sizeof *n.by);
    n.slower = kp_kineto_room(steps + 1, sizeof *n.slower);
    const double ns = steps_judge(&n);
    if (ns > 0 && ns >= NOTE_SHARE * x->out->step_ns * (double)steps) {
        const char *const larger = slower_note(&n) && !are_shaped(&n) ? ", larger inputs (--record-shapes)" : "";
        const char *const python = python_text(x, gaps_note(&n));
        x->out->waited_why =
            KP_TEXT("possible cause%s: %s%s%s", *larger || *python ? "s" : "", core_text(&n), larger, python);
    }
    free(n.by);
    free(n.slower);
}

/* A slow disk is no graph that is kept alive. */
void kp_longcauses_drift(struct kp_cost_rule *out, enum kp_split_part part, bool is_gap, bool is_carried)
{
    if (part == KP_SPLIT_LOADING)
        out->change =
            "Loading takes longer and longer. Causes: items that grow, a disk or a network that slows down (a "
            "full cache, other readers), or workers without a core.";
    else if (part == KP_SPLIT_COMM)
        out->change =
            "The network or another rank gets slower. `kprof advise` with the traces of all ranks says which.";
    else if (is_gap)
        out->change = "No operator runs in that time. Look for a file, a log or a list that grows, or a disk or a "
                      "network that slows down. `kprof run --with-stack 1` names the function.";
    else if (is_carried)
        out->change =
            "A graph is carried from step to step, and each backward pass goes through all of it: detach what "
            "is kept (h = h.detach()), and use no retain_graph=True.";
}
