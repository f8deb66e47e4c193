// SPDX-License-Identifier: Apache-2.0
/* topcolumns.c - the cells of a row of `kprof report`, by the columns of topcolumns.def */
#include "export/answers/top/toptable.h"

#include <ctype.h>
#include <string.h>

#include "export/read/frames/modulename.h"
#include "export/show/plainname.h"
#include "export/show/letters.h"

enum { NAME_MOST = 52, KERNEL_MOST = 72, LINE_MOST = 72, NAME_BYTES = 1024 };
enum { ALIKE_MOST = 200 }; /* rows of a table in which each is compared with each */

static bool by_kernel(const struct kp_top *top) { return top->by == KP_TOP_BY_KERNEL; }
bool kp_top_shows_memory(const struct kp_top *top) { return top->has_memory && !by_kernel(top); }
bool kp_top_shows_lines(const struct kp_top *top) { return top->has_lines && !kp_top_is_by_line(top); }

double kp_top_row_share(const struct kp_top *top, const struct kp_top_row *row)
{
    const double all = top->has_gpu ? top->sum.cost.gpu_self_ns : top->sum.cost.self_ns;
    return all > 0 ? (top->has_gpu ? row->cost.gpu_self_ns : row->cost.self_ns) / all : 0;
}

size_t kp_top_shown(const struct kp_top_report *r)
{
    return r->most && r->most < r->top->count ? r->most : r->top->count;
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

/* Makes a text safe, and shortens it to `most` letters: its end or, of a path, its begin becomes "...". The text before
 * a path stays. */
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

static char *name_whole(const struct kp_top *top, const struct kp_top_row *row, char *out, size_t bytes)
{
    /* ROCm's tracer writes some kernels as the linker knows them. */
    const char *const plain = row->name ? kp_plainname_cpp(kp_kineto_text(top->trace, row->name)) : NULL;
    if (plain) snprintf(out, bytes, "%s", plain);
    else kp_top_row_name(top, row, out, bytes);
    if (by_kernel(top)) kernel_shorten(out);
    return out;
}

/* The byte at which a name begins to differ from those of the table that would be cut to the same; 0: none would. */
static size_t differs_at(const struct kp_top_report *r, const char *name, size_t most)
{
    char other[NAME_BYTES];
    size_t least = 0;
    const size_t rows = kp_top_shown(r);
    if (strlen(name) <= most || rows > ALIKE_MOST) return 0;
    for (size_t i = 0; i < rows; i++) {
        name_whole(r->top, &r->top->rows[i], other, sizeof other);
        size_t same = 0;
        while (name[same] && name[same] == other[same]) same++;
        if (name[same] != other[same] && same >= most - 3 && (!least || same < least)) least = same;
    }
    return least;
}

/* Writes the begin of a name and the word in which it differs: kernels of one family have 60 letters in common. */
static const char *name_apart(char *out, size_t bytes, size_t at, size_t most)
{
    char text[NAME_BYTES];
    const size_t head = most / 3;
    size_t word = at;
    while (word > head && at - word < most / 3 && isalnum((unsigned char)out[word - 1])) word--;
    while (word > head && head + 2 + strlen(out + word) < most) word--; /* the room is used */
    snprintf(text, sizeof text, "%.*s..%s", (int)head, out, out + word);
    snprintf(out, bytes, "%s", text);
    return text_fit(out, bytes, (int)most, false);
}

static const char *name_fit(const struct kp_top_report *r, const struct kp_top_row *row, char *out, size_t bytes)
{
    const bool keep_end = kp_top_is_by_place(r->top);
    const int most = by_kernel(r->top) ? KERNEL_MOST : NAME_MOST;
    name_whole(r->top, row, out, bytes);
    const size_t at = keep_end ? 0 : differs_at(r, out, (size_t)most);
    return at ? name_apart(out, bytes, at, (size_t)most) : text_fit(out, bytes, most, keep_end);
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
