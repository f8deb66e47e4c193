// SPDX-License-Identifier: Apache-2.0
/* topjson.c - prints a report as one JSON object: the numbers of its head lines and rows */
#include "export/read/kineto/kineto_facts.h"
#include "export/answers/top/toptable.h"

#include <stdlib.h>
#include <string.h>

#include "export/read/facts/steps/percentiles.h"
#include "export/read/frames/modulename.h"
#include "export/read/kineto/pagefaults.h"
#include "export/show/fields.h"

/* ---- the head ---- */

/* clang-format off */
#define PERCENTILES(F, IF)               \
    IF(r->count, MS, p50_ms, r->p50_ns)  \
    IF(r->count, MS, p90_ms, r->p90_ns)  \
    IF(r->count, MS, p99_ms, r->p99_ns)
KP_FIELDS(percentiles, struct kp_percentiles, PERCENTILES)

#define S r->summary
#define HAS_STEPS r->summary->steps
#define STEPS(F, IF) \
    F(WHOLE, count, S->steps) \
    IF(HAS_STEPS, WHOLE, first, S->first_step) \
    IF(HAS_STEPS, WHOLE, last, S->last_step) \
    IF(HAS_STEPS, MS, median_ms, S->step_median_ns) \
    IF(HAS_STEPS, MS, mean_ms, S->step_mean_ns) \
    IF(HAS_STEPS, MS, least_ms, S->step_least_ns) \
    IF(HAS_STEPS, MS, most_ms, S->step_most_ns) \
    IF(r->gpu_step_ns > 0, MS, on_gpu_mean_ms, r->gpu_step_ns) \
    IF(HAS_STEPS, PART, , (percentiles, (struct kp_percentiles[]){kp_percentiles_of_steps(r->chosen)})) \
    IF(HAS_STEPS, WHOLE, slowest, S->slowest_step) \
    IF(HAS_STEPS && S->no_core_ns, MS, no_core_ms, S->no_core_ns) \
    IF(HAS_STEPS && S->no_core_ns, MS, slowest_no_core_ms, S->slowest_no_core_ns) \
    IF(HAS_STEPS, MS, first_ms, S->first_ns) \
    IF(HAS_STEPS, BOOL, first_is_slow, S->is_first_slow)
KP_FIELDS(steps, struct kp_top_report, STEPS)

#define SLOWEST_TEXT(of) kp_kineto_text(r->top->trace, r->slowest->of)
#define SLOWEST(F, IF) \
    F(WHOLE, count, r->slowest->count) \
    F(MS, least_ms, r->slowest->least_ns) \
    F(MS, more_ms, r->slowest->more_ns) \
    F(MAYBE, name, r->slowest->name ? SLOWEST_TEXT(name) : NULL) \
    IF(r->slowest->shapes, TEXT, shapes, SLOWEST_TEXT(shapes)) \
    F(MAYBE, line, r->slowest->line ? SLOWEST_TEXT(line) : NULL) \
    F(BOOL, backward, r->slowest->is_backward) \
    F(MS, name_more_ms, r->slowest->place_ns) \
    F(MS, no_core_more_ms, r->slowest->no_core_ns)
KP_FIELDS(slowest, struct kp_top_report, SLOWEST)

/* The calls that were asked for by name; rows_of says whether calls outside of whole steps are left out. */
#define HAS_CALLS r->chosen->within_calls
#define WITHIN(F, IF) \
    F(TEXT, name, r->choice->within) \
    IF(!r->chosen->is_by_stacks, WHOLE, calls, r->chosen->within_calls) \
    IF(HAS_CALLS, MS, ms_a_call, kp_chosen_call_ns(r->chosen)) \
    F(PART, , (percentiles, (struct kp_percentiles[]){kp_percentiles_of_calls(r->chosen)})) \
    IF(HAS_CALLS, BOOL, calls_are_cut, kp_chosen_are_calls_cut(r->chosen)) \
    F(WHOLE, calls_outside, r->chosen->outside_calls) \
    F(WHOLE, of_steps, r->chosen->step_total) \
    IF(!r->chosen->is_by_stacks, SHARE, of_steps_time, kp_chosen_steps_share(r->chosen, false))
KP_FIELDS(within, struct kp_top_report, WITHIN)

#define FAULTS(F, IF) \
    F(FIXED, page_faults_a_step, (1, r->minor)) \
    F(FIXED, bare_page_faults_a_step, (0, r->bare)) \
    F(FIXED, disk_faults_a_step, (3, r->major))
KP_FIELDS(faults, struct kp_pagefaults, FAULTS)
/* clang-format on */

static struct kp_pagefaults faults_of(const struct kp_kineto *trace)
{
    struct kp_pagefaults faults = {0};
    kp_pagefaults_of(trace, &faults);
    return faults;
}

static const char *part_key(size_t i)
{
    static const char *const keys[] = {[KP_PART_FORWARD] = "forward",
                                       [KP_PART_BACKWARD] = "backward",
                                       [KP_PART_OPTIMIZER] = "optimizer",
                                       [KP_PART_LOADING] = "data_loading",
                                       [KP_PART_OTHER] = "other"};
    return keys[kp_stepparts_order[i]];
}

/* clang-format off */
#define NO_FORWARD (size_t)!kp_stepparts_has_forward(r->parts) /* the first one is left out */
#define PARTS(on_gpu) \
    (KP_STEPPARTS_SHOWN - NO_FORWARD, part_key(i + NO_FORWARD), \
     A_STEP(kp_stepparts_ns(r->parts, kp_stepparts_order[i + NO_FORWARD], on_gpu), S))
#define HAS_PARTS r->parts && HAS_STEPS
#define A_STEP(ns, of) (double)(ns) / (double)(of)->steps
#define TRACE r->top->trace
#define FACT(key) kp_kineto_fact(TRACE, key)
#define NUMBER_OF(fact) strtoll(FACT(fact), NULL, 10)
#define HEAD(F, IF) \
    F(SOME, program, TRACE->program ? kp_kineto_text(TRACE, TRACE->program) : NULL) \
    F(SOME, script, FACT("kprof.script")) \
    F(SOME, host, FACT("host_name")) \
    F(SOME, phase, FACT("kprof.phase")) \
    F(SOME, step_source, FACT("kprof.step_source")) \
    F(SOME, torch, FACT("kprof.torch_version")) \
    IF(FACT("distributedInfo.rank"), WHOLE, rank, NUMBER_OF("distributedInfo.rank")) \
    IF(FACT("distributedInfo.world_size"), WHOLE, world_size, NUMBER_OF("distributedInfo.world_size")) \
    IF(S->when_ns, WHOLE, begin_unix_ns, S->when_ns) \
    F(MS, wall_ms, S->wall_ns) \
    F(OBJECT, steps, (steps, r)) \
    IF(r->choice->within, OBJECT, within, (within, r)) \
    F(MAYBE_OBJECT, slowest_percent, (slowest, r->slowest && r->slowest->count ? r : NULL)) \
    IF(r->runs && r->runs->count, WHOLE, runs, r->runs->count) \
    IF(r->runs && r->runs->count, MS, ms_a_run, r->runs->median_ns) \
    F(MS, shares_of_ms, S->shared_ns) \
    F(MS, ops_ms, S->op_ns) \
    F(MS, data_loading_ms, S->data_ns) \
    IF(S->comm_ns, MS, communication_ms, S->comm_ns) \
    F(MS, no_op_ms, S->rest_ns) \
    IF(HAS_PARTS, MS_BY, parts_ms_a_step, PARTS(false)) \
    IF(HAS_PARTS, MS, other_in_no_op_ms_a_step, A_STEP(r->parts->all.between_ns, S)) \
    IF(HAS_PARTS && kp_stepparts_has_gpu(r->parts), MS_BY, gpu_parts_ms_a_step, PARTS(true)) \
    IF(S->has_gpu, MS, gpu_busy_ms, S->gpu_ns) \
    IF(S->has_gpu, MS, gpu_wait_ms, S->gpu_wait_ns) \
    IF(S->has_gpu, MS, gpu_wait_idle_ms, S->gpu_wait_idle_ns) \
    IF(S->has_gpu && HAS_STEPS, MS, gpu_ms_a_step, S->gpu_step_ns) \
    IF(S->has_gpu && r->bound_by, TEXT, bound_by, r->bound_by) \
    IF(HAS_STEPS, WHOLE, value_reads, S->reads) \
    IF(S->cores > 0, WHOLE, cores, S->cores) \
    IF(S->busy_threads > 0, WHOLE, busy_threads, S->busy_threads) \
    IF(S->bare_ns > 0, MS, bare_step_ms, S->bare_ns) \
    IF(S->core_waited > 0, SHARE, core_waited, S->core_waited) \
    IF(kp_pagefaults_of(TRACE, &(struct kp_pagefaults){0}), PART, , \
       (faults, (struct kp_pagefaults[]){faults_of(TRACE)})) \
    F(MAYBE, ended, kp_top_ended(r)) \
    F(WHOLE, dropped, S->lost) \
    IF(S->is_lost_least, BOOL, dropped_at_least, true)
KP_FIELDS(head, struct kp_top_report, HEAD)
/* clang-format on */

/* ---- rows ---- */

struct topjson_row {
    const struct kp_top_report *report;
    const struct kp_top *top;
    const struct kp_top_row *row;
};

/* The program's name of a module, beside torch.profiler's name. */
static void path_put(struct kp_jsonout *j, const char *key, const struct topjson_row *r)
{
    struct kp_frametext text = {0};
    const char *const name = kp_kineto_text(TRACE, r->row->name);
    const char *const shown =
        kp_top_is_by_module(r->top) ? kp_modulename_path(&text, TRACE, name) : kp_modulename_frame(&text, TRACE, name);
    const char *const module = kp_framename_module(shown);
    if (shown != name) kp_jsonout_text(j, key, module ? module : shown);
    kp_frametext_fini(&text);
}

/* Text of a row's shapes: its types stand behind the last bracket. */
static const char *types_of(const char *text)
{
    const char *const bracket = strrchr(text, ']');
    return bracket && bracket[1] == ' ' ? bracket + 2 : NULL;
}

static const char *shapes_of(const char *text, char *room, size_t bytes)
{
    const char *const types = types_of(text);
    if (types) snprintf(room, bytes, "%.*s", (int)(types - 1 - text), text);
    return types ? room : text;
}

#define TEXT_OF(field) kp_kineto_text(TRACE, r->row->field)
#define IS_BY(what) r->top->by == KP_TOP_BY_##what
#define HAS_LINE r->row->line && !kp_top_is_by_line(r->top)
#define HAS_CALLER r->row->line &&IS_BY(LINE)
/* clang-format off */
#define ROW(F, IF) \
    F(TEXT, name, TEXT_OF(name)) \
    IF(IS_BY(SHAPE), TEXT, shapes, shapes_of(TEXT_OF(shapes), room, sizeof room)) \
    IF(IS_BY(SHAPE), SOME, types, types_of(TEXT_OF(shapes))) \
    IF(!(IS_BY(CLASS)), OTHER, path, (KP_TYPE("string"), path_put, r)) \
    IF(r->row->is_backward, BOOL, backward, true) \
    F(COLUMNS, , (kp_top_columns, r->report, r->row)) \
    IF(HAS_LINE && IS_BY(KERNEL), TEXT, op, TEXT_OF(line)) \
    IF(HAS_LINE && !(IS_BY(KERNEL)), TEXT, line, TEXT_OF(line)) \
    IF(HAS_LINE && r->row->is_line_backward, BOOL, line_backward, true) \
    IF(HAS_LINE && IS_BY(KERNEL), WHOLE, ops, r->row->lines) \
    IF(HAS_LINE && !(IS_BY(KERNEL)), WHOLE, lines, r->row->lines) \
    IF(HAS_CALLER, TEXT, called_from, TEXT_OF(line)) \
    IF(HAS_CALLER, MS, called_from_ms, r->row->line_ns) \
    IF(HAS_CALLER, WHOLE, callers, r->row->lines)
KP_FIELDS(row, struct topjson_row, ROW)

static double percent_left(const struct kp_top_report *r)
{
    double left = 0;
    for (size_t i = kp_top_shown(r); i < r->top->count; i++) left += kp_top_row_share(r->top, &r->top->rows[i]) * 100;
    return left;
}

#define REPORT(F, IF) \
    F(TEXT, trace, r->label) \
    F(PART, , (head, r)) \
    F(TEXT, by, r->by) \
    F(TEXT, sort, r->sort) \
    F(TEXT, rows_of, r->top->is_of_steps ? "steps" : "all") \
    F(LIST, rows, (row, kp_top_shown(r), &(struct topjson_row){r, r->top, &r->top->rows[i]})) \
    F(WHOLE, more_rows, r->top->count - kp_top_shown(r)) \
    F(FIXED, more_percent, (4, percent_left(r)))
KP_FIELDS(report, struct kp_top_report, REPORT)
/* clang-format on */

const struct kp_fields *const kp_top_schema = &report_fields;

void kp_top_json_print(FILE *out, const struct kp_top_report *r) { kp_fields_line(out, &report_fields, r); }
