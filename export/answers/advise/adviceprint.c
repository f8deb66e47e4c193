// SPDX-License-Identifier: Apache-2.0
/* adviceprint.c - writes the advice of a trace: text for people, a line of JSON for programs */
#include "export/answers/advise/adviceprint.h"

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

#define NUMBERS "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"number\"}}"
#define TEXT "{\"type\":\"string\"}"
#define MAYBE "{\"type\":[\"string\",\"null\"]}"
#define WHOLE "{\"type\":\"integer\"}"
#define SHARE "{\"type\":[\"number\",\"null\"]}"
#define NUMBER "{\"type\":\"number\"}"
const char kp_adviceprint_schema[] =
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/"
    "schema\",\"type\":\"object\",\"additionalProperties\":false,\n"
    "\"required\":[\"schema\",\"file\",\"verdict\",\"steps\",\"step_ms\",\"step_median_ms\",\"parts_ms\",\"idle_ms\","
    "\"missing\","
    "\"unjudged\",\"seen\","
    "\"gpu\",\"lines_by\",\"slowed_by\",\"ahead\",\"evaluated\",\"most\",\"prompts\",\"no_op\",\"waited\",\"outside\","
    "\"guessed\","
    "\"crowded\","
    "\"findings\"],\n"
    "\"properties\":{\"schema\":{\"const\":1},\"file\":" TEXT ",\"steps\":" WHOLE ",\"step_ms\":" NUMBER
    ",\"step_median_ms\":" NUMBER ",\n"
    "\"verdict\":{\"enum\":[\"found\",\"incomplete\",\"healthy\",\"nothing found\"]},\n"
    "\"parts_ms\":" NUMBERS ",\"idle_ms\":" NUMBERS ",\"missing\":" MAYBE
    ",\"unjudged\":{\"type\":\"array\",\"items\":" TEXT "},\n"
    "\"gpu\":{\"anyOf\":[{\"type\":\"null\"},{\"type\":\"object\",\"additionalProperties\":false,\n"
    "\"required\":[\"busy\",\"sm_efficiency\",\"occupancy\",\"tensor_cores\",\"communication_hidden\","
    "\"queue_most\"],\n"
    "\"properties\":{\"busy\":" SHARE ",\"sm_efficiency\":" SHARE ",\"occupancy\":" SHARE ",\"tensor_cores\":" SHARE
    ",\"communication_hidden\":" SHARE ",\"queue_most\":" WHOLE "}}]},\n"
    "\"seen\":" MAYBE ",\"lines_by\":" MAYBE ",\"slowed_by\":" MAYBE ",\"ahead\":" MAYBE ",\"evaluated\":" MAYBE
    ",\"most\":" MAYBE ",\"prompts\":" MAYBE ",\"no_op\":" MAYBE ",\"waited\":" MAYBE ",\"outside\":" MAYBE
    ",\"guessed\":" MAYBE ",\"crowded\":" MAYBE ",\n"
    "\"findings\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"additionalProperties\":false,\n"
    "\"required\":[\"id\",\"severity\",\"step_ms\",\"share\",\"step_bytes\",\"steps\",\"what\",\"where\",\"module\","
    "\"frame\","
    "\"line\",\"after\",\"until\",\"backward\",\"after_backward\","
    "\"change\",\"share_of\",\"is_gap\",\"once_ms\",\"once_step\"],\n"
    "\"properties\":{\"id\":" TEXT ",\"severity\":{\"enum\":[\"warning\",\"critical\"]},\"step_ms\":" NUMBER
    ",\"share\":" NUMBER ",\"step_bytes\":" NUMBER ",\"steps\":" WHOLE ",\n"
    "\"what\":" TEXT ",\"where\":" MAYBE ",\"module\":" MAYBE ",\"frame\":" MAYBE ",\"line\":" MAYBE ",\"after\":" MAYBE
    ",\"until\":" MAYBE ",\"backward\":{\"type\":\"boolean\"},\"after_backward\":{\"type\":\"boolean\"}"
    ",\"change\":" TEXT ",\"share_of\":" MAYBE ",\"is_gap\":{\"type\":\"boolean\"},\"once_ms\":" SHARE
    ",\"once_step\":{\"type\":[\"integer\",\"null\"]}}}}}}\n";

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
static void optimizer_print(FILE *out, const struct kp_chosen *chosen)
{
    if (!chosen->ended_by || !chosen->step_count) return;
    const long number = chosen->steps[chosen->step_count - 1].number;
    fprintf(out, "steps    step %ld: from the end of %s %ld to the end of %ld, counted from 0\n", number,
            kp_stepends_what(chosen->ended_by), number - 1, number);
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

void kp_adviceprint_text(FILE *out, const struct kp_advice *a, const struct kp_chosen *chosen)
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
        optimizer_print(out, chosen);
        line_print(out, "guess    ", a->guessed);
        if (a->has_gpu && !a->is_gpu_lost) causes_print(out, a);
        if (a->has_gpu && !a->is_gpu_lost) gpu_print(out, &a->gpu);
    }
    findings_print(out, a);
    if (a->missing && !a->is_unrecorded) fprintf(out, "INCOMPLETE  %s\n", a->missing);
    else if (!a->count) fprintf(out, "%s\n", verdict_of(a));
    unjudged_print(out, a);
}

static void json_text(FILE *out, const char *text)
{
    if (text) kp_plain_json(out, text);
    else fputs("null", out);
}

static void json_member(FILE *out, const char *key, const char *text)
{
    fprintf(out, ",\"%s\":", key);
    json_text(out, text);
}

static void json_share(FILE *out, const char *key, double share, const char *after)
{
    if (share < 0) fprintf(out, "\"%s\":null%s", key, after);
    else fprintf(out, "\"%s\":%.6f%s", key, share, after);
}

static void json_gpu(FILE *out, const struct kp_gpu_figures *gpu)
{
    fputs(",\"gpu\":{", out);
    json_share(out, "busy", gpu->busy, ",");
    json_share(out, "sm_efficiency", gpu->sm_efficiency, ",");
    json_share(out, "occupancy", gpu->occupancy, ",");
    json_share(out, "tensor_cores", gpu->tensor_cores, ",");
    json_share(out, "communication_hidden", gpu->comm_hidden, ",");
    fprintf(out, "\"queue_most\":%zu}", gpu->queue_most);
}

void kp_adviceprint_finding_json(FILE *out, const struct kp_finding *f)
{
    fprintf(out, "{\"id\":\"%s\",\"severity\":\"%s\",\"step_ms\":%.6f,\"share\":%.6f,\"step_bytes\":%.0f,\"steps\":%zu",
            f->id, f->is_critical ? "critical" : "warning", f->step_ns / 1e6, f->share, f->step_bytes, f->steps);
    json_member(out, "what", f->what);
    json_member(out, "where", f->where);
    json_member(out, "module", f->module);
    json_member(out, "frame", f->frame);
    json_member(out, "line", f->line);
    json_member(out, "after", f->after);
    json_member(out, "until", f->until);
    fprintf(out, ",\"backward\":%s,\"after_backward\":%s", f->is_backward ? "true" : "false",
            f->is_after_backward ? "true" : "false");
    json_member(out, "change", f->change);
    json_member(out, "share_of", f->share_of);
    fprintf(out, ",\"is_gap\":%s,", f->is_gap ? "true" : "false");
    json_share(out, "once_ms", f->once_ns > 0 ? f->once_ns / 1e6 : -1, ",");
    if (f->once_ns > 0) fprintf(out, "\"once_step\":%ld}", f->once_step);
    else fputs("\"once_step\":null}", out);
}

void kp_adviceprint_json(FILE *out, const struct kp_advice *a, const char *label)
{
    fputs("{\"schema\":1,\"file\":", out);
    kp_plain_json(out, label);
    fprintf(out, ",\"verdict\":\"%s\",\"steps\":%zu,\"step_ms\":%.6f,\"step_median_ms\":%.6f,\"parts_ms\":{",
            verdict_of(a), a->steps, a->step_ns / 1e6, a->median_ns / 1e6);
    for (int p = 0; p < KP_SPLIT_PARTS; p++)
        fprintf(out, "%s\"%s\":%.6f", p ? "," : "", part_names[p], a->mean_ns[p] / 1e6);
    fputs("},\"idle_ms\":{", out);
    for (int c = 0; c < KP_IDLE_CAUSES; c++)
        fprintf(out, "%s\"%s\":%.6f", c ? "," : "", cause_names[c], a->cause_ns[c] / 1e6);
    fputs("}", out);
    json_member(out, "missing", a->missing);
    fputs(",\"unjudged\":[", out);
    for (size_t i = 0; i < a->unjudged_count; i++) {
        if (i) fputs(",", out);
        json_text(out, a->unjudged[i]);
    }
    fputs("]", out);
    json_member(out, "seen", a->seen);
    if (a->has_gpu && a->steps && !a->is_gpu_lost) json_gpu(out, &a->gpu);
    else fputs(",\"gpu\":null", out);
    json_member(out, "lines_by", a->lines_by);
    json_member(out, "slowed_by", a->slowed_by);
    json_member(out, "ahead", a->ahead);
    json_member(out, "evaluated", a->evaluated);
    json_member(out, "most", a->most);
    json_member(out, "prompts", a->prompts);
    json_member(out, "no_op", a->no_op);
    json_member(out, "waited", a->waited);
    json_member(out, "outside", a->outside);
    json_member(out, "guessed", a->guessed);
    json_member(out, "crowded", a->crowded);
    fputs(",\"findings\":[", out);
    for (size_t i = 0; i < a->count; i++) {
        if (i) fputs(",", out);
        kp_adviceprint_finding_json(out, &a->findings[i]);
    }
    fputs("]}\n", out);
}
