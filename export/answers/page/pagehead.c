// SPDX-License-Identifier: Apache-2.0
/* pagehead.c - what the page says in words and few numbers: the run, findings, steps, lanes */
#include <stdlib.h>
#include <string.h>

#include "export/answers/page/pageparts.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/show/fields.h"
#include "export/answers/stacks/stepparts.h"
#include "export/answers/top/timeshares.h"

struct page_run {
    struct kp_page *page;
    const struct kp_kineto *trace;
    const char *label;
    struct kp_summary summary;
    struct kp_stepparts parts;
};

static const char *fact(const struct page_run *r, const char *name) { return kp_kineto_fact(r->trace, name); }

#define RUN(F, IF)                                                                                               \
    F(TEXT, label, r->label)                                                                                     \
    F(MAYBE, program, r->trace->program ? kp_kineto_text(r->trace, r->trace->program) : NULL)                    \
    F(MAYBE, script, fact(r, "kprof.script"))                                                                    \
    F(MAYBE, host, fact(r, "host_name"))                                                                         \
    F(MAYBE, torch, fact(r, "kprof.torch_version"))                                                              \
    F(MAYBE, rank, fact(r, "distributedInfo.rank"))                                                              \
    F(MAYBE, ranks, fact(r, "distributedInfo.world_size"))                                                       \
    F(MAYBE, parts, kp_stepparts_has(&r->parts) ? kp_stepparts_text(room, sizeof room, &r->parts, false) : NULL) \
    F(MAYBE, gpu_parts,                                                                                          \
      kp_stepparts_has(&r->parts) && kp_stepparts_has_gpu(&r->parts)                                             \
          ? kp_stepparts_text(room, sizeof room, &r->parts, true)                                                \
          : NULL)                                                                                                \
    F(MAYBE, ended, r->page->advice->ended)                                                                      \
    IF(r->page->advice->ended, TEXT, recorded, r->page->advice->recorded)                                        \
    F(MAYBE, out_of_memory, fact(r, "kprof.out_of_memory"))                                                      \
    F(WHOLE, when_ms, r->summary.when_ns / 1000000)                                                              \
    F(WHOLE, wall, r->summary.wall_ns)                                                                           \
    F(WHOLE, dropped, r->summary.lost)                                                                           \
    IF(r->summary.is_lost_least, BOOL, dropped_least, true)                                                      \
    F(WHOLE, cores, r->summary.cores)                                                                            \
    F(WHOLE, threads, r->summary.busy_threads)                                                                   \
    F(BOOL, torn, r->trace->torn)                                                                                \
    F(BOOL, shapes, r->trace->record_shapes)                                                                     \
    F(BOOL, memory, r->trace->profile_memory)                                                                    \
    F(BOOL, stacks, r->trace->has_stacks || r->trace->with_stack)                                                \
    F(BOOL, frames, r->page->has_frames)                                                                         \
    F(WHOLE, zero, r->page->base_ns - r->trace->start_ns) /* of the page's times, after the profiler's start */
KP_FIELDS(run, struct page_run, RUN)

static void run_put_of(struct kp_page *page, const char *label, struct kp_jsonout *j)
{
    struct page_run r = {.page = page, .trace = page->tree->trace, .label = label};
    kp_summary_make(&r.summary, page->tree, &page->chosen);
    kp_stepparts_add(&r.parts, page->tree, &page->chosen);
    kp_fields_put(j, "run", &run_fields, &r);
    kp_stepparts_fini(&r.parts);
}

/* Copies what docs/reference/findings.md says below the finding's heading. Returns `out`, or NULL: it has none. */
static const char *about(const char *id, char *out, size_t bytes)
{
    char head[80];
    const int head_bytes = snprintf(head, sizeof head, "\n### %s\n", id);
    const char *const end = kp_page_findings_end;
    const char *at = memmem(kp_page_findings, (size_t)(end - kp_page_findings), head, (size_t)head_bytes);
    if (!at) return NULL;
    at += head_bytes;
    const char *const next = memmem(at, (size_t)(end - at), "\n#", 2);
    snprintf(out, bytes, "%.*s", (int)((next ? next : end) - at), at);
    return out;
}

/* Names these steps for the page, which finds by it what other ranks say: "48:86800,19:3000", in us. NULL: none. */
const char *kp_page_longer_text(char *out, size_t bytes, const struct kp_longer_steps *longer)
{
    size_t used = 0;
    for (size_t i = 0; i < longer->count && used < bytes; i++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%ld:%.0f", i ? "," : "", longer->of[i].number,
                                 longer->of[i].ns / 1e3);
    return longer->count ? out : NULL;
}

#define FINDING(F, IF)                                                     \
    F(BOOL, critical, r->is_critical)                                      \
    F(FIXED, cost, (0, r->step_ns))                                        \
    F(SHARE, share, r->share)                                              \
    F(SOME, share_of, r->share_of)                                         \
    F(WHOLE, steps, r->steps)                                              \
    F(TEXT, id, r->id)                                                     \
    F(SOME, about, about(r->id, room, sizeof room))                        \
    F(MAYBE, what, r->what)                                                \
    F(MAYBE, change, r->change)                                            \
    F(MAYBE, where, r->where)                                              \
    F(SOME, longer_by, kp_page_longer_text(room, sizeof room, &r->longer)) \
    F(MAYBE, line, kp_finding_line(r, room, sizeof room))                  \
    F(BOOL, gap, r->is_gap)                                                \
    F(BOOL, small, r->is_small)                                            \
    F(FIXED, bytes, (0, r->step_bytes))                                    \
    F(FIXED, once, (0, r->once_ns))                                        \
    F(WHOLE, once_step, r->once_step)
KP_FIELDS(finding, struct kp_finding, FINDING)

void kp_page_finding_put(struct kp_jsonout *j, const struct kp_finding *f) { finding_put(j, f); }

struct advice {
    const struct kp_advice *of;
    struct kp_note notes[KP_NOTES_MAX];
    size_t note_count;
};
#define ADVICE(F, IF)                                                                        \
    F(BOOL, healthy, r->of->is_well)                                                         \
    F(WHOLE, steps, r->of->steps)                                                            \
    F(FIXED, step, (0, r->of->step_ns))                                                      \
    F(FIXED, median, (0, r->of->median_ns))                                                  \
    F(MAYBE, missing, r->of->missing)                                                        \
    F(BOOL, unrecorded, r->of->is_unrecorded)                                                \
    F(TEXTS, unjudged, (r->of->unjudged_count, r->of->unjudged[i]))                          \
    F(MAYBE, seen, r->of->seen)                                                              \
    F(MAYBE, crowded, r->of->crowded)                                                        \
    F(MAYBE, crowded_by, r->of->crowded_by)                                                  \
    F(BOOL, crowded_by_own, r->of->is_crowded_by_own)                                        \
    F(BOOL, crowded_first, kp_advice_is_crowded_first(r->of))                                \
    F(MAYBE, evaluated_first, kp_advice_is_evaluated_first(r->of) ? r->of->evaluated : NULL) \
    F(LIST, findings, (finding, r->of->count, &r->of->findings[i]))                          \
    F(TEXTS, notes, (r->note_count, r->notes[i].text))                                       \
    F(TEXTS, note_titles, (r->note_count, r->notes[i].title))
KP_FIELDS(advice, struct advice, ADVICE)

static void advice_put_of(struct kp_page *page, struct kp_jsonout *j)
{
    struct advice a = {.of = page->advice};
    a.note_count = kp_advice_notes(a.of, a.notes);
    page->has_gpu |= a.of->has_gpu;
    kp_jsonout_bool(j, "gpu", page->has_gpu);
    kp_fields_put(j, "advice", &advice_fields, &a);
}

/* base_ns is the least of all starts. */
static int64_t since(const struct kp_page *page, int64_t ns)
{
    return (int64_t)((uint64_t)ns - (uint64_t)page->base_ns);
}

/* Each step: number, start, end, and its parts in the order of enum kp_split_part. */
static void steps_put(const struct kp_page *page, struct kp_jsonout *j)
{
    const struct kp_chosen *chosen = &page->chosen;
    struct kp_step_split *splits = kp_kineto_room(chosen->step_count + 1, sizeof *splits);
    kp_step_split_all(splits, page->tree, chosen);
    kp_jsonout_bool(j, "by_optimizer", chosen->ended_by == KP_STEPENDS_OPTIMIZER);
    kp_jsonout_bool(j, "by_passes", chosen->ended_by == KP_STEPENDS_PASS);
    kp_jsonout_open(j, "steps", '[');
    for (size_t i = 0; i < chosen->step_count; i++) {
        const struct kp_step *step = &chosen->steps[i];
        kp_jsonout_open(j, NULL, '[');
        kp_jsonout_items(j, KP_JSONOUT_NUMBERS(step->number, since(page, step->start_ns), since(page, step->end_ns)));
        kp_jsonout_items(j, splits[i].part_ns, KP_SPLIT_PARTS);
        kp_jsonout_close(j, ']');
    }
    kp_jsonout_close(j, ']');
    if (page->starts_with_steps)
        kp_jsonout_wholes(j, "start", KP_JSONOUT_NUMBERS((int64_t)page->low, (int64_t)page->high));
    free(splits);
}

/* Names and order of the parts of a step, and of each step its parts; none where it does not train. Forward, which is
 * the first, is left out where the file does not tell it. */
static void step_parts_list(const struct kp_page *page, struct kp_jsonout *j)
{
    struct kp_stepparts sums = {0};
    kp_stepparts_add(&sums, page->tree, &page->chosen);
    const int first = !kp_stepparts_has_forward(&sums);
    kp_jsonout_open(j, "part_names", '[');
    for (enum kp_part part = 0; part < KP_PARTS; part++) kp_jsonout_text(j, NULL, kp_part_name(part));
    kp_jsonout_close(j, ']');
    kp_jsonout_open(j, "part_order", '[');
    for (int p = first; p < KP_STEPPARTS_SHOWN; p++) kp_jsonout_whole(j, NULL, kp_stepparts_order[p]);
    kp_jsonout_close(j, ']');
    kp_jsonout_open(j, "step_parts", '[');
    for (size_t i = 0; i < sums.count && kp_stepparts_has(&sums); i++) {
        int64_t row[KP_STEPPARTS_SHOWN];
        kp_stepparts_row(row, &sums.each[i]);
        kp_jsonout_wholes(j, NULL, row + first, (size_t)(KP_STEPPARTS_SHOWN - first));
    }
    kp_stepparts_fini(&sums);
    kp_jsonout_close(j, ']');
}

/* Each lane: pid, tid, 1 on a device, 1 asynchronous, 1 the thread of the steps, first event, number of events. */
static void lanes_put(const struct kp_page *page, struct kp_jsonout *j)
{
    kp_jsonout_open(j, "lanes", '[');
    for (size_t i = 0; i < page->lane_count; i++) {
        const struct kp_page_lane *l = &page->lanes[i];
        kp_jsonout_open(j, NULL, '[');
        kp_jsonout_id(j, NULL, l->pid);
        kp_jsonout_id(j, NULL, l->tid);
        kp_jsonout_items(
            j, KP_JSONOUT_NUMBERS(l->on_device, l->is_async, l->is_main, (int64_t)l->first, (int64_t)l->count));
        kp_jsonout_close(j, ']');
    }
    kp_jsonout_close(j, ']');
}

void kp_page_head_put(struct kp_page *page, const char *label, struct kp_jsonout *j)
{
    kp_jsonout_whole(j, "schema", 1);
    kp_jsonout_whole(j, "end", page->last_ns > page->base_ns ? since(page, page->last_ns) : 1);
    run_put_of(page, label, j);
    advice_put_of(page, j);
    steps_put(page, j);
    step_parts_list(page, j);
    lanes_put(page, j);
    kp_page_rows_put(page, j);
}
