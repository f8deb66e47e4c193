// SPDX-License-Identifier: Apache-2.0
/* pagehead.c - what the page says in words and few numbers: the run, findings, steps, lanes */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/answers/page/pageparts.h"
#include "export/answers/ranks/lastwords.h"
#include "export/read/kineto/ended.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/show/plain.h"
#include "export/answers/stacks/stepparts.h"
#include "export/answers/top/timeshares.h"

void kp_page_member_put(FILE *out, const char *key, const char *text)
{
    fprintf(out, ",\"%s\":", key);
    kp_plain_json(out, text);
}

/* What of a step is forward, backward and optimizer, as the report has it. */
static void step_parts_put(const struct kp_page *page, FILE *out)
{
    struct kp_stepparts parts = {0};
    char text[160];
    kp_stepparts_add(&parts, page->tree, &page->chosen);
    const bool is_any = kp_stepparts_has(&parts);
    kp_page_member_put(out, "parts", is_any ? kp_stepparts_text(text, sizeof text, &parts, false) : NULL);
    const bool has_gpu = is_any && kp_stepparts_has_gpu(&parts);
    kp_page_member_put(out, "gpu_parts", has_gpu ? kp_stepparts_text(text, sizeof text, &parts, true) : NULL);
}

/* "by ValueError at train.py:18 main, after step 19" */
static void ended_put(const struct kp_page *page, FILE *out)
{
    char text[KP_LASTWORDS_BYTES + 80];
    kp_lastwords_ended(text, sizeof text, page->tree, &page->chosen);
    kp_page_member_put(out, "ended", *text ? text : NULL);
    if (*text) kp_page_member_put(out, "recorded", kp_ended_recorded(text, sizeof text, page->tree->trace));
    kp_page_member_put(out, "stood", kp_kineto_fact(page->tree->trace, "kprof.stood"));
    kp_page_member_put(out, "out_of_memory", kp_kineto_fact(page->tree->trace, "kprof.out_of_memory"));
}

static void run_put(struct kp_page *page, const char *label, FILE *out)
{
    const struct kp_kineto *trace = page->tree->trace;
    struct kp_summary s;
    kp_summary_make(&s, page->tree, &page->chosen);
    fputs("\"run\":{\"label\":", out);
    kp_plain_json(out, label);
    kp_page_member_put(out, "program", trace->program ? kp_kineto_text(trace, trace->program) : NULL);
    kp_page_member_put(out, "script", kp_kineto_fact(trace, "kprof.script"));
    kp_page_member_put(out, "host", kp_kineto_fact(trace, "host_name"));
    kp_page_member_put(out, "torch", kp_kineto_fact(trace, "kprof.torch_version"));
    kp_page_member_put(out, "rank", kp_kineto_fact(trace, "distributedInfo.rank"));
    kp_page_member_put(out, "ranks", kp_kineto_fact(trace, "distributedInfo.world_size"));
    step_parts_put(page, out);
    ended_put(page, out);
    fprintf(out, ",\"when_ms\":%" PRId64 ",\"wall\":%" PRId64 ",\"dropped\":%" PRIu64 "%s", s.when_ns / 1000000,
            s.wall_ns, s.lost, s.is_lost_least ? ",\"dropped_least\":true" : "");
    fprintf(out, ",\"cores\":%ld,\"threads\":%ld,\"torn\":%s,\"shapes\":%s,\"memory\":%s,\"stacks\":%s", s.cores,
            s.busy_threads, trace->torn ? "true" : "false", trace->record_shapes ? "true" : "false",
            trace->profile_memory ? "true" : "false", trace->has_stacks || trace->with_stack ? "true" : "false");
    fprintf(out, ",\"frames\":%s,\"zero\":%" PRId64 "}", page->has_frames ? "true" : "false",
            page->base_ns - trace->start_ns); /* of the page's times, after the profiler's start */
}

/* The title of a note's card, by what it tells. */
static const char *note_title(const struct kp_advice *a, const char *note)
{
    const struct {
        const char *note, *title;
    } rows[] = {{a->guessed, "Steps are guessed"},
                {a->crowded, "Too few cores"},
                {a->waited, "The machine was busy"},
                {a->evaluated, "Evaluations"},
                {a->lines_by, "Lines are not recorded"},
                {a->slowed_by, "Recording takes time"},
                {a->ahead, "Host and GPU"},
                {a->overlaps, "Times that cannot be"},
                {a->prompts, "Prompts"},
                {a->no_op, "Time outside ops"},
                {a->met, "Collectives"},
                {a->outside, "Work outside of the steps"},
                {a->most, "Hottest lines"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].note == note) return rows[i].title;
    return "Note";
}

/* What docs/reference/findings.md says below the finding's heading. */
static void about_put(FILE *out, const char *id)
{
    char head[80];
    const int bytes = snprintf(head, sizeof head, "\n### %s\n", id);
    const char *const end = kp_page_findings_end;
    const char *at = memmem(kp_page_findings, (size_t)(end - kp_page_findings), head, (size_t)bytes);
    if (!at) return;
    at += bytes;
    const char *const next = memmem(at, (size_t)(end - at), "\n#", 2);
    char *const text = strndup(at, (size_t)((next ? next : end) - at));
    if (text) kp_page_member_put(out, "about", text);
    free(text);
}

void kp_page_finding_put(FILE *out, const struct kp_finding *f)
{
    char line[4096];
    fprintf(out, "\"critical\":%s,\"cost\":%.0f,\"share\":%.6f,\"steps\":%zu", f->is_critical ? "true" : "false",
            f->step_ns, f->share, f->steps);
    kp_page_member_put(out, "id", f->id);
    about_put(out, f->id);
    kp_page_member_put(out, "what", f->what);
    kp_page_member_put(out, "change", f->change);
    kp_page_member_put(out, "where", f->where);
    if (f->longer_by) kp_page_member_put(out, "longer_by", f->longer_by);
    kp_page_member_put(out, "line", kp_finding_line(f, line, sizeof line));
    fprintf(out, ",\"gap\":%s,\"bytes\":%.0f,\"once\":%.0f,\"once_step\":%ld", f->is_gap ? "true" : "false",
            f->step_bytes, f->once_ns, f->once_step);
}

static void advice_put(struct kp_page *page, FILE *out)
{
    const struct kp_advice *const a = page->advice;
    page->has_gpu |= a->has_gpu;
    fprintf(out, ",\"gpu\":%s,\"advice\":{\"healthy\":%s,\"steps\":%zu,\"step\":%.0f,\"median\":%.0f",
            page->has_gpu ? "true" : "false", a->is_well ? "true" : "false", a->steps, a->step_ns, a->median_ns);
    kp_page_member_put(out, "missing", a->missing);
    fprintf(out, ",\"unrecorded\":%s,\"unjudged\":[", a->is_unrecorded ? "true" : "false");
    for (size_t i = 0; i < a->unjudged_count; i++) {
        if (i) fputs(",", out);
        kp_plain_json(out, a->unjudged[i]);
    }
    fputs("]", out);
    kp_page_member_put(out, "seen", a->seen);
    kp_page_member_put(out, "crowded", a->crowded);
    fprintf(out, ",\"crowded_first\":%s,\"findings\":[", kp_advice_is_crowded_first(a) ? "true" : "false");
    for (size_t i = 0; i < a->count; i++) {
        fputs(i ? ",{" : "{", out);
        kp_page_finding_put(out, &a->findings[i]);
        fputs("}", out);
    }
    fputs("],\"notes\":[", out);
    const char *notes[KP_NOTES_MAX];
    const size_t note_count = kp_advice_notes(a, notes);
    for (size_t i = 0; i < note_count; i++) {
        if (i) fputs(",", out);
        kp_plain_json(out, notes[i]);
    }
    fputs("],\"note_titles\":[", out);
    for (size_t i = 0; i < note_count; i++) fprintf(out, "%s\"%s\"", i ? "," : "", note_title(a, notes[i]));
    fputs("]}", out);
}

/* base_ns is the least of all starts. */
static uint64_t since(const struct kp_page *page, int64_t ns) { return (uint64_t)ns - (uint64_t)page->base_ns; }

/* Each step: number, start, end, and its parts in the order of enum kp_split_part. */
static void steps_put(const struct kp_page *page, FILE *out)
{
    const struct kp_chosen *chosen = &page->chosen;
    struct kp_step_split *splits = kp_kineto_room(chosen->step_count + 1, sizeof *splits);
    kp_step_split_all(splits, page->tree, chosen);
    fprintf(out, ",\"by_optimizer\":%s,\"steps\":[", chosen->ended_by == KP_STEPENDS_OPTIMIZER ? "true" : "false");
    for (size_t i = 0; i < chosen->step_count; i++) {
        const struct kp_step *step = &chosen->steps[i];
        fprintf(out, "%s[%ld,%" PRIu64 ",%" PRIu64, i ? "," : "", step->number, since(page, step->start_ns),
                since(page, step->end_ns));
        for (int p = 0; p < KP_SPLIT_PARTS; p++) fprintf(out, ",%" PRId64, splits[i].part_ns[p]);
        fputs("]", out);
    }
    fputs("]", out);
    if (page->starts_with_steps) fprintf(out, ",\"start\":[%zu,%zu]", page->low, page->high);
    free(splits);
}

/* Names and order of the parts of a step, and of each step its parts; none where it does not train. */
static void step_parts_list(const struct kp_page *page, FILE *out)
{
    const struct kp_chosen *chosen = &page->chosen;
    struct kp_stepparts sums = {0};
    fputs(",\"part_names\":[", out);
    for (enum kp_part part = 0; part < KP_PARTS; part++) fprintf(out, "%s\"%s\"", part ? "," : "", kp_part_name(part));
    fputs("],\"part_order\":[", out);
    for (int p = 0; p < KP_STEPPARTS_SHOWN; p++) fprintf(out, "%s%d", p ? "," : "", (int)kp_stepparts_order[p]);
    fputs("],\"step_parts\":[", out);
    kp_stepparts_add(&sums, page->tree, chosen);
    if (kp_stepparts_has(&sums)) {
        int64_t(*rows)[KP_STEPPARTS_SHOWN] = kp_kineto_room(chosen->step_count + 1, sizeof *rows);
        kp_stepparts_each(rows, page->tree, chosen);
        for (size_t i = 0; i < chosen->step_count; i++) {
            for (int p = 0; p < KP_STEPPARTS_SHOWN; p++)
                fprintf(out, "%s%" PRId64, p ? "," : i ? ",[" : "[", rows[i][p]);
            fputs("]", out);
        }
        free(rows);
    }
    fputs("]", out);
}

/* Each lane: pid, tid, 1 on a device, 1 asynchronous, 1 the thread of the steps, first event, number of events. */
static void lanes_put(const struct kp_page *page, FILE *out)
{
    fputs(",\"lanes\":[", out);
    for (size_t i = 0; i < page->lane_count; i++) {
        const struct kp_page_lane *l = &page->lanes[i];
        fprintf(out, "%s[\"%" PRId64 "\",\"%" PRId64 "\",%d,%d,%d,%zu,%zu]", i ? "," : "", l->pid, l->tid, l->on_device,
                l->is_async, l->is_main, l->first, l->count);
    }
    fputs("]", out);
}

void kp_page_head_put(struct kp_page *page, const char *label, FILE *out)
{
    fputs("{\"schema\":1,", out);
    run_put(page, label, out);
    advice_put(page, out);
    steps_put(page, out);
    step_parts_list(page, out);
    lanes_put(page, out);
    kp_page_rows_put(page, out);
}
