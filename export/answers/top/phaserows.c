// SPDX-License-Identifier: Apache-2.0
/* phaserows.c - the phases of a run, a row each: steps, a step's length, and where its time goes */
#include "export/answers/top/toptable.h"

#include <stdlib.h>
#include <string.h>

#include "export/read/kineto/kineto_facts.h"
#include "export/show/columns.h"
#include "export/show/plain.h"
#include "export/read/store/qsort.h"

static struct kp_phaserow *row_get(struct kp_phaserows *rows, const char *phase)
{
    for (size_t i = 0; i < rows->count; i++)
        if (strcmp(rows->of[i].phase, phase) == 0) return &rows->of[i];
    struct kp_phaserow *const row = KP_KINETO_NEXT(rows->of, rows->count, rows->capacity);
    *row = (struct kp_phaserow){.phase = kp_kineto_copy(phase)};
    return row;
}

/* The trace that ended last knows most. Ranks have their own times. */
static void times_take(struct kp_phaserows *rows, const struct kp_kineto *trace)
{
    struct kp_phasetimes times;
    const int64_t pid = trace->count ? trace->events[0].pid : 0;
    if (!kp_phasetimes_of(&times, trace)) return;
    rows->are_several |= rows->times.count && rows->pid != pid;
    rows->pid = pid;
    times.is_of_last = true;
    if (times.all_ns > rows->times.all_ns) rows->times = times;
}

void kp_phaserows_add(struct kp_phaserows *rows, const struct kp_kineto *trace, const struct kp_chosen *chosen,
                      const struct kp_summary *summary, bool with_runs)
{
    struct kp_phaserow *row = row_get(rows, kp_kineto_fact(trace, "kprof.phase"));
    row->traces++;
    times_take(rows, trace);
    row->step_ns = kp_kineto_grow(row->step_ns, &row->capacity, row->steps + chosen->step_count, sizeof *row->step_ns);
    for (size_t i = 0; i < chosen->step_count; i++) row->step_ns[row->steps++] = (double)chosen->steps[i].inside_ns;
    row->wall_ns += summary->wall_ns;
    row->op_ns += summary->op_ns;
    row->data_ns += summary->data_ns;
    row->other_ns += summary->comm_ns + summary->rest_ns;
    if (with_runs) kp_kineto_windows_append(&row->windows, trace->windows);
    rows->has_parts |= !with_runs;
}

/* ---- the table ---- */

static double share(int64_t part, int64_t whole) { return whole > 0 ? (double)part / (double)whole : 0; }

struct phases { /* of which each row has a share */
    int64_t all_ns;
};
#define KP_TABLE struct phases
#define KP_ROW struct kp_phaserow
/* clang-format off */
#define COLUMNS(NUMBER, TEXT) \
    TEXT(phase, "phase", NULL, -5, true, (kp_plain_text(room, bytes, r->phase, strlen(r->phase)), room)) \
    NUMBER(traces, "traces", NULL, COUNT, 6, true, (double)r->traces) \
    NUMBER(runs, "runs", NULL, COUNT, 5, true, (double)r->runs.count) \
    NUMBER(run_ms, "ms a run", NULL, MS, 9, true, r->runs.count ? (double)r->runs.median_ns : NAN) \
    NUMBER(steps, "steps", NULL, COUNT, 6, true, (double)r->steps) \
    NUMBER(step_ms, "ms a step", NULL, MS, 9, true, r->steps ? kp_quantile(r->step_ns, r->steps, 0.5) : NAN) \
    NUMBER(time, "of time", NULL, SHARE, 8, true, t->all_ns ? share(r->wall_ns, t->all_ns) : NAN) \
    NUMBER(ops, "in ops", NULL, SHARE, 7, true, share(r->op_ns, r->wall_ns)) \
    NUMBER(loading, "loading", NULL, SHARE, 7, true, share(r->data_ns, r->wall_ns)) \
    NUMBER(rest, "no op", NULL, SHARE, 7, true, share(r->other_ns, r->wall_ns))
KP_COLUMNS(columns, COLUMNS)
/* clang-format on */

/* The time that a schedule records is no share of the run. */
static void times_print(FILE *out, const struct kp_phaserows *rows)
{
    char text[2048], remarks[256];
    if (rows->are_several || !kp_phasetimes_text(text, sizeof text, &rows->times, NULL)) return;
    kp_plain_fmt(out, "recorded or not: %s%s\n", text, kp_phasetimes_remarks(remarks, sizeof remarks, &rows->times));
}

static void legend_print(FILE *out, const struct kp_phaserows *rows, bool has_runs, bool are_all_whole)
{
    if (rows->has_parts) {
        fputs("ms a step: median; of time: of all that was asked for\n", out);
    } else {
        fputs("runs: recorded from the phase's begin to its end", out);
        fputs(has_runs ? "; ms a run: median, without other phases inside of it\n"
                       : "; an active= of more steps than a run has records them\n",
              out);
        fputs("ms a step: median; of time: ", out);
        fputs(are_all_whole ? "of all that was recorded of these phases, in a step or not\n"
                            : "not known, as of a phase no whole run was recorded: active= of more steps than it "
                              "has, without wait=, records it\n",
              out);
    }
    if (!rows->count) return;
    times_print(out, rows);
    kp_plain_fmt(out, "the table of a phase: kprof report --phase %s\n", rows->of[0].phase);
}

void kp_phaserows_print(FILE *out, struct kp_phaserows *rows)
{
    struct phases all = {0};
    bool has_runs = false, are_all_whole = true;
    for (struct kp_phaserow *r = rows->of; r < rows->of + rows->count; r++) {
        kp_kineto_windows_runs(&r->windows, &r->runs);
        has_runs |= r->runs.count != 0;
        are_all_whole &= r->runs.count != 0;
        all.all_ns += r->wall_ns;
    }
    if (!are_all_whole && !rows->has_parts) all.all_ns = 0; /* what was recorded is a choice of the schedule */
    kp_columns_print(out, KP_COLUMNS_OF(columns, &all, rows->of, rows->count));
    legend_print(out, rows, has_runs, are_all_whole);
}

void kp_phaserows_fini(struct kp_phaserows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        free(rows->of[i].phase);
        free(rows->of[i].step_ns);
        free(rows->of[i].windows.of);
    }
    free(rows->of);
    *rows = (struct kp_phaserows){0};
}
