// SPDX-License-Identifier: Apache-2.0
/* toptable.c - prints the rows of `kprof report` as a table, as wide as what it shows */
#include "export/answers/top/toptable.h"

#include <string.h>

#include "export/show/units.h"
#include "export/read/facts/vendor.h"

/* An op of several lines of the program shows the one with the most self time: says how to see all. */
static void lines_lead(FILE *out, size_t rows, const struct kp_top *top)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:.-";
    for (size_t i = 0; i < rows && kp_top_shows_lines(top) && top->by == KP_TOP_BY_OP; i++) {
        const char *const name = kp_kineto_text(top->trace, top->rows[i].name);
        if (top->rows[i].lines < 2 || !*name || name[strspn(name, plain)]) continue; /* a shell takes it as it is */
        fprintf(out, "lines of one operator: kprof report --within %s --by line\n", name);
        return;
    }
}

/* If a program leaves all to a library (a Trainer), one line calls every op. */
enum { ROWS_OF_ONE_LINE = 5 };
static void library_lead(FILE *out, size_t rows, const struct kp_top *top)
{
    uint32_t line = 0;
    size_t told = 0;
    if (!top->has_lines || (top->by != KP_TOP_BY_OP && top->by != KP_TOP_BY_LINE)) return;
    for (size_t i = 0; i < rows; i++) {
        const struct kp_top_row *const row = &top->rows[i];
        const uint32_t its = top->by == KP_TOP_BY_LINE ? row->name : row->line;
        if (its && line && its != line) return;
        if (its) line = its, told++;
    }
    if (line && (top->by == KP_TOP_BY_LINE || told >= ROWS_OF_ONE_LINE))
        fputs("One line of yours calls all of this. For lines of the libraries: kprof report --by library\n", out);
}

/* Stacks of ops tell nothing of Python between ops. Functions that were recorded have rows of their own. */
static void functions_lead(FILE *out, const struct kp_top *top)
{
    if (top->by != KP_TOP_BY_LINE || !top->count || top->rows[0].name || !top->trace->has_stacks) return;
    if (!top->has_calls)
        fputs("outside any line of the program: Python between operators, or a wait. "
              "To see functions: kprof run --with-stack 1\n",
              out);
}

static void modules_lead(FILE *out, const struct kp_top *top)
{
    if (!top->has_modules || (top->by != KP_TOP_BY_OP && !kp_top_is_by_line(top))) return;
    fputs("parts of the model, forward and backward: kprof report --by module, or --by class\n", out);
}

static void kernels_lead(FILE *out, const struct kp_top *top)
{
    if (top->has_gpu && top->by == KP_TOP_BY_OP) fputs("kernels, one by one: kprof report --by kernel\n", out);
}

/* The backend's threads run collectives while the thread of the steps goes on, or waits for them. */
static bool has_rows_beside(const struct kp_top *top)
{
    for (size_t i = 0; i < top->count && top->by == KP_TOP_BY_OP; i++)
        if (kp_vendor_is_beside(kp_kineto_text(top->trace, top->rows[i].name))) return true;
    return false;
}

static void beside_print(FILE *out, const struct kp_top *top)
{
    if (top->has_begun && kp_top_is_by_line(top))
        fputs("lines have what gloo:... runs for them on its own threads, at the same time as other rows\n", out);
    if (has_rows_beside(top)) fputs("gloo:... runs on its own threads, at the same time as other rows\n", out);
}

void kp_top_table_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_top *top = r->top;
    const size_t rows = kp_top_shown(r);
    struct kp_columns c = *KP_COLUMNS_OF(kp_top_columns, r, top->rows, rows);
    double left = 0;
    c.name = top->by == KP_TOP_BY_SHAPE ? "op" : r->by;
    kp_columns_print(out, &c);
    for (size_t i = rows; i < top->count; i++) left += 100 * kp_top_row_share(top, &top->rows[i]);
    if (rows < top->count)
        fprintf(out, "%zu more row%s, %.1f %%; all: -n 0\n", top->count - rows, kp_units_s(top->count - rows), left);
    if (top->count) beside_print(out, top);
    kp_top_copies_print(out, top);
    lines_lead(out, rows, top);
    library_lead(out, rows, top);
    functions_lead(out, top);
    modules_lead(out, top);
    kernels_lead(out, top);
    if (top->count && kp_top_shows_memory(top))
        fputs("MiB: net memory that the operator allocated (allocated minus freed). `kprof memory` has the totals\n",
              out);
}
