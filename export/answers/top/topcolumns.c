// SPDX-License-Identifier: Apache-2.0
/* topcolumns.c - the cells of a row of `kprof report`, by the columns of topcolumns.def */
#include "export/answers/top/toptable.h"

#include <string.h>

#include "export/read/frames/modulename.h"
#include "export/show/letters.h"

enum { NAME_MOST = 52, KERNEL_MOST = 72, LINE_MOST = 72 };

static bool by_kernel(const struct kp_top *top) { return top->by == KP_TOP_BY_KERNEL; }
bool kp_top_shows_memory(const struct kp_top *top) { return top->has_memory && !by_kernel(top); }
bool kp_top_shows_lines(const struct kp_top *top) { return top->has_lines && !kp_top_is_by_line(top); }

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
    if (!row->is_backward && strcmp(name, KP_TOP_STEP) == 0) behind = ", outside any op or range";
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

static bool with_steps(const struct kp_top *top) { return top->steps && (top->calls < 2 || top->calls != top->steps); }

#define KP_TABLE struct kp_top_report
#define KP_ROW struct kp_top_row
#define TOP t->top
#define GPU TOP->has_gpu
#define BY_KERNEL by_kernel(TOP)
#define BY_MODULE (TOP->count && kp_top_is_by_module(TOP))
#define COST(field) (double)r->cost.field
#define OF_ONE(value) r->name ? value : NAN /* not of what lies in no module */
#define A(ns, many) (ns) / (double)TOP->many
#define KP_NUMBER KP_COLUMN_GET
#define KP_TEXT KP_COLUMN_GET_TEXT
#include "export/answers/top/topcolumns.def"
#undef KP_NUMBER
#undef KP_TEXT

const struct kp_column kp_top_columns[KP_TOP_COLUMNS] = {
#define KP_NUMBER KP_COLUMN_ROW
#define KP_TEXT KP_COLUMN_ROW_TEXT
#include "export/answers/top/topcolumns.def"
};
