// SPDX-License-Identifier: Apache-2.0
/*
 * slowest.c - what the slowest hundredth of many calls, or steps, has more than the others
 *
 * Each has rows of its own (kp_top_each_step). The place is the row that takes most more in the mean of the slowest
 * than in the mean of the others. If shapes were recorded, an op of other shapes is another row.
 */
#include "export/answers/top/toprows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_order.h"
#include "export/read/facts/steps/nocore.h"
#include "export/show/units.h"

enum { PART = 100, NAME_BYTES = 200 };
#define SLOW_MEDIANS 1.5 /* the mean of the slowest: what differs by less needs no reason */

struct slow_place {
    double ns[2];   /* sums, of the others and of the slowest */
    double line_ns; /* the most that a line has in one of the slowest */
    uint32_t line;
    bool is_backward;
};
struct slowest_finding {
    const struct kp_kineto *trace;
    const struct kp_step *samples;
    const bool *is_slow;
    const size_t *order;       /* the sample of each step that is given; NULL: its own */
    struct kp_keyindex places; /* by name and shapes; rows: struct slow_place. Key 0: nothing runs */
};

static struct slow_place *place_of(struct slowest_finding *f, uint64_t key)
{
    return kp_keyindex_row(&f->places, key, &(struct slow_place){.ns = {0}}, sizeof(struct slow_place));
}

static void sample_take(void *context, size_t step, const struct kp_top *top)
{
    struct slowest_finding *const f = context;
    const size_t at = f->order ? f->order[step] : step;
    const bool is_slow = f->is_slow[at];
    double rest_ns = (double)f->samples[at].inside_ns;
    for (size_t i = 0; i < top->count; i++) {
        const struct kp_top_row *const row = &top->rows[i];
        if (strcmp(kp_kineto_text(f->trace, row->name), KP_TOP_STEP) == 0) continue; /* of it nothing runs */
        struct slow_place *const place = place_of(f, (uint64_t)row->name << 32 | row->shapes);
        place->ns[is_slow] += row->cost.self_ns;
        rest_ns -= row->cost.self_ns;
        if (!is_slow || !(row->line_ns > place->line_ns)) continue;
        place->line_ns = row->line_ns;
        place->line = row->line;
        place->is_backward = row->is_line_backward;
    }
    place_of(f, 0)->ns[is_slow] += rest_ns > 0 ? rest_ns : 0;
}

/* Calls as steps, since rows are made of steps. */
static struct kp_step *samples_make(size_t *count, const struct kp_chosen *chosen)
{
    *count = chosen->within_calls ? chosen->within_calls : chosen->step_count;
    struct kp_step *const samples = kp_kineto_room(*count + 1, sizeof *samples);
    if (!chosen->within_calls && *count) memcpy(samples, chosen->steps, *count * sizeof *samples);
    for (size_t i = 0; chosen->within_calls && i < *count; i++) {
        const struct kp_call_span *const call = &chosen->calls[i];
        samples[i] = (struct kp_step){call->start_ns, call->end_ns, call->end_ns - call->start_ns, (long)i};
    }
    return samples;
}

KP_ORDER_BY(longest_first, double)

/* Marks the slowest, and says how many, and what they last. Nothing where they last hardly longer. */
static void slow_mark(struct kp_slowest *out, bool *is_slow, const struct kp_step *samples, size_t count)
{
    const size_t slow = count / PART;
    size_t *const order = kp_kineto_room(count + 1, sizeof *order);
    double *const ns = kp_kineto_room(count + 1, sizeof *ns);
    double slow_ns = 0, others_ns = 0;
    for (size_t i = 0; i < count; i++) {
        order[i] = i;
        ns[i] = (double)samples[i].inside_ns;
    }
    qsort_r(order, count, sizeof *order, longest_first, ns);
    for (size_t i = 0; i < count; i++) *(i < slow ? &slow_ns : &others_ns) += ns[order[i]];
    if (slow && slow_ns / (double)slow >= SLOW_MEDIANS * ns[order[count / 2]]) {
        for (size_t i = 0; i < slow; i++) is_slow[order[i]] = true;
        *out = (struct kp_slowest){.count = slow,
                                   .of = count,
                                   .least_ns = ns[order[slow - 1]],
                                   .more_ns = slow_ns / (double)slow - others_ns / (double)(count - slow)};
    }
    free(ns);
    free(order);
}

static void place_tell(struct kp_slowest *out, const struct slowest_finding *f)
{
    const struct slow_place *const places = f->places.rows;
    double most_ns = 0;
    for (size_t i = 0; i < f->places.count; i++) {
        const double ns = places[i].ns[1] / (double)out->count - places[i].ns[0] / (double)(out->of - out->count);
        if (ns <= most_ns) continue;
        most_ns = ns;
        out->place_ns = ns < out->more_ns ? ns : out->more_ns; /* the others may have more of something else */
        out->name = (uint32_t)(f->places.keys[i] >> 32);
        out->shapes = (uint32_t)f->places.keys[i];
        out->line = places[i].line;
        out->is_backward = places[i].is_backward;
    }
}

/* The time that the slowest steps waited for a core more than the others. No trace has it of calls. */
static void no_core_find(struct kp_slowest *out, const struct kp_tree *tree, const struct slowest_finding *f)
{
    double *const waits = kp_kineto_room(out->of + 1, sizeof *waits);
    double ns[2] = {0};
    kp_nocore_of_some(waits, tree, f->samples, out->of);
    for (size_t i = 0; i < out->of; i++) ns[f->is_slow[i]] += waits[i];
    out->no_core_ns = ns[1] / (double)out->count - ns[0] / (double)(out->of - out->count);
    free(waits);
}

static bool do_overlap(const struct kp_step *samples, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (samples[i].start_ns < samples[i - 1].end_ns) return true;
    return false;
}

/* Gives the rows of the calls of one thread. */
static void thread_take(struct slowest_finding *f, const struct kp_tree *tree, const struct kp_chosen *calls,
                        uint64_t thread, enum kp_top_by by)
{
    struct kp_step *const steps = kp_kineto_room(calls->within_calls, sizeof *steps);
    size_t *const order = kp_kineto_room(calls->within_calls, sizeof *order), count = 0;
    for (size_t i = 0; i < calls->within_calls; i++) {
        if (calls->calls[i].thread != thread) continue;
        order[count] = i;
        steps[count++] = f->samples[i];
    }
    f->order = order;
    const struct kp_chosen each = {
        .steps = steps, .step_count = count, .is_of_calls = calls->is_of_calls, .has_thread = true, .thread = thread};
    kp_top_each_step(tree, &each, by, sample_take, f);
    f->order = NULL;
    free(order);
    free(steps);
}

/* Calls that several threads make at once have the rows of their own thread each. */
static void samples_take(struct slowest_finding *f, const struct kp_tree *tree, const struct kp_chosen *chosen,
                         size_t count)
{
    const enum kp_top_by by = tree->trace->record_shapes ? KP_TOP_BY_SHAPE : KP_TOP_BY_OP;
    if (!chosen->within_calls || !do_overlap(f->samples, count)) {
        const struct kp_chosen each = {
            .steps = (struct kp_step *)f->samples, .step_count = count, .is_of_calls = chosen->is_of_calls};
        kp_top_each_step(tree, &each, by, sample_take, f);
        return;
    }
    struct kp_keyindex threads = {0};
    for (size_t i = 0; i < count; i++) {
        const size_t known = threads.count;
        if (kp_keyindex_get(&threads, chosen->calls[i].thread) == known)
            thread_take(f, tree, chosen, chosen->calls[i].thread, by);
    }
    kp_keyindex_fini(&threads);
}

void kp_slowest_find(struct kp_slowest *out, const struct kp_tree *tree, const struct kp_chosen *chosen)
{
    size_t count;
    struct kp_step *const samples = samples_make(&count, chosen);
    bool *const is_slow = kp_kineto_zeros(count + 1, sizeof *is_slow);
    *out = (struct kp_slowest){0};
    slow_mark(out, is_slow, samples, count);
    if (out->count) {
        struct slowest_finding f = {.trace = tree->trace, .samples = samples, .is_slow = is_slow};
        samples_take(&f, tree, chosen, count);
        place_tell(out, &f);
        if (!chosen->within_calls) no_core_find(out, tree, &f);
        kp_keyindex_fini(&f.places);
    }
    free(is_slow);
    free(samples);
}

/* "waiting for a CPU core", or "aten::mm, at train.py:7 step". */
static void place_text(char *out, size_t bytes, const struct kp_slowest *s, const struct kp_kineto *trace)
{
    const char *const name = s->name ? kp_kineto_text(trace, s->name) : "time without an operator";
    const char *const shapes = s->shapes ? kp_kineto_text(trace, s->shapes) : "";
    const bool has_line = s->name && s->line;
    if (s->no_core_ns > s->more_ns / 2) snprintf(out, bytes, "waiting for a CPU core");
    else
        snprintf(out, bytes, "%.*s%s%.*s%s%s%s", NAME_BYTES, name, *shapes ? " " : "", NAME_BYTES, shapes,
                 has_line ? ", at " : "", has_line && s->is_backward ? KP_TOP_BACKWARD_OF : "",
                 has_line ? kp_kineto_text(trace, s->line) : "");
}

char *kp_slowest_text(char *out, size_t bytes, const struct kp_slowest *s, const struct kp_kineto *trace,
                      const char *each)
{
    const double part_ns = s->no_core_ns > s->more_ns / 2 ? s->no_core_ns : s->place_ns;
    char least[40], more[40], part[40], place[3 * NAME_BYTES];
    *out = 0;
    if (!s->count) return out;
    kp_units_span(least, sizeof least, (int64_t)s->least_ns);
    kp_units_span(more, sizeof more, (int64_t)s->more_ns);
    kp_units_span(part, sizeof part, (int64_t)(part_ns < s->more_ns ? part_ns : s->more_ns));
    place_text(place, sizeof place, s, trace);
    snprintf(out, bytes, "%zu of %zu %ss take%s %s or longer, %s more than the others; %s of that is %s", s->count,
             s->of, each, s->count == 1 ? "s" : "", least, more, part, place);
    return out;
}
