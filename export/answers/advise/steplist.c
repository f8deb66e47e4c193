// SPDX-License-Identifier: Apache-2.0
/* steplist.c - a row for each step: how long it lasts, beside the median, and what that time is */
#include "export/answers/advise/steplist.h"

#include <stdlib.h>

#include "export/answers/advise/advice.h"
#include "export/answers/advise/adviceprint.h"
#include "collector/base/kp_order.h"
#include "export/read/facts/steps/nocore.h"
#include "export/read/store/qsort.h"
#include "export/show/fields.h"
#include "export/show/units.h"

KP_ORDER_BY(longer_first, double)

void kp_steplist_make(struct kp_steplist *out, const struct kp_tree *tree, const struct kp_chosen *chosen,
                      bool is_longest_first)
{
    const size_t count = chosen->step_count;
    *out = (struct kp_steplist){.chosen = chosen,
                                .splits = kp_kineto_room(count + 1, sizeof *out->splits),
                                .order = kp_kineto_room(count + 1, sizeof *out->order),
                                .no_core_ns = kp_kineto_room(count + 1, sizeof *out->no_core_ns),
                                .evaluates = kp_kineto_room(count + 1, sizeof *out->evaluates),
                                .is_longest_first = is_longest_first};
    kp_nocore_of_some(out->no_core_ns, tree, chosen->steps, count);
    kp_advice_evaluations(out->evaluates, tree, chosen);
    out->has_gpu = kp_step_split_all(out->splits, tree, chosen);
    double *const ns = kp_kineto_room(count + 1, sizeof *ns);
    for (size_t i = 0; i < count; i++) out->order[i] = i, ns[i] = (double)out->splits[i].step_ns;
    if (is_longest_first) qsort_r(out->order, count, sizeof *out->order, longer_first, ns);
    out->median_ns = kp_quantile(ns, count, 0.5); /* sorts them */
    free(ns);
}

void kp_steplist_fini(struct kp_steplist *list)
{
    free(list->splits);
    free(list->order);
    free(list->evaluates);
    free(list->no_core_ns);
}

static bool has_part(const struct kp_steplist *list, int part)
{
    for (size_t i = 0; i < list->chosen->step_count; i++)
        if (list->splits[i].part_ns[part] > 0) return true;
    return false;
}

/* Things that make a step longer, and are no fault of the program. */
static const char *remarks_of(const struct kp_steplist *list, size_t step, char *room, size_t bytes)
{
    const double no_core_ns = list->no_core_ns[step];
    const char *const evaluates = list->evaluates[step] ? "with an evaluation" : NULL;
    if (no_core_ns < (double)list->splits[step].step_ns / KP_NOCORE_TOLD_PART) return evaluates;
    snprintf(room, bytes, "%s%sno core for %.3f", evaluates ? evaluates : "", evaluates ? ", " : "", no_core_ns / 1e6);
    return room;
}

#define KP_TABLE struct kp_steplist
#define KP_ROW size_t /* of list->order */
#define SPLIT t->splits[*r]
#define PART(part) (double)SPLIT.part_ns[KP_SPLIT_##part]
#define HAS(part) has_part(t, KP_SPLIT_##part)
/* On the host no op and loader runs at one time; on a GPU each part is the time that no earlier one covers. */
/* clang-format off */
#define COLUMNS(NUMBER, TEXT) \
    NUMBER(step, "step", NULL, COUNT, 10, true, (double)t->chosen->steps[*r].number) \
    NUMBER(ms, "ms", NULL, MS, 10, true, (double)SPLIT.step_ns) \
    NUMBER(times, "x median", NULL, TIMES, 8, true, t->median_ns > 0 ? (double)SPLIT.step_ns / t->median_ns : 0) \
    NUMBER(compute, "compute", NULL, MS, 13, t->has_gpu, PART(COMPUTE)) \
    NUMBER(ops, "in ops", NULL, MS, 13, !t->has_gpu, PART(COMPUTE)) \
    NUMBER(comm, "communication", NULL, MS, 13, HAS(COMM), PART(COMM)) \
    NUMBER(copies, "copies", NULL, MS, 13, HAS(COPIES), PART(COPIES)) \
    NUMBER(loading, "data loading", NULL, MS, 13, true, PART(LOADING)) \
    NUMBER(idle, "idle", NULL, MS, 13, t->has_gpu, PART(IDLE)) \
    NUMBER(no_op, "no operator", NULL, MS, 13, !t->has_gpu, PART(IDLE)) \
    TEXT(remarks, "", NULL, 0, true, remarks_of(t, *r, room, bytes))
KP_COLUMNS(columns, COLUMNS)
/* clang-format on */

void kp_steplist_print(FILE *out, const struct kp_steplist *list, size_t most)
{
    const size_t count = list->chosen->step_count, rows = most && most < count ? most : count;
    kp_columns_print(out, KP_COLUMNS_OF(columns, list, list->order, rows));
    if (rows < count)
        fprintf(out, "%zu more step%s; all: -n 0%s\n", count - rows, kp_units_s(count - rows),
                list->is_longest_first ? "" : "; the longest first: --sort total");
    if (!count) return;
    fprintf(out, "parts in ms%s; one step's ops: kprof report --step %ld\n",
            list->has_gpu ? " of the GPU's time, each while none of those before it runs" : "",
            list->chosen->steps[list->order[0]].number);
}

struct steplist_row {
    const struct kp_steplist *list;
    size_t step;
};
/* clang-format off */
#define THIS r->list->splits[r->step]
#define ROW(F, IF) \
    F(WHOLE, step, r->list->chosen->steps[r->step].number) \
    F(MS, ms, THIS.step_ns) \
    F(BOOL, evaluates, r->list->evaluates[r->step]) \
    F(MS, no_core_ms, r->list->no_core_ns[r->step]) \
    F(MS_BY, parts_ms, (KP_SPLIT_PARTS, kp_advice_part_names[i], THIS.part_ns[i]))
KP_FIELDS(row, struct steplist_row, ROW)

struct steplist_line {
    const struct kp_steplist *list;
    const char *label;
};
#define LIST(F, IF) \
    F(TEXT, trace, r->label) \
    F(WORD, by, ("step", "step")) \
    F(BOOL, gpu, r->list->has_gpu) \
    F(MS, median_ms, r->list->median_ns) \
    F(LIST, rows, (row, r->list->chosen->step_count, &(struct steplist_row){r->list, r->list->order[i]}))
KP_FIELDS(list, struct steplist_line, LIST)
/* clang-format on */

const struct kp_fields *const kp_steplist_schema = &list_fields;

void kp_steplist_json(FILE *out, const struct kp_steplist *list, const char *label)
{
    kp_fields_put(KP_JSONOUT(out), NULL, &list_fields, &(struct steplist_line){list, label});
    fputc('\n', out);
}
