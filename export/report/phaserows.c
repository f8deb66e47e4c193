// SPDX-License-Identifier: Apache-2.0
/* phaserows.c - the phases of a run, a row each: steps, a step's length, and where its time goes */
#include "export/report/phaserows.h"

#include <stdlib.h>
#include <string.h>

#include "collector/base/kp_order.h"
#include "export/report/plain.h"

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

void kp_phaserows_add(struct kp_phaserows *rows, const char *phase, const struct kp_chosen *chosen,
                      const struct kp_summary *summary)
{
    struct kp_phaserow *row = row_get(rows, phase);
    if (!row) return;
    row->traces++;
    row->step_ns = kp_kineto_grow(row->step_ns, &row->capacity, row->steps + chosen->step_count, sizeof *row->step_ns);
    for (size_t i = 0; i < chosen->step_count; i++) {
        row->step_ns[row->steps++] = chosen->steps[i].inside_ns;
        row->sum_ns += chosen->steps[i].inside_ns;
    }
    row->shared_ns += summary->shared_ns;
    row->op_ns += summary->op_ns;
    row->data_ns += summary->data_ns;
    row->other_ns += summary->comm_ns + summary->rest_ns;
}

KP_ORDER_NUMBERS(length_order, int64_t)

static double median_ms(struct kp_phaserow *row)
{
    const size_t n = row->steps;
    if (!n) return 0;
    qsort(row->step_ns, n, sizeof *row->step_ns, length_order);
    return (double)(row->step_ns[(n - 1) / 2] + row->step_ns[n / 2]) / 2e6;
}

static double percent(int64_t part, int64_t whole) { return whole > 0 ? 100.0 * (double)part / (double)whole : 0; }

void kp_phaserows_print(FILE *out, struct kp_phaserows *rows)
{
    int64_t all_ns = 0;
    int width = 5;
    for (size_t i = 0; i < rows->count; i++) {
        all_ns += rows->of[i].sum_ns;
        if ((int)strlen(rows->of[i].phase) > width) width = (int)strlen(rows->of[i].phase);
    }
    fprintf(out, "%-*s  %6s  %6s  %10s  %9s  %8s  %8s  %8s\n", width, "phase", "traces", "steps", "ms a step",
            "of steps", "in ops", "loading", "no op");
    for (size_t i = 0; i < rows->count; i++) {
        struct kp_phaserow *r = &rows->of[i];
        kp_plain_put(out, r->phase);
        fprintf(out, "%*s  %6zu  %6zu  %10.3f  %7.1f %%  %6.1f %%  %6.1f %%  %6.1f %%\n", width - (int)strlen(r->phase),
                "", r->traces, r->steps, median_ms(r), percent(r->sum_ns, all_ns), percent(r->op_ns, r->shared_ns),
                percent(r->data_ns, r->shared_ns), percent(r->other_ns, r->shared_ns));
    }
    fputs("ms a step: median; of steps: of the time of all steps that were recorded\n", out);
    if (rows->count) {
        fputs("the table of a phase: kprof report --phase ", out);
        kp_plain_put(out, rows->of[0].phase);
        fputs("\n", out);
    }
}

void kp_phaserows_fini(struct kp_phaserows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        free(rows->of[i].phase);
        free(rows->of[i].step_ns);
    }
    free(rows->of);
    *rows = (struct kp_phaserows){0};
}
