// SPDX-License-Identifier: Apache-2.0
/* toptable.c - prints the rows of `kprof report` as a table, as wide as what it shows */
#include "export/answers/top/toptable.h"

#include <string.h>

#include "export/read/frames/framename.h"
#include "export/read/frames/modulename.h"
#include "export/show/letters.h"
#include "export/show/units.h"
#include "export/read/facts/vendor.h"

enum { NAME_MOST = 52, KERNEL_MOST = 72, LINE_MOST = 72, TEXT_BYTES = 1024 };

struct column {
    const char *head;
    bool (*is_shown)(const struct kp_top *top);
    double (*value)(const struct kp_top *top, const struct kp_top_row *row);
    int decimals; /* -1: by size */
};

/* ---- columns ---- */

static bool always(const struct kp_top *top) { return top->count != 0; }
static bool by_kernel(const struct kp_top *top) { return top->by == KP_TOP_BY_KERNEL; }
static bool on_gpu(const struct kp_top *top) { return top->has_gpu; }
static bool on_both(const struct kp_top *top) { return top->has_gpu && !by_kernel(top); }
static bool on_cpu(const struct kp_top *top) { return !top->has_gpu; }
static bool with_calls(const struct kp_top *top) { return top->calls > 1; }
static bool with_steps(const struct kp_top *top) { return top->steps && (top->calls < 2 || top->calls != top->steps); }
static bool with_step_self(const struct kp_top *top) { return with_steps(top) && !kp_top_is_by_module(top); }
static bool with_step_total(const struct kp_top *top) { return with_steps(top) && kp_top_is_by_module(top); }
static bool with_modules(const struct kp_top *top) { return top->count && kp_top_is_by_module(top); }
static bool with_runs(const struct kp_top *top) { return top->runs > 1; }
static bool with_memory(const struct kp_top *top) { return top->has_memory && !by_kernel(top); }
static bool with_gpu_memory(const struct kp_top *top) { return top->has_gpu_memory; }
static bool with_step_memory(const struct kp_top *top) { return top->steps && with_memory(top); }

double kp_top_row_share(const struct kp_top *top, const struct kp_top_row *row)
{
    const double all = top->has_gpu ? top->sum.cost.gpu_self_ns : top->sum.cost.self_ns;
    return all > 0 ? (top->has_gpu ? row->cost.gpu_self_ns : row->cost.self_ns) / all : 0;
}

static double share(const struct kp_top *top, const struct kp_top_row *row) { return kp_top_row_share(top, row) * 100; }

static double backward_ns(const struct kp_top *top, const struct kp_top_row *row)
{
    return top->has_gpu ? row->cost.gpu_backward_ns : row->cost.backward_ns;
}

#define MB 1048576.0 /* as in torch's table and in `kprof memory` */
#define VALUE(name, expression)                                                \
    static double name(const struct kp_top *top, const struct kp_top_row *row) \
    {                                                                          \
        (void)top;                                                             \
        return expression;                                                     \
    }
VALUE(self_ms, row->cost.self_ns / 1e6)
VALUE(total_ms, row->cost.total_ns / 1e6)
VALUE(gpu_self_ms, row->cost.gpu_self_ns / 1e6)
VALUE(gpu_total_ms, row->cost.gpu_total_ns / 1e6)
VALUE(calls, (double)row->cost.count)
VALUE(each_us, row->cost.count ? row->cost.gpu_self_ns / 1e3 / (double)row->cost.count : 0)
VALUE(most_us, row->cost.gpu_most_ns / 1e3)
VALUE(step_ms, kp_top_row_step_ns(top, row) / 1e6 / (double)top->steps)
VALUE(call_ms, kp_top_row_self_ns(top, row) / 1e6 / (double)top->calls)
VALUE(forward_ms,
      row->name ? ((top->has_gpu ? row->cost.gpu_total_ns : row->cost.total_ns) - backward_ns(top, row)) / 1e6 : 0)
VALUE(backward_ms, backward_ns(top, row) / 1e6)
VALUE(step_total_ms, kp_top_row_step_total_ns(top, row) / 1e6 / (double)top->steps)
VALUE(run_ms, kp_top_row_self_ns(top, row) / 1e6 / (double)top->runs)
VALUE(megabytes, (double)row->cost.self_bytes / MB)
VALUE(gpu_megabytes, (double)row->cost.gpu_self_bytes / MB)
VALUE(step_megabytes,
      (double)(top->has_gpu_memory ? row->cost.gpu_self_bytes : row->cost.self_bytes) / MB / (double)top->steps)
#undef VALUE
#undef MB

static const struct column columns[] = {
    {"GPU self ms", on_gpu, gpu_self_ms, -1},
    {"self %", on_gpu, share, 1},
    {"GPU total ms", on_both, gpu_total_ms, -1},
    {"CPU self ms", on_both, self_ms, -1},
    {"self ms", on_cpu, self_ms, -1},
    {"self %", on_cpu, share, 1},
    {"total ms", on_cpu, total_ms, -1},
    {"forward", with_modules, forward_ms, -1},
    {"backward", with_modules, backward_ms, -1},
    {"count", always, calls, 0},
    {"us each", by_kernel, each_us, 1},
    {"longest us", by_kernel, most_us, 1},
    {"ms a call", with_calls, call_ms, -1},
    {"ms a step", with_step_self, step_ms, -1},
    {"total a step", with_step_total, step_total_ms, -1},
    {"ms a run", with_runs, run_ms, -1},
    {"MiB", with_memory, megabytes, 2},
    {"GPU MiB", with_gpu_memory, gpu_megabytes, 2},
    {"MiB a step", with_step_memory, step_megabytes, 2},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* ---- text ---- */

const char *kp_top_row_name(const struct kp_top *top, const struct kp_top_row *row, char *out, size_t bytes)
{
    const char *name = kp_kineto_text(top->trace, row->name), *behind = "";
    char number[24];
    struct kp_frametext path = {0};
    const char *const before = row->is_backward ? KP_TOP_BACKWARD_OF : "";
    if (kp_top_is_by_line(top) && !row->name) name = "(no line of the program)";
    if (kp_top_is_by_module(top) && !row->name) name = "(no module)";
    if (top->by == KP_TOP_BY_MODULE) name = kp_modulename_path(&path, top->trace, name);
    else if (!kp_top_is_by_module(top)) name = kp_modulename_frame(&path, top->trace, name);
    if (row->modules > 1) snprintf(number, sizeof number, " x %u", row->modules), behind = number;
    if (!row->is_backward && strcmp(name, "ProfilerStep*") == 0) behind = " (in no op)";
    snprintf(out, bytes, "%s%s%s", before, name, behind);
    kp_frametext_fini(&path);
    return out;
}

static const char *row_line(const struct kp_top *top, const struct kp_top_row *row, char *out, size_t bytes)
{
    const char *line = kp_kineto_text(top->trace, row->line);
    const char *before = row->is_line_backward ? KP_TOP_BACKWARD_OF : "";
    if (row->lines > 1) snprintf(out, bytes, "%s%s, and %u more", before, line, row->lines - 1);
    else snprintf(out, bytes, "%s%s", before, line);
    return out;
}

/* Makes a text safe, and shortens it to `most` letters: its end or, of a path, its begin becomes "...". What stands
 * before a path stays. */
static void text_fit(char *text, size_t bytes, int most, bool keep_end)
{
    const bool is_backward = keep_end && strncmp(text, KP_TOP_BACKWARD_OF, sizeof KP_TOP_BACKWARD_OF - 1) == 0;
    const size_t begin = is_backward ? sizeof KP_TOP_BACKWARD_OF - 1 : 0;
    kp_letters_fit(text, bytes, text, (size_t)most, keep_end ? begin : (size_t)most - 3, "...");
}

/* Leaves out what half of all kernels have in common, so that the rest tells them apart. */
static void kernel_shorten(char *text)
{
    static const char *const common[] = {"void ", "at::native::", "(anonymous namespace)::"};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        for (char *at = text; (at = strstr(at, common[i]));)
            memmove(at, at + strlen(common[i]), strlen(at + strlen(common[i])) + 1);
}

static void name_fit(const struct kp_top *top, const struct kp_top_row *row, char *out, size_t bytes)
{
    kp_top_row_name(top, row, out, bytes);
    if (by_kernel(top)) kernel_shorten(out);
    text_fit(out, bytes, by_kernel(top) ? KERNEL_MOST : NAME_MOST, kp_top_is_by_line(top) || kp_top_is_by_module(top));
}

/* ---- the table ---- */

struct shape {
    size_t rows;
    int name_width, widths[COLUMNS], decimals[COLUMNS]; /* width 0: not shown */
};

/* A value that shows as 0 shows no sign. */
static double shown(const struct column *column, int decimals, const struct kp_top *top, const struct kp_top_row *row)
{
    static const double halves[] = {0.5, 0.05, 0.005, 0.0005};
    const double value = column->value(top, row);
    return value < 0 && value > -halves[decimals] ? 0 : value;
}

static int decimals_for(double most) { return most >= 1000 ? 1 : most >= 10 ? 2 : 3; }

static void column_measure(struct shape *s, const struct kp_top *top, int c)
{
    double most = 0;
    char text[64];
    if (!columns[c].is_shown(top)) return;
    for (size_t i = 0; i < s->rows; i++) {
        const double value = columns[c].value(top, &top->rows[i]);
        if (value > most) most = value;
    }
    s->decimals[c] = columns[c].decimals < 0 ? decimals_for(most) : columns[c].decimals;
    s->widths[c] = (int)strlen(columns[c].head);
    for (size_t i = 0; i < s->rows; i++) {
        const int letters =
            snprintf(text, sizeof text, "%.*f", s->decimals[c], shown(&columns[c], s->decimals[c], top, &top->rows[i]));
        if (letters > s->widths[c]) s->widths[c] = letters;
    }
}

static void measure(struct shape *s, const struct kp_top_report *r)
{
    char name[TEXT_BYTES];
    *s = (struct shape){.rows = r->most && r->most < r->top->count ? r->most : r->top->count, .name_width = 8};
    for (size_t i = 0; i < s->rows; i++) {
        name_fit(r->top, &r->top->rows[i], name, sizeof name);
        const int letters = (int)kp_letters_columns(name);
        if (letters > s->name_width) s->name_width = letters;
    }
    for (int c = 0; c < COLUMNS; c++) column_measure(s, r->top, c);
}

/* A line of a helper function has the time of all that call it. */
static bool has_callers(const struct kp_top *top, const struct kp_top_row *row)
{
    return top->by == KP_TOP_BY_LINE && row->lines > 1 && kp_top_row_self_ns(top, row) > 0;
}

static bool has_caller_column(const struct kp_top *top, size_t rows)
{
    for (size_t i = 0; i < rows; i++)
        if (has_callers(top, &top->rows[i])) return true;
    return false;
}

static bool has_line_column(const struct kp_top *top) { return top->has_lines && !kp_top_is_by_line(top); }

static void heads_print(FILE *out, const struct shape *s, const struct kp_top_report *r)
{
    kp_letters_pad(out, r->top->by == KP_TOP_BY_SHAPE ? "op" : r->by, -s->name_width);
    for (int c = 0; c < COLUMNS; c++) {
        if (!s->widths[c]) continue;
        fputs("  ", out);
        kp_letters_pad(out, columns[c].head, s->widths[c]);
    }
    if (r->top->by == KP_TOP_BY_SHAPE) fputs("  input shapes", out);
    if (has_caller_column(r->top, s->rows)) fputs("  called from", out);
    if (has_line_column(r->top)) fputs(by_kernel(r->top) ? "  op" : "  line", out);
    fputs("\n", out);
}

static void row_print(FILE *out, const struct shape *s, const struct kp_top *top, const struct kp_top_row *row)
{
    char text[TEXT_BYTES];
    name_fit(top, row, text, sizeof text);
    kp_letters_pad(out, text, -s->name_width);
    for (int c = 0; c < COLUMNS; c++)
        if (s->widths[c])
            fprintf(out, "  %*.*f", s->widths[c], s->decimals[c], shown(&columns[c], s->decimals[c], top, row));
    if (top->by == KP_TOP_BY_SHAPE) {
        snprintf(text, sizeof text, "%s", kp_kineto_text(top->trace, row->shapes));
        text_fit(text, sizeof text, LINE_MOST, false);
        fprintf(out, "  %s", text);
    }
    if (has_callers(top, row)) {
        row_line(top, row, text, sizeof text);
        text_fit(text, sizeof text, LINE_MOST, true);
        fprintf(out, "  %.0f %% %s", 100 * row->line_ns / kp_top_row_self_ns(top, row), text);
    }
    if (has_line_column(top) && row->line) {
        row_line(top, row, text, sizeof text);
        text_fit(text, sizeof text, LINE_MOST, true);
        fprintf(out, "  %s", text);
    }
    fputs("\n", out);
}

/* An op of several lines of the program shows the one with the most self time: says how to see all. */
static void lines_lead(FILE *out, const struct shape *s, const struct kp_top *top)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:.-";
    for (size_t i = 0; i < s->rows && has_line_column(top) && top->by == KP_TOP_BY_OP; i++) {
        const char *const name = kp_kineto_text(top->trace, top->rows[i].name);
        if (top->rows[i].lines < 2 || !*name || name[strspn(name, plain)]) continue; /* a shell takes it as it is */
        fprintf(out, "lines of one op: kprof report --within %s --by line\n", name);
        return;
    }
}

/* Of a program that leaves all to a library (a Trainer), one line calls every op. */
enum { ROWS_OF_ONE_LINE = 5 };
static void library_lead(FILE *out, const struct shape *s, const struct kp_top *top)
{
    uint32_t line = 0;
    size_t rows = 0;
    if (!top->has_lines || (top->by != KP_TOP_BY_OP && top->by != KP_TOP_BY_LINE)) return;
    for (size_t i = 0; i < s->rows; i++) {
        const struct kp_top_row *const row = &top->rows[i];
        const uint32_t its = top->by == KP_TOP_BY_LINE ? row->name : row->line;
        if (its && line && its != line) return;
        if (its) line = its, rows++;
    }
    if (line && (top->by == KP_TOP_BY_LINE || rows >= ROWS_OF_ONE_LINE))
        fputs("all of one line of yours; the lines of libraries that it calls: kprof report --by library\n", out);
}

/* Stacks of ops tell nothing of Python between ops. Functions that were recorded have rows of their own. */
static void functions_lead(FILE *out, const struct kp_top *top)
{
    if (top->by != KP_TOP_BY_LINE || !top->count || top->rows[0].name || !top->trace->has_stacks) return;
    if (!top->has_calls)
        fputs("(no line of the program): Python between ops, or a wait; its functions: kprof run --with-stack 1\n",
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

/* What 100 % is. */
static void whole_print(FILE *out, const struct kp_top *top)
{
    fprintf(out, "self %%: of the self time of all rows%s", top->has_gpu ? " on GPUs" : "");
    if (!top->has_gpu && !top->has_gap && top->gap_ns > top->sum.cost.self_ns / 100)
        fputs(", which leave out time in no op", out);
    fprintf(out, "%s\n", top->is_of_steps ? "; rows: of the steps alone" : "");
    if (has_rows_beside(top))
        fputs("gloo:...: on threads of their own; what an op does meanwhile is in its row, too (the line time counts "
              "each "
              "moment once)\n",
              out);
}

void kp_top_table_print(FILE *out, const struct kp_top_report *r)
{
    const struct kp_top *top = r->top;
    struct shape s;
    double left = 0;
    measure(&s, r);
    heads_print(out, &s, r);
    for (size_t i = 0; i < s.rows; i++) row_print(out, &s, top, &top->rows[i]);
    for (size_t i = s.rows; i < top->count; i++) left += share(top, &top->rows[i]);
    if (s.rows < top->count)
        fprintf(out, "%zu more row%s, %.1f %%; all: -n 0\n", top->count - s.rows, kp_units_s(top->count - s.rows),
                left);
    if (top->count) whole_print(out, top);
    kp_top_copies_print(out, top);
    lines_lead(out, &s, top);
    library_lead(out, &s, top);
    functions_lead(out, top);
    modules_lead(out, top);
    kernels_lead(out, top);
    if (top->count && with_memory(top))
        fputs("MiB: taken less given back inside the op itself, or in an aten::empty that it "
              "called; all that it took: kprof memory\n",
              out);
}
