// SPDX-License-Identifier: Apache-2.0
/*
 * columns.c - prints a table that is given as columns: as text, or as JSON
 *
 * Each column is as wide as what it shows. On a narrow terminal names are cut and the last numbers left out.
 */
#include "export/show/columns.h"

#include <stdlib.h>
#include <string.h>

#include "export/show/letters.h"
#include "export/show/terminal.h"
#include "export/show/units.h"

enum { CELL_BYTES = 1024, NAME_LEAST = 16, NAME_FAIR = 34, LAST_LEAST = 14 };

static const struct {
    double times, over; /* shown: value * times / over */
    int decimals;       /* -1: by the largest value of the column */
} units[] = {
    [KP_UNIT_COUNT] = {1, 1, 0},   [KP_UNIT_MS] = {1, 1e6, 3},      [KP_UNIT_MS_FIT] = {1, 1e6, -1},
    [KP_UNIT_US] = {1, 1e3, 1},    [KP_UNIT_MIB] = {1, 1048576, 2}, [KP_UNIT_PERCENT] = {100, 1, 1},
    [KP_UNIT_SHARE] = {100, 1, 1}, [KP_UNIT_TIMES] = {1, 1, 2},     [KP_UNIT_BYTES] = {1, 1, 0},
    [KP_UNIT_TRUE] = {1, 1, 0},
};

struct shape { /* of a column */
    int width, decimals;
    bool is_shown;
};

static const void *row_at(const struct kp_columns *c, size_t i) { return (const char *)c->rows + i * c->row_bytes; }

/* Returns the text of a cell. A value that shows as 0 shows no sign. */
static const char *cell_text(const struct kp_columns *c, const struct kp_column *column, int decimals, const void *row,
                             char room[CELL_BYTES])
{
    static const double halves[] = {0.5, 0.05, 0.005, 0.0005};
    if (column->text) return column->text(c->table, row, room, CELL_BYTES);
    const double value = column->get(c->table, row),
                 shown = value * units[column->unit].times / units[column->unit].over;
    if (isnan(value)) return "-";
    if (column->unit == KP_UNIT_BYTES) return kp_units_bytes(room, CELL_BYTES, (int64_t)value);
    snprintf(room, CELL_BYTES, "%.*f%s", decimals, shown < 0 && shown > -halves[decimals] ? 0 : shown,
             column->unit == KP_UNIT_SHARE ? " %" : "");
    return room;
}

static int decimals_for(const struct kp_columns *c, const struct kp_column *column)
{
    double most = 0;
    if (units[column->unit].decimals >= 0 || column->text) return units[column->unit].decimals;
    for (size_t i = 0; i < c->row_count; i++) most = fmax(most, column->get(c->table, row_at(c, i)));
    most = most * units[column->unit].times / units[column->unit].over;
    return most >= 1000 ? 1 : most >= 10 ? 2 : 3;
}

/* NULL: a column of texts without a title, or in JSON alone. */
static const char *title_of(const struct kp_columns *c, size_t column)
{
    const char *const title = c->name && !column ? c->name : c->of[column].title;
    return title && *title ? title : NULL;
}

static void measure(const struct kp_columns *c, struct shape *shapes)
{
    char room[CELL_BYTES];
    for (size_t k = 0; k < c->count; k++) {
        const struct kp_column *const column = &c->of[k];
        shapes[k].is_shown = column->title && column->is_shown(c->table);
        if (!shapes[k].is_shown) continue;
        shapes[k].decimals = decimals_for(c, column);
        size_t widest = title_of(c, k) ? kp_letters_columns(title_of(c, k)) : 0;
        if ((size_t)abs(column->width) > widest) widest = (size_t)abs(column->width);
        for (size_t i = 0; i < c->row_count && column->width; i++) {
            const size_t its = kp_letters_columns(cell_text(c, column, shapes[k].decimals, row_at(c, i), room));
            if (its > widest) widest = its;
        }
        shapes[k].width = column->width < 0 ? -(int)widest : column->width ? (int)widest : 0;
    }
}

/* The columns that a table takes without a last text that a terminal may cut. */
static size_t width_of(const struct kp_columns *c, const struct shape *shapes)
{
    size_t all = 0;
    for (size_t k = 0; k < c->count; k++)
        if (shapes[k].is_shown) all += (size_t)abs(shapes[k].width) + (all ? 2 : 0);
    return all;
}

/* The text that ends a row (a line of the program), which may be cut: 0 where there is none. */
static size_t last_text(const struct kp_columns *c, const struct shape *shapes)
{
    size_t last = c->count - 1;
    while (last && !shapes[last].is_shown) last--;
    return c->of[last].text && !shapes[last].width ? last : 0;
}

/* Shortens the names in the first column by what is too much, to no less than `least`. */
static void name_fit(const struct kp_columns *c, struct shape *shapes, size_t columns, size_t least)
{
    const size_t all = width_of(c, shapes), name = (size_t)abs(shapes[0].width);
    if (shapes[0].width >= 0 || all <= columns || name <= least) return;
    shapes[0].width = -(int)(name > all - columns + least ? name - (all - columns) : least);
}

/*
 * On a terminal that is too narrow: leaves out what is spare, shortens names a little, leaves out numbers from the
 * right, and then shortens names more. No number is cut. The text that ends a row goes last: the user looks for it.
 */
static void shapes_fit(const struct kp_columns *c, struct shape *shapes, size_t columns)
{
    if (!columns || !c->count) return;
    const size_t end = last_text(c, shapes), room = end && columns > 2 * LAST_LEAST ? columns - LAST_LEAST : columns;
    for (size_t k = c->count; k-- && width_of(c, shapes) > room;) shapes[k].is_shown &= !c->of[k].is_spare;
    name_fit(c, shapes, room, NAME_FAIR);
    size_t at = end ? end : c->count, first = 1;
    while (first < at && !shapes[first].is_shown) first++;
    while (at > first + 1 && width_of(c, shapes) > room) shapes[--at].is_shown = false;
    name_fit(c, shapes, columns, NAME_LEAST);
}

/* Writes a name on a terminal. Its ends tell it apart, unless its own end is cut already. */
static void name_print(FILE *out, const char *text, int width)
{
    char shown[CELL_BYTES];
    const size_t most = (size_t)abs(width), bytes = strlen(text);
    const bool is_cut = bytes > 3 && strcmp(text + bytes - 3, "...") == 0;
    kp_terminal_name(out, true);
    if (most > 2) text = kp_letters_fit(shown, sizeof shown, text, most, is_cut ? most - 2 : (most - 2) / 2, "..");
    kp_letters_pad(out, text, width);
    kp_terminal_name(out, false);
}

/* Writes the text that ends a row: of a place its end tells, so a terminal cuts its begin. */
static void end_print(FILE *out, const struct kp_columns *c, const struct shape *shapes, const char *text)
{
    char shown[CELL_BYTES];
    const size_t columns = kp_terminal_columns(out), used = width_of(c, shapes) + 2;
    const char *const more = strstr(text, ", and "); /* how many others there are goes first */
    if (columns > used + 2 && kp_letters_columns(text) > columns - used) {
        snprintf(shown, sizeof shown, "%.*s", (int)(more ? (size_t)(more - text) : strlen(text)), text);
        text = kp_letters_fit(shown, sizeof shown, shown, columns - used, 0, "..");
    }
    fputs(text, out);
}

/* row: NULL for the titles. */
static void line_print(FILE *out, const struct kp_columns *c, const struct shape *shapes, const void *row)
{
    char room[CELL_BYTES];
    const char *between = "";
    kp_terminal_row(out);
    for (size_t k = 0; k < c->count; k++) {
        if (!shapes[k].is_shown) continue;
        const char *const text = row ? cell_text(c, &c->of[k], shapes[k].decimals, row, room) : title_of(c, k);
        if (!text) continue;
        fputs(between, out);
        if (row && !k && c->of[0].text && kp_terminal_columns(out)) name_print(out, text, shapes[k].width);
        else if (row && k && k == last_text(c, shapes)) end_print(out, c, shapes, text);
        else kp_letters_pad(out, text, shapes[k].width);
        between = "  ";
    }
    fputs("\n", out);
}

void kp_columns_print(FILE *out, const struct kp_columns *c)
{
    struct shape *const shapes = calloc(c->count, sizeof *shapes);
    if (!shapes) return;
    measure(c, shapes);
    shapes_fit(c, shapes, kp_terminal_columns(out));
    line_print(out, c, shapes, NULL);
    for (size_t i = 0; i < c->row_count; i++) line_print(out, c, shapes, row_at(c, i));
    free(shapes);
}

void kp_columns_json(struct kp_jsonout *j, const struct kp_columns *c, const void *row)
{
    char room[CELL_BYTES];
    for (const struct kp_column *k = c->of; k < c->of + c->count; k++) {
        if (!k->key || !k->is_shown(c->table)) continue;
        const char *const text = k->text ? k->text(c->table, row, room, sizeof room) : NULL;
        const double value = k->get ? k->get(c->table, row) : NAN;
        if (text) kp_jsonout_text(j, k->key, text);
        else if (!isnan(value)) kp_jsonout_unit(j, k->key, value, k->unit);
    }
}
