// SPDX-License-Identifier: Apache-2.0
/* ranklonger.c - why steps of a rank are long by communication: what the other ranks did in the same steps */
#include <math.h>
#include <stdlib.h>

#include "export/answers/ranks/rankwaits.h"
#include "export/read/store/qsort.h"

#define EXPLAINS_SHARE 0.5 /* of what the steps last longer */

enum part { NO_CORE, OWN, PARTS }; /* of a rank's step, which has its collectives beside */
struct usual {                     /* of a rank, the medians of its steps */
    double ns[PARTS];
};
struct ranklonger_seeking {
    const struct kp_rankwaits *w;
    const struct kp_rankwait *row;
    struct usual *usual; /* by row */
    double *own_ns;      /* by row, of all_ns */
    double all_ns, core_ns;
    struct kp_ranklonger core;
};

struct kp_longer_steps kp_longer_steps_keep(const struct kp_longer_steps *longer, struct kp_strings *texts)
{
    struct kp_longer_steps out = *longer;
    out.of = kp_strings_keep_list(texts, longer->of, longer->count * sizeof *longer->of);
    return out;
}

void kp_rankwaits_ask(struct kp_rankwaits *w, const struct kp_longer_steps *longer)
{
    if (w->trace_count && longer->count)
        *KP_KINETO_NEXT(w->asked, w->asked_count, w->asked_capacity) =
            (struct kp_rankasked){w->traces[w->trace_count - 1].rank, kp_longer_steps_keep(longer, w->texts)};
}

static void parts_of(const struct kp_rankwaits *w, const struct kp_rankstep *s, double ns[PARTS])
{
    const double spent = (double)kp_spans_between(&w->traces[s->trace].spent, s->start_ns, s->end_ns);
    ns[NO_CORE] = s->no_core_ns;
    ns[OWN] = fmax(0, (double)(s->end_ns - s->start_ns) - spent - s->no_core_ns);
}

static struct usual usual_of(const struct kp_rankwaits *w, const struct kp_rankwait *row)
{
    struct usual out = {{0}};
    double *const each = kp_kineto_room(row->each_count + 1, sizeof *each), ns[PARTS];
    for (int part = 0; part < PARTS; part++) {
        for (size_t i = 0; i < row->each_count; i++) {
            parts_of(w, &row->each[i], ns);
            each[i] = ns[part];
        }
        out.ns[part] = kp_quantile(each, row->each_count, 0.5);
    }
    free(each);
    return out;
}

static const struct kp_rankstep *step_of(const struct kp_rankwait *row, long number)
{
    for (size_t i = 0; i < row->each_count; i++)
        if (row->each[i].number == number) return &row->each[i];
    return NULL;
}

/* The time that the others have more than usual in a step that lasts so much longer. */
static void step_take(struct ranklonger_seeking *s, const struct kp_longer_step *longer)
{
    double most = 0;
    s->all_ns += longer->ns;
    for (size_t i = 0; i < s->w->rank_count; i++) {
        const struct kp_rankwait *const row = &s->w->ranks[i];
        const struct kp_rankstep *const step = row == s->row ? NULL : step_of(row, longer->number);
        double ns[PARTS];
        if (!step) continue;
        parts_of(s->w, step, ns);
        s->own_ns[i] += fmin(longer->ns, fmax(0, ns[OWN] - s->usual[i].ns[OWN]));
        most = fmax(most, ns[NO_CORE] - s->usual[i].ns[NO_CORE]);
        if (ns[NO_CORE] <= s->core.ns) continue;
        s->core = (struct kp_ranklonger){KP_RANKLONGER_CORE, row, longer->number, ns[NO_CORE]};
    }
    s->core_ns += fmin(longer->ns, most);
}

static struct kp_ranklonger judge(const struct ranklonger_seeking *s, bool is_each_nth)
{
    size_t most = 0;
    for (size_t i = 1; i < s->w->rank_count; i++)
        if (s->own_ns[i] > s->own_ns[most]) most = i;
    const double half = EXPLAINS_SHARE * s->all_ns, own = s->own_ns[most];
    if (own >= half && own >= s->core_ns) return (struct kp_ranklonger){KP_RANKLONGER_OWN, &s->w->ranks[most], -1, own};
    if (s->core_ns >= half && s->core.of) return s->core;
    const bool is_chance = !is_each_nth && kp_rankwaits_kind(s->w, s->row->rank) == KP_RANKWAIT_CORE;
    if (is_chance) return (struct kp_ranklonger){KP_RANKLONGER_CORE, kp_rankwaits_without_core(s->w), -1, 0};
    return (struct kp_ranklonger){.kind = KP_RANKLONGER_UNTOLD};
}

struct kp_ranklonger kp_rankwaits_longer(const struct kp_rankwaits *w, long rank, const struct kp_longer_steps *longer)
{
    struct ranklonger_seeking s = {.w = w, .row = kp_rankwaits_row(w, rank)};
    if (!s.row || !longer->count) return (struct kp_ranklonger){.kind = KP_RANKLONGER_UNTOLD};
    s.usual = kp_kineto_room(w->rank_count, sizeof *s.usual);
    s.own_ns = kp_kineto_zeros(w->rank_count, sizeof *s.own_ns);
    for (size_t i = 0; i < w->rank_count; i++) s.usual[i] = usual_of(w, &w->ranks[i]);
    for (size_t i = 0; i < longer->count; i++) step_take(&s, &longer->of[i]);
    const struct kp_ranklonger out = judge(&s, longer->is_each_nth);
    free(s.usual);
    free(s.own_ns);
    return out;
}
