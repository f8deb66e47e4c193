// SPDX-License-Identifier: Apache-2.0
/*
 * difflines.c - rows of the program's own lines: those of two versions of a file meet, and which changed most
 *
 * A line that was put in moves all lines below it. So the lines of one function are aligned in their order: a line
 * meets the one with the same calls a step, or else any. The program's file may have another name in B.
 */
#include "export/answers/diff/diff.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collector/base/sys/kp_path.h"
#include "export/answers/top/toprows.h"

enum { SAME_CALLS = 3, OTHER_CALLS = 1, CELLS_MOST = 1000000 };

struct own_line { /* a row of lines, taken apart: "FILE:NUMBER FUNCTION", or "backward of" it */
    size_t row;
    const char *file, *function;
    int file_bytes;
    long number;
    bool is_program; /* the file is the side's script, whatever its name */
    bool is_backward;
};
struct own_lines {
    struct own_line *of;
    size_t count, capacity;
};

/* ---- names ---- */

static bool name_split(const char *name, struct own_line *out)
{
    out->is_backward = strncmp(name, KP_TOP_BACKWARD_OF, sizeof KP_TOP_BACKWARD_OF - 1) == 0;
    if (out->is_backward) name += sizeof KP_TOP_BACKWARD_OF - 1;
    for (const char *colon = strchr(name, ':'); colon; colon = strchr(colon + 1, ':')) {
        char *end;
        if (colon[1] < '0' || colon[1] > '9') continue;
        out->number = strtol(colon + 1, &end, 10);
        if (*end != ' ') continue;
        out->file = name;
        out->file_bytes = (int)(colon - name);
        out->function = end + 1;
        return true;
    }
    return false;
}

static bool is_script(const struct kp_diff *d, int side, const struct own_line *line)
{
    const char *script = d->sides[side].script ? kp_strings_get(d->strings, d->sides[side].script) : "";
    const char *const base = kp_path_base(script), *from = line->file;
    for (int i = 0; i < line->file_bytes; i++)
        if (line->file[i] == '/') from = line->file + i + 1;
    const size_t bytes = (size_t)(line->file + line->file_bytes - from);
    return bytes && strlen(base) == bytes && memcmp(base, from, bytes) == 0;
}

static int function_order(const struct own_line *x, const struct own_line *y)
{
    if (x->is_backward != y->is_backward) return x->is_backward ? 1 : -1;
    if (x->is_program != y->is_program) return x->is_program ? -1 : 1;
    const int file = x->is_program ? 0
                                   : strncmp(x->file, y->file,
                                             (size_t)(x->file_bytes > y->file_bytes ? x->file_bytes : y->file_bytes));
    return file ? file : strcmp(x->function, y->function);
}

static int order(const void *a, const void *b)
{
    const struct own_line *x = a, *y = b;
    const int function = function_order(x, y);
    return function ? function : (x->number > y->number) - (x->number < y->number);
}

/* The rows of lines that a side has, by function and number. */
static struct own_lines lines_of(const struct kp_diff *d, int side)
{
    struct own_lines all = {0};
    for (size_t i = 0; i < d->count; i++) {
        struct own_line line = {.row = i};
        if (d->rows[i].group != KP_DIFF_LINES || !d->rows[i].filled[side]) continue;
        if (!name_split(kp_strings_get(d->strings, d->rows[i].name), &line)) continue;
        line.is_program = is_script(d, side, &line);
        *KP_KINETO_NEXT(all.of, all.count, all.capacity) = line;
    }
    if (all.count) qsort(all.of, all.count, sizeof *all.of, order);
    return all;
}

/* ---- meeting ---- */

/* The figures of a row on one side. */
struct part {
    double *values, count;
    size_t capacity, filled;
};

static struct part part_take(struct kp_diff_row *row, int side)
{
    const struct part had = {row->values[side], row->count[side], row->capacity[side], row->filled[side]};
    row->values[side] = NULL;
    row->count[side] = 0;
    row->capacity[side] = row->filled[side] = 0;
    return had;
}

static void part_give(struct kp_diff_row *row, int side, const struct part *part)
{
    row->values[side] = part->values;
    row->count[side] = part->count;
    row->capacity[side] = part->capacity;
    row->filled[side] = part->filled;
}

static int likeness(const struct kp_diff *d, const struct own_line *a, const struct own_line *b)
{
    const double x = d->rows[a->row].count[KP_DIFF_A] / (double)(d->sides[KP_DIFF_A].samples + 1);
    const double y = d->rows[b->row].count[KP_DIFF_B] / (double)(d->sides[KP_DIFF_B].samples + 1);
    return fabs(x - y) <= 0.1 * fmax(x, y) ? SAME_CALLS : OTHER_CALLS;
}

/* Writes to meets[i] the number of the line of B that a's line i meets, or SIZE_MAX. */
static void lines_align(const struct kp_diff *d, const struct own_line *a, size_t a_count, const struct own_line *b,
                        size_t b_count, size_t *meets)
{
    const size_t wide = b_count + 1;
    int *best = kp_kineto_zeros((a_count + 1) * wide, sizeof *best);
    for (size_t i = a_count; i-- > 0;)
        for (size_t k = b_count; k-- > 0;) {
            const int met = best[(i + 1) * wide + k + 1] + likeness(d, &a[i], &b[k]);
            const int left = best[(i + 1) * wide + k], right = best[i * wide + k + 1];
            best[i * wide + k] = met >= left && met >= right ? met : left > right ? left : right;
        }
    for (size_t i = 0; i < a_count; i++) meets[i] = SIZE_MAX;
    for (size_t i = 0, k = 0; i < a_count && k < b_count;) {
        const int here = best[i * wide + k];
        if (here == best[(i + 1) * wide + k + 1] + likeness(d, &a[i], &b[k])) meets[i++] = k++;
        else if (here == best[(i + 1) * wide + k]) i++;
        else k++;
    }
    free(best);
}

/* "train.py:12 -> 14 main" */
static void row_rename(struct kp_diff *d, struct kp_diff_row *row, const struct own_line *a, const struct own_line *b)
{
    char text[4096];
    const bool is_one_file = a->file_bytes == b->file_bytes && memcmp(a->file, b->file, (size_t)a->file_bytes) == 0;
    if (is_one_file && a->number == b->number) return;
    int n = snprintf(text, sizeof text, "%s%.*s:%ld -> %.*s%s%ld %s", a->is_backward ? KP_TOP_BACKWARD_OF : "",
                     a->file_bytes, a->file, a->number, is_one_file ? 0 : b->file_bytes, b->file,
                     is_one_file ? "" : ":", b->number, a->function);
    if (n >= (int)sizeof text) n = sizeof text - 1;
    row->name = kp_strings_put(d->strings, text, (size_t)n);
}

static size_t row_append(struct kp_diff *d, uint32_t name)
{
    *KP_KINETO_NEXT(d->rows, d->count, d->capacity) = (struct kp_diff_row){.name = name, .group = KP_DIFF_LINES};
    return d->count - 1;
}

/* Moves B's part of each line to the row of the line of A that it meets, or to one of its own. */
static void function_meet(struct kp_diff *d, const struct own_line *a, size_t a_count, const struct own_line *b,
                          size_t b_count)
{
    size_t *meets = kp_kineto_room(a_count + 1, sizeof *meets);
    struct part *parts = kp_kineto_room(b_count + 1, sizeof *parts);
    uint32_t *names = kp_kineto_room(b_count + 1, sizeof *names);
    lines_align(d, a, a_count, b, b_count, meets);
    for (size_t k = 0; k < b_count; k++) {
        names[k] = d->rows[b[k].row].name;
        parts[k] = part_take(&d->rows[b[k].row], KP_DIFF_B);
    }
    for (size_t i = 0; i < a_count; i++) {
        if (meets[i] == SIZE_MAX) continue;
        part_give(&d->rows[a[i].row], KP_DIFF_B, &parts[meets[i]]);
        parts[meets[i]].values = NULL;
        row_rename(d, &d->rows[a[i].row], &a[i], &b[meets[i]]);
    }
    for (size_t k = 0; k < b_count; k++) {
        if (!parts[k].values) continue;
        const size_t at = row_append(d, names[k]); /* may move the rows */
        part_give(&d->rows[at], KP_DIFF_B, &parts[k]);
    }
    free(meets);
    free(parts);
    free(names);
}

/* Whether both sides have a line that the other has not. */
static bool has_moved(const struct kp_diff *d, const struct own_line *a, size_t a_count, const struct own_line *b,
                      size_t b_count)
{
    bool of_a = false, of_b = false;
    for (size_t i = 0; i < a_count; i++) of_a |= !d->rows[a[i].row].filled[KP_DIFF_B];
    for (size_t i = 0; i < b_count; i++) of_b |= !d->rows[b[i].row].filled[KP_DIFF_A];
    return of_a && of_b && a_count * b_count < CELLS_MOST;
}

static size_t function_end(const struct own_lines *all, size_t from)
{
    size_t end = from + 1;
    while (end < all->count && function_order(&all->of[from], &all->of[end]) == 0) end++;
    return end;
}

/* Lines, or modules, that one side alone recorded would each seem to have come or gone. */
static bool is_of_one_side(const struct kp_diff *d, const struct kp_diff_row *row)
{
    const struct kp_diff_side *const a = &d->sides[KP_DIFF_A], *const b = &d->sides[KP_DIFF_B];
    if (row->group == KP_DIFF_LINES) return a->has_lines != b->has_lines;
    return row->group == KP_DIFF_MODULES && a->has_modules != b->has_modules;
}

/* Rows of which B's part moved away may have nothing left. */
static void rows_drop(struct kp_diff *d)
{
    size_t kept = 0;
    for (size_t i = 0; i < d->count; i++) {
        struct kp_diff_row *const row = &d->rows[i];
        const bool is_empty = !row->filled[KP_DIFF_A] && !row->filled[KP_DIFF_B];
        if ((row->group == KP_DIFF_LINES && is_empty) || is_of_one_side(d, row))
            for (int side = 0; side < KP_DIFF_SIDES; side++) free(row->values[side]);
        else d->rows[kept++] = *row;
    }
    d->count = kept;
}

void kp_diff_lines_meet(struct kp_diff *d)
{
    struct own_lines a = lines_of(d, KP_DIFF_A), b = lines_of(d, KP_DIFF_B);
    for (size_t i = 0, k = 0; i < a.count && k < b.count;) {
        const size_t i_end = function_end(&a, i), k_end = function_end(&b, k);
        const int which = function_order(&a.of[i], &b.of[k]);
        if (which == 0 && has_moved(d, &a.of[i], i_end - i, &b.of[k], k_end - k))
            function_meet(d, &a.of[i], i_end - i, &b.of[k], k_end - k);
        if (which <= 0) i = i_end;
        if (which >= 0) k = k_end;
    }
    free(a.of);
    free(b.of);
    rows_drop(d);
}

/* ---- what is said ---- */

const struct kp_diff_row *kp_diff_line_most(const struct kp_diff *d, const struct kp_diff_row *of)
{
    const struct kp_diff_row *most = NULL;
    if (!d->sides[KP_DIFF_A].has_lines || !d->sides[KP_DIFF_B].has_lines) return NULL;
    for (size_t i = d->group_from[KP_DIFF_LINES]; i < d->group_from[KP_DIFF_LINES + 1] && !most; i++) {
        const struct kp_diff_row *row = &d->rows[i]; /* the largest change first */
        const bool is_real = row->verdict != KP_DIFF_NOISE && row->verdict != KP_DIFF_UNKNOWN;
        if (is_real && (row->change > 0) == (of->change > 0)) most = row;
    }
    return most;
}

bool kp_diff_explain(const struct kp_diff *d, struct kp_diff_explained *out)
{
    *out = (struct kp_diff_explained){0};
    if (d->sides[KP_DIFF_A].has_gpu || d->sides[KP_DIFF_B].has_gpu) return false; /* its rows are of the host */
    for (size_t i = d->group_from[KP_DIFF_OPS]; i < d->group_from[KP_DIFF_OPS + 1]; i++) {
        const struct kp_diff_row *row = &d->rows[i];
        if (row->verdict == KP_DIFF_NOISE || strncmp(kp_strings_get(d->strings, row->name), "ProfilerStep", 12) == 0)
            continue;
        out->rows_ns += row->change;
    }
    for (size_t i = d->group_from[KP_DIFF_PARTS]; i < d->group_from[KP_DIFF_PARTS + 1]; i++)
        if (strcmp(kp_strings_get(d->strings, d->rows[i].name), KP_DIFF_NO_OP) == 0) out->gap_ns = d->rows[i].change;
    out->is_gap_in_rows = d->sides[KP_DIFF_A].has_python && d->sides[KP_DIFF_B].has_python;
    return d->step.verdict == KP_DIFF_MORE || d->step.verdict == KP_DIFF_LESS;
}
