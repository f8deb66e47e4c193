// SPDX-License-Identifier: Apache-2.0
/* table.c - writes the text of key_averages().table(): columns, widths, frame, numbers */
#include "export/answers/torchtable/keyavg.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "export/show/plain.h"
#include "export/show/units.h"

#define COLUMN 12
#define MAX_COLUMNS 24

struct layout {
    const char *heads[MAX_COLUMNS];
    int widths[MAX_COLUMNS];
    int count, line;          /* columns; letters of a whole line */
    int name, shapes, source; /* widths */
    bool overloads, shape_column, device, device_memory, flops, stacks;
    double flops_scale;
    double self_cpu, self_device; /* sums over all rows */
};
struct cells {
    char text[MAX_COLUMNS][40];
    const char *value[MAX_COLUMNS]; /* NULL: text */
    int letters[MAX_COLUMNS];       /* cut value to so many letters; -1: whole */
    int count;
};

/* ---- letters ---- */

static size_t letter_bytes(const char *text)
{
    unsigned char c = (unsigned char)*text;
    size_t wanted = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
    for (size_t i = 1; i < wanted; i++)
        if (((unsigned char)text[i] & 0xc0) != 0x80) return 1;
    return wanted;
}

static size_t letters_of(const char *text)
{
    size_t letters = 0;
    for (; *text; text += letter_bytes(text)) letters++;
    return letters;
}

static const char *letters_skip(const char *text, size_t letters)
{
    while (letters-- && *text) text += letter_bytes(text);
    return text;
}

static void put_many(FILE *out, char letter, int times)
{
    while (times-- > 0) putc(letter, out);
}

/* Writes `text` cut to `cut` letters (-1: whole) and `tail`, padded to `width`, and two blanks. */
static void put_cell(FILE *out, const char *text, int cut, const char *tail, int width, bool left)
{
    size_t letters = letters_of(text);
    if (cut >= 0 && letters > (size_t)cut) letters = (size_t)cut;
    size_t bytes = (size_t)(letters_skip(text, letters) - text);
    int pad = width - (int)letters - (int)letters_of(tail);
    if (!left) put_many(out, ' ', pad);
    fwrite(text, 1, bytes, out);
    fputs(tail, out);
    put_many(out, ' ', left && pad > 0 ? pad + 2 : 2);
}

/* Writes a name. From three letters below the limit on, "..." replaces its end. */
static void put_name(FILE *out, const char *name, const struct kp_table_options *o, int width)
{
    int most = o->name_width;
    bool cut = most && (int)letters_of(name) >= most - 3;
    int keep = -1;
    if (cut) {
        keep = most - 3;
        if (keep < 0) /* counts from the right, as Python's slices do */
            keep += (int)letters_of(name);
        if (keep < 0) keep = 0;
    }
    put_cell(out, name, keep, cut ? "..." : "", width, false);
}

/* Writes a source line; "..." replaces the head of a long one. With FLOPs it has their width, see row_tail. */
static void put_source(FILE *out, const char *frame, const struct layout *l)
{
    int letters = (int)letters_of(frame), width = l->flops ? COLUMN : l->source;
    char *cut = NULL;
    if (letters > l->source) {
        frame = letters_skip(frame, (size_t)(letters - l->source));
        if (l->source > 3 && asprintf(&cut, "...%s", letters_skip(frame, 3)) < 0) cut = NULL;
    }
    put_cell(out, cut ? cut : frame, -1, "", width, !l->flops);
    free(cut);
}

/* Names may hold any bytes. After sorting, each is replaced by what is shown, which sets the widths of columns. */
static uint32_t id_plain(struct kp_kineto *trace, uint32_t id)
{
    const char *text = kp_kineto_text(trace, id);
    const size_t bytes = strlen(text);
    if (kp_plain_is(text, bytes)) return id;
    char *shown = kp_kineto_room(4 * bytes + 1, 1);
    const uint32_t plain = kp_strings_put(trace->strings, shown, kp_plain_text(shown, 4 * bytes + 1, text, bytes));
    free(shown);
    return plain;
}

static void rows_plain(struct kp_keyavg *a)
{
    for (size_t i = 0; i < a->count; i++) {
        struct kp_row *row = &a->rows[i];
        row->name = id_plain(a->trace, row->name);
        row->overload = id_plain(a->trace, row->overload);
        row->shapes = id_plain(a->trace, row->shapes);
        for (uint32_t f = 0; f < row->stack_count; f++) {
            const char **frame = &row->stack[f];
            const uint32_t id = kp_strings_put(a->trace->strings, *frame, strlen(*frame));
            *frame = kp_kineto_text(a->trace, id_plain(a->trace, id));
        }
    }
}

/* ---- layout ---- */

static int at_most(size_t letters, int most)
{
    int width = (int)letters + 4;
    return most && width > most ? most : width;
}

static void column_add(struct layout *l, const char *head, int width)
{
    l->heads[l->count] = head;
    l->widths[l->count++] = width;
    l->line += width + 2;
}

static void layout_measure(struct layout *l, const struct kp_keyavg *a, const struct kp_table_options *o)
{
    size_t name = 0, shapes = 0, source = 0;
    double least = 0;
    for (size_t i = 0; i < a->count; i++) {
        const struct kp_row *row = &a->rows[i];
        size_t letters = letters_of(kp_kineto_text(a->trace, row->name));
        name = letters > name ? letters : name;
        letters = letters_of(kp_kineto_text(a->trace, row->shapes));
        shapes = letters > shapes ? letters : shapes;
        l->overloads |= row->overload != 0;
        l->shape_column |= row->shapes && letters > 2;
        l->device |= row->self_device > 0;
        l->device_memory |= row->self_device_bytes > 0;
        if (row->flops > 0 && (least == 0 || row->flops < least)) least = row->flops;
        for (uint32_t frame = 0; frame < row->stack_count; frame++) {
            letters = letters_of(row->stack[frame]);
            source = letters > source ? letters : source;
        }
        l->stacks |= row->stack_count != 0;
        l->self_cpu += row->self_cpu;
        if (row->on_device && !row->is_annotation) l->self_device += row->self_device;
    }
    l->name = at_most(name, o->name_width);
    l->shapes = at_most(shapes, o->shapes_width);
    l->source = at_most(source, o->source_width);
    l->flops = a->with_flops && least > 0;
    l->flops_scale = least;
}

static const char *flops_head(struct layout *l)
{
    static const char *const heads[] = {"Total FLOPs",  "Total KFLOPs", "Total MFLOPs",
                                        "Total GFLOPs", "Total TFLOPs", "Total PFLOPs"};
    double power = log10(l->flops_scale) / 3;
    power = power < 0 ? 0 : power > 5 ? 5 : power;
    int index = (int)floor(power);
    l->flops_scale = pow(10, index * -3.0);
    return heads[index];
}

static void layout_columns(struct layout *l, const struct kp_keyavg *a)
{
    static const char *const cpu[] = {"Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"};
    static const char *const gpu[] = {"Self CUDA", "Self CUDA %", "CUDA total", "CUDA time avg"};
    column_add(l, "Name", l->name);
    if (l->overloads) column_add(l, "Overload Name", l->name);
    for (size_t i = 0; i < sizeof cpu / sizeof *cpu; i++) column_add(l, cpu[i], COLUMN);
    for (size_t i = 0; l->device && i < sizeof gpu / sizeof *gpu; i++) column_add(l, gpu[i], COLUMN);
    if (a->profile_memory) {
        column_add(l, "CPU Mem", COLUMN);
        column_add(l, "Self CPU Mem", COLUMN);
        if (a->has_device && l->device_memory) {
            column_add(l, "CUDA Mem", COLUMN);
            column_add(l, "Self CUDA Mem", COLUMN);
        }
    }
    column_add(l, "# of Calls", COLUMN);
    if (l->shape_column) column_add(l, "Input Shapes", l->shapes);
    if (l->stacks) column_add(l, "Source Location", l->source);
    if (l->flops) column_add(l, flops_head(l), COLUMN);
    l->line -= 2;
}

/* ---- rows ---- */

static char *cell(struct cells *c)
{
    c->value[c->count] = NULL;
    return c->text[c->count++];
}

static void time_cell(struct cells *c, double us, char unit) { kp_units_time(cell(c), sizeof c->text[0], us, unit); }

static void share_cell(struct cells *c, double us, double total)
{
    kp_units_share(cell(c), sizeof c->text[0], us, total);
}

static void row_numbers(struct cells *c, const struct kp_row *row, const struct layout *l, const struct kp_keyavg *a,
                        char unit)
{
    share_cell(c, row->self_cpu, l->self_cpu);
    time_cell(c, row->self_cpu, unit);
    if (row->is_async) strcpy(cell(c), "0");
    else share_cell(c, row->cpu_total, l->self_cpu);
    time_cell(c, row->cpu_total, unit);
    time_cell(c, row->cpu_avg, unit);
    if (l->device) {
        time_cell(c, row->self_device, unit);
        share_cell(c, row->self_device, l->self_device);
        time_cell(c, row->device_total, unit);
        time_cell(c, row->device_avg, unit);
    }
    if (a->profile_memory) {
        kp_units_torch_bytes(cell(c), sizeof c->text[0], row->cpu_bytes);
        kp_units_torch_bytes(cell(c), sizeof c->text[0], row->self_cpu_bytes);
        if (a->has_device && l->device_memory) {
            kp_units_torch_bytes(cell(c), sizeof c->text[0], row->device_bytes);
            kp_units_torch_bytes(cell(c), sizeof c->text[0], row->self_device_bytes);
        }
    }
    snprintf(cell(c), sizeof c->text[0], "%" PRId64, row->count);
}

/* torch writes FLOPs before the source, but their heads the other way round. So does this text. */
static void row_tail(FILE *out, const struct kp_row *row, const struct layout *l, const struct kp_keyavg *a, int column)
{
    char text[40] = "--";
    if (l->shape_column)
        put_cell(out, kp_kineto_text(a->trace, row->shapes), l->shapes, "", l->widths[column++], false);
    if (l->flops) {
        if (row->flops > 0) snprintf(text, sizeof text, "%8.3f", row->flops * l->flops_scale);
        put_cell(out, text, -1, "", l->widths[column], l->stacks);
        column++;
    }
    if (!l->stacks) return;
    put_source(out, row->stack_count ? row->stack[0] : "", l);
}

static void put_blank(FILE *out, const struct layout *l, int columns)
{
    for (int i = 0; i < columns; i++) put_many(out, ' ', l->widths[i] + 2);
}

static void row_frames(FILE *out, const struct kp_row *row, const struct layout *l)
{
    for (uint32_t i = 1; i < row->stack_count; i++) {
        put_blank(out, l, l->count - 1);
        put_source(out, row->stack[i], l);
        putc('\n', out);
    }
    put_blank(out, l, l->count);
    putc('\n', out);
}

static void put_row(FILE *out, const struct kp_row *row, const struct layout *l, const struct kp_keyavg *a,
                    const struct kp_table_options *o)
{
    struct cells c = {.count = 0};
    int column = 1 + l->overloads;
    put_name(out, kp_kineto_text(a->trace, row->name), o, l->name);
    if (l->overloads) put_name(out, kp_kineto_text(a->trace, row->overload), o, l->name);
    row_numbers(&c, row, l, a, o->time_unit);
    for (int i = 0; i < c.count; i++) put_cell(out, c.text[i], -1, "", l->widths[column++], false);
    row_tail(out, row, l, a, column);
    putc('\n', out);
    if (l->stacks) row_frames(out, row, l);
}

/* ---- frame ---- */

static void put_rule(FILE *out, const struct layout *l)
{
    for (int i = 0; i < l->count; i++) {
        put_many(out, '-', l->widths[i]);
        fputs("  ", out);
    }
    putc('\n', out);
}

static void put_head(FILE *out, const struct layout *l, const struct kp_table_options *o)
{
    if (o->header) {
        put_many(out, '=', l->line);
        fprintf(out, "\n%s\n", o->header);
    }
    if (o->top_level_only) {
        put_many(out, '=', l->line);
        fputs("\nThis report only display top-level ops statistics\n", out);
    }
    put_rule(out, l);
    for (int i = 0; i < l->count; i++)
        put_cell(out, l->heads[i], -1, "", l->widths[i], strcmp(l->heads[i], "Source Location") == 0);
    putc('\n', out);
    put_rule(out, l);
}

int kp_table_print(FILE *out, struct kp_keyavg *a, const struct kp_table_options *o)
{
    if (o->sort_by && kp_keyavg_sort(a, o->sort_by) < 0) return -EINVAL;
    if (a->count == 0) return 0;
    struct layout l = {.count = 0};
    rows_plain(a);
    layout_measure(&l, a, o);
    layout_columns(&l, a);
    put_head(out, &l, o);
    long printed = 0;
    for (size_t i = 0; i < a->count && printed != o->row_limit; i++) {
        if (o->top_level_only && a->rows[i].has_parent) continue;
        put_row(out, &a->rows[i], &l, a, o);
        printed++;
    }
    put_rule(out, &l);
    char text[40];
    fprintf(out, "Self CPU time total: %s\n", kp_units_time(text, sizeof text, l.self_cpu, o->time_unit));
    if (l.device)
        fprintf(out, "Self CUDA time total: %s\n", kp_units_time(text, sizeof text, l.self_device, o->time_unit));
    return 0;
}
