// SPDX-License-Identifier: Apache-2.0
/* nocore.c - how long each step of a trace waited for a core: reads kprof.core_steps, "17:60000,20-24:3000" in us */
#include "export/read/facts/steps/nocore.h"

#include <stdlib.h>
#include <string.h>

#include "export/read/kineto/kineto_facts.h"
#include "export/read/store/qsort.h"

#define LEFT_OUT_SHARE 0.02 /* of the steps' time: shorter waits are not in the list */
#define LEFT_OUT_NS 50e6    /* the window's end is no step's, nor in the list */

struct nocore_wait { /* of the steps first to last together */
    long first, last;
    double ns;
};
struct nocore {
    const struct kp_step *steps;
    size_t count, at; /* at: where the last wait was found; they come in order */
    double median_ns, *out;
};

static double length_of(const struct kp_step *step) { return (double)(step->end_ns - step->start_ns); }

static double median_of(const struct kp_step *steps, size_t count)
{
    double *lengths = kp_kineto_room(count + 1, sizeof *lengths);
    for (size_t i = 0; i < count; i++) lengths[i] = length_of(&steps[i]);
    const double median = kp_quantile(lengths, count, 0.5);
    free(lengths);
    return median;
}

/* Reads the first wait of "17:60000,20-24:3000", in us. Returns what is behind it; NULL: it is none. */
static const char *wait_read(const char *at, struct nocore_wait *out)
{
    char *end;
    out->first = out->last = strtol(at, &end, 10);
    if (end == at) return NULL;
    if (*end == '-') out->last = strtol(end + 1, &end, 10);
    if (*end != ':' || out->last < out->first) return NULL;
    out->ns = 1e3 * (double)strtol(end + 1, &end, 10);
    return out->ns > 0 ? end + (*end == ',') : NULL;
}

static size_t step_find(struct nocore *n, long number)
{
    if (n->at >= n->count || n->steps[n->at].number > number) n->at = 0;
    while (n->at < n->count && n->steps[n->at].number < number) n->at++;
    return n->at;
}

static double excess_of(const struct nocore *n, size_t step)
{
    const double more = length_of(&n->steps[step]) - n->median_ns;
    return more > 0 ? more : 0;
}

/* Shares a wait among the steps `from` to `end`: by what they are longer, and beyond that by their length. */
static void wait_share(struct nocore *n, const struct nocore_wait *w, size_t from, size_t end)
{
    double excess = 0, all = 0;
    for (size_t i = from; i < end; i++) excess += excess_of(n, i), all += length_of(&n->steps[i]);
    const double by_excess = w->ns < excess ? w->ns : excess;
    for (size_t i = from; i < end; i++) {
        double ns = excess > 0 ? by_excess * excess_of(n, i) / excess : 0;
        if (all > 0) ns += (w->ns - by_excess) * length_of(&n->steps[i]) / all;
        n->out[i] += ns;
        if (n->out[i] > length_of(&n->steps[i])) n->out[i] = length_of(&n->steps[i]);
    }
}

static bool wait_take(struct nocore *n, const struct nocore_wait *w)
{
    const size_t from = step_find(n, w->first);
    size_t end = from;
    while (end < n->count && n->steps[end].number <= w->last) end++;
    if (end == from || end - from != (size_t)(w->last - w->first) + 1) return false;
    wait_share(n, w, from, end);
    return true;
}

/* Gives the steps their waits of a window's list, and adds it up. */
static bool list_take(struct nocore *n, const char *at, struct nocore_wait *sum)
{
    struct nocore_wait w;
    bool any = false;
    *sum = (struct nocore_wait){.first = -1, .last = -1};
    while ((at = wait_read(at, &w))) {
        any |= wait_take(n, &w);
        *sum = (struct nocore_wait){sum->first < 0 ? w.first : sum->first, w.last, sum->ns + w.ns};
    }
    return any;
}

/*
 * A list may end before its window's steps do: older versions lost the last KB of a killed process's list, and of a
 * long window 1 MB is kept. The sum of the window's waits is known, so its later steps waited the rest together. Which
 * of them did is not known: each gets a part of its length, so that a long one stays long beside the others.
 */
static bool rest_take(struct nocore *n, const struct kp_kineto *trace, const struct nocore_wait *listed)
{
    const size_t from = step_find(n, listed->last + 1);
    double left_out_ns = LEFT_OUT_NS, all_ns = 0;
    if (from == n->count || n->steps[0].number > listed->first) return false;
    for (size_t i = 0; i < from; i++) left_out_ns += LEFT_OUT_SHARE * length_of(&n->steps[i]);
    for (size_t i = from; i < n->count; i++) all_ns += length_of(&n->steps[i]);
    const double rest_ns = 1e3 * (double)kp_kineto_number(trace, "kprof.core_waited_us") - listed->ns - left_out_ns;
    if (rest_ns <= 0 || rest_ns > all_ns) return false;
    for (size_t i = from; i < n->count; i++) n->out[i] += rest_ns * length_of(&n->steps[i]) / all_ns;
    return true;
}

/* `is_all`: the steps are all of the trace. One window alone can have a rest: of others no sum is known. */
static bool waits_read(double *out, const struct kp_kineto *trace, const struct kp_step *steps, size_t count,
                       bool is_all)
{
    struct nocore n = {.steps = steps, .count = count, .out = out};
    struct nocore_wait listed = {.first = -1};
    size_t lists = 0;
    bool any = false;
    memset(out, 0, count * sizeof *out);
    for (size_t i = 0; i < trace->fact_count; i++) { /* one fact a window */
        if (strcmp(kp_kineto_text(trace, trace->facts[i].path), KP_FACT_CORE_STEPS) != 0) continue;
        if (!(n.median_ns > 0)) n.median_ns = median_of(steps, count);
        any |= list_take(&n, kp_kineto_text(trace, trace->facts[i].text), &listed);
        lists++;
    }
    if (is_all && lists == 1) any |= rest_take(&n, trace, &listed);
    return any;
}

bool kp_nocore_of(double *out, const struct kp_kineto *trace, const struct kp_step *steps, size_t count)
{
    return waits_read(out, trace, steps, count, false);
}

/* Finds the step of that number and begin. SIZE_MAX: there is none. */
static size_t same_find(const struct kp_chosen *all, const struct kp_step *step)
{
    for (size_t k = kp_step_after(all->steps, all->step_count, step->start_ns); k < all->step_count; k++) {
        if (all->steps[k].start_ns > step->start_ns) break;
        if (all->steps[k].number == step->number) return k;
    }
    return SIZE_MAX;
}

bool kp_nocore_of_some(double *out, const struct kp_tree *tree, const struct kp_step *steps, size_t count)
{
    struct kp_chosen all;
    char why[256];
    bool any = false;
    memset(out, 0, count * sizeof *out);
    if (!kp_kineto_fact(tree->trace, KP_FACT_CORE_STEPS)) return false;
    if (kp_chosen_all(&all, tree, why, sizeof why) == 0) {
        double *const of_all = kp_kineto_room(all.step_count + 1, sizeof *of_all);
        (void)waits_read(of_all, tree->trace, all.steps, all.step_count, true);
        for (size_t i = 0; i < count; i++) {
            const size_t same = same_find(&all, &steps[i]);
            out[i] = same == SIZE_MAX ? 0 : of_all[same];
            any |= out[i] > 0;
        }
        free(of_all);
    }
    kp_chosen_fini(&all);
    return any;
}

/* ---- the share of some steps ---- */

#define LISTED_MOST 0.9 /* of all waits: what is not listed by step are short ones */
#define ALL_STEPS 0.98  /* of the time of all steps */

/* Sums all waits that are listed by step. Returns the last step among these; -1: there are none. */
static long listed_sum(const struct kp_kineto *trace, double *ns)
{
    long last = -1;
    *ns = 0;
    for (size_t i = 0; i < trace->fact_count; i++) {
        const char *at = kp_kineto_text(trace, trace->facts[i].text);
        struct nocore_wait w;
        if (strcmp(kp_kineto_text(trace, trace->facts[i].path), KP_FACT_CORE_STEPS) != 0) continue;
        for (; (at = wait_read(at, &w)); *ns += w.ns)
            if (w.last > last) last = w.last;
    }
    return last;
}

/* Is the list of waits whole up to the last of these steps? A recording of many waits lists the first ones. */
static bool is_listed(const struct kp_kineto *trace, long last_step, double waited_ns)
{
    double listed_ns;
    const long last = listed_sum(trace, &listed_ns);
    return last >= last_step || (last >= 0 && listed_ns >= LISTED_MOST * waited_ns);
}

void kp_nocore_times_of(struct kp_nocore_times *out, const struct kp_kineto *trace, const struct kp_step *all,
                        size_t count, const bool *is_in)
{
    const double had = 1e3 * (double)kp_kineto_number(trace, "kprof.core_had_us"),
                 waited = 1e3 * (double)kp_kineto_number(trace, "kprof.core_waited_us");
    double *const waits = kp_kineto_room(count + 1, sizeof *waits), all_ns = 0, ns = 0, of_these = 0;
    long last = -1;
    *out = (struct kp_nocore_times){had, waited, true};
    kp_nocore_of(waits, trace, all, count);
    for (size_t i = 0; i < count; i++) {
        all_ns += length_of(&all[i]);
        if (!is_in[i]) continue;
        ns += length_of(&all[i]);
        of_these += waits[i];
        last = all[i].number;
    }
    free(waits);
    out->is_of_all = ns < ALL_STEPS * all_ns;
    if (!out->is_of_all || !is_listed(trace, last, waited)) return;
    const double free_ns = all_ns - waited, had_part = had < free_ns ? had / free_ns : 1; /* else it sleeps */
    *out = (struct kp_nocore_times){had_part * (ns - of_these), of_these, false};
}

void kp_nocore_times_of_some(struct kp_nocore_times *out, const struct kp_tree *tree, const struct kp_step *steps,
                             size_t count)
{
    struct kp_chosen all;
    char why[256];
    *out = (struct kp_nocore_times){0};
    if (kp_chosen_all(&all, tree, why, sizeof why) == 0) {
        bool *const is_in = kp_kineto_zeros(all.step_count + 1, sizeof *is_in);
        for (size_t i = 0; i < count; i++) {
            const size_t same = same_find(&all, &steps[i]);
            if (same != SIZE_MAX) is_in[same] = true;
        }
        kp_nocore_times_of(out, tree->trace, all.steps, all.step_count, is_in);
        free(is_in);
    }
    kp_chosen_fini(&all);
}
