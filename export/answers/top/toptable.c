// SPDX-License-Identifier: Apache-2.0
/* toptable.c - prints the rows of `kprof report` as a table, as wide as what it shows */
#include "export/answers/top/toptable.h"

#include <string.h>

#include "export/read/frames/framename.h"
#include "export/read/frames/modulename.h"
#include "export/show/columns.h"
#include "export/show/letters.h"
#include "export/show/units.h"
#include "export/read/facts/vendor.h"

enum { NAME_MOST = 52, KERNEL_MOST = 72, LINE_MOST = 72 };

static bool by_kernel(const struct kp_top *top) { return top->by == KP_TOP_BY_KERNEL; }
static bool with_memory(const struct kp_top *top) { return top->has_memory && !by_kernel(top); }

double kp_top_row_share(const struct kp_top *top, const struct kp_top_row *row)
{
    const double all = top->has_gpu ? top->sum.cost.gpu_self_ns : top->sum.cost.self_ns;
    return all > 0 ? (top->has_gpu ? row->cost.gpu_self_ns : row->cost.self_ns) / all : 0;
}

/* ---- cells ---- */

const char *kp_top_row_name(const struct kp_top *top, const struct kp_top_row *row, char *out, size_t bytes)
{
    const char *name = kp_kineto_text(top->trace, row->name), *behind = "";
    char number[24];
    struct kp_frametext path = {0};
    const char *const before = row->is_backward ? KP_TOP_BACKWARD_OF : "";
    if (kp_top_is_by_line(top) && !row->name) name = "outside any line of the program";
    if (top->by == KP_TOP_BY_FUNCTION && !row->name) name = "outside any function";
    if (kp_top_is_by_module(top) && !row->name) name = "outside any module";
    if (top->by == KP_TOP_BY_MODULE) name = kp_modulename_path(&path, top->trace, name);
    else if (!kp_top_is_by_module(top)) name = kp_modulename_frame(&path, top->trace, name);
    if (row->modules > 1) snprintf(number, sizeof number, " x %u", row->modules), behind = number;
    if (!row->is_backward && strcmp(name, KP_TOP_STEP) == 0) behind = ", outside any op";
    snprintf(out, bytes, "%s%s%s", before, name, behind);
    kp_frametext_fini(&path);
    return out;
}

static char *row_line(const struct kp_top *top, const struct kp_top_row *row, char *out, size_t bytes)
{
    const char *line = kp_kineto_text(top->trace, row->line);
    const char *before = row->is_line_backward ? KP_TOP_BACKWARD_OF : "";
    if (row->lines > 1) snprintf(out, bytes, "%s%s, and %u more", before, line, row->lines - 1);
    else snprintf(out, bytes, "%s%s", before, line);
    return out;
}

/* Makes a text safe, and shortens it to `most` letters: its end or, of a path, its begin becomes "...". What stands
 * before a path stays. */
static char *text_fit(char *text, size_t bytes, int most, bool keep_end)
{
    const bool is_backward = keep_end && strncmp(text, KP_TOP_BACKWARD_OF, sizeof KP_TOP_BACKWARD_OF - 1) == 0;
    const size_t begin = is_backward ? sizeof KP_TOP_BACKWARD_OF - 1 : 0;
    return kp_letters_fit(text, bytes, text, (size_t)most, keep_end ? begin : (size_t)most - 3, "...");
}

/* Leaves out what half of all kernels have in common, so that the rest tells them apart. */
static void kernel_shorten(char *text)
{
    static const char *const common[] = {"void ", "at::native::", "(anonymous namespace)::"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        for (char *at = text; (at = strstr(at, common[i]));)
            memmove(at, at + strlen(common[i]), strlen(at + strlen(common[i])) + 1);
}

static const char *name_fit(const struct kp_top *top, const struct kp_top_row *row, char *out, size_t bytes)
{
    kp_top_row_name(top, row, out, bytes);
    if (by_kernel(top)) kernel_shorten(out);
    return text_fit(out, bytes, by_kernel(top) ? KERNEL_MOST : NAME_MOST, kp_top_is_by_place(top));
}

static const char *shapes_fit(const struct kp_top *top, const struct kp_top_row *row, char *out, size_t bytes)
{
    return kp_letters_fit(out, bytes, kp_kineto_text(top->trace, row->shapes), LINE_MOST, LINE_MOST - 3, "...");
}

static const char *line_fit(const struct kp_top *top, const struct kp_top_row *row, char *out, size_t bytes)
{
    return row->line ? text_fit(row_line(top, row, out, bytes), bytes, LINE_MOST, true) : NULL;
}

/* A line of a helper function has the time of all that call it. */
static bool has_callers(const struct kp_top *top, const struct kp_top_row *row)
{
    return top->by == KP_TOP_BY_LINE && row->lines > 1 && kp_top_row_self_ns(top, row) > 0;
}

static const char *callers_fit(const struct kp_top *top, const struct kp_top_row *row, char *out, size_t bytes)
{
    if (!has_callers(top, row)) return NULL;
    const int used = snprintf(out, bytes, "%.0f %% ", 100 * row->line_ns / kp_top_row_self_ns(top, row));
    text_fit(row_line(top, row, out + used, bytes - (size_t)used), bytes - (size_t)used, LINE_MOST, true);
    return out;
}

static double backward_ns(const struct kp_top *top, const struct kp_top_row *row)
{
    return top->has_gpu ? row->cost.gpu_backward_ns : row->cost.backward_ns;
}

static double forward_ns(const struct kp_top *top, const struct kp_top_row *row)
{
    const double total_ns = top->has_gpu ? row->cost.gpu_total_ns : row->cost.total_ns;
    return row->name ? total_ns - backward_ns(top, row) : 0;
}

static double memory(const struct kp_top *top, const struct kp_top_row *row)
{
    return (double)(top->has_gpu_memory ? row->cost.gpu_self_bytes : row->cost.self_bytes);
}

/* ---- the table ---- */

size_t kp_top_shown(const struct kp_top_report *r)
{
    return r->most && r->most < r->top->count ? r->most : r->top->count;
}

static bool with_callers(const struct kp_top_report *r)
{
    for (size_t i = 0; i < kp_top_shown(r); i++)
        if (has_callers(r->top, &r->top->rows[i])) return true;
    return false;
}

static bool with_lines(const struct kp_top *top) { return top->has_lines && !kp_top_is_by_line(top); }
static bool with_steps(const struct kp_top *top) { return top->steps && (top->calls < 2 || top->calls != top->steps); }

#define KP_TABLE struct kp_top_report
#define KP_ROW struct kp_top_row
#define TOP t->top
#define STEPS with_steps(TOP)
#define GPU TOP->has_gpu
#define A(ns, many) (ns) / (double)TOP->many
#define BY_MODULE kp_top_is_by_module(TOP)
#define EACH(ns) r->cost.count ? r->cost.ns / (double)r->cost.count : 0
/* clang-format off */
#define COLUMNS(NUMBER, TEXT) \
    TEXT(name, "", NULL, -8, true, name_fit(TOP, r, room, bytes)) \
    NUMBER(gpu_self, "GPU self ms", NULL, MS_FIT, 1, GPU, r->cost.gpu_self_ns) \
    NUMBER(gpu_share, "self %", NULL, PERCENT, 1, GPU, kp_top_row_share(TOP, r)) \
    NUMBER(gpu_total, "GPU total ms", NULL, MS_FIT, 1, GPU && !by_kernel(TOP), r->cost.gpu_total_ns) \
    NUMBER(cpu_self, "CPU self ms", NULL, MS_FIT, 1, GPU && !by_kernel(TOP), r->cost.self_ns) \
    NUMBER(self, "self ms", NULL, MS_FIT, 1, !GPU, r->cost.self_ns) \
    NUMBER(share, "self %", NULL, PERCENT, 1, !GPU, kp_top_row_share(TOP, r)) \
    NUMBER(total, "total ms", NULL, MS_FIT, 1, !GPU, r->cost.total_ns) \
    NUMBER(forward, "forward", NULL, MS_FIT, 1, TOP->count && BY_MODULE, forward_ns(TOP, r)) \
    NUMBER(backward, "backward", NULL, MS_FIT, 1, TOP->count && BY_MODULE, backward_ns(TOP, r)) \
    NUMBER(calls, "count", NULL, COUNT, 1, TOP->count != 0, (double)r->cost.count) \
    NUMBER(each, "us each", NULL, US, 1, by_kernel(TOP), EACH(gpu_self_ns)) \
    NUMBER(longest, "longest us", NULL, US, 1, by_kernel(TOP), r->cost.gpu_most_ns) \
    NUMBER(a_call, "ms a call", NULL, MS_FIT, 1, TOP->calls > 1, A(kp_top_row_self_ns(TOP, r), calls)) \
    NUMBER(a_step, "ms a step", NULL, MS_FIT, 1, STEPS && !BY_MODULE, A(kp_top_row_step_ns(TOP, r), steps)) \
    NUMBER(total_a_step, "total a step", NULL, MS_FIT, 1, STEPS && BY_MODULE, \
           A(kp_top_row_step_total_ns(TOP, r), steps)) \
    NUMBER(a_run, "ms a run", NULL, MS_FIT, 1, TOP->runs > 1, A(kp_top_row_self_ns(TOP, r), runs)) \
    NUMBER(bytes, "MiB", NULL, MIB, 1, with_memory(TOP), (double)r->cost.self_bytes) \
    NUMBER(gpu_bytes, "GPU MiB", NULL, MIB, 1, TOP->has_gpu_memory, (double)r->cost.gpu_self_bytes) \
    NUMBER(bytes_a_step, "MiB a step", NULL, MIB, 1, TOP->steps && with_memory(TOP), A(memory(TOP, r), steps)) \
    TEXT(shapes, "input shapes", NULL, 0, TOP->by == KP_TOP_BY_SHAPE, shapes_fit(TOP, r, room, bytes)) \
    TEXT(callers, "called from", NULL, 0, with_callers(t), callers_fit(TOP, r, room, bytes)) \
    TEXT(op, "op", NULL, 0, with_lines(TOP) && by_kernel(TOP), line_fit(TOP, r, room, bytes)) \
    TEXT(line, "line", NULL, 0, with_lines(TOP) && !by_kernel(TOP), line_fit(TOP, r, room, bytes))
KP_COLUMNS(columns, COLUMNS)
/* clang-format on */

/* An op of several lines of the program shows the one with the most self time: says how to see all. */
static void lines_lead(FILE *out, size_t rows, const struct kp_top *top)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:.-";
    for (size_t i = 0; i < rows && with_lines(top) && top->by == KP_TOP_BY_OP; i++) {
        const char *const name = kp_kineto_text(top->trace, top->rows[i].name);
        if (top->rows[i].lines < 2 || !*name || name[strspn(name, plain)]) continue; /* a shell takes it as it is */
        fprintf(out, "lines of one operator: kprof report --within %s --by line\n", name);
        return;
    }
}

/* Of a program that leaves all to a library (a Trainer), one line calls every op. */
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
    if (has_rows_beside(top)) fputs("gloo:... runs on its own threads, at the same time as other rows\n", out);
}

void kp_top_table_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_top *top = r->top;
    const size_t rows = kp_top_shown(r);
    struct kp_columns c = *KP_COLUMNS_OF(columns, r, top->rows, rows);
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
    if (top->count && with_memory(top))
        fputs("MiB: net memory that the operator allocated (allocated minus freed). `kprof memory` has the totals\n",
              out);
}
