// SPDX-License-Identifier: Apache-2.0
/* topjson.c - prints a report as one JSON object: the numbers of its head lines and rows */
#include "export/read/kineto/kineto_facts.h"
#include "export/answers/top/toptable.h"

#include <inttypes.h>
#include <stdlib.h>

#include "export/read/facts/percentiles.h"
#include "export/read/frames/modulename.h"
#include "export/read/kineto/pagefaults.h"
#include "export/show/columns.h"
#include "export/show/plain.h"

static void text_put(FILE *out, const char *key, const char *text)
{
    if (!text) return;
    fprintf(out, ",\"%s\":", key);
    kp_plain_json(out, text);
}

static void ms_put(FILE *out, const char *key, double ns) { fprintf(out, ",\"%s\":%.6f", key, ns / 1e6); }

static void whole_put(FILE *out, const char *key, int64_t value) { fprintf(out, ",\"%s\":%" PRId64, key, value); }

static void percentiles_put(FILE *out, struct kp_percentiles p)
{
    if (!p.count) return;
    ms_put(out, "p50_ms", p.p50_ns);
    ms_put(out, "p90_ms", p.p90_ns);
    ms_put(out, "p99_ms", p.p99_ns);
}

static void steps_put(FILE *out, const struct kp_summary *s, const struct kp_chosen *chosen)
{
    fprintf(out, ",\"steps\":{\"count\":%zu", s->steps);
    if (s->steps) {
        whole_put(out, "first", s->first_step);
        whole_put(out, "last", s->last_step);
        ms_put(out, "median_ms", (double)s->step_median_ns);
        ms_put(out, "mean_ms", (double)s->step_mean_ns);
        ms_put(out, "least_ms", (double)s->step_least_ns);
        ms_put(out, "most_ms", (double)s->step_most_ns);
        percentiles_put(out, kp_percentiles_of_steps(chosen));
        whole_put(out, "slowest", s->slowest_step);
        if (s->no_core_ns) {
            ms_put(out, "no_core_ms", (double)s->no_core_ns);
            ms_put(out, "slowest_no_core_ms", (double)s->slowest_no_core_ns);
        }
        ms_put(out, "first_ms", (double)s->first_ns);
        fprintf(out, ",\"first_is_slow\":%s", s->is_first_slow ? "true" : "false");
    }
    fputs("}", out);
}

/* Of a step, the mean. */
static void between_put(FILE *out, const struct kp_top_report *r)
{
    fprintf(out, ",\"other_in_no_op_ms_a_step\":%.6f",
            (double)r->parts->of.between_ns / 1e6 / (double)r->summary->steps);
}

static void parts_put(FILE *out, const struct kp_top_report *r, const char *key, bool on_gpu)
{
    static const char *const keys[] = {[KP_PART_FORWARD] = "forward",
                                       [KP_PART_BACKWARD] = "backward",
                                       [KP_PART_OPTIMIZER] = "optimizer",
                                       [KP_PART_LOADING] = "data_loading",
                                       [KP_PART_OTHER] = "other"};
    fprintf(out, ",\"%s\":{", key);
    for (int i = 0; i < KP_STEPPARTS_SHOWN; i++) {
        const enum kp_part part = kp_stepparts_order[i];
        fprintf(out, "%s\"%s\":%.6f", i ? "," : "", keys[part],
                (double)kp_stepparts_ns(r->parts, part, on_gpu) / 1e6 / (double)r->summary->steps);
    }
    fputs("}", out);
}

/* What was asked for by its name; rows_of says whether calls outside of whole steps are left out. */
static void within_put(FILE *out, const struct kp_top_report *r)
{
    const struct kp_chosen *chosen = r->chosen;
    if (!r->choice->within) return;
    fputs(",\"within\":{\"name\":", out);
    kp_plain_json(out, r->choice->within);
    if (!chosen->is_by_stacks) whole_put(out, "calls", (int64_t)chosen->within_calls);
    if (chosen->within_calls) ms_put(out, "ms_a_call", (double)kp_chosen_call_ns(chosen));
    percentiles_put(out, kp_percentiles_of_calls(chosen));
    if (chosen->within_calls) fprintf(out, ",\"calls_are_cut\":%s", kp_chosen_are_calls_cut(chosen) ? "true" : "false");
    whole_put(out, "calls_outside", (int64_t)chosen->outside_calls);
    whole_put(out, "of_steps", (int64_t)chosen->step_total);
    if (!chosen->is_by_stacks) fprintf(out, ",\"of_steps_time\":%.6f", kp_chosen_steps_share(chosen, false));
    fputs("}", out);
}

/* What the program ran on, and what that and the recording made of its steps. */
static void machine_put(FILE *out, const struct kp_summary *s, const struct kp_kineto *trace)
{
    struct kp_pagefaults faults;
    if (s->cores > 0) whole_put(out, "cores", s->cores);
    if (s->busy_threads > 0) whole_put(out, "busy_threads", s->busy_threads);
    if (s->bare_ns > 0) fprintf(out, ",\"bare_step_ms\":%.6f", (double)s->bare_ns / 1e6);
    if (s->core_waited > 0) fprintf(out, ",\"core_waited\":%.6f", s->core_waited);
    if (kp_pagefaults_of(trace, &faults))
        fprintf(out, ",\"page_faults_a_step\":%.1f,\"bare_page_faults_a_step\":%.0f,\"disk_faults_a_step\":%.3f",
                faults.minor, faults.bare, faults.major);
}

static void gpu_put(FILE *out, const struct kp_top_report *r)
{
    const struct kp_summary *s = r->summary;
    ms_put(out, "gpu_busy_ms", (double)s->gpu_ns);
    ms_put(out, "gpu_wait_ms", (double)s->gpu_wait_ns);
    if (s->steps) ms_put(out, "gpu_ms_a_step", (double)s->gpu_step_ns);
    text_put(out, "bound_by", r->bound_by);
}

static void head_put(FILE *out, const struct kp_top_report *r)
{
    const struct kp_summary *s = r->summary;
    const struct kp_kineto *trace = r->top->trace;
    const char *rank = kp_kineto_fact(trace, "distributedInfo.rank");
    const char *size = kp_kineto_fact(trace, "distributedInfo.world_size");
    text_put(out, "program", trace->program ? kp_kineto_text(trace, trace->program) : NULL);
    text_put(out, "script", kp_kineto_fact(trace, "kprof.script"));
    text_put(out, "host", kp_kineto_fact(trace, "host_name"));
    text_put(out, "phase", kp_kineto_fact(trace, "kprof.phase"));
    text_put(out, "step_source", kp_kineto_fact(trace, "kprof.step_source"));
    text_put(out, "torch", kp_kineto_fact(trace, "kprof.torch_version"));
    if (rank) whole_put(out, "rank", strtoll(rank, NULL, 10));
    if (size) whole_put(out, "world_size", strtoll(size, NULL, 10));
    if (s->when_ns) whole_put(out, "begin_unix_ns", s->when_ns);
    ms_put(out, "wall_ms", (double)s->wall_ns);
    steps_put(out, s, r->chosen);
    within_put(out, r);
    if (r->runs && r->runs->count) {
        whole_put(out, "runs", (int64_t)r->runs->count);
        ms_put(out, "ms_a_run", (double)r->runs->median_ns);
    }
    ms_put(out, "shares_of_ms", (double)s->shared_ns);
    ms_put(out, "ops_ms", (double)s->op_ns);
    ms_put(out, "data_loading_ms", (double)s->data_ns);
    if (s->comm_ns) ms_put(out, "communication_ms", (double)s->comm_ns);
    ms_put(out, "no_op_ms", (double)s->rest_ns);
    if (r->parts && s->steps) parts_put(out, r, "parts_ms_a_step", false);
    if (r->parts && s->steps) between_put(out, r);
    if (r->parts && s->steps && kp_stepparts_has_gpu(r->parts)) parts_put(out, r, "gpu_parts_ms_a_step", true);
    if (s->has_gpu) gpu_put(out, r);
    if (s->steps) whole_put(out, "value_reads", (int64_t)s->reads);
    machine_put(out, s, trace);
    whole_put(out, "dropped", (int64_t)s->lost);
    if (s->is_lost_least) fputs(",\"dropped_at_least\":true", out);
}

/* What the program calls a module, beside torch.profiler's name. */
static void path_put(FILE *out, const struct kp_top *top, const struct kp_top_row *row)
{
    struct kp_frametext text = {0};
    const char *const name = kp_kineto_text(top->trace, row->name);
    const char *const shown = kp_top_is_by_module(top) ? kp_modulename_path(&text, top->trace, name)
                                                       : kp_modulename_frame(&text, top->trace, name);
    const char *const module = kp_framename_module(shown);
    if (shown != name) text_put(out, "path", module ? module : shown);
    kp_frametext_fini(&text);
}

/* The types stand behind the last bracket. */
static void shapes_put(FILE *out, const char *text)
{
    char shapes[1024];
    const char *const bracket = strrchr(text, ']'), *const types = bracket && bracket[1] == ' ' ? bracket + 2 : NULL;
    snprintf(shapes, sizeof shapes, "%.*s", types ? (int)(bracket + 1 - text) : 0, text);
    text_put(out, "shapes", types ? shapes : text);
    if (types) text_put(out, "types", types);
}

#define KP_TABLE struct kp_top
#define KP_ROW struct kp_top_row
#define BY_MODULE kp_top_is_by_module(t)
#define GPU_MODULE BY_MODULE && t->has_gpu
#define COST(field) (double)r->cost.field
#define OF_ONE(value) r->name ? value : NAN /* not of what lies in no module */
#define A_STEP(ns) (ns) / (double)t->steps
/* clang-format off */
#define COLUMNS(NUMBER, TEXT) \
    NUMBER(self, NULL, "self_ms", MS, 0, true, COST(self_ns)) \
    NUMBER(total, NULL, "total_ms", MS, 0, true, COST(total_ns)) \
    NUMBER(gpu_self, NULL, "gpu_self_ms", MS, 0, t->has_gpu, COST(gpu_self_ns)) \
    NUMBER(gpu_total, NULL, "gpu_total_ms", MS, 0, t->has_gpu, COST(gpu_total_ns)) \
    NUMBER(modules, NULL, "modules", COUNT, 0, t->by == KP_TOP_BY_CLASS, OF_ONE(r->modules)) \
    NUMBER(forward, NULL, "forward_ms", MS, 0, BY_MODULE, OF_ONE(COST(total_ns) - COST(backward_ns))) \
    NUMBER(backward, NULL, "backward_ms", MS, 0, BY_MODULE, OF_ONE(COST(backward_ns))) \
    NUMBER(gpu_forward, NULL, "gpu_forward_ms", MS, 0, GPU_MODULE, OF_ONE(COST(gpu_total_ns) - COST(gpu_backward_ns))) \
    NUMBER(gpu_backward, NULL, "gpu_backward_ms", MS, 0, GPU_MODULE, OF_ONE(COST(gpu_backward_ns))) \
    NUMBER(total_step, NULL, "total_ms_a_step", MS, 0, BY_MODULE && t->steps, \
           OF_ONE(A_STEP(kp_top_row_step_total_ns(t, r)))) \
    NUMBER(share, NULL, "self_percent", PERCENT, 0, true, kp_top_row_share(t, r)) \
    NUMBER(count, NULL, "count", COUNT, 0, true, COST(count)) \
    NUMBER(step, NULL, "ms_a_step", MS, 0, t->steps != 0, A_STEP(kp_top_row_step_ns(t, r))) \
    NUMBER(call, NULL, "ms_a_call", MS, 0, t->calls != 0, kp_top_row_self_ns(t, r) / (double)t->calls) \
    NUMBER(memory, NULL, "self_bytes", BYTES, 0, t->has_memory, COST(self_bytes)) \
    NUMBER(gpu_memory, NULL, "gpu_self_bytes", BYTES, 0, t->has_gpu_memory, COST(gpu_self_bytes)) \
    NUMBER(longest, NULL, "gpu_longest_ms", MS, 0, t->by == KP_TOP_BY_KERNEL, COST(gpu_most_ns)) \
    NUMBER(moved, NULL, "bytes", BYTES, 0, t->by == KP_TOP_BY_KERNEL, r->cost.moved_bytes ? COST(moved_bytes) : NAN) \
    NUMBER(speed, NULL, "gb_s", TIMES, 0, t->by == KP_TOP_BY_KERNEL, r->cost.moved_bytes ? kp_top_gbps(&r->cost) : NAN)
KP_COLUMNS(columns, COLUMNS)
/* clang-format on */

static void row_put(FILE *out, const struct kp_top_report *r, const struct kp_top_row *row)
{
    const struct kp_top *top = r->top;
    fputs("{\"name\":", out);
    kp_plain_json(out, kp_kineto_text(top->trace, row->name));
    if (top->by == KP_TOP_BY_SHAPE) shapes_put(out, kp_kineto_text(top->trace, row->shapes));
    if (top->by != KP_TOP_BY_CLASS) path_put(out, top, row);
    if (row->is_backward) fputs(",\"backward\":true", out);
    kp_columns_json(out, KP_COLUMNS_OF(columns, top, row, 1), row);
    const bool is_kernel = top->by == KP_TOP_BY_KERNEL;
    if (row->line && !kp_top_is_by_line(top)) {
        text_put(out, is_kernel ? "op" : "line", kp_kineto_text(top->trace, row->line));
        if (row->is_line_backward) fputs(",\"line_backward\":true", out);
        whole_put(out, is_kernel ? "ops" : "lines", row->lines);
    }
    if (row->line && top->by == KP_TOP_BY_LINE) {
        text_put(out, "called_from", kp_kineto_text(top->trace, row->line));
        ms_put(out, "called_from_ms", row->line_ns);
        whole_put(out, "callers", row->lines);
    }
    fputs("}", out);
}

void kp_top_json_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_top *top = r->top;
    const size_t shown = r->most && r->most < top->count ? r->most : top->count;
    double left = 0;
    fputs("{\"trace\":", out);
    kp_plain_json(out, r->label);
    head_put(out, r);
    text_put(out, "by", r->by);
    text_put(out, "sort", r->sort);
    text_put(out, "rows_of", top->is_of_steps ? "steps" : "all");
    fputs(",\"rows\":[", out);
    for (size_t i = 0; i < top->count; i++) {
        if (i >= shown) left += kp_top_row_share(top, &top->rows[i]) * 100;
        else fputs(i ? "," : "", out), row_put(out, r, &top->rows[i]);
    }
    fprintf(out, "],\"more_rows\":%zu,\"more_percent\":%.4f}\n", top->count - shown, left);
}
