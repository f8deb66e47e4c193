// SPDX-License-Identifier: Apache-2.0
/*
 * findingtext.c - what is said beside the findings: notes, what bounds a step, where a finding lies
 *
 * The text and advice of a finding itself stand with its rule (partrules.c and the other *rules.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_order.h"
#include "export/answers/advise/parts/finding.h"
#include "export/answers/top/toprows.h"

KP_ORDER_NUMBERS(number_order, long)

static bool are_in_order(const long *numbers, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (numbers[i] < numbers[i - 1]) return false;
    return true;
}

/* All steps are named in the order of time. Some of many are those that cost most. */
const char *kp_finding_steps_text(char *out, size_t bytes, const long *longest, size_t count, size_t most)
{
    const bool are_all = count <= most;
    const size_t named = are_all ? count : most;
    long *const numbers = kp_kineto_room(count + 1, sizeof *numbers);
    memcpy(numbers, longest, count * sizeof *numbers);
    if (are_all && count) qsort(numbers, count, sizeof *numbers, number_order);
    size_t used = (size_t)snprintf(out, bytes, "step%s ", count == 1 ? "" : "s");
    for (size_t i = 0; i < named && used < bytes; i++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%ld", i ? ", " : "", numbers[i]);
    if (!are_all && used < bytes)
        snprintf(out + used, bytes - used, "%s and %zu more", are_in_order(numbers, count) ? "" : ", longest first,",
                 count - named);
    free(numbers);
    return out;
}

size_t kp_advice_notes(const struct kp_advice *a, struct kp_note notes[KP_NOTES_MAX])
{
    enum { WAITED_AT = 4 };
    const bool is_waited_more = a->waited_ns > a->evaluated_ns;
    const struct kp_note rows[] = {{a->guessed, "Steps are guessed"},
                                   {a->at_once, "Steps of several threads"},
                                   {a->crowded, "Too few cores"},
                                   {is_waited_more ? NULL : a->evaluated, "Passes without backward"},
                                   {a->grown, "Inputs grow"}, /* WAITED_AT: behind those groups */
                                   {a->waited_why, "Why steps may be slow"},
                                   {is_waited_more ? a->evaluated : NULL, "Passes without backward"},
                                   {a->unread, "Kernels that are not read"},
                                   {a->recomputed, "Activation checkpointing"},
                                   {a->filled, "A buffer fills"},
                                   {a->again, "Passes without gradients"},
                                   {a->lines_by, "Lines are not recorded"},
                                   {a->slowed_by, "Recording takes time"},
                                   {a->ahead, "Host and GPU"},
                                   {a->overlaps, "Times that cannot be"},
                                   {a->prompts, "Prompts"},
                                   {a->no_op, "Time without an operator"},
                                   {a->met, "Collectives"},
                                   {a->outside, "Work outside of the steps"},
                                   {a->most, "Hottest lines"}};
    _Static_assert(sizeof rows <= (KP_NOTES_MAX - KP_WAITED_MAX) * sizeof *rows, "all have room");
    size_t count = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t w = 0; i == WAITED_AT && w < a->waited_count; w++)
            notes[count++] = (struct kp_note){a->waited[w].what, "The machine was busy"};
        if (rows[i].text) notes[count++] = rows[i];
    }
    return count;
}

void kp_advice_waited_add(struct kp_advice *a, const struct kp_waited_steps *steps)
{
    struct kp_waited_steps *const of = a->waited, *at;
    a->waited_ns += steps->some.all_ns / (double)a->steps;
    if (a->waited_count < KP_WAITED_MAX) a->waited_count++;
    else if (of[KP_WAITED_MAX - 1].some.all_ns >= steps->some.all_ns) return;
    for (at = &of[a->waited_count - 1]; at > of && at[-1].some.all_ns < steps->some.all_ns; at--) *at = at[-1];
    *at = *steps;
}

bool kp_advice_is_incomplete(const struct kp_advice *a) { return a->missing && !a->is_unrecorded; }

enum kp_verdict kp_advice_verdict(const struct kp_advice *a)
{
    if (a->count) return KP_VERDICT_FOUND;
    if (kp_advice_is_incomplete(a)) return KP_VERDICT_INCOMPLETE; /* what settings left out is in `unjudged` */
    if (a->crowded || a->met) return KP_VERDICT_NO_CORE;
    return a->is_well ? KP_VERDICT_HEALTHY : KP_VERDICT_NOTHING;
}

bool kp_advice_is_crowded_first(const struct kp_advice *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (a->findings[i].is_critical || a->findings[i].step_ns > a->crowded_ns) return false;
    return a->crowded && !kp_advice_is_incomplete(a);
}

/* An evaluation before or behind all steps is no part of each step: a finding is the answer then, and it a note. */
bool kp_advice_is_evaluated_first(const struct kp_advice *a)
{
    const bool is_much = a->evaluated && a->is_evaluated_inside && a->evaluated_share >= KP_SHARE_CRITICAL;
    if (!is_much || !a->count || kp_advice_is_crowded_first(a)) return false;
    for (size_t i = 0; i < a->count; i++) {
        const bool is_of_memory = !(a->findings[i].step_ns > 0);
        if ((is_of_memory && a->findings[i].is_critical) || a->findings[i].step_ns >= a->evaluated_ns) return false;
    }
    return true;
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
    if (!f->after && !*of && !f->also_line) return line;
    if (!f->after && f->also_line) snprintf(room, bytes, "%s%s, and %s%s", of, line, of, f->also_line);
    else if (!f->after) snprintf(room, bytes, "%s%s", of, line);
    else if (!line) snprintf(room, bytes, "after %s%s", of_after, f->after);
    else if (f->line) snprintf(room, bytes, "between %s%s and %s%s", of_after, f->after, of, line);
    else snprintf(room, bytes, "%s, after %s%s", line, of_after, f->after);
    return room;
}
