// SPDX-License-Identifier: Apache-2.0
/*
 * columns.h - a table as data: a row for each column, of which text and JSON are printed
 *
 * A file names the types of its table and of its rows, lists its columns, and gets the list of them:
 *
 *     #define KP_TABLE struct kp_top
 *     #define KP_ROW struct kp_top_row
 *     #define COLUMNS(NUMBER, TEXT)                                       \
 *         TEXT(name, "op", "name", -8, true, kp_kineto_text(t->trace, r->name)) \
 *         NUMBER(calls, "count", "count", COUNT, 0, t->calls > 1, (double)r->calls)
 *     KP_COLUMNS(columns, COLUMNS)
 *
 * NUMBER(id, title, JSON key, unit, width, is it shown, value) and TEXT(id, title, JSON key, width, is it shown, value)
 * see the table as `t`, the row as `r`; a text may write to `room`, of `bytes` bytes. In `is it shown` there is no row.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "export/show/jsonout.h"

struct kp_column {
    const char *title; /* NULL: in JSON alone */
    const char *key;   /* NULL: in text alone */
    enum kp_unit unit;
    int width; /* the least; negative: to the left; 0: of a text that begins its column and is not padded */
    bool (*is_shown)(const void *table);
    double (*get)(const void *table, const void *row); /* NAN: not known, "-" in text, left out of JSON */
    const char *(*text)(const void *table, const void *row, char *room, size_t bytes); /* instead of `get`; NULL:
    nothing, not even blanks before it, which a column without a width may have; left out of JSON */
    const char *brief; /* its title in `kprof view`; NULL: not there */
    bool is_spare;     /* left out first where a terminal is too narrow */
};
/* In place of a width. */
#define KP_BRIEF(text) KP_ALSO_BRIEF(0, text)
#define KP_ALSO_BRIEF(least, text) least, .brief = text
#define KP_SPARE(least, text) KP_ALSO_BRIEF(least, text), .is_spare = true
struct kp_columns {
    const struct kp_column *of;
    size_t count;
    const void *table, *rows;
    size_t row_bytes, row_count;
    const char *name; /* the first column's title, or NULL: its own */
};
#define KP_COLUMNS_OF(columns, its_table, its_rows, its_count)                                                \
    (&(struct kp_columns){columns, sizeof columns / sizeof *columns, its_table, its_rows, sizeof *(its_rows), \
                          its_count, NULL})

/* Prints the titles and all rows; each column is as wide as what it shows. */
void kp_columns_print(FILE *out, const struct kp_columns *c);
/* Writes a member for each column of one row. */
void kp_columns_json(struct kp_jsonout *j, const struct kp_columns *c, const void *row);

#define KP_COLUMN_SHOWN(id, shown)                      \
    static bool column_##id##_is_shown(const void *its) \
    {                                                   \
        const KP_TABLE *const t = its;                  \
        (void)t;                                        \
        return shown;                                   \
    }
#define KP_COLUMN_SEES(its, of)    \
    const KP_TABLE *const t = its; \
    const KP_ROW *const r = of;    \
    (void)t, (void)r
#define KP_COLUMN_GET(id, title, key, unit, width, shown, value)     \
    KP_COLUMN_SHOWN(id, shown)                                       \
    static double column_##id##_get(const void *its, const void *of) \
    {                                                                \
        KP_COLUMN_SEES(its, of);                                     \
        return value;                                                \
    }
#define KP_COLUMN_GET_TEXT(id, title, key, width, shown, value)                                      \
    KP_COLUMN_SHOWN(id, shown)                                                                       \
    static const char *column_##id##_text(const void *its, const void *of, char *room, size_t bytes) \
    {                                                                                                \
        KP_COLUMN_SEES(its, of);                                                                     \
        (void)room, (void)bytes;                                                                     \
        return value;                                                                                \
    }
#define KP_COLUMN_ROW(id, its_title, its_key, of_unit, least, shown, value) \
    {.title = its_title,                                                    \
     .key = its_key,                                                        \
     .unit = KP_UNIT_##of_unit,                                             \
     .width = least,                                                        \
     .is_shown = column_##id##_is_shown,                                    \
     .get = column_##id##_get},
#define KP_COLUMN_ROW_TEXT(id, its_title, its_key, least, shown, value) \
    {.title = its_title,                                                \
     .key = its_key,                                                    \
     .width = least,                                                    \
     .is_shown = column_##id##_is_shown,                                \
     .text = column_##id##_text},
#define KP_COLUMNS(name, LIST)              \
    LIST(KP_COLUMN_GET, KP_COLUMN_GET_TEXT) \
    static const struct kp_column name[] = {LIST(KP_COLUMN_ROW, KP_COLUMN_ROW_TEXT)};
