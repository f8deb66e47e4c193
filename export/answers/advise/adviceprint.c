// SPDX-License-Identifier: Apache-2.0
/* adviceprint.c - writes the advice of a trace: text for people, a line of JSON for programs */
#include "export/answers/advise/adviceprint.h"

#include <ctype.h>

#include "export/show/fields.h"
#include "export/show/plain.h"
#include "export/show/units.h"

enum { LINE_BYTES = 4096 };

const char *const kp_advice_part_names[KP_SPLIT_PARTS] = {[KP_SPLIT_COMPUTE] = "compute",
                                                          [KP_SPLIT_COMM] = "communication",
                                                          [KP_SPLIT_COPIES] = "copies",
                                                          [KP_SPLIT_LOADING] = "data_loading",
                                                          [KP_SPLIT_IDLE] = "idle"};

static const char *const cause_names[] = {
    [KP_IDLE_GC] = "garbage_collection", [KP_IDLE_COMPILE] = "compilation", [KP_IDLE_ALLOC] = "allocator",
    [KP_IDLE_SYNC] = "synchronisation",  [KP_IDLE_LAUNCH] = "launch",       [KP_IDLE_DEPENDENCY] = "dependency",
    [KP_IDLE_PYTHON] = "python"};

static const char *const verdict_words[] = {[KP_VERDICT_FOUND] = "found",
                                            [KP_VERDICT_INCOMPLETE] = "incomplete",
                                            [KP_VERDICT_NO_CORE] = "no core",
                                            [KP_VERDICT_HEALTHY] = "healthy",
                                            [KP_VERDICT_NOTHING] = "nothing found"};

static void line_print(FILE *out, const char *key, const char *text)
{
    if (!text) return;
    fputs(key, out);
    kp_plain_put(out, text);
    fputs("\n", out);
}

void kp_adviceprint_finding(FILE *out, const struct kp_finding *f, size_t of)
{
    char size[32], line[LINE_BYTES];
    fprintf(out, "%s  ", f->is_critical ? "CRITICAL" : "WARNING");
    kp_plain_put(out, f->what);
    if (f->once_ns > 0)
        fprintf(out, ": %s once, in step %ld, %.1f %% %s", kp_units_ms(f->once_ns), f->once_step, 100 * f->share,
                f->share_of ? f->share_of : "of all steps");
    else if (f->step_ns > 0)
        fprintf(out, ": %s%s per step, %.1f %%%s%s", f->is_at_most ? "at most " : "", kp_units_ms(f->step_ns),
                100 * f->share, f->share_of ? " " : "", f->share_of ? f->share_of : "");
    else if (f->step_bytes > 0) fprintf(out, ": %s", kp_units_bytes(size, sizeof size, (int64_t)f->step_bytes));
    fprintf(out, " (%zu of %zu step%s)\n", f->steps, of, kp_units_s(of));
    line_print(out, f->is_gap ? "    where   before " : "    where   ", f->where);
    line_print(out, "    module  ", f->module);
    line_print(out, "    line    ", kp_finding_line(f, line, sizeof line));
    fprintf(out, "    change  %s\n", f->change);
}

static const char *share_put(FILE *out, const char *before, double share, const char *what)
{
    if (share < 0) return before;
    fprintf(out, "%s%.1f %% %s", before, 100 * share, what);
    return ", ";
}

/* The figures that TensorBoard's plugin and HolisticTraceAnalysis give of a GPU. */
static void gpu_print(FILE *out, const struct kp_gpu_figures *gpu)
{
    const char *before = share_put(out, "gpu      ", gpu->busy, "busy");
    before = share_put(out, before, gpu->sm_efficiency, "of multiprocessors");
    before = share_put(out, before, gpu->occupancy, "occupancy");
    before = share_put(out, before, gpu->tensor_cores, "of kernel time with tensor cores");
    before = share_put(out, before, gpu->comm_hidden, "of communication beside compute");
    if (before[0] == ',')
        fprintf(out, ", at most %zu %s\n", gpu->queue_most, gpu->queue_most == 1 ? "launch waits" : "launches wait");
}

static void causes_print(FILE *out, const struct kp_advice *a)
{
    const char *before = "idle     ";
    for (int c = 0; c < KP_IDLE_CAUSES; c++) {
        if (a->cause_ns[c] < a->step_ns / 1000) continue;
        fprintf(out, "%s%s %.1f %%", before, cause_names[c], 100 * a->cause_ns[c] / a->step_ns);
        before = ", ";
    }
    if (before[0] == ',') fputs(" of a step\n", out);
}

/* Settings that were off are no fault of the run, so they are the last line. */
static void unjudged_print(FILE *out, const struct kp_advice *a)
{
    const char *before = "Not recorded, so not checked: ";
    for (size_t i = 0; i < a->unjudged_count; i++) {
        fputs(before, out);
        kp_plain_put(out, a->unjudged[i]);
        before = ", ";
    }
    if (before[0] == ',') fputs("\n", out);
    if (!a->seen) return;
    fputs(a->has_gpu ? "Seen: " : "Minor: ", out);
    kp_plain_put(out, a->seen);
    fputs("\n", out);
}

/* As kprof report does, with both where they differ. */
static void step_print(FILE *out, const struct kp_advice *a)
{
    const double apart = a->step_ns - a->median_ns;
    const char *const where = a->ahead && !a->is_late ? " on the GPU" : "";
    const struct kp_usual_steps *const usual = &a->usual.of;
    if (usual->left_out)
        fprintf(out, "step     %s%s (median of %zu; the shares leave out %zu that take%s %.0f %% of all time)",
                kp_units_ms(a->median_ns), where, a->steps, usual->left_out, usual->left_out == 1 ? "s" : "",
                100 * usual->left_out_share);
    else if (apart > a->median_ns / 10 || apart < -a->median_ns / 10)
        fprintf(out, "step     %s%s (median of %zu), shares are of the mean, %s", kp_units_ms(a->median_ns), where,
                a->steps, kp_units_ms(a->step_ns));
    else fprintf(out, "step     %s%s (mean of %zu)", kp_units_ms(a->step_ns), where, a->steps);
}

/* Findings, and notes behind them. An evaluation stands before what costs less. */
static void findings_print(FILE *out, const struct kp_advice *a)
{
    struct kp_note notes[KP_NOTES_MAX];
    const size_t note_count = kp_advice_notes(a, notes);
    bool is_told = false;
    for (size_t i = 0; i < a->count; i++) {
        const double ns = a->findings[i].step_ns; /* 0: of memory */
        const bool is_next = !is_told && (ns > 0 || !a->findings[i].is_critical) && ns < a->evaluated_ns;
        if (is_next) line_print(out, "note     ", a->evaluated);
        is_told |= is_next;
        kp_adviceprint_finding(out, &a->findings[i], a->steps);
    }
    for (size_t i = 0; i < note_count; i++) {
        const char *const note = notes[i].text;
        const bool is_above = note == a->guessed || (is_told && note == a->evaluated);
        const size_t said = note == a->crowded && kp_advice_is_crowded_first(a) ? strlen(a->crowded_verdict) : 0;
        if (!is_above && note[said]) line_print(out, "note     ", note + said + 2 * (said > 0));
    }
}

void kp_adviceprint_ended(FILE *out, const struct kp_advice *a)
{
    if (!a->ended) return;
    fprintf(out, "%-9s", a->ended_word);
    kp_plain_fmt(out, "%s. This is %s.\n", a->ended, a->recorded);
}

/* Says what was looked at, since a cost may lie elsewhere. */
static void nothing_print(FILE *out, const struct kp_advice *a)
{
    fputs("no known mistake costs enough to be reported", out);
    if (a->steps)
        fprintf(out, " (looked at %zu step%s: operators, data loading, %s%s)", a->steps, kp_units_s(a->steps),
                a->has_gpu || a->mean_ns[KP_SPLIT_COMM] > 0 ? "communication, " : "",
                a->has_gpu ? "copies, idle time" : "time without an operator");
    if (a->elsewhere > 0)
        fprintf(out,
                ". But operators take %.0f %% of a step outside of forward, backward, optimizer and data loading%s%s",
                100 * a->elsewhere, a->elsewhere_line ? ", most of it at " : "",
                a->elsewhere_line ? a->elsewhere_line : "");
    if (a->is_evaluated_inside)
        fprintf(out, ". %c%s take %s per step", toupper((unsigned char)*a->evaluated_as), a->evaluated_as + 1,
                kp_units_ms(a->evaluated_ns));
}

static void first_print(FILE *out, const struct kp_advice *a)
{
    const struct kp_finding *const f = a->findings;
    if (f->once_ns > 0) fprintf(out, "%s in one step: ", kp_units_ms(f->once_ns));
    else if (f->step_ns > 0) fprintf(out, "%.0f %% %s: ", 100 * f->share, f->share_of ? f->share_of : "of a step");
    kp_plain_put(out, f->what);
    if (f->step_bytes > 0) fprintf(out, ": %s", kp_units_size((int64_t)f->step_bytes));
    if (a->count > 1) fprintf(out, " (%zu more finding%s below)", a->count - 1, kp_units_s(a->count - 1));
}

/* The machine costs the program more than it does itself. A note has the rest of what is known of that. */
static void crowded_print(FILE *out, const struct kp_advice *a)
{
    kp_plain_put(out, a->crowded_verdict);
    if (a->count) fprintf(out, " (%zu finding%s in the program itself below)", a->count, kp_units_s(a->count));
    else fputs(", and in the program itself ", out), nothing_print(out, a);
}

/* The first line is the answer in one sentence. */
static void verdict_print(FILE *out, const struct kp_advice *a)
{
    if (kp_advice_is_incomplete(a)) {
        line_print(out, "INCOMPLETE  ", a->missing);
        return;
    }
    fputs("verdict  ", out);
    if (a->silent) kp_plain_fmt(out, "the program %s, and that time is not judged. Its steps before: ", a->silent);
    if (kp_advice_is_crowded_first(a)) crowded_print(out, a);
    else if (kp_advice_is_evaluated_first(a))
        fprintf(out, "%.0f %% of the time of steps and %s: %s, %s per step (%zu finding%s below)",
                100 * a->evaluated_share, a->evaluated_as, a->evaluated_as, kp_units_ms(a->evaluated_ns), a->count,
                kp_units_s(a->count));
    else if (!a->count && a->met) kp_plain_put(out, a->met);
    else if (!a->count) fprintf(out, "%s: ", verdict_words[kp_advice_verdict(a)]), nothing_print(out, a);
    else first_print(out, a);
    fputs("\n", out);
}

static void parts_print(FILE *out, const struct kp_advice *a)
{
    const bool is_usual = a->usual.of.left_out;
    const double step_ns = is_usual ? a->usual.step_ns : a->step_ns, percent = step_ns > 0 ? 100 / step_ns : 0;
    const double *const ns = is_usual ? a->usual.mean_ns : a->mean_ns;
    fprintf(out, ": %s %.1f %%, data loading %.1f %%", a->has_gpu ? "compute" : "operators",
            ns[KP_SPLIT_COMPUTE] * percent, ns[KP_SPLIT_LOADING] * percent);
    if (a->has_gpu || ns[KP_SPLIT_COMM] > 0)
        fprintf(out, ", exposed communication %.1f %%", ns[KP_SPLIT_COMM] * percent);
    if (a->has_gpu) fprintf(out, ", exposed copies %.1f %%", ns[KP_SPLIT_COPIES] * percent);
    fprintf(out, ", %s %.1f %%\n",
            a->is_gpu_lost ? "idle or not recorded"
            : a->has_gpu   ? "idle"
                           : "no operator runs",
            ns[KP_SPLIT_IDLE] * percent);
}

void kp_adviceprint_text(FILE *out, const struct kp_advice *a)
{
    verdict_print(out, a);
    if (a->steps) {
        step_print(out, a);
        parts_print(out, a);
        if (a->ended_by) /* no steps are marked: readers count loops; what follows the optimizer is of the next one */
            fprintf(out,
                    "steps    each ends with its %s, counted from 0: step %ld lasts from the end of %ld to the end of "
                    "%ld\n",
                    kp_stepends_what(a->ended_by), a->last_step, a->last_step - 1, a->last_step);
        line_print(out, "guess    ", a->guessed);
        if (a->has_gpu && !a->is_gpu_lost) causes_print(out, a);
        if (a->has_gpu && !a->is_gpu_lost) gpu_print(out, &a->gpu);
    }
    findings_print(out, a);
    unjudged_print(out, a);
}

/* ---- JSON ---- */

#define SOME(F, IF)                                           \
    F(MAYBE_MS, most_ms, r->most_ns > 0 ? r->most_ns : NAN)   \
    F(MAYBE_MS, least_ms, r->most_ns > 0 ? r->least_ns : NAN) \
    F(MAYBE_MS, all_ms, r->most_ns > 0 ? r->all_ns : NAN)
KP_FIELDS(some, struct kp_some_steps, SOME)

#define WAITED(F, IF)                  \
    F(TEXT, what, r->what)             \
    F(WHOLE, steps, r->count)          \
    F(WHOLE, longest_step, r->longest) \
    F(PART, , (some, &r->some))
KP_FIELDS(waited, struct kp_waited_steps, WAITED)

#define FINDING(F, IF)                                                               \
    F(TEXT, id, r->id)                                                               \
    F(WORD, severity, (r->is_critical ? "critical" : "warning", "warning|critical")) \
    F(MS, step_ms, r->step_ns)                                                       \
    F(MAYBE_SHARE, share, r->share)                                                  \
    F(BYTES, step_bytes, r->step_bytes)                                              \
    F(WHOLE, steps, r->steps)                                                        \
    F(TEXT, what, r->what)                                                           \
    F(MAYBE, where, r->where)                                                        \
    F(MAYBE, module, r->module)                                                      \
    F(MAYBE, frame, r->frame)                                                        \
    F(MAYBE, line, r->line)                                                          \
    F(MAYBE, also_line, r->also_line)                                                \
    F(MAYBE, after, r->after)                                                        \
    F(MAYBE, until, r->until)                                                        \
    F(BOOL, backward, r->is_backward)                                                \
    F(BOOL, after_backward, r->is_after_backward)                                    \
    F(TEXT, change, r->change)                                                       \
    F(MAYBE, share_of, r->share_of)                                                  \
    F(BOOL, is_gap, r->is_gap)                                                       \
    F(BOOL, at_most, r->is_at_most)                                                  \
    F(MAYBE_MS, once_ms, r->once_ns > 0 ? r->once_ns : NAN)                          \
    F(MAYBE_WHOLE, once_step, r->once_ns > 0 ? r->once_step : -1)                    \
    F(MAYBE_WHOLE, most_step, r->has_most_step ? r->most_step : -1)                  \
    F(MAYBE_MS, length_ms, r->length_ns > 0 ? r->length_ns : NAN)                    \
    F(MAYBE_MS, no_core_ms, r->length_ns > 0 ? r->no_core_ns : NAN)                  \
    F(PART, , (some, &r->some))                                                      \
    F(MAYBE_MS, saves_ms, r->saves_ns > 0 ? r->saves_ns : NAN)                       \
    F(MAYBE_WHOLE, workers, r->workers > 0 ? r->workers : -1)
KP_FIELDS(finding, struct kp_finding, FINDING)

#define GPU(F, IF)                                       \
    F(MAYBE_SHARE, busy, r->busy)                        \
    F(MAYBE_SHARE, sm_efficiency, r->sm_efficiency)      \
    F(MAYBE_SHARE, occupancy, r->occupancy)              \
    F(MAYBE_SHARE, tensor_cores, r->tensor_cores)        \
    F(MAYBE_SHARE, communication_hidden, r->comm_hidden) \
    F(WHOLE, queue_most, r->queue_most)
KP_FIELDS(gpu, struct kp_gpu_figures, GPU)

#define ADVICE(F, IF)                                                                                         \
    F(WORD, verdict, (verdict_words[kp_advice_verdict(r)], "found|incomplete|no core|healthy|nothing found")) \
    F(WHOLE, steps, r->steps)                                                                                 \
    F(MS, step_ms, r->step_ns)                                                                                \
    F(MS, step_median_ms, r->median_ns)                                                                       \
    F(MS_BY, parts_ms, (KP_SPLIT_PARTS, kp_advice_part_names[i], r->mean_ns[i]))                              \
    F(MS_BY, idle_ms, (KP_IDLE_CAUSES, cause_names[i], r->cause_ns[i]))                                       \
    F(MAYBE, ended, r->ended)                                                                                 \
    F(MAYBE, silent, r->silent)                                                                               \
    F(MAYBE, missing, r->missing)                                                                             \
    F(TEXTS, unjudged, (r->unjudged_count, r->unjudged[i]))                                                   \
    F(MAYBE, seen, r->seen)                                                                                   \
    F(MAYBE_OBJECT, gpu, (gpu, r->has_gpu && r->steps && !r->is_gpu_lost ? &r->gpu : NULL))                   \
    F(MAYBE, lines_by, r->lines_by)                                                                           \
    F(MAYBE, slowed_by, r->slowed_by)                                                                         \
    F(MAYBE, ahead, r->ahead)                                                                                 \
    F(MAYBE, evaluated, r->evaluated)                                                                         \
    F(MAYBE, unread, r->unread)                                                                               \
    F(SOME, recomputed, r->recomputed)                                                                        \
    F(SOME, filled, r->filled)                                                                                \
    F(SOME, again, r->again)                                                                                  \
    F(SOME, grown, r->grown)                                                                                  \
    F(SOME, at_once, r->at_once)                                                                              \
    F(MAYBE, most, r->most)                                                                                   \
    F(MAYBE, prompts, r->prompts)                                                                             \
    F(MAYBE, no_op, r->no_op)                                                                                 \
    F(MAYBE, met, r->met)                                                                                     \
    F(MAYBE_SHARE, elsewhere, r->elsewhere > 0 ? r->elsewhere : NAN)                                          \
    F(MAYBE, elsewhere_line, r->elsewhere_line)                                                               \
    F(LIST, waited, (waited, r->waited_count, &r->waited[i]))                                                 \
    F(MAYBE, waited_why, r->waited_why)                                                                       \
    F(MAYBE, outside, r->outside)                                                                             \
    F(MAYBE, guessed, r->guessed)                                                                             \
    F(MAYBE_MS, crowded_ms, r->crowded ? r->crowded_ns : NAN)                                                 \
    F(MAYBE, crowded, r->crowded)                                                                             \
    F(LIST, findings, (finding, r->count, &r->findings[i]))
KP_FIELDS(advice, struct kp_advice, ADVICE)

struct advice_line {
    const struct kp_advice *advice;
    const char *label;
};
#define ADVICE_LINE(F, IF)  \
    F(VERSION, schema, 1)   \
    F(TEXT, file, r->label) \
    F(PART, , (advice, r->advice))
KP_FIELDS(line, struct advice_line, ADVICE_LINE)

const struct kp_fields *const kp_adviceprint_schema = &line_fields;

void kp_adviceprint_json(FILE *out, const struct kp_advice *a, const char *label)
{
    kp_fields_put(KP_JSONOUT(out), NULL, &line_fields, &(struct advice_line){a, label});
    fputc('\n', out);
}

/* ---- an advice that outlives its trace ---- */

#define KEEP(kind, key, value) KEEP_##kind(value)
#define KEEP_TEXT(text) text = kp_strings_keep(texts, text);
#define KEEP_MAYBE KEEP_TEXT
#define KEEP_SOME KEEP_TEXT
#define KEEP_WORD(value)
#define KEEP_TEXTS(value)
#define KEEP_BOOL(value)
#define KEEP_WHOLE(value)
#define KEEP_MAYBE_WHOLE(value)
#define KEEP_MS(value)
#define KEEP_MAYBE_MS(value)
#define KEEP_MAYBE_SHARE(value)
#define KEEP_BYTES(value)
#define KEEP_MS_BY(value)
#define KEEP_MAYBE_OBJECT(value)
#define KEEP_LIST(value)
#define KEEP_PART(value)

void kp_finding_keep(struct kp_finding *r, struct kp_strings *texts)
{
    FINDING(KEEP, )
    r->longer = kp_longer_steps_keep(&r->longer, texts); /* JSON has it not */
}

void kp_advice_keep(struct kp_advice *r, struct kp_strings *texts)
{
    ADVICE(KEEP, )
    r->ended_word = kp_strings_keep(texts, r->ended_word);
    r->recorded = kp_strings_keep(texts, r->recorded);
    r->crowded_verdict = kp_strings_keep(texts, r->crowded_verdict);
    r->overlaps = kp_strings_keep(texts, r->overlaps); /* JSON has them not */
    r->crowded_by = kp_strings_keep(texts, r->crowded_by);
    for (size_t i = 0; i < r->unjudged_count; i++) r->unjudged[i] = kp_strings_keep(texts, r->unjudged[i]);
    for (size_t i = 0; i < r->waited_count; i++) KEEP_TEXT(r->waited[i].what)
    for (size_t i = 0; i < r->count; i++) kp_finding_keep(&r->findings[i], texts);
}
