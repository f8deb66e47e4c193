// SPDX-License-Identifier: Apache-2.0
/* rankwords.c - what the traces of all ranks tell of the findings of one: for whom it waits, and why */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/answers/advise/parts/finding.h"
#include "export/show/units.h"

#define KP_SHARE_LATE 0.05 /* as of communication */
#define KP_SHARE_LATE_MUCH 0.2

static void even_out(struct kp_rankwords *out, const char *cause)
{
    snprintf(out->change, sizeof out->change, "Even out the work of the ranks%s%s.", *cause ? ": " : "", cause);
}

/* If the traces of some ranks lack, the wait is true, and whom it is for is not known. */
static bool lack_tell(struct kp_rankwords *out, const struct kp_rankwaits *ranks)
{
    char names[KP_RANKTEXT_BYTES];
    if (ranks->rank_count < 2 || !kp_rankwaits_lack(ranks)) return false;
    kp_rankwaits_missing(names, sizeof names, ranks);
    snprintf(out->what, sizeof out->what, "the step waits for other ranks or for the network; %s left no trace", names);
    snprintf(out->change, sizeof out->change,
             "Record all ranks: without %s it is not known which rank is last, and why.", names);
    return true;
}

/* A rank that is late in some steps alone: what it has more of in the mean step is that of those. */
static bool rare_tell(struct kp_rankwords *out, size_t used, const struct kp_rankkept *kept, const char *rank)
{
    if (2 * kept->steps >= kept->of) return false;
    snprintf(out->what + used, sizeof out->what - used, "; most of that wait lies in %zu of %zu steps", kept->steps,
             kept->of);
    snprintf(out->change, sizeof out->change,
             "See what %s does in those steps and not in others: kprof report --step %ld of its trace.", rank,
             kept->longest);
    return true;
}

static void late_tell(struct kp_rankwords *out, const struct kp_rankwaits *ranks, long rank)
{
    const struct kp_rankwait *const late = kp_rankwaits_awaited(ranks, rank);
    char cause[KP_RANKCAUSE_BYTES];
    const struct kp_rankkept kept = kp_rankwaits_kept_steps(ranks, late->rank);
    char name[32];
    snprintf(name, sizeof name, "rank %ld", late->rank);
    const int used = snprintf(out->what, sizeof out->what,
                              "the step waits for %s, which arrived last at %zu of %zu collectives; the wait is %.0f "
                              "%% of the collective time",
                              name, late->last, late->matched, 100 * out->part);
    if (!rare_tell(out, (size_t)used, &kept, name))
        even_out(out, kp_rankwaits_cause(cause, sizeof cause, ranks, late) ? cause : "");
}

static void own_tell(struct kp_rankwords *out, const struct kp_rankwaits *ranks, long rank)
{
    const struct kp_rankwait *const row = kp_rankwaits_row(ranks, rank);
    const bool is_one = !ranks->has_hosts, are_small = ranks->matched && ranks->bus_bytes > 0 &&
                                                       ranks->bus_bytes < KP_COMM_SMALL * (int64_t)ranks->matched;
    const int used = snprintf(out->what, sizeof out->what, "the step waits for the %s",
                              is_one ? "collectives' own work, on one machine" : "network");
    if (!kp_rankwaits_are_last_alike(ranks))
        snprintf(out->what + used, sizeof out->what - (size_t)used,
                 " (this rank arrived last at %zu of %zu collectives)", row->last, row->matched);
    snprintf(out->change, sizeof out->change, "%s%s", are_small ? KP_COMM_FEWER : kp_commkinds_less(&ranks->kinds),
             is_one ? " On one machine ranks and collectives share its cores." : "");
}

bool kp_finding_of_rank(struct kp_rankwords *out, const struct kp_rankwaits *ranks, long rank)
{
    const enum kp_rankwait_kind kind = kp_rankwaits_kind(ranks, rank);
    char core[KP_RANKTEXT_BYTES];
    const double wait = kp_rankwaits_share(ranks, rank);
    *out = (struct kp_rankwords){.part = 1};
    out->is_for_gpu = kind == KP_RANKWAIT_UNTOLD || kind == KP_RANKWAIT_LATE;
    out->is_note = kind == KP_RANKWAIT_CORE;
    if (kind != KP_RANKWAIT_LATE && kind != KP_RANKWAIT_EACH) out->small = kind == KP_RANKWAIT_UNTOLD ? 1 : 1 - wait;
    if (kind == KP_RANKWAIT_UNTOLD) return lack_tell(out, ranks);
    if (kind == KP_RANKWAIT_CORE) {
        snprintf(out->what, sizeof out->what, "collectives end when all ranks have run, and %s",
                 kp_rankwaits_core_text(core, sizeof core, ranks));
        return true;
    }
    out->part = kind == KP_RANKWAIT_OWN ? 1 - wait : wait;
    if (kind == KP_RANKWAIT_LATE) late_tell(out, ranks, rank);
    else if (kind == KP_RANKWAIT_OWN) own_tell(out, ranks, rank);
    else if (kind == KP_RANKWAIT_EACH) {
        kp_rankwaits_in_turn(out->what, sizeof out->what, ranks);
        snprintf(out->change, sizeof out->change,
                 "See what each rank does before the collective to which it is last. Make that cheaper, or let both do "
                 "it at the same time.");
    } else {
        snprintf(out->what, sizeof out->what,
                 "the step waits for other ranks, none of which is late by its own work; the wait is %.0f %% of the "
                 "collective time",
                 100 * wait);
        snprintf(out->change, sizeof out->change, "Even out the work of the ranks in each step.");
    }
    return true;
}

static void steps_name(char *out, size_t bytes, const struct kp_longer_steps *steps)
{
    enum { NAMED = 3 };
    long *const numbers = kp_kineto_room(steps->count + 1, sizeof *numbers);
    for (size_t i = 0; i < steps->count; i++) numbers[i] = steps->of[i].number;
    kp_finding_steps_text(out, bytes, numbers, steps->count, NAMED);
    free(numbers);
}

/* Which rank had none, and how long: in one step, or everywhere. */
static const char *core_name(char *out, size_t bytes, const struct kp_rankwaits *ranks,
                             const struct kp_ranklonger *longer)
{
    if (longer->step < 0) return kp_rankwaits_core_text(out, bytes, ranks);
    snprintf(out, bytes, "rank %ld had no CPU core for %s of step %ld", longer->of->rank, kp_units_ms(longer->ns),
             longer->step);
    return out;
}

bool kp_finding_of_longer(struct kp_rankwords *out, const struct kp_rankwaits *ranks, long rank,
                          const struct kp_longer_steps *steps)
{
    const struct kp_ranklonger longer = kp_rankwaits_longer(ranks, rank, steps);
    char names[128], core[KP_RANKTEXT_BYTES];
    *out = (struct kp_rankwords){.part = 1, .is_note = longer.kind == KP_RANKLONGER_CORE};
    if (longer.kind == KP_RANKLONGER_UNTOLD) return false;
    steps_name(names, sizeof names, steps);
    if (longer.kind == KP_RANKLONGER_OWN) {
        snprintf(out->what, sizeof out->what,
                 "some steps last much longer than the others (%s): they wait for rank %ld, "
                 "which then does more than in other steps",
                 names, longer.of->rank);
        snprintf(out->change, sizeof out->change,
                 "See what rank %ld does in them: kprof report --step %ld of its trace.", longer.of->rank,
                 steps->of[0].number);
        return true;
    }
    snprintf(out->what, sizeof out->what, "%s took longer in collectives, which end when all ranks have run: %s", names,
             core_name(core, sizeof core, ranks, &longer));
    return true;
}

void kp_finding_insert(struct kp_advice *a, size_t at, const struct kp_finding *f)
{
    if (a->count == KP_FINDINGS_MAX) a->count--;
    memmove(&a->findings[at + 1], &a->findings[at], (a->count++ - at) * sizeof *f);
    a->findings[at] = *f;
}

void kp_finding_drop(struct kp_advice *a, struct kp_finding *f)
{
    memmove(f, f + 1, (size_t)(&a->findings[a->count--] - (f + 1)) * sizeof *f);
}

static void waited_note(struct kp_advice *a, const struct kp_finding *f, const char *what)
{
    const struct kp_longer_step *const of = f->longer.of;
    const struct kp_some_steps some = {of->ns, of[f->longer.count - 1].ns, f->step_ns * (double)a->steps};
    kp_advice_waited_add(a, &(struct kp_waited_steps){what, f->steps, of->number, some});
}

/* A part of its cost is this finding's. */
static void part_keep(struct kp_finding *f, double part)
{
    f->step_ns *= part;
    f->share *= part;
    if (!f->longer.count) f->is_critical = f->is_critical && f->share >= KP_SHARE_LATE_MUCH;
}

/* Gives the finding these words and this cost, or the advice the note in its place. */
static void finding_reword(struct kp_advice *a, struct kp_finding *f, const struct kp_rankwords *words,
                           struct kp_strings *texts)
{
    if (words->is_note && f->longer.count) waited_note(a, f, kp_strings_keep(texts, words->what));
    else if (words->is_note) {
        char both[1024];
        snprintf(both, sizeof both, "%s%s%s", words->what, a->met ? "; " : "", a->met ? a->met : "");
        a->met = kp_strings_keep(texts, both);
    }
    if (words->is_note) {
        kp_finding_drop(a, f);
        return;
    }
    f->what = kp_strings_keep(texts, words->what);
    f->change = kp_strings_keep(texts, words->change);
    part_keep(f, words->part);
}

/* Many small collectives are a fault whatever a rank waits for in them. False: that wait is nearly all of it. */
static bool small_keep(struct kp_finding *f, const struct kp_rankwords *words)
{
    if (!f->is_small || words->small * f->share < KP_SHARE_LATE) return false;
    part_keep(f, words->small);
    return true;
}

bool kp_finding_of_cores(char *out, size_t bytes, const struct kp_rankwaits *ranks, long rank, bool is_by_own)
{
    const enum kp_rankcores kind = kp_rankwaits_cores_text(out, bytes, ranks, rank);
    return kind == KP_RANKCORES_RANKS || (kind == KP_RANKCORES_OTHERS && !is_by_own);
}

/* Threads of the rank's own stay told behind it. */
static void cores_reword(struct kp_advice *a, const struct kp_rankwaits *ranks, long rank, struct kp_strings *texts)
{
    char by[512], all[2048];
    if (!a->crowded || !a->crowded_by) return;
    if (!kp_finding_of_cores(by, sizeof by, ranks, rank, a->is_crowded_by_own)) return;
    const int head = (int)(strlen(a->crowded) - strlen(a->crowded_by));
    snprintf(all, sizeof all, "%.*s%s%s%s", head, a->crowded, by, a->is_crowded_by_own ? ". " : "",
             a->is_crowded_by_own ? a->crowded_by : "");
    a->crowded = kp_strings_keep(texts, all);
    a->crowded_by = NULL;
}

void kp_advice_of_rank(struct kp_advice *a, const struct kp_rankwaits *ranks, long rank, struct kp_strings *texts)
{
    struct kp_rankwords words;
    cores_reword(a, ranks, rank, texts);
    for (size_t i = a->count; i-- > 0;) {
        struct kp_finding *const f = &a->findings[i];
        if (f->longer.count && kp_finding_of_longer(&words, ranks, rank, &f->longer))
            finding_reword(a, f, &words, texts);
        else if (strcmp(f->id, KP_FINDING_COMM) == 0 && kp_finding_of_rank(&words, ranks, rank) &&
                 (words.is_for_gpu || !a->has_gpu) && !small_keep(f, &words))
            finding_reword(a, f, &words, texts);
    }
}

bool kp_finding_of_late(struct kp_finding *out, struct kp_rankwords *words, const struct kp_rankwaits *ranks, long rank)
{
    const struct kp_rankwait *const late = kp_rankwaits_late(ranks);
    const double kept_ns = kp_rankwaits_kept_ns(ranks, rank);
    char cause[KP_RANKCAUSE_BYTES];
    if (kept_ns <= 0 || !late->steps_ns) return false;
    const double share = kept_ns * (double)late->steps / (double)late->steps_ns;
    if (share < KP_SHARE_LATE) return false;
    const struct kp_rankkept kept = kp_rankwaits_kept_steps(ranks, rank);
    const bool has_cause = kp_rankwaits_cause(cause, sizeof cause, ranks, late);
    const int used = snprintf(words->what, sizeof words->what,
                              "the other rank%s for this one, which arrived last at %zu of %zu collectives",
                              ranks->rank_count > 2 ? "s wait" : " waits", late->last, late->matched);
    const bool is_rare = rare_tell(words, (size_t)used, &kept, "this rank");
    if (!is_rare) even_out(words, has_cause ? cause : "");
    const struct kp_rankplace *const place = kp_rankwaits_place(ranks, late);
    *out = (struct kp_finding){.id = KP_FINDING_LATE,
                               .what = words->what,
                               .change = words->change,
                               .where = place && !place->is_line ? place->name : NULL,
                               .line = place && place->is_line ? place->name : NULL,
                               .is_backward = place && place->is_backward,
                               .step_ns = kept_ns,
                               .share = share > 1 ? 1 : share,
                               .share_of = kp_rankwaits_crowded(ranks) ? KP_OF_WAITS : NULL,
                               .steps = kept.steps,
                               .is_critical = !is_rare && share >= KP_SHARE_LATE_MUCH};
    return true;
}
