// SPDX-License-Identifier: Apache-2.0
/* phaserows.c - the phases of a run, a row each: steps, a step's length, and where its time goes */
#include "export/answers/top/phaserows.h"

#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_order.h"
#include "export/read/kineto/kineto_facts.h"
#include "export/show/letters.h"
#include "export/show/plain.h"
#include "export/read/store/qsort.h"

static struct kp_phaserow *row_get(struct kp_phaserows *rows, const char *phase)
{
    for (size_t i = 0; i < rows->count; i++)
        if (strcmp(rows->of[i].phase, phase) == 0) return &rows->of[i];
    char *kept = strdup(phase);
    if (!kept) return NULL;
    rows->of = kp_kineto_grow(rows->of, &rows->capacity, rows->count + 1, sizeof *rows->of);
    rows->of[rows->count] = (struct kp_phaserow){.phase = kept};
    return &rows->of[rows->count++];
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
    if (!row) return;
    row->traces++;
    times_take(rows, trace);
    row->step_ns = kp_kineto_grow(row->step_ns, &row->capacity, row->steps + chosen->step_count, sizeof *row->step_ns);
    for (size_t i = 0; i < chosen->step_count; i++) row->step_ns[row->steps++] = chosen->steps[i].inside_ns;
    row->wall_ns += summary->wall_ns;
    row->op_ns += summary->op_ns;
    row->data_ns += summary->data_ns;
    row->other_ns += summary->comm_ns + summary->rest_ns;
    if (with_runs) kp_kineto_windows_append(&row->windows, trace->windows);
    rows->has_parts |= !with_runs;
}

KP_ORDER_NUMBERS(length_order, int64_t)

static double median_ms(struct kp_phaserow *row)
{
    const size_t n = row->steps;
    if (!n) return 0;
    kp_qsort(row->step_ns, n, sizeof *row->step_ns, length_order);
    return (double)(row->step_ns[(n - 1) / 2] + row->step_ns[n / 2]) / 2e6;
}

static double percent(int64_t part, int64_t whole) { return whole > 0 ? 100.0 * (double)part / (double)whole : 0; }

/* A time in milliseconds, or a line where there is none. */
static const char *ms_text(char *out, size_t bytes, bool is_known, double ms)
{
    if (is_known) snprintf(out, bytes, "%.3f", ms);
    else snprintf(out, bytes, "-");
    return out;
}

/* The part of all time; a line where that is not known (0). */
static const char *share_text(char *out, size_t bytes, int64_t ns, int64_t all_ns)
{
    if (all_ns) snprintf(out, bytes, "%.1f %%", percent(ns, all_ns));
    else snprintf(out, bytes, "-");
    return out;
}

static void row_print(FILE *out, struct kp_phaserow *r, int width, int64_t all_ns, const struct kp_kineto_runs *runs)
{
    char run[40], step[40], share[40];
    kp_plain_put(out, r->phase);
    fprintf(out, "%*s  %6zu  %5zu  %9s  %6zu  %9s  %8s  %5.1f %%  %5.1f %%  %5.1f %%\n",
            width - (int)kp_letters_columns(r->phase), "", r->traces, runs->count,
            ms_text(run, sizeof run, runs->count, (double)runs->median_ns / 1e6), r->steps,
            ms_text(step, sizeof step, r->steps, median_ms(r)), share_text(share, sizeof share, r->wall_ns, all_ns),
            percent(r->op_ns, r->wall_ns), percent(r->data_ns, r->wall_ns), percent(r->other_ns, r->wall_ns));
}

/* What a schedule records is no share of the run. */
static void times_print(FILE *out, const struct kp_phaserows *rows)
{
    char text[2048], remarks[256];
    if (rows->are_several || !kp_phasetimes_text(text, sizeof text, &rows->times, NULL)) return;
    fputs("recorded or not: ", out);
    kp_plain_put(out, text);
    kp_plain_put(out, kp_phasetimes_remarks(remarks, sizeof remarks, &rows->times));
    fputs("\n", out);
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
    fputs("the table of a phase: kprof report --phase ", out);
    kp_plain_put(out, rows->of[0].phase);
    fputs("\n", out);
}

void kp_phaserows_print(FILE *out, struct kp_phaserows *rows)
{
    int64_t all_ns = 0;
    int width = 5;
    bool has_runs = false, are_all_whole = true;
    struct kp_kineto_runs *runs = kp_kineto_room(rows->count + 1, sizeof *runs);
    for (size_t i = 0; i < rows->count; i++) {
        kp_kineto_windows_runs(&rows->of[i].windows, &runs[i]);
        has_runs |= runs[i].count != 0;
        are_all_whole &= runs[i].count != 0;
        all_ns += rows->of[i].wall_ns;
        if ((int)kp_letters_columns(rows->of[i].phase) > width) width = (int)kp_letters_columns(rows->of[i].phase);
    }
    if (!are_all_whole && !rows->has_parts) all_ns = 0; /* what was recorded is a choice of the schedule */
    fprintf(out, "%-*s  %6s  %5s  %9s  %6s  %9s  %8s  %7s  %7s  %7s\n", width, "phase", "traces", "runs", "ms a run",
            "steps", "ms a step", "of time", "in ops", "loading", "no op");
    for (size_t i = 0; i < rows->count; i++) row_print(out, &rows->of[i], width, all_ns, &runs[i]);
    legend_print(out, rows, has_runs, are_all_whole);
    free(runs);
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
