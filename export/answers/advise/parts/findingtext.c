// SPDX-License-Identifier: Apache-2.0
/*
 * findingtext.c - what is said beside the findings: notes, what bounds a step, where a finding lies
 *
 * What a finding itself says and advises stands with its rule (partrules.c and the other *rules.c).
 */
#include <stdio.h>
#include <string.h>

#include "export/answers/advise/parts/finding.h"
#include "export/answers/top/toprows.h"

#define KP_SHARE_LATE 0.05 /* as of communication */
#define KP_SHARE_LATE_MUCH 0.2

size_t kp_advice_notes(const struct kp_advice *a, const char *notes[KP_NOTES_MAX])
{
    const bool is_waited_more = a->waited_ns > a->evaluated_ns;
    const char *const all[KP_NOTES_MAX] = {a->guessed,
                                           a->crowded,
                                           is_waited_more ? a->waited : a->evaluated,
                                           is_waited_more ? a->evaluated : a->waited,
                                           a->lines_by,
                                           a->slowed_by,
                                           a->ahead,
                                           a->overlaps,
                                           a->prompts,
                                           a->no_op,
                                           a->met,
                                           a->outside,
                                           a->most};
    size_t count = 0;
    for (size_t i = 0; i < KP_NOTES_MAX; i++)
        if (all[i]) notes[count++] = all[i];
    return count;
}

bool kp_advice_is_incomplete(const struct kp_advice *a) { return a->missing && !a->is_unrecorded; }

bool kp_advice_is_crowded_first(const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (a->findings[i].is_critical) return false;
    return a->crowded && !kp_advice_is_incomplete(a);
}

const char *kp_advice_bound(const struct kp_advice *a)
{
    static const char compute[] = "GPU compute";
    static const struct {
        const char *id, *bound;
    } rows[] = {
        {"launch-bound", "host launches"}, {"launch-blocking", "host launches"}, {"data-loading", "data loading"},
        {"exposed-copies", "copies"},      {"pageable-copies", "copies"},        {"copies-to-join", "copies"},
        {"tensor-cores-unused", compute},  {"low-occupancy", compute},           {"unstable-kernels", compute},
        {"kernels-to-fuse", compute},      {"elementwise-slow", compute},        {"attention-unfused", compute},
        {"mixed-precision", compute},      {"layout-changes", compute}};
    if (!a->has_gpu || kp_advice_is_incomplete(a)) return NULL;
    const double share = a->step_ns > 0 ? a->mean_ns[KP_SPLIT_COMPUTE] / a->step_ns : 0;
    if (share >= KP_SHARE_HEALTHY) return compute;
    for (size_t i = 0; a->count && i < sizeof rows / sizeof *rows; i++)
        if (strcmp(a->findings[0].id, rows[i].id) == 0)
            return rows[i].bound == compute && share < 0.5 ? NULL : rows[i].bound;
    return NULL;
}

/* A loader is told by the line that asks it, and its time in no op by the ops around that: often of one line, for the
 * item before and the next. */
static const char *loading_line(const struct kp_finding *f, char *room, size_t bytes)
{
    const char *const line = f->line ? f->line : f->frame ? f->frame : "", *const comma = *line ? ", " : "";
    if (!f->until) snprintf(room, bytes, "%s%safter %s", line, comma, f->after);
    else if (!f->after) snprintf(room, bytes, "%s%sbefore %s", line, comma, f->until);
    else if (strcmp(f->after, f->until) == 0) snprintf(room, bytes, "%s%saround %s", line, comma, f->until);
    else snprintf(room, bytes, "%s%sbetween %s and %s", line, comma, f->after, f->until);
    return room;
}

static bool is_loading(const struct kp_finding *f)
{
    return f->where && kp_kineto_is_loader(f->where) && (f->after || f->until);
}

bool kp_finding_is_beside(const struct kp_finding *f)
{
    return is_loading(f) ? !f->line && !f->frame : f->after && (f->line || !f->frame);
}

/* Idle time lies between two ops, and a call in no op is told by the op before. */
const char *kp_finding_line(const struct kp_finding *f, char *room, size_t bytes)
{
    const char *const line = f->line ? f->line : f->frame;
    const char *const of = f->is_backward ? KP_TOP_BACKWARD_OF : "";
    const char *const of_after = f->is_after_backward ? KP_TOP_BACKWARD_OF : "";
    if (is_loading(f)) return loading_line(f, room, bytes);
    if (!f->after && !*of) return line;
    if (!f->after) snprintf(room, bytes, "%s%s", of, line);
    else if (!line) snprintf(room, bytes, "after %s%s", of_after, f->after);
    else if (f->line) snprintf(room, bytes, "between %s%s and %s%s", of_after, f->after, of, line);
    else snprintf(room, bytes, "%s, after %s%s", line, of_after, f->after);
    return room;
}

static void even_out(struct kp_rankwords *out, const char *cause)
{
    snprintf(out->change, sizeof out->change, "Even out the work of the ranks%s%s.", *cause ? ": " : "", cause);
}

/* Without the traces of all ranks the wait is true, and whom it is for is not known. */
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

static void late_tell(struct kp_rankwords *out, const struct kp_rankwaits *ranks, long rank)
{
    const struct kp_rankwait *const late = kp_rankwaits_awaited(ranks, rank);
    char cause[KP_RANKCAUSE_BYTES];
    snprintf(out->what, sizeof out->what,
             "the step waits for rank %ld, which arrived last at %zu of %zu collectives; the wait is %.0f %% of "
             "the collective time",
             late->rank, late->last, late->matched, 100 * out->part);
    even_out(out, kp_rankwaits_cause(cause, sizeof cause, ranks, late) ? cause : "");
}

#define SMALL_BYTES 16384 /* of a collective: to send half of it saves nothing */
static const char fewer[] = "Start fewer collectives: these send a few bytes each, so their number costs, not their "
                            "size. Join small tensors, and exchange metrics every N steps.";

static bool are_small(const struct kp_rankwaits *ranks)
{
    return ranks->matched && ranks->bus_bytes > 0 && ranks->bus_bytes < SMALL_BYTES * (int64_t)ranks->matched;
}

static void own_tell(struct kp_rankwords *out, const struct kp_rankwaits *ranks, long rank)
{
    const struct kp_rankwait *const row = kp_rankwaits_row(ranks, rank);
    const bool is_one = !ranks->has_hosts;
    snprintf(out->what, sizeof out->what,
             "the step waits for the %s (this rank arrived last at %zu of %zu collectives)",
             is_one ? "collectives' own work, on one machine" : "network", row->last, row->matched);
    snprintf(out->change, sizeof out->change, "%s%s", are_small(ranks) ? fewer : kp_commkinds_less(&ranks->kinds),
             is_one ? " On one machine ranks and collectives share its cores." : "");
}

bool kp_finding_of_rank(struct kp_rankwords *out, const struct kp_rankwaits *ranks, long rank)
{
    const enum kp_rankwait_kind kind = kp_rankwaits_kind(ranks, rank);
    const struct kp_rankwait *const crowded = kp_rankwaits_crowded(ranks);
    const double wait = kp_rankwaits_share(ranks, rank);
    *out = (struct kp_rankwords){.part = 1};
    out->is_for_gpu = kind == KP_RANKWAIT_UNTOLD || kind == KP_RANKWAIT_LATE;
    out->is_note = kind == KP_RANKWAIT_CORE;
    if (kind == KP_RANKWAIT_UNTOLD) return lack_tell(out, ranks);
    if (kind == KP_RANKWAIT_CORE) {
        snprintf(out->what, sizeof out->what,
                 "collectives end when all ranks have run, and rank %ld had no CPU core for %.0f %% of "
                 "the time that it wanted one",
                 crowded->rank, 100 * kp_rankwait_no_core(crowded));
        return true;
    }
    out->part = kind == KP_RANKWAIT_OWN ? 1 - wait : wait;
    if (kind == KP_RANKWAIT_LATE) late_tell(out, ranks, rank);
    else if (kind == KP_RANKWAIT_OWN) own_tell(out, ranks, rank);
    else {
        snprintf(out->what, sizeof out->what,
                 "the step waits for other ranks, none of which is late alone; the wait is %.0f %% of the collective "
                 "time",
                 100 * wait);
        snprintf(out->change, sizeof out->change, "Even out the work of the ranks in each step.");
    }
    return true;
}

void kp_finding_reword(struct kp_advice *a, struct kp_finding *f, const struct kp_rankwords *words)
{
    if (words->is_note) {
        a->met = words->what;
        memmove(f, f + 1, (size_t)(&a->findings[a->count--] - (f + 1)) * sizeof *f);
        return;
    }
    f->what = words->what;
    f->change = words->change;
    f->step_ns *= words->part;
    f->share *= words->part;
    f->is_critical = f->is_critical && f->share >= KP_SHARE_LATE_MUCH;
}

bool kp_finding_of_late(struct kp_finding *out, struct kp_rankwords *words, const struct kp_rankwaits *ranks, long rank)
{
    const struct kp_rankwait *const late = kp_rankwaits_late(ranks);
    const double kept_ns = kp_rankwaits_kept_ns(ranks, rank);
    char cause[KP_RANKCAUSE_BYTES];
    if (kept_ns <= 0 || !late->steps_ns) return false;
    const double share = kept_ns * (double)late->steps / (double)late->steps_ns;
    if (share < KP_SHARE_LATE) return false;
    const bool has_cause = kp_rankwaits_cause(cause, sizeof cause, ranks, late);
    snprintf(words->what, sizeof words->what,
             "the other rank%s for this one, which arrived last at %zu of %zu collectives",
             ranks->rank_count > 2 ? "s wait" : " waits", late->last, late->matched);
    even_out(words, has_cause ? cause : "");
    const struct kp_rankplace *const place = kp_rankwaits_place(ranks, late);
    *out = (struct kp_finding){.id = KP_FINDING_LATE,
                               .what = words->what,
                               .change = words->change,
                               .where = place && !place->is_line ? place->name : NULL,
                               .line = place && place->is_line ? place->name : NULL,
                               .is_backward = place && place->is_backward,
                               .step_ns = kept_ns,
                               .share = share > 1 ? 1 : share,
                               .steps = late->steps,
                               .is_critical = share >= KP_SHARE_LATE_MUCH};
    return true;
}
