// SPDX-License-Identifier: Apache-2.0
/* adviceprint.c - writes the advice of a trace: text for people, a line of JSON for programs */
#include "export/answers/advise/adviceprint.h"

#include <stddef.h>

#include "export/show/plain.h"
#include "export/show/units.h"

enum { LINE_BYTES = 4096 };

static const char *const part_names[] = {[KP_SPLIT_COMPUTE] = "compute",
                                         [KP_SPLIT_COMM] = "communication",
                                         [KP_SPLIT_COPIES] = "copies",
                                         [KP_SPLIT_LOADING] = "data_loading",
                                         [KP_SPLIT_IDLE] = "idle"};

static const char *const cause_names[] = {
    [KP_IDLE_GC] = "garbage_collection", [KP_IDLE_COMPILE] = "compilation", [KP_IDLE_ALLOC] = "allocator",
    [KP_IDLE_SYNC] = "synchronisation",  [KP_IDLE_LAUNCH] = "launch",       [KP_IDLE_DEPENDENCY] = "dependency",
    [KP_IDLE_PYTHON] = "python"};

/* ---- the fields of an advice and of a finding, as they stand in JSON and in its schema ---- */

enum row_kind { TEXT, MAYBE, WHOLE, MS, BYTES, SHARE, BOOL, OTHER }; /* MS: of ns. MAYBE, and SHARE below 0: null */
struct json_row {
    const char *key;
    enum row_kind kind;
    size_t at;                                /* of the field in its struct */
    void (*put)(FILE *out, const void *item); /* OTHER: writes the value */
    const char *schema;                       /* OTHER: its type */
};
#define NUMBER "{\"type\":\"number\"}"
#define TYPE_OF_SHARE "{\"type\":[\"number\",\"null\"]}"
#define NUMBERS "{\"type\":\"object\",\"additionalProperties\":" NUMBER "}"
static const char *const type_of[] = {[TEXT] = "{\"type\":\"string\"}",
                                      [MAYBE] = "{\"type\":[\"string\",\"null\"]}",
                                      [WHOLE] = "{\"type\":\"integer\"}",
                                      [MS] = NUMBER,
                                      [BYTES] = NUMBER,
                                      [SHARE] = TYPE_OF_SHARE,
                                      [BOOL] = "{\"type\":\"boolean\"}"};

static void row_put(FILE *out, const struct json_row *row, const void *item)
{
    const void *const field = (const char *)item + row->at;
    switch (row->kind) {
    case TEXT:
    case MAYBE: kp_plain_json(out, *(const char *const *)field); break;
    case WHOLE: fprintf(out, "%zu", *(const size_t *)field); break;
    case MS: fprintf(out, "%.6f", *(const double *)field / 1e6); break;
    case BYTES: fprintf(out, "%.0f", *(const double *)field); break;
    case SHARE:
        if (*(const double *)field < 0) fputs("null", out);
        else fprintf(out, "%.6f", *(const double *)field);
        break;
    case BOOL: fputs(*(const bool *)field ? "true" : "false", out); break;
    case OTHER: row->put(out, item); break;
    }
}

static void rows_put(FILE *out, const struct json_row *rows, const void *item)
{
    for (const char *before = ""; rows->key; rows++, before = ",") {
        fprintf(out, "%s\"%s\":", before, rows->key);
        row_put(out, rows, item);
    }
}

/* Writes the schema of an object of these rows, up to its last brace. `head`: what lies in it before these, or "". */
static void schema_put(FILE *out, const struct json_row *rows, const char *required, const char *head)
{
    fprintf(out, "\"type\":\"object\",\"additionalProperties\":false,\n\"required\":[%s", required);
    for (const struct json_row *row = rows; row->key; row++) fprintf(out, "%s\"%s\"", row == rows ? "" : ",", row->key);
    fprintf(out, "],\n\"properties\":{%s", head);
    for (const struct json_row *row = rows; row->key; row++)
        fprintf(out, "%s\"%s\":%s", row == rows ? "" : ",\n", row->key,
                row->kind == OTHER ? row->schema : type_of[row->kind]);
    fputs("}", out);
}

/* Gives the texts of an item to `texts`. */
static void rows_keep(const struct json_row *rows, void *item, struct kp_strings *texts)
{
    for (; rows->key; rows++) {
        const char **const text = (const char **)(void *)((char *)item + rows->at);
        if (rows->kind == TEXT || rows->kind == MAYBE) *text = kp_strings_keep(texts, *text);
    }
}

#define ROW(kind, type, field)                                 \
    {                                                          \
#field, kind, offsetof(struct type, field), NULL, NULL \
    }
static void severity_put(FILE *out, const void *item)
{
    fputs(((const struct kp_finding *)item)->is_critical ? "\"critical\"" : "\"warning\"", out);
}

static void once_ms_put(FILE *out, const void *item)
{
    const struct kp_finding *const f = item;
    if (f->once_ns > 0) fprintf(out, "%.6f", f->once_ns / 1e6);
    else fputs("null", out);
}

static void once_step_put(FILE *out, const void *item)
{
    const struct kp_finding *const f = item;
    if (f->once_ns > 0) fprintf(out, "%ld", f->once_step);
    else fputs("null", out);
}

static const struct json_row finding_rows[] = {
    ROW(TEXT, kp_finding, id),
    {"severity", OTHER, 0, severity_put, "{\"enum\":[\"warning\",\"critical\"]}"},
    {"step_ms", MS, offsetof(struct kp_finding, step_ns), NULL, NULL},
    {"share", SHARE, offsetof(struct kp_finding, share), NULL, NULL},
    ROW(BYTES, kp_finding, step_bytes),
    ROW(WHOLE, kp_finding, steps),
    ROW(TEXT, kp_finding, what),
    ROW(MAYBE, kp_finding, where),
    ROW(MAYBE, kp_finding, module),
    ROW(MAYBE, kp_finding, frame),
    ROW(MAYBE, kp_finding, line),
    ROW(MAYBE, kp_finding, after),
    ROW(MAYBE, kp_finding, until),
    {"backward", BOOL, offsetof(struct kp_finding, is_backward), NULL, NULL},
    {"after_backward", BOOL, offsetof(struct kp_finding, is_after_backward), NULL, NULL},
    ROW(TEXT, kp_finding, change),
    ROW(MAYBE, kp_finding, share_of),
    ROW(BOOL, kp_finding, is_gap),
    {"once_ms", OTHER, 0, once_ms_put, TYPE_OF_SHARE},
    {"once_step", OTHER, 0, once_step_put, "{\"type\":[\"integer\",\"null\"]}"},
    {0}};
static const struct json_row gpu_rows[] = {
    ROW(SHARE, kp_gpu_figures, busy),
    ROW(SHARE, kp_gpu_figures, sm_efficiency),
    ROW(SHARE, kp_gpu_figures, occupancy),
    ROW(SHARE, kp_gpu_figures, tensor_cores),
    {"communication_hidden", SHARE, offsetof(struct kp_gpu_figures, comm_hidden), NULL, NULL},
    ROW(WHOLE, kp_gpu_figures, queue_most),
    {0}};

static const char *verdict_of(const struct kp_advice *a)
{
    if (a->count) return "found";
    if (a->missing && !a->is_unrecorded) return "incomplete"; /* what settings left out is in `unjudged` */
    return a->is_well ? "healthy" : "nothing found";
}

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
        fprintf(out, ": %.1f ms once, in step %ld, %.1f %% of all steps", f->once_ns / 1e6, f->once_step,
                100 * f->share);
    else if (f->step_ns > 0)
        fprintf(out, ": %.3f ms a step, %.1f %%%s%s", f->step_ns / 1e6, 100 * f->share, f->share_of ? " " : "",
                f->share_of ? f->share_of : "");
    else if (f->step_bytes > 0) fprintf(out, ": %s", kp_units_bytes(size, sizeof size, (int64_t)f->step_bytes));
    fprintf(out, " (%zu of %zu steps)\n", f->steps, of);
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

/* What TensorBoard's plugin and HolisticTraceAnalysis tell of a GPU. */
static void gpu_print(FILE *out, const struct kp_gpu_figures *gpu)
{
    const char *before = share_put(out, "gpu      ", gpu->busy, "busy");
    before = share_put(out, before, gpu->sm_efficiency, "of multiprocessors");
    before = share_put(out, before, gpu->occupancy, "occupancy");
    before = share_put(out, before, gpu->tensor_cores, "of kernel time with tensor cores");
    before = share_put(out, before, gpu->comm_hidden, "of communication beside compute");
    if (before[0] == ',') fprintf(out, ", at most %zu launches wait\n", gpu->queue_most);
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
    const char *before = "not looked at: ";
    for (size_t i = 0; i < a->unjudged_count; i++) {
        fputs(before, out);
        kp_plain_put(out, a->unjudged[i]);
        before = ", ";
    }
    if (before[0] == ',') fputs("\n", out);
    if (!a->seen) return;
    fputs(a->has_gpu ? "seen: " : "seen, small: ", out);
    kp_plain_put(out, a->seen);
    fputs("\n", out);
}

/* As kprof report does, with both where they differ. */
static void step_print(FILE *out, const struct kp_advice *a)
{
    const double apart = a->step_ns - a->median_ns;
    const char *const where = a->ahead && !a->is_late ? " on the GPU" : "";
    if (apart > a->median_ns / 10 || apart < -a->median_ns / 10)
        fprintf(out, "a step   %.3f ms%s (median of %zu; mean %.3f ms, and of that)", a->median_ns / 1e6, where,
                a->steps, a->step_ns / 1e6);
    else fprintf(out, "a step   %.3f ms%s (mean of %zu)", a->step_ns / 1e6, where, a->steps);
}

/* Where the trace marks no steps, readers count loops, and what follows the optimizer is of the next one. */
static void optimizer_print(FILE *out, const struct kp_advice *a)
{
    if (!a->ended_by) return;
    fprintf(out, "steps    step %ld: from the end of %s %ld to the end of %ld, counted from 0\n", a->last_step,
            kp_stepends_what(a->ended_by), a->last_step - 1, a->last_step);
}

/* Findings, and notes behind them. An evaluation stands before what costs less. */
static void findings_print(FILE *out, const struct kp_advice *a)
{
    const char *notes[KP_NOTES_MAX];
    const size_t note_count = kp_advice_notes(a, notes);
    bool is_told = false;
    for (size_t i = 0; i < a->count; i++) {
        const double ns = a->findings[i].step_ns; /* 0: of memory */
        const bool is_next = !is_told && (ns > 0 || !a->findings[i].is_critical) && ns < a->evaluated_ns;
        if (is_next) line_print(out, "note     ", a->evaluated);
        is_told |= is_next;
        kp_adviceprint_finding(out, &a->findings[i], a->steps);
    }
    for (size_t i = 0; i < note_count; i++)
        if (notes[i] != a->guessed && !(is_told && notes[i] == a->evaluated)) line_print(out, "note     ", notes[i]);
}

void kp_adviceprint_ended(FILE *out, const struct kp_advice *a)
{
    if (!a->ended) return;
    fprintf(out, "%-9s", a->ended_word);
    kp_plain_fmt(out, "%s: what was recorded until then\n", a->ended);
}

void kp_adviceprint_text(FILE *out, const struct kp_advice *a)
{
    const double percent = a->step_ns > 0 ? 100 / a->step_ns : 0;
    if (a->steps) {
        step_print(out, a);
        fprintf(out, ": compute %.1f %%, data loading %.1f %%", a->mean_ns[KP_SPLIT_COMPUTE] * percent,
                a->mean_ns[KP_SPLIT_LOADING] * percent);
        if (a->has_gpu || a->mean_ns[KP_SPLIT_COMM] > 0)
            fprintf(out, ", exposed communication %.1f %%", a->mean_ns[KP_SPLIT_COMM] * percent);
        if (a->has_gpu) fprintf(out, ", exposed copies %.1f %%", a->mean_ns[KP_SPLIT_COPIES] * percent);
        fprintf(out, ", %s %.1f %%\n",
                a->is_gpu_lost ? "idle or not recorded"
                : a->has_gpu   ? "idle"
                               : "no op",
                a->mean_ns[KP_SPLIT_IDLE] * percent);
        optimizer_print(out, a);
        line_print(out, "guess    ", a->guessed);
        if (a->has_gpu && !a->is_gpu_lost) causes_print(out, a);
        if (a->has_gpu && !a->is_gpu_lost) gpu_print(out, &a->gpu);
    }
    findings_print(out, a);
    if (a->missing && !a->is_unrecorded) fprintf(out, "INCOMPLETE  %s\n", a->missing);
    else if (!a->count) fprintf(out, "%s\n", verdict_of(a));
    unjudged_print(out, a);
}

static void verdict_put(FILE *out, const void *item) { fprintf(out, "\"%s\"", verdict_of(item)); }

static void parts_put(FILE *out, const void *item)
{
    const struct kp_advice *const a = item;
    for (int p = 0; p < KP_SPLIT_PARTS; p++)
        fprintf(out, "%s\"%s\":%.6f", p ? "," : "{", part_names[p], a->mean_ns[p] / 1e6);
    fputs("}", out);
}

static void idle_put(FILE *out, const void *item)
{
    const struct kp_advice *const a = item;
    for (int c = 0; c < KP_IDLE_CAUSES; c++)
        fprintf(out, "%s\"%s\":%.6f", c ? "," : "{", cause_names[c], a->cause_ns[c] / 1e6);
    fputs("}", out);
}

static void unjudged_put(FILE *out, const void *item)
{
    const struct kp_advice *const a = item;
    fputs("[", out);
    for (size_t i = 0; i < a->unjudged_count; i++) {
        if (i) fputs(",", out);
        kp_plain_json(out, a->unjudged[i]);
    }
    fputs("]", out);
}

static void gpu_put(FILE *out, const void *item)
{
    const struct kp_advice *const a = item;
    const bool is_known = a->has_gpu && a->steps && !a->is_gpu_lost;
    fputs(is_known ? "{" : "null", out);
    if (is_known) rows_put(out, gpu_rows, &a->gpu), fputs("}", out);
}

static void findings_put(FILE *out, const void *item)
{
    const struct kp_advice *const a = item;
    fputs("[", out);
    for (size_t i = 0; i < a->count; i++) {
        fputs(i ? ",{" : "{", out);
        rows_put(out, finding_rows, &a->findings[i]);
        fputs("}", out);
    }
    fputs("]", out);
}

/* What follows the file's name. kp_adviceprint_schema() writes the types of gpu and findings. */
static const struct json_row advice_rows[] = {
    {"verdict", OTHER, 0, verdict_put, "{\"enum\":[\"found\",\"incomplete\",\"healthy\",\"nothing found\"]}"},
    ROW(WHOLE, kp_advice, steps),
    {"step_ms", MS, offsetof(struct kp_advice, step_ns), NULL, NULL},
    {"step_median_ms", MS, offsetof(struct kp_advice, median_ns), NULL, NULL},
    {"parts_ms", OTHER, 0, parts_put, NUMBERS},
    {"idle_ms", OTHER, 0, idle_put, NUMBERS},
    ROW(MAYBE, kp_advice, ended),
    ROW(MAYBE, kp_advice, missing),
    {"unjudged", OTHER, 0, unjudged_put, "{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"},
    ROW(MAYBE, kp_advice, seen),
    {"gpu", OTHER, 0, gpu_put, "{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/gpu\"}]}"},
    ROW(MAYBE, kp_advice, lines_by),
    ROW(MAYBE, kp_advice, slowed_by),
    ROW(MAYBE, kp_advice, ahead),
    ROW(MAYBE, kp_advice, evaluated),
    ROW(MAYBE, kp_advice, most),
    ROW(MAYBE, kp_advice, prompts),
    ROW(MAYBE, kp_advice, no_op),
    ROW(MAYBE, kp_advice, waited),
    ROW(MAYBE, kp_advice, outside),
    ROW(MAYBE, kp_advice, guessed),
    ROW(MAYBE, kp_advice, crowded),
    {"findings", OTHER, 0, findings_put, "{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/finding\"}}"},
    {0}};

void kp_adviceprint_json(FILE *out, const struct kp_advice *a, const char *label)
{
    fputs("{\"schema\":1,\"file\":", out);
    kp_plain_json(out, label);
    fputs(",", out);
    rows_put(out, advice_rows, a);
    fputs("}\n", out);
}

void kp_adviceprint_schema(FILE *out)
{
    fputs("{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\n\"$defs\":{\"gpu\":{", out);
    schema_put(out, gpu_rows, "", "");
    fputs("},\n\"finding\":{", out);
    schema_put(out, finding_rows, "", "");
    fputs("}},\n", out);
    schema_put(out, advice_rows, "\"schema\",\"file\",", "\"schema\":{\"const\":1},\"file\":{\"type\":\"string\"},\n");
    fputs("}\n", out);
}

void kp_advice_keep(struct kp_advice *a, struct kp_strings *texts)
{
    rows_keep(advice_rows, a, texts);
    a->ended_word = kp_strings_keep(texts, a->ended_word);
    a->overlaps = kp_strings_keep(texts, a->overlaps); /* JSON has them not */
    for (size_t i = 0; i < a->unjudged_count; i++) a->unjudged[i] = kp_strings_keep(texts, a->unjudged[i]);
    for (size_t i = 0; i < a->count; i++) rows_keep(finding_rows, &a->findings[i], texts);
}
