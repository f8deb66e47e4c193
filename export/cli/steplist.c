// SPDX-License-Identifier: Apache-2.0
/* steplist.c - a row for each step: how long it lasts, beside the median, and what that time is */
#include "export/cli/steplist.h"

#include <stdlib.h>

#include "export/read/facts/nocore.h"
#include "export/show/plain.h"
#include "export/show/units.h"

/* Of the host no op and loader runs at one time; of a GPU each part is what no earlier one covers. */
static const struct {
    const char *gpu, *host, *key;
} parts[KP_SPLIT_PARTS] = {[KP_SPLIT_COMPUTE] = {"compute", "in ops", "compute"},
                           [KP_SPLIT_COMM] = {"communication", "communication", "communication"},
                           [KP_SPLIT_COPIES] = {"copies", "copies", "copies"},
                           [KP_SPLIT_LOADING] = {"data loading", "data loading", "data_loading"},
                           [KP_SPLIT_IDLE] = {"idle", "in no op", "idle"}};

static const struct kp_steplist *ordered; /* for qsort */

static int longer_first(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    const int64_t of_x = ordered->splits[x].step_ns, of_y = ordered->splits[y].step_ns;
    return of_x != of_y ? (of_x < of_y ? 1 : -1) : (x > y) - (x < y);
}

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
    for (size_t i = 0; i < count; i++) out->order[i] = i;
    if (!count) return;
    ordered = out;
    qsort(out->order, count, sizeof *out->order, longer_first);
    const double upper = (double)out->splits[out->order[(count - 1) / 2]].step_ns;
    out->median_ns = (upper + (double)out->splits[out->order[count / 2]].step_ns) / 2;
    for (size_t i = 0; i < count && !is_longest_first; i++) out->order[i] = i;
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
    if (part == KP_SPLIT_COMPUTE || part == KP_SPLIT_LOADING || part == KP_SPLIT_IDLE) return true;
    for (size_t i = 0; i < list->chosen->step_count; i++)
        if (list->splits[i].part_ns[part] > 0) return true;
    return false;
}

/* What makes a step longer, and is no fault of the program. */
static void remarks_print(FILE *out, const struct kp_steplist *list, size_t step)
{
    const double no_core_ns = list->no_core_ns[step];
    const char *between = "  ";
    if (list->evaluates[step]) fputs("  with an evaluation", out), between = ", ";
    if (no_core_ns >= (double)list->splits[step].step_ns / KP_NOCORE_TOLD_PART)
        fprintf(out, "%sno core for %.3f", between, no_core_ns / 1e6);
    fputs("\n", out);
}

void kp_steplist_print(FILE *out, const struct kp_steplist *list, size_t most)
{
    const size_t count = list->chosen->step_count, rows = most && most < count ? most : count;
    fprintf(out, "%10s  %10s  %8s", "step", "ms", "x median");
    for (int p = 0; p < KP_SPLIT_PARTS; p++)
        if (has_part(list, p)) fprintf(out, "  %13s", list->has_gpu ? parts[p].gpu : parts[p].host);
    fputs("\n", out);
    for (size_t i = 0; i < rows; i++) {
        const struct kp_step_split *s = &list->splits[list->order[i]];
        fprintf(out, "%10ld  %10.3f  %8.2f", list->chosen->steps[list->order[i]].number, (double)s->step_ns / 1e6,
                list->median_ns > 0 ? (double)s->step_ns / list->median_ns : 0);
        for (int p = 0; p < KP_SPLIT_PARTS; p++)
            if (has_part(list, p)) fprintf(out, "  %13.3f", (double)s->part_ns[p] / 1e6);
        remarks_print(out, list, list->order[i]);
    }
    if (rows < count)
        fprintf(out, "%zu more step%s; all: -n 0%s\n", count - rows, kp_units_s(count - rows),
                list->is_longest_first ? "" : "; the longest first: --sort total");
    if (!count) return;
    fprintf(out, "parts in ms%s; one step's ops: kprof report --step %ld\n",
            list->has_gpu ? " of the GPU's time, each while none of those before it runs" : "",
            list->chosen->steps[list->order[0]].number);
}

void kp_steplist_json(FILE *out, const struct kp_steplist *list, const char *label)
{
    fputs("{\"trace\":", out);
    kp_plain_json(out, label);
    fprintf(out, ",\"by\":\"step\",\"gpu\":%s,\"median_ms\":%.6f,\"rows\":[", list->has_gpu ? "true" : "false",
            list->median_ns / 1e6);
    for (size_t i = 0; i < list->chosen->step_count; i++) {
        const struct kp_step_split *s = &list->splits[list->order[i]];
        fprintf(out, "%s{\"step\":%ld,\"ms\":%.6f,\"evaluates\":%s,\"no_core_ms\":%.6f,\"parts_ms\":{", i ? "," : "",
                list->chosen->steps[list->order[i]].number, (double)s->step_ns / 1e6,
                list->evaluates[list->order[i]] ? "true" : "false", list->no_core_ns[list->order[i]] / 1e6);
        for (int p = 0; p < KP_SPLIT_PARTS; p++)
            fprintf(out, "%s\"%s\":%.6f", p ? "," : "", parts[p].key, (double)s->part_ns[p] / 1e6);
        fputs("}}", out);
    }
    fputs("]}\n", out);
}
